"""The paper's experiments: what is bought for them, what is kept of them, and what they show."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny_voc import TINY, make_tiny_backbone, write_voc

from allotment.data.labels import Labels
from allotment.errors import InputError
from allotment.estimates.estimates import Estimates
from allotment.estimates.letter import PAPER_RUNS
from allotment.estimates.method import DEFAULT
from allotment.estimates.taba import PairRates
from allotment.estimates.transfer import Transfer
from allotment.experiment.case import (
    CASES,
    FULL,
    LARGER,
    RATIOS,
    SMALL,
    TASKONOMY_PRICES,
    Case,
    Prices,
    find_case,
)
from allotment.experiment.casebook import Casebook
from allotment.experiment.claim import Claim, PrintedNumber
from allotment.experiment.comparison import PriceTables
from allotment.experiment.entrants import (
    Entrant,
    find_best,
    list_ablations,
    list_baselines,
    list_future,
    list_taba,
    make_problem,
    spread_budget,
)
from allotment.experiment.exhibit import list_exhibits
from allotment.experiment.exhibits.claims_voc import EXHIBIT as CLAIMS_VOC
from allotment.experiment.exhibits.figure_2 import EXHIBIT as FIGURE_2
from allotment.experiment.ground import Ground
from allotment.experiment.outcomes import find_mean
from allotment.experiment.outlay import POOLS, weigh
from allotment.experiment.record import Record
from allotment.experiment.running import list_missing, list_questions, run, write
from allotment.experiment.work import (
    ON_TEST,
    ON_VALIDATION,
    Purchase,
    Question,
    conclude,
    list_measurings,
    make_request,
    make_site,
    name_estimates,
    name_pool,
    name_training,
    narrow,
    perform,
)
from allotment.gains import Geometric
from allotment.job import JSON, Job
from allotment.learners.implying import ImplyingLearner
from allotment.learners.setups import BACKBONES, SETUPS
from allotment.plan import allocate

CASE = Case(
    "voc",
    "tiny",
    ("classes", "segmentation"),
    6,
    2,
    1,
    (Prices("1:20", {"classes": 1, "segmentation": 20}, 40),),
    validation=4,
    implies={"segmentation": ("classes",)},
)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETUPS, "tiny", TINY)
    monkeypatch.setitem(BACKBONES, "tiny", make_tiny_backbone)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_voc(tmp_path_factory.mktemp("voc"), train=80, test=12)


@pytest.fixture
def ground(folder: Path) -> Ground:
    return Ground(CASE, folder, None)


def test_sizes_of_full_are_the_papers() -> None:
    voc, taskonomy = CASES["voc", FULL], CASES["taskonomy", FULL]
    assert (voc.have, voc.purchases, taskonomy.have, taskonomy.purchases) == (300, 10, 10_000, 5)
    assert {each.name: each.budget for each in voc.prices} == {
        "1:3": 1200, "1:20": 6300, "1:30": 9300, LARGER: 9300,
    }  # fmt: skip
    (only,) = taskonomy.prices
    assert (only.budget, tuple(only.costs.values())) == (210_000, (10, 3, 3, 2, 3))


def test_looks_are_averaged_over_as_many_runs_as_in_the_paper() -> None:
    """P16; what is on record of VOC was asked with the method's own number, which is the same."""
    runs = {
        (data, size): {each.options.get("runs", PAPER_RUNS) for each in list_taba(case)}
        for (data, size), case in CASES.items()
    }
    for size in (SMALL, FULL):
        assert (runs["voc", size], runs["taskonomy", size]) == ({10}, {5})


def test_budgets_of_small_buy_as_many_of_each_as_are_there() -> None:
    for data in ("voc", "taskonomy"):
        case = find_case(data, SMALL)
        first = case.prices[0]
        assert first.budget == case.have * sum(first.costs.values())


