"""Scores in the tasks' own metrics on every page of a campaign, the money to reach one, and when to
stop."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.campaigns import allot, begin, fine, refused, shorten

from allotment.campaign.campaign import Campaign
from allotment.campaign.departure import find_departure
from allotment.campaign.goals import Goal, parse_chance, reach
from allotment.campaign.rounds import rebase
from allotment.campaign.state import CampaignState
from allotment.campaign.summary import tell_departure, tell_knowing, tell_prospect
from allotment.errors import InputError
from allotment.estimates.estimates import Estimates
from allotment.estimates.levels import fit
from allotment.estimates.response import Response
from allotment.plan import allocate, neutral_gains, score
from allotment.problem import Problem, Task


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of two tasks with estimates."""
    folder = tmp_path_factory.mktemp("goals")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        begin(budget=60)
        shorten(Path("camp"), trainings=12)
        text = (Path("camp") / "campaign.toml").read_text()
        (Path("camp") / "campaign.toml").write_text(text.replace("steps = 3", "steps = 40"))
        fine("estimate", "camp", "--workers", 0)
    return folder


@pytest.fixture(autouse=True)
def camp(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def read(*args: object) -> Any:
    return json.loads(fine(*args, "--json"))


def test_every_page_states_the_same_scores() -> None:
    scores = read("plan", "camp")["scores"]
    assert {task: each["metric"] for task, each in scores.items()} == {
        "size": "mae",
        "look": "accuracy",
    }
    for task, each in scores.items():
        assert each["now"]["low"] <= each["now"]["middle"] <= each["now"]["high"], task
        assert each["level"] == 0.9
    assert scores["size"]["after"]["middle"] < scores["size"]["now"]["middle"]
    assert read("status", "camp")["scores"] == scores
    assert read("estimate", "camp")["scores"] == scores
    for page in (fine("plan", "camp"), fine("status", "camp"), fine("estimate", "camp")):
        figures = re.findall(r"\d\.\d+ \(-?\d\.\d+ to \d\.\d+\)", page)
        assert len(figures) >= 4, page
        assert "MAE" in page
        assert "accuracy" in page
    fine("report", "camp", "-o", "report.html")
    # there an interval stands below its figure
    words = " ".join(re.sub(r"<[^>]*>", " ", Path("report.html").read_text()).split())
    assert [each for each in figures if each not in words] == []


def test_every_page_says_whether_to_measure_more_or_to_stop() -> None:
    """In the same words, and with the figure of the outlook."""
    more = read("plan", "camp")["outlook"]["knowing_more"]
    assert more > 0
    advice = read("status", "camp")["advice"]
    assert "the neutral plan, which trains nothing" in advice[0]
    assert f"plans would gain {more:.2g} % of score more on average" in advice[1]
    assert "Expected of this order: " in advice[2]
    fine("report", "camp", "-o", "report.html")
    pages = [fine("plan", "camp"), fine("status", "camp"), fine("report", "camp", "--markdown")]
    pages.append(re.sub(r"<[^>]*>", " ", Path("report.html").read_text()))
    for page in pages:
        told = " ".join(page.replace("\\", "").split())
        assert [said for said in advice if said not in told] == []


def test_nothing_is_said_of_knowing_more_where_draws_agree_for_want_of_knowledge() -> None:
    plan = Campaign("camp").plan()[1].plan
    assert "measuring more" in tell_knowing(plan)
    assert isinstance(plan.evidence, Estimates)
    mute = replace(plan.evidence, about={**plan.evidence.about, "fallbacks": ["size", "look"]})
    assert tell_knowing(replace(plan, evidence=mute)) == ""


def test_the_report_says_what_would_help() -> None:
    fine("report", "camp", "-o", "report.html")
    assert "What helps" in Path("report.html").read_text()


def test_no_value_or_gain_is_without_its_unit() -> None:
    plan = fine("plan", "camp")
    assert "a value of" not in plan
    assert " gain  " not in plan.replace("mean gain", "")
    assert re.search(r"for a gain of \d\S* % of the score, in the mean over tasks", plan)
    assert "mean gain" in fine("frontier", "camp")


def test_the_least_money_reaches_a_score() -> None:
    stated = read("plan", "camp")["scores"]["size"]
    wanted = (stated["now"]["middle"] + stated["after"]["middle"]) / 2
    found = read("cheapest", "camp", "--reach", f"size:mae={wanted}")
    assert found["scores"]["size"]["after"]["middle"] <= wanted
    # one label of either less does not
    campaign = Campaign("camp")
    state = campaign.look()
    for task, count in found["counts"].items():
        if count:
            fewer = found["counts"] | {task: count - 2}
            assert state.forecast(fewer)["size"].after.middle > wanted
    assert "It takes" in fine("cheapest", "camp", "--reach", f"size={wanted}")


def test_several_goals_are_all_reached() -> None:
    stated = read("plan", "camp")["scores"]
    wanted = {
        task: each["now"]["middle"] + 0.4 * (each["after"]["middle"] - each["now"]["middle"])
        for task, each in stated.items()
    }
    campaign = Campaign("camp")
    state, proposal = campaign.plan()
    goals = [Goal(task, score) for task, score in wanted.items()]
    counts = reach(state, proposal, goals).counts
    found = state.forecast(counts)
    assert found["size"].after.middle <= wanted["size"]
    assert found["look"].after.middle >= wanted["look"]
    assert all(goal.is_met(state, counts) for goal in goals)


def count_reached(state: CampaignState, task: str, counts: dict[str, int], score: float) -> float:
    """How often a model of so many labels scores that, or better: by drawing many of them."""
    level, after = state.find_level(task), state.add_open(counts)
    at = level.estimates.tasks.index(task)
    gains = np.zeros(level.estimates.draws)
    for labels, weight in zip(level.counts.astype(int), level.weight, strict=True):
        there = dict(zip(level.estimates.tasks, labels.tolist(), strict=True))
        rise = {name: after[name] - there[name] for name in after}
        gains += weight * rebase(level.estimates, there).gains_of(rise)[:, at]
    sign = 1 if level.higher_is_better else -1
    rng = np.random.default_rng(3)
    noise = rng.normal(0, np.hypot(level.error, level.luck), size=(500, len(gains)))
    models = level.score + sign * level.scale * gains / 100 + noise
    return float(np.mean(sign * models >= sign * score))


def list_cheaper(state: CampaignState, money: Fraction) -> list[dict[str, int]]:
    """All plans that cost less."""
    problem, pool = state.rest(), state.pool
    found = []
    for size, look in itertools.product(range(pool["size"] + 1), range(pool["look"] + 1)):
        counts = {"size": size, "look": look}
        if problem.price(counts) < money:
            found.append(counts)
    return found


@pytest.mark.parametrize("chance", ["0.8", "90%", "0.95"])
def test_a_score_is_reached_with_the_chance_that_is_asked_for(chance: str) -> None:
    state = Campaign("camp").look()
    share = parse_chance(chance)
    wanted = state.find_level("size").find_reached(state.add_open({"size": 20, "look": 2}), share)
    asked = ("cheapest", "camp", "--reach", f"size={wanted}", "--chance", chance)
    found = read(*asked)
    reached = found["goals"][0]["reached"]
    assert found["goals"] == [
        {"task": "size", "score": wanted, "chance": share, "reached": reached}
    ]
    assert reached <= wanted
    assert count_reached(state, "size", found["counts"], reached) == pytest.approx(share, abs=0.01)
    assert count_reached(state, "size", found["counts"], wanted) > share - 0.01
    # no plan for less does
    level = state.find_level("size")
    for counts in list_cheaper(state, Fraction(found["spent"])):
        assert level.find_reached(state.add_open(counts), share) > wanted, counts
    words = {"0.8": "eight of ten", "90%": "nine of ten", "0.95": "95 of 100"}[chance]
    assert f"to reach size MAE {wanted:g} in {words} cases." in " ".join(fine(*asked).split())
    head, *lines = (line.split(",") for line in fine(*asked, "--csv").splitlines())
    assert head[-3:] == ["goal", "chance", "reached"]
    assert [float(cell) for cell in lines[0][-3:]] == [wanted, share, reached]
    assert lines[1][-3:] == ["", "", ""]


def test_to_be_surer_costs_more() -> None:
    state = Campaign("camp").look()
    after = state.add_open({"size": 20, "look": 2})
    wanted = state.find_level("size").find_reached(after, 0.8)
    plain = read("cheapest", "camp", "--reach", f"size={wanted}")
    likely, sure = (
        read("cheapest", "camp", "--reach", f"size={wanted}", "--chance", chance)
        for chance in ("0.78", "0.8")
    )
    assert float(sure["spent"]) > float(likely["spent"]) > float(plain["spent"])
    assert plain["goals"][0]["chance"] is None
    assert plain["goals"][0]["reached"] == plain["scores"]["size"]["after"]["middle"]


def test_the_chance_is_that_of_each_of_several_goals() -> None:
    state = Campaign("camp").look()
    after = state.add_open({"size": 15, "look": 6})
    wanted = {task: state.find_level(task).find_reached(after, 0.9) for task in ("size", "look")}
    options = [each for task in wanted for each in ("--reach", f"{task}={wanted[task]}")]
    found = read("cheapest", "camp", *options, "--chance", "0.9")
    for goal in found["goals"]:
        share = count_reached(state, goal["task"], found["counts"], wanted[goal["task"]])
        assert share > 0.89, goal
    page = " ".join(fine("cheapest", "camp", *options, "--chance", "0.9").split())
    assert re.search(r"size MAE \S+ and look accuracy \S+, each of them in nine of ten cases", page)


def test_out_of_reach_says_what_is_reached_with_that_chance() -> None:
    state = Campaign("camp").look()
    most = state.find_level("size").find_reached(state.add_open(state.pool), 0.9)
    own = state.find_level("size").find_reached(
        state.add_open({"size": state.pool["size"], "look": 0}), 0.9
    )
    said = refused(1, "cheapest", "camp", "--reach", "size=0.0001", "--chance", "0.9")
    figure = re.search(
        r"MAE 0.0001 in nine of ten cases is out of reach: .* bought, (\S+) in nine of ten", said
    )
    assert figure is not None, said
    assert float(figure[1]) == pytest.approx(min(most, own), abs=0.01)


@pytest.mark.parametrize("chance", ["0.4", "1", "0.995", "9", "40%", "much", "nan", "90%%", "90%1"])
def test_a_chance_that_is_none_is_refused(chance: str) -> None:
    said = refused(2, "cheapest", "camp", "--reach", "size=0.5", "--chance", chance)
    assert f"--chance: '{chance}' is not a share from 0.5 to 0.99" in said
    assert "nine of ten is 0.9, or 90%" in said


def test_a_chance_has_no_meaning_without_a_score() -> None:
    with pytest.raises(InputError, match="is not a share from"):
        Goal("size", 0.5, chance=2)
    Path("problem.toml").write_text('budget = 9\n[[task]]\nname = "a"\ncost = 1\n')
    for args in (("camp", "--gain", "1"), ("problem.toml", "--target", "1")):
        result = allot("cheapest", *args, "--chance", "0.9")
        assert result.exit_code == 2
        assert "--chance" in result.output
        assert "--reach" in result.output


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("size=0.0001", r"MAE 0.0001 is out of reach: it is .* now and, with all .* bought, "),
        ("siz=1", r"no task 'siz'; did you mean 'size'\?"),
        ("siz:mae=1", r"no task 'siz'; did you mean 'size'\?"),
        ("size", r"is not TASK=SCORE, such as size="),
        ("size=good", r"'good' is not a score"),
        ("size=nan", r"'nan' is not a score"),
        ("size:r2=0.8", r"size is planned by its mae, so that only mae can be asked for"),
    ],
)
def test_a_goal_that_cannot_be_is_refused(goal: str, words: str) -> None:
    code = 1 if "0001" in goal else 2
    assert re.search(words, refused(code, "cheapest", "camp", "--reach", goal))


