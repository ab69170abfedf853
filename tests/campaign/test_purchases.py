"""Orders and money: labels stay with their rows, orders keep their prices, and nothing is ordered
by accident."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import allot, begin, fill, fine, refused, rows, sheet, shorten, write

import allotment as al
from allotment.campaign.campaign import Campaign
from allotment.campaign.rounds import Bill, settle
from allotment.ledger.store import Store
from allotment.stock.fingerprints import KIND, find_moved

Table = list[dict[str, str]]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def neutral(
    budget: int = 60, *more: object, folder: str = "camp", table: Table | None = None
) -> Path:
    return begin(folder, "--method", "neutral", *more, table=table, budget=budget)


def add_order(store: Store, items: list[tuple[str, str]]) -> None:
    """One that does not say what it cost."""
    order = {"items": [list(item) for item in items], "seed": 0, "together": False, "costs": {}}
    store.add_order({"order": order, "plan": None, "form": {}}, items, "an old order")


def money(folder: Path) -> tuple[str, str, str]:
    status = json.loads(fine("status", folder, "--json"))
    return status["spent"], status["on_order"], status["left"]


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "campaign.toml").read_text()
    assert text.count(old) == 1
    (folder / "campaign.toml").write_text(text.replace(old, new))


def settle_all(folder: Path, number: int = 1) -> None:
    """Everything of an order comes back."""
    fine(
        "ingest",
        folder,
        fill(
            folder / f"order-{number}.csv", Path(f"full-{number}.csv"), {"size": 3, "look": "old"}
        ),
    )


# --- rows that go by their numbers ---


def sort_rows(table: Table) -> Table:
    return sorted(table, key=lambda row: row["width"])


def drop_row(table: Table) -> Table:
    return table[1:]


def swap_rows(table: Table) -> Table:
    ordered = [int(row["instance"]) - 1 for row in sheet(Path("camp/order-1.csv"))]
    table[ordered[0]], table[ordered[1]] = table[ordered[1]], table[ordered[0]]
    return table


def cut_short(table: Table) -> Table:
    return table[: max(int(row["instance"]) for row in sheet(Path("camp/order-1.csv"))) - 1]


@pytest.mark.parametrize("move", [sort_rows, drop_row, swap_rows, cut_short])
def test_rows_that_moved_are_refused_by_every_command_until_they_are_back(
    move: Callable[[Table], Table],
) -> None:
    folder = neutral()
    fine("order", folder)
    filled = fill(folder / "order-1.csv", Path("filled.csv"), {"size": 3, "look": "old"})
    before = fine("status", folder)
    write(Path("table.csv"), move(rows()))
    for command in (
        ["status"],
        ["plan"],
        ["order"],
        ["ingest", filled],
        ["report"],
        ["order", "--cancel", 1],
    ):
        told = refused(2, command[0], folder, *command[1:])
        assert re.search(
            r"'table.csv', row \d+: .* (is row \d+ now|is not there any more).* Nothing is lost: ",
            told,
        )
    assert "Nothing is lost" in allot("check", folder).stdout
    assert allot("check", folder).exit_code == 2
    write(Path("table.csv"), rows())
    assert fine("status", folder) == before
    fine("ingest", folder, filled)


def test_the_message_names_the_row_and_where_it_is_now() -> None:
    folder = neutral()
    fine("order", folder)
    first = min(int(row["instance"]) for row in sheet(folder / "order-1.csv"))
    new = rows(1)[0] | {"width": "9", "age": "9"}
    write(Path("table.csv"), [new, *rows()])
    assert f"row {first}: the row of this number" in refused(2, "status", folder)
    assert f"is row {first + 1} now" in refused(2, "status", folder)


def test_what_people_do_to_a_table_all_the_time_is_allowed() -> None:
    folder = neutral()
    fine("order", folder)
    ordered = sheet(folder / "order-1.csv")
    table = rows()
    table[int(ordered[0]["instance"]) - 1]["width"] = "0.7777"  # a value is corrected
    for row in ordered[1:4]:  # labels are filled in where they belong
        table[int(row["instance"]) - 1][row["task"]] = {"size": "2.5", "look": "old"}[row["task"]]
    new = [row | {"width": f"1{row['width']}"} for row in rows(5)]
    write(Path("table.csv"), [row | {"note": "seen"} for row in [*table, *new]])
    fine("status", folder)
    fine("order", folder, "-o", "again.csv")
    # another program writes numbers so
    written = Path("table.csv").read_text().replace("0.7777", "7.777e-1")
    Path("table.csv").write_text(written)
    settle_all(folder)
    # and what was added and corrected is on record by now
    write(Path("table.csv"), sort_rows([row | {"note": "seen"} for row in [*table, *new]]))
    assert "Nothing is lost" in refused(2, "status", folder)


def test_before_anything_is_ordered_a_table_may_change_as_it_likes() -> None:
    folder = neutral()
    fine("plan", folder)
    write(Path("table.csv"), sort_rows(rows()))
    fine("plan", folder)
    fine("order", folder)
    fine("status", folder)
    write(Path("table.csv"), rows())
    refused(2, "status", folder)


def test_rows_with_names_may_be_sorted() -> None:
    folder = neutral(60, "--id", "name", table=rows(id_=True))
    fine("order", folder)
    before = fine("status", folder)
    write(Path("table.csv"), sort_rows(rows(id_=True)))
    assert fine("status", folder) == before
    with Store.open(folder, write=False) as store:
        last = store.last_result(KIND)
    assert last is not None
    assert (last[1]["id"], last[1]["columns"], last[2]) == ("name", [], "")


def test_a_campaign_without_prints_gets_them_by_the_next_command_that_writes() -> None:
    text = (neutral(60, folder="other") / "campaign.toml").read_text()
    folder = Campaign.create("camp", text).folder
    with Store.open(folder, write=True) as store:  # as an earlier version left it
        add_order(store, [("size", "4"), ("look", "5")])
        assert store.last_result(KIND) is None
    write(Path("table.csv"), sort_rows(rows()))
    fine("status", folder)
    fine("order", folder, "--more", "--all")
    write(Path("table.csv"), rows())
    refused(2, "status", folder)


def test_prints_that_make_no_sense_are_as_good_as_none() -> None:
    folder = neutral()
    fine("order", folder)
    with Store.open(folder, write=True) as store:
        store.put_result(al.job.Job(KIND, {"file": "", "columns": ["width"]}), {"no": "prints"})
    write(Path("table.csv"), sort_rows(rows()))
    fine("status", folder)


@pytest.mark.parametrize("kinds", [4, 10**9])
def test_moves_are_told_from_corrections(kinds: int) -> None:
    """Few kinds: rows look alike, and a corrected one looks like another that was there."""
    rng = np.random.default_rng(kinds)
    for _ in range(200):
        old = rng.integers(kinds, size=40).astype(np.uint64)
        every = list(range(40))
        corrected = old.copy()
        corrected[rng.integers(40)] = kinds + 1
        assert (
            find_moved(
                old, np.append(corrected, rng.integers(kinds, size=3).astype(np.uint64)), every
            )
            == []
        )
        moved = rng.permutation(old)
        assert find_moved(old, moved, every) == np.flatnonzero(old != moved).tolist()
        gone = np.delete(old, 20)
        expected = [row for row in every if row == 39 or old[row] != gone[row]]
        assert find_moved(old, gone, every) == expected
        assert find_moved(old, gone, list(range(20))) == []


# --- prices ---


def test_a_new_price_holds_for_what_is_still_to_be_bought() -> None:
    folder = begin("camp", "--method", "neutral", budget=60)
    change(folder, "cost = 5", "cost = 1")
    change(folder, "budget = 60", "budget = 30")
    fine("order", folder)
    filled = fill(folder / "order-1.csv", Path("part.csv"), {"size": 3, "look": "old"}, most=12)
    fine("ingest", folder, filled)
    assert money(folder) == ("12", "18", "0")
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(text.replace("cost = 1\n", "cost = 0.5\n"))
    assert money(folder) == ("12", "18", "0")
    assert "buys nothing more" in refused(1, "order", folder, "--more")
    fine("order", folder, "--cancel", 1)
    assert money(folder) == ("12", "0", "18")
    ordered = json.loads(fine("order", folder, "--json"))
    assert (ordered["total"], sum(ordered["counts"].values())) == ("18", 36)
    assert money(folder) == ("12", "18", "0")


def test_bills_add_up_to_the_price_of_all_labels_while_prices_stay() -> None:
    rng = random.Random(3)
    for _ in range(200):
        task = al.Task("a", cost=3, fee=rng.choice([0, 7]), tiers=[(10, 2), (30, "0.5")])
        bills, total = [], 0
        for number in range(1, rng.randint(2, 5)):
            shifted = _after(task, total)
            came, waiting = rng.randint(0, 9), rng.randint(1, 9)
            bills.append(Bill(number, shifted, came, waiting))
            total += came + waiting
        paid = settle(bills)
        assert sum(sum(each) for each in paid.values()) == task.price(total)
        assert list(paid) == [bill.order for bill in bills]
        assert all(
            spent == bill.task.price(bill.came)
            for bill, (spent, _) in zip(bills, paid.values(), strict=True)
        )


def _after(task: al.Task, bought: int) -> al.Task:
    """The task's terms once some labels are bought, by its definition alone."""
    tiers = [(after - bought, cost) for after, cost in task.tiers if after > bought]
    cost = [cost for after, cost in [(0, task.cost), *task.tiers] if after <= bought][-1]
    return al.Task("a", cost=cost, fee=0 if bought else task.fee, tiers=tiers)