@pytest.mark.parametrize("given", [("voc", "smal"), ("vox", "small")])
def test_an_unknown_case_is_refused_with_what_was_meant(given: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="did you mean"):
        find_case(*given)


def test_a_case_comes_back_from_plain_values() -> None:
    for case in CASES.values():
        assert Case.from_dict(json.loads(json.dumps(case.to_dict()))) == case


def test_tasks_begin_with_different_instances(ground: Ground) -> None:
    for number in range(2):
        labels = ground.draw_seed_set(number)
        assert labels.counts == {"classes": 6, "segmentation": 6}
        both = np.concatenate([each.instances for each in labels.values()])
        assert len(np.unique(both)) == 12
    first, second = (ground.draw_seed_set(number)["classes"].instances for number in (0, 1))
    assert not np.array_equal(first, second)


def test_purchases_are_nested_paired_and_on_different_instances(ground: Ground) -> None:
    few = ground.buy(0, 0, {"classes": 10, "segmentation": 3})
    many = ground.buy(0, 0, {"classes": 40, "segmentation": 8})
    other = ground.buy(0, 1, {"classes": 10, "segmentation": 3})
    for task in CASE.tasks:
        mine, more = few[task].instances, many[task].instances
        assert np.array_equal(more[: len(mine)], mine)
        assert not np.array_equal(mine[6:], other[task].instances[6:])
    bought = [many[task].instances for task in CASE.tasks]
    assert not np.intersect1d(*bought).size


def test_the_whole_pool_can_go_to_one_task_and_no_more(ground: Ground) -> None:
    whole = ground.buy(1, 0, {"classes": ground.pool})
    assert len(whole["classes"]) == 6 + ground.pool
    with pytest.raises(InputError, match="the pool has"):
        ground.buy(1, 0, {"classes": ground.pool + 1})


def test_the_same_instances_for_all_tasks_on_request(ground: Ground) -> None:
    labels = ground.buy(0, 0, {"classes": 7, "segmentation": 5}, same=True)
    new = [labels[task].instances[6:] for task in CASE.tasks]
    assert np.array_equal(new[0][:5], new[1])


def test_a_mask_brings_its_classes_for_training(ground: Ground) -> None:
    labels = ground.complete(ground.draw_seed_set(0))
    assert labels.counts == {"classes": 12, "segmentation": 6}
    assert labels.bought.counts == {"classes": 6, "segmentation": 6}


def test_fewer_masks_bring_fewer_classes_where_a_method_cross_validates(ground: Ground) -> None:
    asked = Question(DEFAULT, 0, trainings=8)
    request = make_request(ground, asked)
    assert request.labels.counts == {"classes": 6, "segmentation": 6}
    learner, mine = request.learner, request.labels["segmentation"]
    halved = Labels({**request.labels, "segmentation": mine.keep(np.arange(6) < 3)})
    assert isinstance(learner, ImplyingLearner)
    assert learner.imply(halved).counts == {"classes": 9, "segmentation": 3}
    # and so it is in the parts that score in turn
    assert isinstance(request.parts[0][0], ImplyingLearner)


def test_only_keys_of_cross_validation_tell_how_masks_count(ground: Ground) -> None:
    plain = replace(CASE, implies={})

    def name(case: Case, score_on: str) -> Job:
        return name_estimates(case, Question(DEFAULT, 0, score_on=score_on))

    assert name(CASE, "") != name(plain, "")
    assert name(CASE, ON_VALIDATION) == name(plain, ON_VALIDATION)
    assert name(CASE, ON_TEST) == name(plain, ON_TEST)
    assert "implied" not in name(plain, "").needs


@pytest.mark.long
def test_the_default_is_measured_by_the_count_of_a_campaign(folder: Path) -> None:
    ground, asked = Ground(CASE, folder, None), Question(DEFAULT, 0, trainings=8)
    results = [
        perform(make_site(CASE, folder, None).to_dict(), job.kind, job.needs)["plain"]
        for job in list_measurings(ground, asked)
    ]
    found = conclude(ground, asked, results)
    assert found.have == (6, 6)
    counts = np.array(found.about["measured"]["response"]["counts"])
    assert counts.max() <= 6