def test_a_gain_is_asked_for_by_its_name() -> None:
    """0.8 was once read as a gain of 0.8 %."""
    result = allot("cheapest", "camp", "--target", "0.8", "--task", "size")
    assert result.exit_code == 2
    assert "targets are scores: --reach TASK=SCORE" in result.output
    assert "a gain of" in fine("cheapest", "camp", "--gain", "0.5")
    assert "for size" in fine("cheapest", "camp", "--gain", "0.5", "--task", "size")
    assert allot("cheapest", "camp").exit_code == 2


# --- how far from neutral ---


def test_a_plan_says_how_far_it_goes_from_the_neutral_one() -> None:
    """By the draws' own gains, and by money: what one task gets more another gets less."""
    found = read("plan", "camp")
    state = Campaign("camp").look()
    assert state.found is not None
    problem, estimates = state.rest(), rebase(state.found.estimates, state.have)
    neutral = allocate(problem, neutral_gains(problem)).counts
    departure = found["departure"]
    assert departure["moved"] == {
        task: found["counts"][task] - neutral[task] for task in problem.names
    }
    lead = (estimates.gains_of(found["counts"]) - estimates.gains_of(neutral)).mean(axis=1)
    assert departure["mean"] == pytest.approx(lead.mean())
    assert departure["chance"] == pytest.approx((lead > 0).mean())
    money = sum(max(count, 0) * problem[task].cost for task, count in departure["moved"].items())
    assert departure["share"] == pytest.approx(float(money / problem.price(found["counts"])))
    assert np.mean(list(departure["worths"].values())) == pytest.approx(1)


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (1, 0)])
def test_what_a_label_is_taken_to_be_worth_is_beside_the_neutral_plan(
    weights: tuple[float, float],
) -> None:
    """Which weighs tasks as well."""
    tasks = [
        Task(name, 1, have=100, weight=weight) for name, weight in zip("ab", weights, strict=True)
    ]
    problem = Problem(tasks, budget=300)
    alike = Estimates(("a", "b"), (100, 100), [np.diag([50.0, 50.0])] * 2, [[0.4, 0.4]] * 2)
    found = find_departure(allocate(problem, alike))
    assert found is not None
    assert set(found.moved.values()) == {0}
    assert list(found.worths.values()) == pytest.approx([1] * sum(map(bool, weights)))
    steeper = replace(alike, worths=[np.diag([50.0, 100.0])] * 2)
    found = find_departure(allocate(problem, steeper))
    assert found is not None
    if len(found.worths) > 1:
        assert found.worths["b"] == pytest.approx(2 * found.worths["a"])