def test_the_fee_of_an_order_that_was_given_up_is_paid_by_the_one_that_relied_on_it() -> None:
    first, later = al.Task("a", cost=1, fee=20), al.Task("a", cost=1)
    assert settle([Bill(1, first, 0, 0), Bill(2, later, 3, 2)]) == {1: (0, 0), 2: (23, 2)}
    assert settle([Bill(1, first, 1, 0), Bill(2, later, 3, 2)]) == {1: (21, 0), 2: (3, 2)}
    assert settle([Bill(1, first, 0, 0), Bill(2, first, 0, 2)]) == {1: (0, 0), 2: (0, 22)}
    # a label of the first that comes late brings its fee with it, which is not paid twice
    assert settle([Bill(1, first, 1, 0), Bill(2, first, 3, 2)]) == {1: (21, 0), 2: (3, 2)}
    dearer = al.Task("a", cost=1, fee=30)
    assert settle([Bill(1, first, 0, 0), Bill(2, dearer, 3, 2)]) == {1: (0, 0), 2: (33, 2)}


def test_late_labels_of_an_order_that_was_given_up_are_called_so() -> None:
    folder = neutral(60)
    fine("order", folder)
    fine("order", folder, "--cancel", 1)
    told = fine(
        "ingest", folder, fill(folder / "order-1.csv", Path("late.csv"), {"size": 3, "look": "old"})
    )
    assert "Labels of an order that was given up, which are paid now: " in told
    assert "no order asked for" not in told
    assert money(folder)[0] != "0"