def test_methods_see_no_test_label(ground: Ground) -> None:
    test = set(ground.parts.test.tolist())
    assert not test & set(ground.untested.split.validation.tolist())
    validation = ground.draw_validation(0)
    for each in (*validation.values(), *ground.draw_seed_set(0).values()):
        assert not test & set(each.instances.tolist())
    assert set(ground.tested.split.validation.tolist()) == test


def test_a_record_keeps_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    first, second = Job("training", {"n": 1}), Job("training", {"n": 2})
    Record(path).put(first, {"score": 0.5})
    with path.open("a") as file:
        file.write('{"kind": "trai')
    again = Record(path)
    assert again.get("training", {"n": 1}) == {"score": 0.5}
    assert not again.has(second)
    again.put(second, {"score": 0.6})
    assert [result for _, result in Record(path).list_results("training")] == [
        {"score": 0.5},
        {"score": 0.6},
    ]


def test_a_set_up_that_changed_is_not_mistaken_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bought = Purchase(0, 0, {"classes": 1})
    before = name_training(CASE, bought)
    monkeypatch.setitem(SETUPS, "tiny", replace(TINY, width=16))
    assert name_training(CASE, bought) != before


def test_means_are_over_seed_sets() -> None:
    values = np.array([[1.0, 3.0], [4.0, 4.0], [5.0, 7.0]])
    found = find_mean(values)
    assert found.value == 4
    # of 2, 4 and 6: t with two degrees of freedom, 4.303, times 2 over the root of 3
    assert found.reach == pytest.approx(4.303 * 2 / math.sqrt(3), rel=1e-3)
    assert find_mean(np.array([[1.0, 2.0, 3.0]])).value == 2
    assert math.isnan(find_mean(np.full((2, 2), np.nan)).value)


def test_the_best_of_a_grid_is_scored_where_it_was_not_picked() -> None:
    rng = np.random.default_rng(3)
    leads = []
    for _ in range(300):
        totals = rng.normal(size=(10, 5, 3))  # all plans alike
        leads.append(find_best(totals).mean())
    assert abs(np.mean(leads)) < 0.06
    better = np.zeros((3, 5, 3))
    better[1] = 1
    assert (find_best(better) == 1).all()


def test_the_grid_spends_the_budget() -> None:
    for data in ("voc", "taskonomy"):
        case = find_case(data, SMALL)
        prices = case.prices[-1]
        for _, counts in spread_budget(case, prices):
            spent = sum(prices.costs[task] * count for task, count in counts.items())
            assert prices.budget - sum(prices.costs.values()) < spent <= prices.budget


def test_the_papers_baselines_are_there() -> None:
    names = [each.name for each in list_baselines(find_case("voc", SMALL))]
    assert names == [
        "equal images", "equal images*", "100 % classes", "100 % segmentation*", "equal budget",
        "neutral",
    ]  # fmt: skip
    assert {"figure-2", "figure-4a", "figure-5", "table-1", "table-2"} <= list_exhibits().keys()


def test_methods_to_the_letter_share_curves_and_looks(ground: Ground) -> None:
    def list_jobs(method: str, **options: JSON) -> set[Job]:
        return set(list_measurings(ground, Question(method, 0, None, options, ON_VALIDATION)))

    five, alone = list_jobs("taba", ahead=5), list_jobs("taba-alone")
    assert alone < five
    assert list_jobs("taba-b099", ahead=5) == five - alone
    one = list_jobs("taba", ahead=1)
    assert one & five == alone
    tag = list_jobs("taba-tag", ahead=5)
    assert tag & five == alone
    assert len(tag) == len(five)
    # rates between tasks are beside what the paper's method measures, whatever it looks ahead
    pairs = list_jobs("taba", ahead=5, rates="between")
    assert five < pairs
    between = pairs - five
    assert {job.needs["job"]["piece"][0] for job in between} == {"between"}
    assert len(between) == 2 * 3
    assert list_jobs("taba", ahead=1, rates="between") == one | between
    assert list_jobs("taba", ahead=5, rates="own") == five