def test_a_plan_that_moves_only_tasks_that_do_not_count_says_which() -> None:
    proposal = Campaign("camp").plan()[1]
    tasks = [Task("a", 1, have=100, pool=0), Task("b", 1, have=100, weight=0)]
    helps = Estimates(("a", "b"), (100, 100), [[[50.0, 400.0], [0.0, 0.0]]] * 2, [[0.4, 0.4]] * 2)
    plan = allocate(Problem(tasks, budget=150), helps)
    said = tell_departure(replace(proposal, plan=plan))
    assert ": b +150. This is stated to bring +" in said


def test_without_evidence_a_plan_is_the_neutral_one_and_says_so() -> None:
    proposal = Campaign("camp").plan()[1]
    estimates = proposal.plan.evidence
    assert isinstance(estimates, Estimates)
    blank = Response(
        estimates.tasks,
        estimates.have,
        np.zeros((0, 2)),
        np.zeros((0, 2)),
        np.zeros((0, 2)),
        (True, True),
    )
    plan = allocate(proposal.plan.problem, fit(blank))
    said = tell_departure(replace(proposal, plan=plan))
    assert said.startswith("What was measured moves nothing")


# --- when to stop ---


def test_an_order_says_what_it_is_expected_to_bring() -> None:
    """The draws' own gains from its labels, and no others."""
    found = read("plan", "camp")
    state = Campaign("camp").look()
    assert state.found is not None
    estimates = rebase(state.found.estimates, state.have)
    gains = estimates.gains_of(found["tranche"]["counts"]).mean(axis=1)
    prospect = found["prospect"]
    assert prospect["mean"] == pytest.approx(gains.mean())
    assert prospect["low"] == pytest.approx(np.quantile(gains, 0.05))
    assert prospect["high"] == pytest.approx(np.quantile(gains, 0.95))
    whole = estimates.gains_of(found["counts"]).mean()
    assert prospect["whole"] == pytest.approx(whole)
    assert prospect["left"] == "60"
    # twelve trainings do not tell it
    assert (prospect["noise"], prospect["below_noise"]) == (None, False)


