"""Do the estimates plan better than equal budget? Campaigns on Tox21 and QM8, one seed set each,
plans trained out.

    python experiments/estimates.py measure tox-1 --campaigns 40   # in a file; goes on
    python experiments/estimates.py report            # the tables of docs/results/estimates.md

A campaign draws one seed set: some labels of each task, validation included. Methods see nothing
else. Their plans are trained as they are, with labels bought from the rest of the pool, and scored
on test molecules that no method saw. Campaigns below 1000 are for tuning, the others for reporting.
Needs the small copies of both data sets (`--data`, or ALLOT_TEST_DATA).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from learner import load
from numpy.typing import NDArray

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import Labels, Split, shuffle, split
from allotment.errors import InputError
from allotment.estimates.design import design
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import estimate
from allotment.estimates.levels import fit
from allotment.estimates.methods.slopes import fit_slopes
from allotment.estimates.request import FOLDS
from allotment.estimates.response import Response, run
from allotment.learners.learner import train_many
from allotment.learners.networks import Perceptron
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner
from allotment.plan import Plan, allocate, baselines
from allotment.problem import Problem, Task

REPORTED = 1000
"""the first campaign whose figures are reported"""
TOGETHER = 16
STEPS = {"tox21": 40, "qm8": 60}


@dataclass(frozen=True)
class Setting:
    """A purchase to plan."""

    file: str
    tasks: tuple[str, ...]
    costs: tuple[int, ...]
    have: tuple[int, ...]
    budget: int
    purchases: int = 6
    """in which each plan is trained: more of them where that leaves a standard error above 1.5 % of
    range"""

    @property
    def data_set(self) -> str:
        return self.file.split("_")[0]

    @cached_property
    def data(self) -> ArrayData:
        return _load(self)

    def problem(self, pool: Mapping[str, int]) -> Problem:
        rows = zip(self.tasks, self.costs, self.have, strict=True)
        return Problem(
            [Task(name, cost=c, have=n, pool=pool[name]) for name, c, n in rows], budget=self.budget
        )


PERMUTED, EASY = "permuted", "easy"
"""tasks that are made: one whose labels are noise, one that is nearly solved with the labels at
hand"""
TOX, QM8 = "tox21_morgan1024.npz", "qm8_morgan1024.npz"
SETTINGS = {
    "tox-1": Setting(
        TOX, ("NR-AhR", "SR-MMP", "SR-ARE", "NR-ER"), (1, 6, 1, 3), (300,) * 4, 3300, 18
    ),
    "tox-2": Setting(
        TOX, ("NR-AhR", "SR-MMP", "SR-HSE", "NR-PPAR-gamma"), (6, 1, 3, 1), (300,) * 4, 3300, 18
    ),
    "tox-unequal": Setting(
        TOX, ("NR-AhR", "SR-MMP", "SR-ARE", "NR-ER"), (1,) * 4, (2000, 100, 100, 2000), 800, 18
    ),
    "tox-odd": Setting(TOX, ("NR-AhR", "SR-MMP", PERMUTED, EASY), (1,) * 4, (300,) * 4, 1200),
    "qm8-1": Setting(
        QM8, ("E1-CC2", "E1-PBE0", "f1-CC2", "f1-PBE0"), (20, 1, 20, 1), (300,) * 4, 12600
    ),
    "qm8-2": Setting(
        QM8, ("E2-CC2", "E2-CAM", "f2-CC2", "f2-CAM"), (20, 4, 20, 4), (300,) * 4, 14400
    ),
}


def _load(setting: Setting) -> ArrayData:
    folder = Path(os.environ["ALLOT_TEST_DATA"]) / "molecules"
    made = [task for task in setting.tasks if task in (PERMUTED, EASY)]
    real = [task for task in setting.tasks if task not in made]
    kind, metric = (
        ("regression", "mae") if setting.data_set == "qm8" else ("classification", "roc_auc")
    )
    data = load(folder / setting.file, real, kind, metric)
    # folded to a quarter of their length: as many trainings again in the same time
    folded = np.minimum(data.features.reshape(data.size, 4, -1).sum(axis=1), 3)
    data = replace(data, features=folded)
    if not made:
        return data
    # noise with as many positives as the first task has; and a bit of the fingerprint itself, which
    # 300 labels teach
    rng = np.random.default_rng(0)
    bits = (data.features > 0).mean(axis=0)
    columns = {
        PERMUTED: rng.permutation(data.labels[real[0]]),
        EASY: data.features[:, np.abs(bits - 0.4).argmin()] > 0,
    }
    labels = dict(data.labels) | {task: columns[task].astype(np.int64) for task in made}
    missing = dict(data.missing) | {task: np.zeros(data.size, dtype=bool) for task in made}
    targets = tuple(Target(task, kind, ("no", "yes"), metric=metric) for task in setting.tasks)
    return ArrayData(f"{data.name}-odd", targets, data.features, labels, missing)


def make_learner(setting: Setting, data: ArrayData, parts: Split) -> TorchLearner:
    # few steps of large mini-batches: settled on other draws so that both 75 and 3,600 labels are
    # made use of
    decay = 3.0 if setting.data_set == "tox21" else 0.0
    recipe = Recipe(
        steps=STEPS[setting.data_set],
        batch_size=128,
        optimiser="adamw",
        trunk_rate=0.01,
        head_rate=0.01,
        weight_decay=decay,
        device="cpu",
    )
    return TorchLearner(
        data,
        parts,
        recipe,
        lambda inputs, targets, runs: Perceptron(inputs[0], targets, runs, (64, 32)),
    )


@dataclass(frozen=True)
class Campaign:
    """One seed set, and the pool that it was drawn from."""

    setting: Setting
    number: int

    @cached_property
    def parts(self) -> Split:
        return split(self.setting.data, self.number, validation=0.0, test=0.2)

    @cached_property
    def queues(self) -> dict[str, NDArray[np.int64]]:
        """Of each task: the pool's instances that have a label, in the order in which the seed set
        takes them."""
        data, found = self.setting.data, {}
        for task in self.setting.tasks:
            there = self.parts.train[data.known(task)[self.parts.train]]
            found[task] = shuffle(there, "seed set", self.number, task)
        return found

    @cached_property
    def labels(self) -> Labels:
        """The labels at hand."""
        rows = zip(self.setting.tasks, self.setting.have, strict=True)
        return Labels({task: self.queues[task][:have] for task, have in rows})

    @cached_property
    def problem(self) -> Problem:
        rows = zip(self.setting.tasks, self.setting.have, strict=True)
        return self.setting.problem({task: len(self.queues[task]) - have for task, have in rows})

    def buy(self, counts: Mapping[str, int], purchase: int) -> Labels:
        """The labels at hand and as many more; two plans of one purchase share what both buy."""
        rows = zip(self.setting.tasks, self.setting.have, strict=True)
        rest = self._offers(purchase)
        return Labels(
            {
                task: np.concatenate([self.queues[task][:have], rest[task][: counts[task]]])
                for task, have in rows
            }
        )

    def _offers(self, purchase: int) -> dict[str, NDArray[np.int64]]:
        """Of each task: the rest of the pool in the order in which this purchase takes it."""
        if purchase not in self._shuffled:
            rows = zip(self.setting.tasks, self.setting.have, strict=True)
            self._shuffled[purchase] = {
                task: shuffle(self.queues[task][have:], "purchase", self.number, purchase, task)
                for task, have in rows
            }
        return self._shuffled[purchase]

    @cached_property
    def _shuffled(self) -> dict[int, dict[str, NDArray[np.int64]]]:
        return {}

    @cached_property
    def tested(self) -> TorchLearner:
        """Scored on test molecules: for reporting only."""
        return make_learner(
            self.setting,
            self.setting.data,
            Split(self.parts.train, self.parts.test, self.parts.test),
        )

    @cached_property
    def learner(self) -> TorchLearner:
        """What a method may use: it knows the labels at hand and no others."""
        data = self.setting.data
        known = {
            task: np.isin(np.arange(data.size), self.labels[task].instances)
            for task in self.setting.tasks
        }
        hidden = replace(data, missing={task: ~there for task, there in known.items()})
        nothing = np.array([], dtype=np.int64)
        return make_learner(self.setting, hidden, Split(self.parts.train, nothing, nothing))


class Kept:
    """Results by key in a file of JSON lines, so that nothing is measured twice."""

    def __init__(self, path: Path):
        self.path, self.found = path, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                key, value = json.loads(line)
            except ValueError:  # cut off when the last run was stopped
                continue
            self.found[key] = value

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self.found:
            self.put(key, json.loads(json.dumps(make())))
        return self.found[key]

    def put(self, key: str, value: Any) -> None:
        self.found[key] = value
        with self.path.open("a") as file:
            file.write(json.dumps([key, value]) + "\n")


# --- what plans are worth ---


def key_of(plan: Mapping[str, int], campaign: int, purchase: int) -> str:
    return f"plan {campaign} {purchase} {' '.join(map(str, plan.values()))}"


def train_plans(
    kept: Kept, campaign: Campaign, plans: Sequence[Mapping[str, int]], purchases: Sequence[int]
) -> None:
    """Test scores after buying each plan, in each purchase, unless they are known."""
    wanted = {key_of(plan, campaign.number, p): (plan, p) for plan in plans for p in purchases}
    missing = [(key, plan, p) for key, (plan, p) in wanted.items() if key not in kept.found]
    learner = campaign.tested
    for first in range(0, len(missing), TOGETHER):
        part = missing[first : first + TOGETHER]
        states = train_many(learner, [(campaign.buy(plan, p), p) for _, plan, p in part])
        for (key, _, _), state in zip(part, states, strict=True):
            kept.put(key, [learner.score(state, task).metric for task in campaign.setting.tasks])


def nothing(setting: Setting) -> dict[str, int]:
    return dict.fromkeys(setting.tasks, 0)


def grid(campaign: Campaign) -> list[dict[str, int]]:
    """All ways to split the budget in quarters."""
    names, costs = campaign.setting.tasks, campaign.setting.costs
    found = []
    for cut in itertools.product(range(5), repeat=len(names)):
        if sum(cut) == 4:
            counts = {
                n: campaign.setting.budget * q // 4 // c
                for n, q, c in zip(names, cut, costs, strict=True)
            }
            found.append({n: min(count, campaign.problem[n].pool) for n, count in counts.items()})
    return found


def fixed_plans(campaign: Campaign) -> dict[str, dict[str, int]]:
    return {
        name: plan
        for name, plan in baselines(campaign.problem).items()
        if not name.startswith(("all", "100"))
    }


GRID_PURCHASES = (0,)
HALF = 20
"""campaigns in which an optimum is picked that is scored in the others; the first few of these
train the grid"""
GRID_CAMPAIGNS = 5
BEFORE = tuple(range(8))


def purchases_of(campaign: Campaign) -> tuple[int, ...]:
    return tuple(range(campaign.setting.purchases))


def measure_surface(kept: Kept, campaign: Campaign) -> None:
    train_plans(kept, campaign, [nothing(campaign.setting)], BEFORE)
    if campaign.number % HALF < GRID_CAMPAIGNS:
        train_plans(kept, campaign, grid(campaign), GRID_PURCHASES)
    train_plans(kept, campaign, list(fixed_plans(campaign).values()), purchases_of(campaign))


def gains(
    kept: Kept, campaign: Campaign, plan: Mapping[str, int], purchases: Sequence[int]
) -> NDArray[np.float64]:
    """[purchase, task]: D_i in %."""
    sign = -1.0 if campaign.setting.data_set == "qm8" else 1.0
    before = np.mean(
        [kept.found[key_of(nothing(campaign.setting), campaign.number, p)] for p in BEFORE], axis=0
    )
    after = np.array([kept.found[key_of(plan, campaign.number, p)] for p in purchases])
    return sign * (after - before) / before * 100


# --- what methods say ---

METHODS = ("response", "taba-mended", "taba-pooled", "slopes")
TRAININGS = {"response": 60, "taba-mended": 30, "taba-pooled": 30, "slopes": 60}
"""worth of trainings on all labels at hand, unless another is asked for: about as many seconds
each, since trainings of the first are stacked"""
COMPUTE = (5, 10, 30, 100)
FEWEST_FOR_SLOPES = 10
"""four folds and four slopes are eight numbers"""


def measure_method(
    kept: Kept, campaign: Campaign, method: str, trainings: int | None
) -> Estimates | None:
    """What a method concludes from the labels at hand, or nothing if it needs more trainings."""
    trainings = trainings or TRAININGS[method]
    source = "response" if method == "slopes" else method  # they conclude from the same trainings
    made = kept.get(
        f"{source} {campaign.number} {trainings}", lambda: _measure(campaign, source, trainings)
    )
    if made is None or (method == "slopes" and trainings < FEWEST_FOR_SLOPES):
        return None
    if method == "response":
        return fit(Response.from_dict(made), seed=campaign.number)
    return fit_slopes(Response.from_dict(made)) if method == "slopes" else Estimates.from_dict(made)


def _measure(campaign: Campaign, method: str, trainings: int) -> Any:
    if method == "response":  # kept before it is fitted, so that other beliefs need no training
        chosen = design(campaign.labels, trainings, campaign.number, folds=FOLDS)
        return run(campaign.learner, campaign.labels, chosen, together=TOGETHER).to_dict()
    try:
        found = estimate(
            campaign.learner,
            campaign.labels,
            campaign.number,
            method=method,
            trainings=trainings,
            folds=FOLDS,
        )
    except InputError as error:
        if "trainings" in str(error):
            return None
        raise
    return replace(found, about={}).to_dict()


def plan_of(kept: Kept, campaign: Campaign, method: str, trainings: int | None) -> Plan | None:
    found = measure_method(kept, campaign, method, trainings)
    return None if found is None else allocate(campaign.problem, found)


def measure_methods(
    kept: Kept, campaign: Campaign, methods: Sequence[str], sizes: Sequence[int | None]
) -> None:
    plans = [plan_of(kept, campaign, method, size) for method in methods for size in sizes]
    train_plans(
        kept, campaign, [plan.counts for plan in plans if plan is not None], purchases_of(campaign)
    )


# --- the report ---


class Surface:
    """D_T of any plan, smoothed: what some campaigns measured on the grid, by a sum of curves for
    every task."""

    def __init__(self, kept: Kept, campaigns: Sequence[Campaign]):
        self.setting = campaigns[0].setting
        plans, found = [], []
        for campaign in campaigns:
            for plan in grid(campaign):
                plans.append(list(plan.values()))
                found.append(gains(kept, campaign, plan, GRID_PURCHASES).mean())
        columns = self._columns(plans)
        self.weights = np.linalg.solve(
            columns.T @ columns + 0.01 * np.eye(columns.shape[1]), columns.T @ np.array(found)
        )
        steps = 16
        cuts = [cut for cut in itertools.product(range(steps + 1), repeat=4) if sum(cut) == steps]
        money = np.array(cuts) / steps * self.setting.budget
        pool = [campaigns[0].problem[task].pool for task in self.setting.tasks]
        self.plans = np.minimum(money // np.array(self.setting.costs), pool).astype(int)
        self.values = self._columns(self.plans) @ self.weights

    def _columns(self, plans: Any) -> NDArray[np.float64]:
        more = np.asarray(plans, dtype=float) / np.array(self.setting.have)
        return np.concatenate([1 - (1 + more) ** -power for power in (0.3, 1.2)], axis=1)

    @property
    def best(self) -> dict[str, int]:
        return dict(zip(self.setting.tasks, self.plans[self.values.argmax()].tolist(), strict=True))

    @property
    def span(self) -> float:
        """From the worst way to spend the budget to the best."""
        return float(self.values.max() - self.values.min())


def halves(name: str, first: int = REPORTED, campaigns: int = 2 * HALF) -> list[list[Campaign]]:
    every = [Campaign(SETTINGS[name], number) for number in range(first, first + campaigns)]
    return [every[: campaigns // 2], every[campaigns // 2 :]]


def pick_best(kept: Kept, name: str) -> tuple[dict[int, dict[str, int]], float]:
    """Of each campaign: the optimum that the other half picked; and the range of the surface."""
    parts = halves(name)
    surfaces = [
        Surface(kept, [c for c in part if c.number % HALF < GRID_CAMPAIGNS]) for part in parts
    ]
    picked = {c.number: surfaces[1 - half].best for half, part in enumerate(parts) for c in part}
    return picked, float(np.mean([surface.span for surface in surfaces]))


@dataclass(frozen=True)
class Row:
    """One way to plan, over all campaigns of a setting; all in % of the range of the true
    surface."""

    name: str
    regret: NDArray[np.float64]
    """[campaign]: against the optimum that the other half of the campaigns picked"""
    counts: NDArray[np.int64]
    """[campaign, task]"""


def table_of(
    kept: Kept,
    name: str,
    ways: Mapping[str, Callable[[Campaign], Mapping[str, int] | None]],
    each_half: int = HALF,
) -> list[Row]:
    """What each way's own plans gain when they are trained, held against the optimum."""
    picked, span = pick_best(kept, name)
    rows = []
    for way, plan in ways.items():
        regret, counts = [], []
        for campaign in itertools.chain(*(half[:each_half] for half in halves(name))):
            chosen = plan(campaign)
            if chosen is None:
                break
            trained, best = purchases_of(campaign), picked[campaign.number]
            train_plans(kept, campaign, [chosen, best], trained)
            lost = (
                gains(kept, campaign, best, trained).mean()
                - gains(kept, campaign, chosen, trained).mean()
            )
            regret.append(lost / span * 100)
            counts.append(list(chosen.values()))
        else:
            rows.append(Row(way, np.array(regret), np.array(counts)))
    return rows