def test_looks_at_three_tasks_are_beside_those_at_two() -> None:
    asked = Question("taba", 0, None, {"ahead": 5, "rates": "between", "triples": True})
    looks = narrow(asked, {"piece": ["triples", 0, ""]})
    assert (looks.method, looks.options) == ("taba", {"ahead": 5, "triples": True})
    curve = narrow(asked, {"piece": ["between", 0, "depth", "edges"]})
    assert (curve.method, curve.options) == ("taba", {"rates": "between"})
    plain = narrow(asked, {"piece": ["probes", 0, ""]})
    assert plain == narrow(replace(asked, options={"ahead": 5}), {"piece": ["probes", 0, ""]})


def plant(case: Case, options: Mapping[str, JSON]) -> Estimates:
    """What a method might conclude: labels of the first task are worth 1.1, those of the last 2.0,
    and curves bend as those on real labels do."""
    if {"rates", "triples"} & options.keys():
        return plant_future(case, options)
    size, sizes = len(case.tasks), [0, 6, 12, 24, 48]
    points = {
        "sizes": sizes,
        "scores": [[0.5 * (1 + 0.015 * math.log2(1 + each / 6)) for each in sizes]],
        "higher_is_better": True,
    }
    sums = np.where(np.eye(size, dtype=bool), 1.0, 0.3)[None]
    transfer = Transfer(case.tasks, "paper", "metric", "training", sums, np.ones((1, size)))
    return Estimates(
        case.tasks,
        (case.have,) * size,
        worths=np.diag(np.linspace(1.1, 2.0, size))[None],
        shapes=np.linspace(0.99, 0.97, size)[None],
        law="geometric",
        about={
            "measured": {
                "points": dict.fromkeys(case.tasks, points),
                "transfer": transfer.to_dict(),
            },
            "rates": dict.fromkeys(case.tasks, 0.98),
        },
    )


def fill(book: Casebook, seed: int = 0) -> None:
    """Put results on record that nobody trained: a gain of 2 % for each doubling, and noise."""
    rng, data = np.random.default_rng(seed), book.case.data
    sign = 1 if data == "voc" else -1  # losses fall
    exhibits = [each for each in list_exhibits().values() if each.data == data]
    book.record.put(name_pool(book.case), {"instances": 200})
    for asked in list_questions(exhibits, book.case):
        estimates = plant(book.case, asked.options).to_dict()
        found = {"estimates": estimates, "seconds": 60.0 + asked.seed_set}
        book.record.put(name_estimates(book.case, asked), found)
    for job in list_missing(exhibits, book):
        counts = job.needs["counts"]
        scores = {
            task: 0.5 * (1 + sign * 0.02 * math.log2(1 + counts[task] / 6) + 0.001 * rng.normal())
            for task in job.needs["tasks"]
        }
        higher = dict.fromkeys(scores, data == "voc")
        book.record.put(
            job, {"metrics": scores, "losses": scores, "higher": higher, "seconds": 1.0}
        )


def make_small(data: str) -> Case:
    """A case of the paper's data set at its prices, with few labels."""
    usual = find_case(data, SMALL)
    prices = tuple(replace(each, budget=40) for each in usual.prices)
    return replace(usual, setup="tiny", have=6, seed_sets=2, purchases=1, prices=prices)