def test_what_was_filled_into_the_table_stays_paid_when_the_rest_is_given_up() -> None:
    folder = neutral(60)
    fine("order", folder)
    items = [(row["task"], int(row["instance"]) - 1) for row in sheet(folder / "order-1.csv")]
    before = money(folder)
    table = rows()
    for task, row in items[:-1]:
        table[row][task] = "3" if task == "size" else "old"
    write(Path("table.csv"), table)
    spent, on_order, left = money(folder)
    assert (before[0], left) == ("0", before[2])
    assert float(on_order) > 0
    fine("order", folder, "--cancel", 1)
    assert money(folder) == (spent, "0", f"{60 - int(spent)}")
    # what comes later into the table is paid as if it had been delivered
    task, row = items[-1]
    table[row][task] = "3" if task == "size" else "old"
    write(Path("table.csv"), table)
    assert money(folder)[0] == f"{int(spent) + int(on_order)}"


def test_an_order_that_does_not_say_what_it_cost_is_priced_as_the_settings_say() -> None:
    folder = neutral()
    with Store.open(folder, write=True) as store:
        add_order(store, [("size", "4"), ("look", "5")])
    assert money(folder) == ("0", "6", "54")


def test_more_than_there_is_is_never_shown_without_a_word() -> None:
    folder = neutral(60)
    fine("order", folder)
    shorten(folder, budget=20)
    told = fine("status", folder)
    assert "Budget 20: 0 spent, 60 on order, 40 too much." in told
    assert "Note: 40 more is spent or on order than the budget" in told
    assert "more than the budget of 20" in refused(1, "plan", folder)
    settle_all(folder)
    assert "Budget 20: 60 spent, 0 on order, 40 too much." in fine("status", folder)
    assert allot("check", folder).exit_code == 1
    fine("report", folder)