def ways_of(
    kept: Kept, methods: Sequence[str], trainings: int | None
) -> dict[str, Callable[[Campaign], Any]]:
    def fixed(way: str) -> Callable[[Campaign], Any]:
        return lambda campaign: fixed_plans(campaign)[way]

    def measured(way: str) -> Callable[[Campaign], Any]:
        def plan(campaign: Campaign) -> Any:
            found = plan_of(kept, campaign, way, trainings)
            return None if found is None else found.counts

        return plan

    return {way: fixed(way) for way in FIXED} | {way: measured(way) for way in methods}


FIXED = ("equal budget", "neutral", "equal images")


def error_of(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def show_setting(kept: Kept, name: str, methods: Sequence[str], trainings: int | None) -> None:
    """One table of docs/results/estimates.md."""
    setting = SETTINGS[name]
    picked, span = pick_best(kept, name)
    rows = table_of(kept, name, ways_of(kept, methods, trainings))
    by_name = {row.name: row for row in rows}
    optimum = " or ".join(sorted({", ".join(map(str, plan.values())) for plan in picked.values()}))
    print(f"\n### {name}\n")
    print(
        f"{', '.join(setting.tasks)}; prices {', '.join(map(str, setting.costs))}; labels at hand ",
        end="",
    )
    print(
        f"{', '.join(map(str, setting.have))}; budget {setting.budget:,}. Range {span:.2f} points"
        " of D_T;",
        end=" ",
    )
    print(f"the halves' optima are {optimum}.\n")
    print(
        "| plan from | mean counts | mean regret | 90th percentile | over equal budget | over"
        " neutral |"
    )
    print("|---|---|---|---|---|---|")
    for row in rows:
        cells = [row.name, " ".join(f"{mean:.0f}" for mean in row.counts.mean(axis=0))]
        cells += [
            f"{row.regret.mean():.1f} +- {error_of(row.regret):.1f}",
            f"{np.quantile(row.regret, 0.9):.0f}",
        ]
        for other in ("equal budget", "neutral"):
            better = by_name[other].regret - row.regret
            least = better.mean() - 1.645 * error_of(better)
            cells.append(
                ""
                if other == row.name
                else f"{better.mean():+.1f} +- {error_of(better):.1f} (> {least:+.1f})"
            )
        print("| " + " | ".join(cells) + " |", flush=True)
    if "response" in methods:
        show_coverage(kept, name, span, trainings)


def show_coverage(kept: Kept, name: str, span: float, trainings: int | None) -> None:
    """How often the interval of D_T(plan) - D_T(equal budget) holds what was measured."""
    plain, widened, wins, chances = [], [], [], []
    for campaign in itertools.chain(*halves(name)):
        plan = plan_of(kept, campaign, "response", trainings)
        assert plan is not None
        equal = fixed_plans(campaign)["equal budget"]
        trained = purchases_of(campaign)
        measured = (
            gains(kept, campaign, plan.counts, trained) - gains(kept, campaign, equal, trained)
        ).mean(axis=1)
        estimates = measure_method(kept, campaign, "response", trainings)
        assert estimates is not None
        drawn = estimates.gain_over(campaign.problem, plan, equal)
        rng = np.random.default_rng(campaign.number)
        for found, noise in ((plain, 0.0), (widened, error_of(measured))):
            low, high = np.quantile(drawn + noise * rng.normal(size=len(drawn)), [0.05, 0.95])
            found.append(bool(low - 1e-9 <= measured.mean() <= high + 1e-9))
        wins.append(measured.mean() > 0)
        chances.append(float(np.mean(drawn > 0)))
    print(
        f"\n90 % intervals hold the measured gain over equal budget in {np.mean(plain):.0%} of"
        " campaigns; ",
        end="",
    )
    print(
        f"{np.mean(widened):.0%} when widened by the measurement's own error"
        f" ({SETTINGS[name].purchases} purchases). ",
        end="",
    )
    print(
        f"Equal budget was beaten in {np.mean(wins):.0%}; the stated chance was"
        f" {np.mean(chances):.0%} on average."
    )


def show_compute(kept: Kept, name: str, methods: Sequence[str], campaigns: int) -> None:
    """Regret against compute."""
    print(f"\n### Regret against compute, {name}\n")
    print(
        f"| plan from | {' | '.join(f'{size} trainings' for size in COMPUTE)}"
        f" |\n|{'---|' * (1 + len(COMPUTE))}"
    )
    for method in methods:
        cells = []
        for size in COMPUTE:
            rows = table_of(
                kept, name, {method: ways_of(kept, [method], size)[method]}, campaigns // 2
            )
            cells.append(
                f"{rows[0].regret.mean():.1f} +- {error_of(rows[0].regret):.1f}"
                if rows
                else "too few"
            )
        print(f"| {method} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["measure", "report", "compute"])
    parser.add_argument(
        "settings",
        nargs="*",
        default=list(SETTINGS),
        help=f"of {', '.join(SETTINGS)}; all if left out",
    )
    parser.add_argument(
        "--data", default=os.environ.get("ALLOT_TEST_DATA"), help="folder of the data sets' copies"
    )
    parser.add_argument(
        "--kept", type=Path, default=Path("kept"), help="folder of finished trainings"
    )
    parser.add_argument("--first", type=int, default=REPORTED, help="number of the first campaign")
    parser.add_argument("--campaigns", type=int, default=2 * HALF)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--trainings", type=int, help=f"left out: {TRAININGS}")
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data: where are the copies of QM8 and Tox21?")
    os.environ["ALLOT_TEST_DATA"] = str(given.data)
    torch.set_num_threads(1)
    for name in given.settings:
        kept, begun = Kept(given.kept / f"{name}.jsonl"), time.perf_counter()
        if given.what == "report":
            show_setting(kept, name, given.methods, given.trainings)
        elif given.what == "compute":
            show_compute(kept, name, given.methods, given.campaigns)
        for number in (
            range(given.first, given.first + given.campaigns) if given.what == "measure" else ()
        ):
            campaign = Campaign(SETTINGS[name], number)
            measure_surface(kept, campaign)
            measure_methods(kept, campaign, given.methods, [given.trainings])
            print(f"{name} {number}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