@pytest.mark.parametrize("data", ["voc", "taskonomy"])
def test_every_exhibit_is_shown_of_what_is_on_record(data: str, tmp_path: Path) -> None:
    case, path = make_small(data), tmp_path / f"{data}.jsonl"
    fill(Casebook(case, Record(path)))
    later, shown = Casebook(case, Record(path)), list[str]()
    for name, exhibit in list_exhibits().items():
        if exhibit.data == data:
            shown.append(name)
            paths = write(name, exhibit.show(later), tmp_path / "out")
            again = write(name, exhibit.show(later), tmp_path / "again")
            assert [one.read_bytes() for one in paths] == [one.read_bytes() for one in again]
            page = paths[1].read_text()
            assert "nan" not in page
            assert "Nothing is measured" not in page
            drawn = isinstance(exhibit, PriceTables) or name.startswith(("figure", "relatedness"))
            assert [each.suffix for each in paths[2:]] == [".svg"] * drawn
            json.loads(paths[0].read_text())
    assert len(shown) == {"voc": 10, "taskonomy": 5}[data]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is shown of planted records, of both data sets."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SETUPS, "tiny", TINY)
        for data in ("voc", "taskonomy"):
            book = Casebook(make_small(data), Record(folder / f"{data}.jsonl"))
            fill(book)
            for name, exhibit in list_exhibits().items():
                if exhibit.data == data:
                    write(name, exhibit.show(book), folder, pictures=False)
    return folder


def test_sweeps_and_claims_say_what_was_planted(pages: Path) -> None:
    assert "| 40 % |" in (pages / "figure-2.md").read_text()
    assert "Range of D_T" in (pages / "figure-2.md").read_text()
    claims = (pages / "claims-voc.md").read_text()
    # all labels of a task count alike here, so that masks gain nothing from classes
    assert "| masks gain from class labels" in claims
    assert "| holds |" in claims


def test_planning_is_held_against_labels(pages: Path) -> None:
    """6 labels of each task cost 5.04 dollars, a minute of a core less than a cent."""
    (row,) = find_rows(pages / "claims-voc.md", "planning is cheaper than labels")
    assert row[1:3] == ["+202", "5.039 ± 0.000 dollars"]
    assert row[-1] == "holds"


def test_numbers_of_the_paper_are_told_apart_but_never_told_to_be_the_same(pages: Path) -> None:
    (classes,) = find_rows(pages / "claims-voc.md", "I of classes")
    assert classes[1:] == ["1.13", "1.10 ± 0.00", "0.00", "does not hold"]
    (rate,) = find_rows(pages / "claims-voc.md", "b of segmentation")
    assert rate[1:3] == ["0.997", "0.9800 ± 0.0000"]
    assert len(find_rows(pages / "claims-taskonomy.md", "I of ")) == 5
    assert len(find_rows(pages / "claims-taskonomy.md", "b of ")) == 5
    near = PrintedNumber("", "2.0", find_mean(np.array([[1.9], [2.1], [2.0]])))
    assert near.verdict == "cannot be told"


def test_straight_curves_that_rise_have_no_shape_in_common(tmp_path: Path) -> None:
    """What a label adds is told from size to size; scores themselves go together wherever two
    curves rise."""
    case = make_small("voc")
    bent, straight = (Casebook(case, Record(tmp_path / name)) for name in ("bent", "straight"))
    fill(bent)
    rng = np.random.default_rng(1)
    for needs, result in bent.record.list_results("training"):
        scores = {
            task: 0.5 + 0.0002 * needs["counts"][task] + 0.0005 * rng.normal()
            for task in result["metrics"]
        }
        straight.record.put(Job("training", needs), result | {"metrics": scores})
    for kind in ("estimates", "pool"):
        for needs, result in bent.record.list_results(kind):
            straight.record.put(Job(kind, needs), result)
    claims = {each.text: each for each in CLAIMS_VOC.list_claims(bent)}
    others = {each.text: each for each in CLAIMS_VOC.list_claims(straight)}
    like = [text for text in claims if "have the shape of real ones" in text]
    assert len(like) == 2
    assert [claims[text].verdict for text in like] == ["holds"] * 2
    assert [others[text].verdict for text in like] == ["cannot be told"] * 2