# --- reports ---


def test_a_report_takes_the_place_of_a_report_alone() -> None:
    folder = neutral()
    store, table = (folder / "campaign.sqlite").read_bytes(), Path("table.csv").read_bytes()
    page = Path("page.html")
    page.write_text("<!DOCTYPE html>\n<html lang='en'><head><title>mine</title></head></html>")
    for path in (folder / "campaign.sqlite", Path("table.csv"), page):
        assert "is no report" in refused(2, "report", folder, "-o", path)
    assert "mine" in page.read_text()
    assert (store, table) == (
        (folder / "campaign.sqlite").read_bytes(),
        Path("table.csv").read_bytes(),
    )
    fine("report", folder, "-o", "new.html")
    before = Path("new.html").read_bytes()
    fine("order", folder)
    fine("report", folder, "-o", "new.html")
    assert Path("new.html").read_bytes() != before


def test_a_full_disk_leaves_the_old_report_whole() -> None:
    folder = neutral()
    fine("report", folder)
    before = (folder / "report.html").read_bytes()
    fine("order", folder)
    limit = len(before) // 2
    script = (
        "import resource, sys; from allotment.cli import main;"
        f" resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.argv[1:] = ['report',"
        " 'camp']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (folder / "report.html").read_bytes() == before
    assert (done.returncode, done.stdout) == (2, "")
    assert "ulimit -f" in done.stderr
    assert not list(folder.glob(".half-*"))


def test_a_report_follows_no_link() -> None:
    folder = neutral()
    fine("report", folder, "-o", "earlier.html")
    before = Path("earlier.html").read_bytes()
    # one that is not there, a report, itself
    for target in ("nowhere.html", "earlier.html", "report.html"):
        Path("camp/report.html").unlink(missing_ok=True)
        Path("camp/report.html").symlink_to(
            Path.cwd() / target if target != "report.html" else target
        )
        assert "is a link" in refused(2, "report", folder)
    assert Path("camp/report.html").is_symlink()
    assert (Path("nowhere.html").exists(), Path("earlier.html").read_bytes()) == (False, before)
    Path("camp/report.html").unlink()
    os.mkfifo("camp/report.html")
    assert "is a folder, a pipe or a device" in refused(2, "report", folder)


def test_a_report_tells_what_is_at_hand_from_what_is_on_order() -> None:
    folder = neutral(60)
    fine("order", folder)
    report = json.loads(fine("report", folder, "--json"))
    assert [each.get("spent") for each in report["rounds"]] == ["0", None]
    assert report["decision"].startswith("On order: ")
    assert "(budget 60: 0 spent, 60 on order, 0 left)." in report["decision"]
    # it was before these were bought
    assert not any("have" in task for task in report["plan"]["tasks"])
    fill(folder / "order-1.csv", Path("part.csv"), {"size": 3, "look": "old"}, most=4)
    fine("ingest", folder, "part.csv")
    came = sum({"size": 1, "look": 5}[row["task"]] for row in sheet(folder / "order-1.csv")[:4])
    assert json.loads(fine("report", folder, "--json"))["rounds"][0]["spent"] == str(came)
    shorten(folder, budget=120)
    report, status = (json.loads(fine(verb, folder, "--json")) for verb in ("report", "status"))
    assert "decision" not in report
    at_hand = {task["name"]: task["have"] for task in status["tasks"]}
    assert {task["name"]: task["have"] for task in report["plan"]["tasks"]} == at_hand
    assert at_hand["size"] + at_hand["look"] == 45 + 30 + 4


# --- orders ---


@pytest.mark.parametrize(
    "place", ["nodir/x.csv", "table.csv", "camp", "x" * 300 + ".csv", "table.csv/x.csv"]
)
def test_an_order_whose_sheet_has_no_place_is_not_placed(place: str) -> None:
    folder = neutral()
    table = Path("table.csv").read_bytes()
    refused(2, "order", folder, "-o", place)
    assert money(folder) == ("0", "0", "60")
    assert Path("table.csv").read_bytes() == table
    (folder / "order-1.csv").write_text("something of the user's\n")
    refused(2, "order", folder)
    assert money(folder) == ("0", "0", "60")
    fine("order", folder, "-o", "free.csv")
    assert money(folder) == ("0", "60", "0")


def test_nothing_is_ordered_on_top_of_an_open_order_unless_one_says_so() -> None:
    folder = neutral(40)
    fine("order", folder)
    shorten(folder, budget=60)
    for options in (["--all"], ["--together"], ["--all", "--together"]):
        told = fine("order", folder, *options, "-o", f"again{len(options)}{options[0]}.csv")
        assert "Order 1 is still open" in told
        assert (
            f"To order more before it is back: allot order {folder} {' '.join(options)} --more\n"
            in told
        )
    assert money(folder) == ("0", "40", "20")
    told = fine("plan", folder)
    assert told.endswith(
        f"Next: allot ingest {folder} FILE   (or order this before order 1 is back: allot order"
        f" {folder} --more)\n"
    )
    on_order = re.search(r"What is on order \((.*)\) is counted here as if it were at hand", told)
    assert on_order is not None
    counts = Campaign(folder).look().account.open
    assert on_order[1] == ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    assert fine("order", folder, "--all", "--more").startswith("Order 2: ")
    assert money(folder) == ("0", "60", "0")


def test_what_was_cancelled_can_be_ordered_again() -> None:
    folder = neutral()
    fine("order", folder)
    assert "is given up" in fine("order", folder, "--cancel", 1)
    told = fine("order", folder, "--cancel", 1)
    assert "Nothing of order 1 is open, so nothing is given up" in told
    assert "Order 2: " in fine("order", folder)
    assert money(folder) == ("0", "60", "0")
    fine("order", folder, "--cancel", 2)
    assert "Order 3: " in fine("order", folder)
    settle_all(folder, 3)
    assert money(folder) == ("60", "0", "0")


# --- when nothing is left to buy ---


def test_a_cap_that_is_used_up_is_the_reason_given_and_the_end() -> None:
    folder = neutral(60)
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(
        f'{text}\n[[cap]]\nname = "hours"\nlimit = 4\nuse = {{size = 1, look = 1}}\n'
    )
    fine("order", folder)
    settle_all(folder)
    for verb in ("plan", "order"):
        told = refused(1, verb, folder)
        assert "takes more than is left of 'hours'" in told
        assert "raise the cap in camp/campaign.toml" in told
    told = fine("status", folder)
    assert "buys nothing more (size: a label takes more than is left of 'hours'; " in told
    assert told.endswith(f"Next: allot evaluate {folder}\n")


def test_where_nothing_is_left_to_buy_the_model_comes_next() -> None:
    folder = neutral(4)
    fine("order", folder)
    settle_all(folder)
    assert fine("status", folder).endswith(f"Next: allot evaluate {folder}\n")
    assert fine("evaluate", folder, "--workers", 0).endswith(f"Next: allot train {folder}\n")
    assert fine("status", folder).endswith(f"Next: allot train {folder}\n")
    fine("train", folder)
    assert fine("status", folder).endswith(f"Next: allot report {folder}\n")
    # another label makes another model
    shutil.rmtree(folder / "model")
    Path("more.csv").write_text("instance,size\n2,3.5\n")
    told = fine("ingest", folder, "more.csv")
    assert told.endswith(f"Next: allot evaluate {folder}\n")


def test_what_is_frozen_and_bought_is_told_as_the_file_has_it() -> None:
    folder = neutral(90)
    change(folder, "cost = 1\n", "cost = 1\nfrozen = 7\n")
    change(folder, "cost = 5\n", "cost = 5\nmost = 2\n")
    fine("order", folder)
    settle_all(folder)
    told = refused(1, "plan", folder)
    assert "size: it is frozen at 7, and these are bought; look: most is 2" in told
    assert "raise the frozen or the most in camp/campaign.toml" in told


def test_where_every_row_is_labelled_no_money_helps() -> None:
    table = [
        row | {"size": "3", "look": ("old", "new")[number % 2]}
        for number, row in enumerate(rows(24))
    ]
    table[3]["size"] = ""
    folder = begin("camp", table=table, budget=60)
    table[3]["size"] = "3"
    write(Path("table.csv"), table)
    shorten(folder, trainings=4)
    told = fine("estimate", folder, "--workers", 1)
    assert (
        "There is nothing to plan with: budget 60: 0 spent, 0 on order, 60 left; that buys nothing"
        " more" in told
    )
    assert "size: nothing is left to label; look: nothing is left to label" in " ".join(
        told.split()
    )
    assert "raise" not in told
    assert "allot plan" not in told
    assert "raise" not in refused(1, "plan", folder)


def test_other_budgets_are_mended_where_they_were_given() -> None:
    folder = neutral(60)
    fine("order", folder)
    settle_all(folder)
    told = refused(1, "plan", folder, "--budget", 10)
    assert "give a larger --budget" in told
    assert "campaign.toml" not in told


# --- data that hold all labels ---


def complete(budget: int) -> Path:
    table = [
        row | {"size": "3.5", "look": ("old", "new")[number % 2]}
        for number, row in enumerate(rows())
    ]
    return begin(
        "camp",
        "--method",
        "neutral",
        "--have",
        "size=9",
        "--have",
        "look=9",
        table=table,
        budget=budget,
    )


def test_buying_with_no_money_left_does_not_send_one_to_order() -> None:
    folder = complete(10)
    assert f"type: allot order {folder}" in refused(2, "ingest", folder, "--oracle")
    fine("order", folder)
    fine("ingest", folder, "--oracle")
    told = refused(2, "ingest", folder, "--oracle")
    assert (
        "nothing is on order; budget 10: 10 spent, 0 on order, 0 left; that buys nothing more"
        in told
    )
    assert "allot order" not in told


def test_a_plan_beyond_the_budget_is_called_so() -> None:
    folder = complete(10)
    campaign = Campaign(folder)
    plans: list[dict[str, Any]] = [{"size": 10}, {"size": 6, "look": 1}, {"look": 2}]
    assert campaign.judge_prices(plans) == [
        "yours 2 costs 11, more than the budget of 10: no fair comparison with plans that keep"
        " to it"
    ]
    result = allot("evaluate", folder, "--repeats", 1, "--workers", 1, "--plan", "size=6,look=1")
    assert result.exit_code == 0
    assert "note: yours costs 11, more than the budget of 10" in result.stderr
    assert Fraction(11) == campaign.look().settings.problem().price({"size": 6, "look": 1})


# --- rows and tasks that go missing ---


def lose_column(table: Table) -> Table:
    return [{key: cell for key, cell in row.items() if key != "width"} for row in table]


def rename_column(table: Table) -> Table:
    return [{key.replace("width", "Width"): cell for key, cell in row.items()} for row in table]


def double_column(table: Table) -> Table:
    return [row | {"width": f"{2 * float(row['width']):.3f}"} for row in table]


def copy_one(table: Table) -> Table:
    return [row | {"width": "0.5", "age": "0.25"} for row in table]


DISGUISES = [lose_column, rename_column, double_column, copy_one]


def half_done() -> tuple[Path, str]:
    """A campaign of which half of an order came back, and what its status is."""
    folder = neutral()
    fine("order", folder)
    half = len(sheet(folder / "order-1.csv")) // 2
    fine(
        "ingest",
        folder,
        fill(folder / "order-1.csv", Path("half.csv"), {"size": 3, "look": "old"}, most=half),
    )
    return folder, fine("status", folder)


def vouch(folder: Path, told: str) -> None:
    digest = re.search(r'write rows = "([0-9a-f]{8})" under \[data\]', told)
    assert digest is not None, told
    text = re.sub(r'^rows = ".*\n', "", (folder / "campaign.toml").read_text(), flags=re.MULTILINE)
    (folder / "campaign.toml").write_text(
        text.replace("[data]\n", f'[data]\nrows = "{digest[1]}"\n')
    )


def test_labels_of_a_cancelled_order_go_to_no_other_rows() -> None:
    folder = neutral()
    fine("order", folder)
    filled = fill(folder / "order-1.csv", Path("filled.csv"), {"size": 3, "look": "old"})
    fine("order", folder, "--cancel", 1)
    write(Path("table.csv"), rows()[::-1])
    for command in (["status"], ["ingest", filled]):
        assert "Nothing is lost" in refused(2, command[0], folder, *command[1:])
    write(Path("table.csv"), rows())
    fine("ingest", folder, filled)
    assert money(folder) == ("60", "0", "0")


def test_rows_of_a_task_that_was_taken_out_may_not_move_either() -> None:
    folder = neutral()
    with Store.open(folder, write=True) as store:
        add_order(store, [("look", "5")])
    fine("plan", folder)  # which puts prints on record
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(text[: text.rindex("[[task]]")])
    fine("status", folder)
    write(Path("table.csv"), rows()[::-1])
    assert "row 5: " in refused(2, "status", folder)


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_table_that_was_sorted_in_disguise_is_refused_and_the_old_one_still_fits(
    disguise: Callable[[Table], Table],
) -> None:
    folder, before = half_done()
    filled = fill(folder / "order-1.csv", Path("filled.csv"), {"size": 3, "look": "old"})
    write(Path("table.csv"), disguise(sort_rows(rows())))
    for command in (["status"], ["order"], ["ingest", filled], ["order", "--cancel", 1]):
        told = refused(2, command[0], folder, *command[1:])
        assert "it can't be told whether rows stand where they stood" in told
        assert f"under [data] in {folder / 'campaign.toml'}" in told
    write(Path("table.csv"), rows())
    assert fine("status", folder) == before


@pytest.mark.parametrize("change_all", [lose_column, rename_column, double_column])
def test_a_change_of_all_rows_is_accepted_for_one_state_of_the_table_if_the_user_vouches_for_it(
    change_all: Callable[[Table], Table],
) -> None:
    folder, before = half_done()
    write(Path("table.csv"), change_all(rows()))
    vouch(folder, refused(2, "status", folder))
    assert fine("status", folder) == before
    fine("order", folder, "-o", "again.csv")  # which puts the new state on record
    write(Path("table.csv"), sort_rows_by_age(change_all(rows())))
    assert "Nothing is lost" in refused(2, "status", folder)
    twice = [row | {"age": f"{3 * float(row['age']):.3f}"} for row in change_all(rows())]
    write(Path("table.csv"), twice)
    told = refused(2, "status", folder)
    assert "is for another state of the file" in told
    vouch(folder, told)
    assert fine("status", folder) == before


def sort_rows_by_age(table: Table) -> Table:
    return sorted(table, key=lambda row: row["age"])


def test_the_column_that_names_rows_stays_once_something_is_ordered() -> None:
    folder, before = half_done()
    keyed = [
        row | {"key": str(90 - number), "other": f"x{number}"} for number, row in enumerate(rows())
    ]
    write(Path("table.csv"), keyed)
    fine("status", folder)
    settings = (folder / "campaign.toml").read_text()
    for name in ("key", "other"):
        (folder / "campaign.toml").write_text(
            settings.replace("[data]\n", f'[data]\nid = "{name}"\n')
        )
        for command in (["status"], ["order", "-o", "again.csv"]):
            told = refused(2, command[0], folder, *command[1:])
            assert "data: id: has changed, but rows went by their numbers" in told
            assert "take id out of [data]" in told
    (folder / "campaign.toml").write_text(settings)
    assert fine("status", folder) == before


def test_an_id_column_gives_way_to_no_other_and_to_none() -> None:
    table = [row | {"key": f"k{number}"} for number, row in enumerate(rows(id_=True))]
    folder = neutral(60, "--id", "name", table=table)
    settings = (folder / "campaign.toml").read_text()
    fine("plan", folder)
    change(folder, 'id = "name"', 'id = "key"')
    fine("plan", folder)  # nothing is ordered yet
    change(folder, 'id = "key"', 'id = "name"')
    fine("order", folder)
    before = fine("status", folder)
    for new in ('id = "key"', ""):
        change(folder, 'id = "name"', new)
        told = refused(2, "status", folder)
        assert "the column 'name' named the rows" in told
        assert 'write id = "name" under [data]' in told
        (folder / "campaign.toml").write_text(settings)
    assert fine("status", folder) == before


def test_rows_with_names_that_are_gone_are_told_and_marked_in_the_sheet() -> None:
    folder = neutral(60, "--id", "name", table=rows(id_=True))
    fine("order", folder)
    ordered = [row["instance"] for row in sheet(folder / "order-1.csv")]
    gone = sorted(set(ordered))[:2]
    write(Path("table.csv"), [row for row in rows(id_=True) if row["name"] not in gone])
    told = " ".join(fine("status", folder).split())
    assert f"2 ordered instances are not in the data any more ({', '.join(gone)});" in told
    fine("order", folder, "-o", "again.csv")
    again = {row["instance"]: row["width"] for row in sheet(Path("again.csv"))}
    known = {row["name"]: f"{float(row['width']):g}" for row in rows(id_=True)}
    lost = "not in the data any more; leave it empty"
    assert again == {name: lost if name in gone else known[name] for name in ordered}


def test_what_is_on_order_of_a_task_that_was_taken_out_is_named() -> None:
    folder = neutral()
    fine("order", folder)
    tasks = [row["task"] for row in sheet(folder / "order-1.csv")]
    sizes, looks = tasks.count("size"), tasks.count("look")
    assert min(sizes, looks) > 1
    paid = money(folder)
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(text[: text.rindex("[[task]]")])
    told = " ".join(fine("status", folder).split())
    assert f"Note: {sizes} labels of order 1 did not come back yet; to give them up: " in told
    lost = (
        f"Note: order 1 also asked for {looks} labels of 'look', which is no task any more; put it"
        " back, or give "
    )
    assert f"{lost}them up: allot order {folder} --cancel 1." in told
    assert money(folder) == paid