def test_below_the_noise_it_is_reasonable_to_stop() -> None:
    proposal = Campaign("camp").plan()[1]
    prospect = proposal.prospect
    assert prospect is not None
    mean, whole = prospect.gain.middle, prospect.whole

    def tell(noise: float | None, whole: float) -> str:
        return tell_prospect(
            replace(proposal, prospect=replace(prospect, noise=noise, whole=whole))
        )

    said = tell(None, whole)
    assert re.fullmatch(r"Expected of this order: \S+ % of score \(90 %: \S+ to \S+\)", said)
    clear = tell(mean / 2, whole)
    assert f"on the same labels differ by about {mean / 2:.2g}" in clear
    assert "stopping" not in clear
    assert tell(mean * 2, mean).endswith("stopping here is reasonable, with 60 left unspent")
    unless = f"unless the {mean * 3:.2g} % of score that all of the plan brings are worth that"
    assert tell(mean * 2, mean * 3).endswith(unless)


def find_best_net(state: CampaignState, worth: float) -> tuple[float, dict[str, int]]:
    """The most that any plan brings beyond its money, by looking at all of them."""
    problem = state.rest()
    assert state.found is not None
    gains = rebase(state.found.estimates, state.have).gains_for(problem)
    nets = []
    for counts in list_cheaper(state, problem.budget + 1):
        value = score(problem, gains, counts).value / 2
        nets.append((worth * value - float(problem.price(counts)), counts))
    return max(nets, key=lambda each: each[0])