def test_validation_labels_are_told_beside_budgets(pages: Path) -> None:
    # 40 of each task on VOC at 1:20, and 10 on Taskonomy
    assert "840 beside a budget of 40 at 1:20" in (pages / "table-3.md").read_text()
    assert "210 beside a budget of 40 at 10:3:3:2:3" in (pages / "table-2.md").read_text()
    values = json.loads((pages / "table-1.json").read_text())["values"]
    assert values["validation labels"] == {"of each task": 40, "cost": {LARGER: 840}}
    rows = {row[0]: row[-1] for row in find_rows(pages / "cost.md", "")}
    assert (rows["TABA, m = 5"], rows["allotment"]) == ("34", "0")


def test_what_is_scored_on_the_test_part_says_so(pages: Path) -> None:
    assert "on the test part" in (pages / "figure-4b.md").read_text()
    values = json.loads((pages / "figure-4b.json").read_text())["values"]
    assert values["score_on"] == "test"
    assert "scored on the test part" in (pages / "claims-voc.md").read_text()


def test_parts_of_taba_stand_beside_all_that_figure_5_compares(pages: Path) -> None:
    names = {row[0] for row in find_rows(pages / "table-3.md", "")}
    other = {row[0] for row in find_rows(pages / "figure-5.md", "")}
    assert {name for name in other if not name.startswith("TABA")} <= names
    assert {"I = 1", "TAG", "b = 0.99", "grid's best", "allotment"} <= names


