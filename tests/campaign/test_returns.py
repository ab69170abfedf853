"""Labels that come back, as people send them: what is said of each, what counts, and how a refused
one gets in."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from allotment.campaign.campaign import Campaign
from allotment.cli import main
from allotment.connect import guard
from allotment.connect.delivery import Parts, read_delivery, write_rejected
from allotment.data.dataset import Target
from allotment.errors import InputError

TASKS = {
    target.name: target
    for target in (
        Target("art", "classification", ("hund", "kätzchen")),
        Target("farben", "multilabel", ("blau", "grün", "rot")),
        Target("Größe", "regression"),
        Target("punkte", "keypoints"),
        Target("maske", "segmentation", ("aus", "an")),
    )
}
IDS = ("a", "b", "Ü3", "=x")
ROWS = tuple(str(number) for number in range(1, 301))


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "ALLOT_LEARNER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def allot(*args: object) -> Result:
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fine(*args: object) -> str:
    result = allot(*args)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def begin(folder: str = "camp", looks: str = "old,new", *more: object) -> Path:
    """Thirty rows, of which the first ten have a size of 1 to 10 and as many have a look."""
    names = looks.split(",")
    lines = [
        f"{number % 7},{number + 0.1},{names[number % len(names)]}"
        if number <= 10
        else f"{number % 7},,"
        for number in range(1, 31)
    ]
    Path("table.csv").write_text("width,size,look\n" + "\n".join(lines) + "\n")
    costs = [
        "--targets",
        "size,look",
        "--cost",
        "size=1",
        "--cost",
        "look=5",
        "--method",
        "neutral",
    ]
    fine("init", folder, "--root", "table.csv", *costs, "--budget", 60, "--steps", 3, *more)
    return Path(folder)


def send(folder: Path, content: str, name: str = "back.csv", *more: object) -> Mapping[str, Any]:
    Path(name).write_text(content)
    result = allot("ingest", folder, name, "--json", *more)
    found: Mapping[str, Any] = json.loads(result.stdout)
    return found


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def take(path: Path, content: str, **options: Any) -> Parts:
    path.write_text(content, encoding="utf-8")
    return read_delivery(path, options.pop("tasks", TASKS), options.pop("ids", IDS), **options)


# --- what a label is ---


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
@pytest.mark.parametrize(
    ("classes", "written", "kept"),
    [
        (("hund", "katze"), "0", None),
        (("hund", "katze"), "1.0", None),
        (("hund", "katze"), "katze", "katze"),
        (("0", "1"), "1.0", "1"),
        (("1", "2"), "0", None),
        (("a", "1"), "0", None),  # and never the first one
    ],
)
def test_a_number_is_a_class_only_where_it_is_its_name(
    tmp_path: Path, name: str, classes: tuple[str, ...], written: str, kept: str | None
) -> None:
    label = float(written) if written[0].isdigit() else written
    content = f"id,art\na,{written}\n" if name == "x.csv" else json.dumps({"id": "a", "art": label})
    parts = take(tmp_path / name, content, tasks={"art": Target("art", "classification", classes)})
    assert parts.accepted == (() if kept is None else (("art", "a", kept),))
    for _, reason in parts.rejected:
        assert f"known: {', '.join(classes)}" in reason


def test_letters_that_were_taken_apart_are_the_same_letters(tmp_path: Path) -> None:
    apart = unicodedata.normalize(
        "NFD", "task,instance,label\nGröße,Ü3,3\nart,a,Kätzchen\nfarben,b,grün|rot\n"
    )
    expected = (("Größe", "Ü3", 3.0), ("art", "a", "kätzchen"), ("farben", "b", ["grün", "rot"]))
    assert apart.encode() != unicodedata.normalize("NFC", apart).encode()
    assert take(tmp_path / "long.csv", apart).accepted == expected
    wide = take(
        tmp_path / "wide.csv", unicodedata.normalize("NFD", "id,Größe,farben:grün\nÜ3,3,1\n")
    )
    assert wide.accepted == (("Größe", "Ü3", 3.0), ("farben", "Ü3", {"grün": 1}))
    named = take(
        tmp_path / "one.csv", "id,label\na,5\n", task=unicodedata.normalize("NFD", "Größe")
    )
    assert named.accepted == (("Größe", "a", 5.0),)


def test_two_names_of_the_same_letters_stay_two(tmp_path: Path) -> None:
    """And a third way to write them is neither."""
    forms = [unicodedata.normalize(form, "ǖ") for form in ("NFC", "NFD")]
    tasks = {"n": Target("n", "regression")}
    parts = take(
        tmp_path / "x.csv", f"id,n\n{forms[0]},1\n{forms[1]},2\nü\u0304,3\n", tasks=tasks, ids=forms
    )
    assert parts.accepted == (("n", forms[0], 1.0), ("n", forms[1], 2.0))
    assert len(parts.rejected) == 1


# --- what is said of one that is none ---


def test_rows_are_told_by_their_numbers(tmp_path: Path) -> None:
    content = "task,instance,label\nGröße,0,1\nGröße,301,1\nGröße,x,1\n"
    parts = take(tmp_path / "x.csv", content, ids=ROWS)
    for name, (_, reason) in zip(("0", "301", "x"), parts.rejected, strict=True):
        assert reason == f"there is no instance '{name}'; rows are numbered 1 to 300"
    assert parts.notes == ("none of its instances is known here, where rows are numbered 1 to 300",)


def test_a_bad_label_of_a_known_instance_does_not_make_it_unknown(tmp_path: Path) -> None:
    parts = take(
        tmp_path / "x.csv", "task,instance,label\nGröße,5555,1000\nGröße,24,abc\n", ids=ROWS
    )
    assert (len(parts.rejected), parts.notes) == (2, ())


def test_a_column_of_labels_without_a_task_asks_for_the_task(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"it has a column 'label', but none says which task .*--task NAME"
    ):
        take(tmp_path / "x.csv", "row,label\na,1\n", id_column="row")
    assert take(tmp_path / "x.csv", "row,label\na,1\n", id_column="row", task="Größe").accepted


def test_classes_that_no_label_at_hand_has_can_be_named() -> None:
    folder = begin("camp", "u")
    content = "task,instance,label\nlook,11,v\nlook,12,u\n"
    first = send(folder, content)
    assert (first["new"], len(first["rejected"])) == (1, 1)
    (note,) = [each for each in first["notes"] if "campaign.toml" in each]
    assert "the classes of 'look' were read from the labels at hand; if 'v' is a class, too" in note
    line = note[note.index("classes = ") : note.index("]") + 1]
    settings = folder / "campaign.toml"
    settings.write_text(settings.read_text().replace('name = "look"', f'name = "look"\n{line}'))
    again = send(folder, content)
    assert (again["new"], again["duplicates"], again["rejected"], again["again"]) == (
        1,
        1,
        [],
        False,
    )
    assert "campaign.toml" not in " ".join(
        send(folder, "task,instance,label\nlook,13,w\n", "w.csv")["notes"]
    )


@pytest.mark.parametrize(("times", "asked"), [(2, False), (3, True)])
def test_a_misspelt_class_is_taken_for_another_only_if_it_comes_often(
    tmp_path: Path, times: int, asked: bool
) -> None:
    content = "id,art\n" + "a,hunt\n" * times + "b,1\n"
    parts = take(tmp_path / "x.csv", content, guessed=["art"])
    assert "did you mean 'hund'?" in parts.rejected[0][1]
    assert any("if 'hunt' is a class, too" in note for note in parts.notes) == asked
    assert take(tmp_path / "x.csv", content).notes == ()


@pytest.mark.parametrize("looks", ["u", "old,new"])
def test_init_names_classes_that_few_labels_show(looks: str) -> None:
    begin("first", looks)
    costs = ["--targets", "size,look", "--cost", "size=1", "--cost", "look=5", "--budget", 60]
    said = fine("init", "second", "--root", "table.csv", *costs)
    assert (
        f"Classes of 'look', as read from its 10 labels: {', '.join(sorted(looks.split(',')))}. If"
        in said
    )
    named = fine("init", "third", "--root", "table.csv", *costs, "--classes", "look=old|new|u")
    assert "as read from" not in named
    lines = Path("table.csv").read_text().splitlines()
    many = [
        lines[0],
        *(
            line[: line.rindex(",")] + f",{('old', 'new')[at % 2]}"
            for at, line in enumerate(lines[1:])
        ),
    ]
    Path("table.csv").write_text("\n".join(many))
    assert "as read from" not in fine("init", "fourth", "--root", "table.csv", *costs)


# --- a refused row is mended where it is listed ---


def test_what_was_refused_goes_in_from_the_list_once_it_is_mended() -> None:
    folder = begin()
    first = send(
        folder, "task,instance,label\nsize,11,abc\nlook,12,-odd\nsize,13,5\nsze,14,7\nsize,x,8\n"
    )
    listed = Path(first["listed_in"])
    rows = table(listed)
    assert list(rows[0]) == ["task", "instance", "label", "reason", "where"]
    mended = {
        "abc": ("label", "4"),
        "'-odd": ("label", "old"),
        "7": ("task", "size"),
        "8": ("instance", "15"),
    }
    for row in rows:
        column, value = mended[row["label"]]
        row[column] = value
    with listed.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert "mend the rows there and ingest that file" not in fine("ingest", folder, listed)
    given = Campaign(folder).look().stock.given
    assert given == {"size": {"11": 4.0, "13": 5.0, "14": 7.0, "15": 8.0}, "look": {"12": "old"}}
    kept = listed.read_bytes()
    assert allot("ingest", folder, "back.csv").exit_code == 0  # and does not touch what was mended
    assert listed.read_bytes() == kept


def test_every_kind_of_refused_label_survives_its_list(tmp_path: Path) -> None:
    """Only the instance is wrong: with that mended, the list gives what the delivery would have
    given."""
    labels = {"art": "hund", "farben": ["rot", "blau"], "Größe": -2.5, "punkte": [[1, 2.5]]}
    bad = [{"task": task, "instance": "zz", "label": label} for task, label in labels.items()]
    spread = {"id": "zz", "farben:rot": "1", "farben:blau": "0"}
    content = "\n".join(json.dumps(row) for row in [*bad, spread])
    parts = take(tmp_path / "x.jsonl", content)
    assert len(parts.rejected) == 5
    path = write_rejected(parts, tmp_path / "rejected.csv")
    mended = read_delivery(path, TASKS, [*IDS, "zz"])
    assert mended.rejected == ()
    assert mended.accepted == take(tmp_path / "x.jsonl", content, ids=[*IDS, "zz"]).accepted
    assert {task for task, _, _ in mended.accepted} == set(labels)


def test_rows_that_can_not_be_read_are_listed_by_their_place_alone(tmp_path: Path) -> None:
    content = 'task,instance,label\nGröße,a,x\nGröße,a,"1\nGröße,b,2,3\nmaske,a,there.png\n'
    parts = take(tmp_path / "x.csv", content)
    path = write_rejected(parts, tmp_path / "rejected.csv")
    rows = table(path)
    assert [row["label"] for row in rows] == ["x", "", "", ""]
    assert all(row["reason"] and row["where"].startswith("x.csv: line") for row in rows)
    again = read_delivery(path, TASKS, IDS)  # which asks for nothing but what can be mended there
    assert (len(again.rejected), again.notes) == (1, ("no label yet: 3",))
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "q.png").write_bytes(b"")
    folder = read_delivery(tmp_path / "masks", TASKS, IDS)
    rows = table(write_rejected(folder, tmp_path / "masks.csv"))
    assert [list(row) for row in rows] == [["where", "reason"]]


def test_long_rows_are_not_kept_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_REFUSED_LETTERS", 100 << 10)
    content = "id,Größe\n" + f"a,{'x' * 80}\n" * 2000 + f"a,{'x' * 200}\n"
    parts = take(tmp_path / "x.csv", content)
    assert (len(parts.rejected), len(parts.rows)) == (2001, 2001)
    kept = [row for row in parts.rows if row is not None]
    assert 1000 < len(kept) < 1200
    assert sum(len(cell) for row in kept for cell in row) <= 100 << 10
    assert parts.rows[-1] is None


# --- what counts ---


@pytest.mark.parametrize(("rule", "counts"), [("first", 5.1), ("majority", 5.1), ("last", 1000.0)])
def test_labels_that_the_data_have_are_told_from_new_ones(rule: str, counts: float) -> None:
    folder = begin()
    settings = folder / "campaign.toml"
    settings.write_text(f'conflicts = "{rule}"\n{settings.read_text()}')
    content = "task,instance,label\nsize,5,1000\nsize,6,6.1\nlook,6,old\nlook,7,old\nsize,11,3\n"
    Path("back.csv").write_text(content)
    said = fine("ingest", folder, "back.csv")
    assert (
        "1 new label from back.csv. Where the data have a label already: 4. 2 the same, 2 differ: "
        in said
    )
    which = "what was delivered counts" if rule == "last" else "what is in the data counts"
    assert f'both are kept, and {which} (conflicts = "{rule}" in campaign.toml)' in said
    trained = Campaign(folder).look().stock.open().values("size", np.array([4, 5, 10]))
    np.testing.assert_allclose(trained, [counts, 6.1, 3], rtol=1e-6)


def test_the_table_itself_brings_nothing_new() -> None:
    folder = begin()
    lines = Path("table.csv").read_text().splitlines()
    Path("own.csv").write_text(
        "\n".join(["id," + lines[0], *(f"{n},{line}" for n, line in enumerate(lines[1:], 1))])
    )
    assert (
        "0 new labels from own.csv. Where the data have a label already: 20. All the same. No label"
        " yet: 40." in fine("ingest", folder, "own.csv")
    )
    assert Campaign(folder).look().stock.have == {"size": 10, "look": 10}


def test_the_same_file_again_brings_no_new_label() -> None:
    folder = begin()
    content = "task,instance,label\nsize,11,3\nsize,11,4\nsize,1,9\n"
    found = send(folder, content)
    assert [found[key] for key in ("new", "duplicates", "conflicts", "again")] == [1, 0, 2, False]
    found = send(folder, content)
    assert [found[key] for key in ("new", "duplicates", "conflicts", "again")] == [0, 3, 0, True]


def test_one_contradiction_is_told_once() -> None:
    folder = begin()
    Path("back.csv").write_text("task,instance,label\nsize,11,3\nsize,11,4\n")
    said = fine("ingest", folder, "back.csv")
    assert "1 label contradicts an earlier one; all are kept, and the first one counts" in said
    assert "nother answer" not in said


# --- files ---


def test_nothing_that_came_back_is_said_and_no_mistake() -> None:
    folder = begin()
    fine("order", folder)
    for _ in range(2):  # the sheet as it was written, and once more
        said = fine("ingest", folder, folder / "order-1.csv")
        assert "Nothing came back yet: there is no label in order-1.csv. No label yet:" in said
    Path("head.csv").write_text("task,instance,label\n")
    assert "Nothing came back yet: there is no label in head.csv." in fine(
        "ingest", folder, "head.csv"
    )
    Path("empty").mkdir()
    result = allot("ingest", folder, "empty")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no file in it" in result.stderr
    Path("wrong.csv").write_text("task,instance,label\nsize,900,1\n")
    for _ in range(2):
        result = allot("ingest", folder, "wrong.csv")
        assert result.exit_code == 2
        assert "Nothing in wrong.csv can be used; is it the right file?" in result.stdout


@pytest.mark.parametrize(
    "content", ["id,Größe\na,3\n", '{"id": "a", "Größe": 3}\n', '\ufeff \n{"id": "a", "Größe": 3}']
)
@pytest.mark.parametrize("name", ["y.txt", "y", "y.json", "y.labels"])
def test_a_file_is_told_by_how_it_begins_where_its_name_says_nothing(
    tmp_path: Path, name: str, content: str
) -> None:
    assert take(tmp_path / name, content).accepted == (("Größe", "a", 3.0),)


def test_an_order_written_as_text_comes_back() -> None:
    folder = begin()
    assert "Next: allot ingest camp y.txt" in fine("order", folder, "-o", "y.txt")
    assert "Nothing came back yet" in fine("ingest", folder, "y.txt")


def test_an_archive_is_called_zip_and_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begin()
    result = allot("pack", folder, "-o", "q.tar")
    assert result.exit_code == 2
    assert "give it a name that ends in .zip" in result.stderr
    assert not Path("q.tar").exists()
    monkeypatch.chdir(folder)
    assert "camp.zip is written" in fine("pack", ".")
    fine("unpack", "camp.zip", "../copy")
    assert fine("status", "../copy").replace("../copy", ".") == fine("status", ".")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--cost", "price:3"], "--cost price=3"),
        (["--cost", "price"], "--cost price=3"),
        (["--cost", "=3"], "--cost price=3"),
        (["--kind", "price:number"], "--kind price=regression"),
    ],
)
def test_the_example_in_a_hint_would_work(given: list[str], meant: str) -> None:
    assert f"is not NAME=VALUE, such as {meant}." in allot("init", "x", *given).stderr