def test_a_campaign_stops_where_labels_cost_more_than_they_bring() -> None:
    plan = Campaign("camp").plan()[1].plan
    worth = round(3 * float(plan.spent) / plan.value)
    shorten(Path("camp"), point_worth=worth)
    state = Campaign("camp").look()
    net, counts = find_best_net(state, worth)
    found = read("plan", "camp")
    assert found["stop"]["counts"] == counts
    assert net > 0
    spent = sum(counts.values()) + 4 * counts["look"]
    assert 0 < spent < 60
    assert (found["stop"]["spent"], found["stop"]["unspent"]) == (str(spent), str(60 - spent))
    assert found["spent"] == "60"
    said = f"If a point is worth {worth}, labels beyond {spent} of 60 cost more than they bring"
    told = " ".join(fine("plan", "camp").split())
    assert f"{said}: {60 - spent} could stay unspent." in told
    assert "(or only what pays: allot order camp --stop)" in told
    assert f"{said}: {60 - spent} could stay unspent." in read("status", "camp")["advice"]
    stopped = " ".join(fine("plan", "camp", "--stop").split())
    assert f"{said}: {60 - spent} stays unspent." in stopped
    assert "Next: allot order camp --stop" in stopped
    ordered = read("order", "camp", "--stop", "--all")
    assert ordered["counts"] == {task: count for task, count in counts.items() if count}
    assert read("status", "camp")["left"] == str(60 - spent)
    again = fine("order", "camp", "--stop", "--all")
    assert "nothing new was ordered" in again
    assert "allot order camp --all --stop --more" in again


def test_to_stop_needs_a_price_of_a_point() -> None:
    for command in ("plan", "order"):
        said = refused(2, command, "camp", "--stop")
        assert "--stop: nothing says what a gain is worth in money; write point_worth = 250" in said
    shorten(Path("camp"), point_worth='"0.01"')
    assert "no label brings what it costs: 60 could stay" in " ".join(fine("plan", "camp").split())
    for command in ("plan", "order"):
        assert "no label brings what it costs" in refused(1, command, "camp", "--stop")
    shorten(Path("camp"), method='"neutral"')
    assert "measures nothing" in refused(2, "plan", "camp", "--stop")
    assert "If a point" not in fine("plan", "camp")
    shorten(Path("camp"), point_worth='"cheap"')
    assert "campaign.toml:1: point_worth: 'cheap' is not a number" in refused(2, "plan", "camp")