def find_rows(page: Path, begin: str) -> list[list[str]]:
    """Cells of the rows of a page's tables whose first cell begins so."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row[0].startswith(begin)]


def plant_future(case: Case, options: Mapping[str, JSON]) -> Estimates:
    """What options of the future work might conclude: a rate of each pair, an excess of 0.5."""
    size, tasks = len(case.tasks), list(case.tasks)
    rates = np.where(np.eye(size, dtype=bool), 0.9, 0.98)
    worths = np.where(np.eye(size, dtype=bool), 1.0, 0.3)
    grades = tuple(("sound",) * size for _ in tasks)
    between = PairRates(case.tasks, rates, np.full_like(rates, 0.01), grades, rates == 0.98)
    excess = {"tasks": tasks, "excess": np.full((size, size, size), 0.5).tolist()}
    paired = "rates" in options
    shapes = rates if paired else np.full(size, 0.9)
    return Estimates(
        case.tasks,
        (case.have,) * size,
        worths=worths[None] if paired else np.diag(worths.sum(axis=0))[None],
        shapes=shapes[None],
        law="geometric",
        about={
            "measured": {"triples": excess} if "triples" in options else {},
            **({"between": between.to_dict()} if paired else {}),
        },
    )


def test_options_of_the_future_work_stand_beside_taba(tmp_path: Path) -> None:
    prices = Prices(TASKONOMY_PRICES, {"depth": 1, "edges": 2, "normals": 3}, 30)
    case = replace(
        CASE, data="taskonomy", tasks=tuple(prices.costs), prices=(prices,), implies={}
    )  # fmt: skip
    exhibit, record = list_exhibits()["future-work-taskonomy"], Record(tmp_path / "record.jsonl")
    book = Casebook(case, record)
    record.put(name_pool(case), {"instances": 60})
    for asked in exhibit.list_questions(case):
        found = plant_future(case, asked.options).to_dict()
        record.put(name_estimates(case, asked), {"estimates": found, "seconds": 1.0})
    for job in exhibit.list_trainings(book):
        scores = {task: 0.5 + 0.001 * job.needs["counts"][task] for task in case.tasks}
        higher = dict.fromkeys(scores, True)
        put = {"metrics": scores, "losses": scores, "higher": higher, "seconds": 1.0}
        record.put(job, put)
    text = exhibit.show(book).to_markdown()
    assert "| TABA, rates between tasks | 10:3:3:2:3 |" in text
    assert "| TABA, three tasks | 10:3:3:2:3 | +0.00 ± 0.00 |" in text
    # reaches of 0.9 and 0.98
    assert "| depth | edges | 9 | 49 | 2 of 2 |" in text
    assert "| depth, edges | normals | +0.50 ± 0.00 |" in text
    assert text.count("| +0.50 ± 0.00 |") == 3
    names = [each.name for each in list_future(find_case("voc", SMALL))]
    assert names == ["TABA", "TABA, rates between tasks"]  # three tasks are not two


def test_what_options_of_the_future_work_take_is_told() -> None:
    exhibits, record = list_exhibits(), Record("")
    case = find_case("taskonomy", FULL)
    both, plain = (
        weigh([exhibits[name]], case, record) for name in ("future-work-taskonomy", "relatedness")
    )
    # curves of twenty pairs, and five trainings once more
    assert both.measured - plain.measured == 24 * 20 + 5


@pytest.mark.parametrize(
    ("name", "behind"), [("metrics", "figure-5"), ("metrics-taskonomy", "table-2")]
)
def test_scores_take_what_the_gains_take_that_they_stand_behind(name: str, behind: str) -> None:
    exhibits, record = list_exhibits(), Record("")
    mine, other = exhibits[name], exhibits[behind]
    case = find_case(mine.data, SMALL)
    assert mine.list_questions(case) == other.list_questions(case) != []
    assert weigh([mine], case, record) == weigh([other], case, record) == weigh(
        [mine, other], case, record
    )  # fmt: skip


def test_plans_are_counted_at_the_prices_at_which_they_are_trained_out() -> None:
    """Of what is measured, beside plans that are known and on no record yet."""
    exhibits, case, record = list_exhibits(), find_case("voc", SMALL), Record("")

    def count(*names: str) -> int:
        return weigh([exhibits[name] for name in names], case, record).trainings

    book = Casebook(case, Record(""))
    book.record.take(name_pool(case), {"instances": POOLS["voc"] - 2 * case.have})
    each = case.seed_sets * case.purchases
    for name, measured in (("figure-2", 0), ("figure-4b", 0), ("cost", 0), ("table-1", 4)):
        known = len(set(exhibits[name].list_trainings(book)))
        assert count(name) == known + measured * each
    # TABA with m = 5 is in both, at the three ratios; equal budget and neutral are, too
    assert count("figure-5", "table-3") == count("figure-5") + 5 * 3 * each


def test_a_claim_is_told_by_its_interval() -> None:
    def judge(values: list[float]) -> str:
        return Claim("", "", find_mean(np.array(values)[:, None])).verdict

    assert judge([1.0, 1.1, 0.9, 1.2]) == "holds"
    assert judge([-1.0, -1.1, -0.9, -1.2]) == "does not hold"
    assert judge([1.0, -1.1, 0.9, -1.2]) == "cannot be told"
    assert judge([1.0]) == "cannot be told"


@pytest.mark.long
def test_a_figure_from_the_first_training_to_the_page(folder: Path, tmp_path: Path) -> None:
    site = make_site(CASE, folder, None)
    record = Record(tmp_path / "voc.jsonl")
    told: list[int] = []
    book = run([FIGURE_2], site, record, workers=0, watch=lambda jobs: _Watch(told, len(jobs)))
    assert len(told) == 1
    assert told[0] > 2 * 11
    # what is on record is enough to show it, and is not trained again
    assert list_missing([FIGURE_2], book) == []
    shown = FIGURE_2.show(Casebook(CASE, Record(record.path)))
    assert [path.suffix for path in write("figure-2", shown, tmp_path)] == [".json", ".md", ".svg"]


class Ablations(PriceTables):
    """Two of the paper's methods at one set of prices."""

    about, data, title, prices, has_grid = "a part of table 3", "voc", "", ("1:20",), False

    def list_entrants(self, case: Case) -> list[Entrant]:
        wanted = ("TABA", "b = 0.99")
        return [each for each in list_ablations(case) if each.name in wanted]


@pytest.mark.long
def test_plans_are_measured_and_then_trained_out(folder: Path, tmp_path: Path) -> None:
    record, told = Record(tmp_path / "voc.jsonl"), list[int]()
    case, exhibit = replace(CASE, seed_sets=1, looked_at=2), Ablations()
    book = run(
        [exhibit], make_site(case, folder, None), record, workers=0,
        watch=lambda jobs: _Watch(told, len(jobs)),
    )  # fmt: skip
    assert len(told) == 2  # what is measured first, and then what is planned by it
    for asked in exhibit.list_questions(case):
        found = book.find_estimates(asked)
        assert found is not None
        assert found.about["scored"]["labels"] == {"classes": 4, "segmentation": 4}
        assert found.about["scored"]["trained"]["segmentation"] == 6
    entries = exhibit.compare(Casebook(case, Record(record.path)))["1:20"].entries
    assert all(len(entry.plans) == 1 for entry in entries.values())
    assert exhibit.compare(book)["1:20"].entries["b = 0.99"].plans[0] == (
        allocate_by_rate(book, 0.99)  # I of the same looks
    )
    # what was measured is concluded where that is all that is missing, as after another edition
    lines = record.path.read_text(encoding="utf-8").splitlines(keepends=True)
    record.path.write_text("".join(each for each in lines if '"kind":"estimates"' not in each))
    again = run(
        [exhibit], make_site(case, folder, None), Record(record.path), workers=0,
        watch=lambda jobs: _Watch(told, len(jobs)),
    )  # fmt: skip
    assert len(told) == 2
    for asked in exhibit.list_questions(case):
        found, before = again.find_estimates(asked), book.find_estimates(asked)
        assert found is not None
        assert before is not None
        assert found.to_dict() == before.to_dict()


@pytest.mark.long
def test_rates_between_tasks_are_measured_beside_taba(folder: Path, tmp_path: Path) -> None:
    record, exhibit = Record(tmp_path / "voc.jsonl"), list_exhibits()["future-work-voc"]
    prices = tuple(replace(CASE.prices[0], name=name) for name in RATIOS)
    case = replace(CASE, seed_sets=1, looked_at=2, prices=prices)
    book = run([exhibit], make_site(case, folder, None), record, workers=0)
    plain, pairs = (book.find_estimates(asked) for asked in exhibit.list_questions(case))
    assert plain is not None
    assert pairs is not None
    assert pairs.by_pairs
    assert not plain.by_pairs
    assert pairs.about["rates"] == plain.about["rates"]  # of the same curves
    assert pairs.about["measured"]["transfer"] == plain.about["measured"]["transfer"]
    kinds = [
        needs["job"]["piece"][0]
        for needs, _ in record.list_results("measuring")
    ]  # fmt: skip
    assert {kind: kinds.count(kind) for kind in kinds} == {"curve": 6, "between": 6, "probes": 2}
    assert list_missing([exhibit], book) == []
    shown = exhibit.show(Casebook(case, Record(record.path))).to_markdown()
    assert "| TABA, rates between tasks | 1:20 | " in shown


def allocate_by_rate(book: Casebook, rate: float) -> dict[str, int]:
    """The exact plan of the paper's curves with the transfer that is on record."""
    asked = next(each for each in Ablations().list_questions(book.case) if each.method == "taba")
    found = book.find_estimates(asked)
    assert found is not None
    transfer = Transfer.from_dict(found.about["measured"]["transfer"])
    prices = book.case.find_prices("1:20")
    gains = {task: Geometric(worth, rate) for task, worth in transfer.informativeness.items()}
    return dict(allocate(make_problem(book.case, prices, book.pool), gains).counts)


class _Watch:
    def __init__(self, told: list[int], count: int):
        told.append(count)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...
