"""Scores that are stated of models, by estimates and by `allot evaluate`, against models that are
trained on such labels afterwards.

python benchmarks/forecasts.py report OUT.json     20 campaigns on Tox21 and QM8, as in the protocol
python benchmarks/forecasts.py tune OUT.json       the same on other tables, to choose constants by

Protocol. A campaign: four tasks of a table by chance, 60 to 300 labels of each at hand, prices from
1 to 8, money for as much again as the labels at hand would cost; 30 % of the instances are kept for
the test. Estimates are made as a campaign makes them (the learner that `allot init` writes for
tables, method response, 60 trainings, four folds of the labels at hand), the plan is the best one
for them. The labels at hand are scored as by `allot evaluate`, too. Then models are trained on the
labels at hand, and on these and the plan's, bought by chance: three each, with a draw and a seed of
their own, and scored on the test instances. Told are: how often the spans (now, after, and that of
the evaluation) hold these scores, and how far the middles are from the mean of the three, in % of
it. A campaign that is done is in OUT.json and is not done again. Constants were chosen on `tune`
only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import allotment as al
from allotment.campaign.starting import TEMPERED_STEPS
from allotment.data.dataset import ArrayData
from allotment.data.labels import Labels, draw, split
from allotment.data.table import read_table
from allotment.estimates.forecast import forecast
from allotment.learners.learner import train_many
from allotment.learners.metrics import USUAL_METRICS
from allotment.learners.perceptrons import PerceptronsLearner
from allotment.learners.recipe import Recipe
from allotment.learners.tempering import MEMBERS
from allotment.learners.validation import PARTS, add_up, answer_parts

TASKS = 4
LEAST_AT_HAND, MOST_AT_HAND = 60, 300
PRICES = (1, 2, 4, 8)
TEST = 0.3
WHEN = ("now", "after", "evaluated")
RETRAININGS = 3
FILES = {
    "report": {"molecules/tox21_morgan1024.npz": 10, "molecules/qm8_morgan1024.npz": 10},
    "tune": {
        f"tables/{name}.npz": 3
        for name in ("qm9", "chembl", "emotions", "enb", "enron", "delicious")
    },
}
"""of each purpose: files, and how many campaigns on each"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("purpose", choices=list(FILES))
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    done = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    root = Path(os.environ["ALLOT_TEST_DATA"])
    files = FILES[asked.purpose]
    for number in range(max(files.values())):
        for file in files:
            name = f"{Path(file).stem} {number}"
            if number < files[file] and name not in done:
                done[name] = run_campaign(root / file, 1000 + number)
                asked.out.write_text(json.dumps(done))
                print(name, file=sys.stderr)
    tell(done)


def run_campaign(path: Path, seed: int) -> dict[str, Any]:
    """Estimates, their forecasts, and what models of such labels score."""
    rng = np.random.default_rng(seed)
    data = _read(path, rng)
    parts = split(data, seed, validation=0.0, test=TEST)
    learner = PerceptronsLearner(data, parts, Recipe(steps=TEMPERED_STEPS, members=MEMBERS))
    names = [target.name for target in data.targets]
    known = {name: int(data.known(name)[parts.train].sum()) for name in names}
    have = {
        name: int(min(rng.integers(LEAST_AT_HAND, MOST_AT_HAND + 1), known[name] // 3))
        for name in names
    }
    labels = draw(data, parts.train, have, seed)
    tasks = [
        al.Task(name, int(rng.choice(PRICES)), have=have[name], pool=known[name] - have[name])
        for name in names
    ]
    problem = al.Problem(tasks, budget=sum(int(task.cost) * task.have for task in tasks))
    estimates = al.estimate(learner, labels, seed, folds=4)
    plan = al.allocate(problem, estimates)
    total = {name: have[name] + plan.counts[name] for name in names}
    stated = {name: each.to_dict() for name, each in forecast(estimates, have, total).items()}
    for name, score in evaluate(learner, data, labels, seed).items():
        stated[name]["evaluated"] = score
    runs: dict[str, list[Any]] = {"now": [], "after": []}
    for number in range(RETRAININGS):
        more = draw(data, parts.train, plan.counts, 7919 * seed + number, taken=labels)
        both = Labels({name: labels[name].join(more[name]) for name in names})
        runs["now"].append((labels, 104729 + number))
        runs["after"].append((both, 104729 + number))
    judge = learner.with_validation(parts.test)
    scores = {
        when: [
            {name: judge.score(state, name).metric for name in names}
            for state in train_many(learner, each)
        ]
        for when, each in runs.items()
    }
    return {
        "have": have,
        "bought": plan.counts,
        "forecasts": stated,
        "scores": scores | {"evaluated": scores["now"]},
        "estimates": estimates.to_dict(),
    }


def evaluate(
    learner: PerceptronsLearner, data: ArrayData, labels: Labels, seed: int
) -> dict[str, dict[str, float]]:
    """What `allot evaluate` says of the labels at hand."""
    metrics = {target.name: [str(target.metric)] for target in data.targets}
    answers = answer_parts(learner, data, labels, parts=PARTS, chosen=range(PARTS), seed=seed)
    return {
        score.task: {"low": score.low, "middle": score.mean, "high": score.high}
        for score in add_up(data, metrics, answers, seed).scores
    }


def _read(path: Path, rng: np.random.Generator) -> ArrayData:
    """Four of its tasks, of those that have labels enough, each with its usual metric."""
    with np.load(path, allow_pickle=False) as arrays:
        names, values = [str(each) for each in arrays["tasks"]], arrays["Y"]
    enough = [
        name
        for name, column in zip(names, values.T, strict=True)
        if np.isfinite(column).sum() >= 3 * LEAST_AT_HAND / (1 - TEST)
    ]
    chosen = sorted(rng.choice(enough, size=min(TASKS, len(enough)), replace=False).tolist())
    data = read_table(path, targets=chosen, drop=["smiles"] if "molecules" in str(path) else [])
    targets = [
        replace(
            target,
            metric="roc_auc" if target.kind == "classification" else USUAL_METRICS[target.kind],
        )
        for target in data.targets
    ]
    return replace(data, targets=tuple(targets))


def tell(done: dict[str, Any]) -> None:
    """How often spans hold, how far middles are off, and how wide spans are, by file."""
    rows: dict[str, list[Any]] = {}
    for name, campaign in done.items():
        rows.setdefault(name.split()[0], []).append(campaign)
    rows["all"] = list(done.values())
    heads = ("held", "off by", "bias", "width")
    print(f"{'':18}{'tasks':>6}", *(f"{when:>9} {head:<6}" for when in WHEN for head in heads))
    for name, campaigns in rows.items():
        cells = [judge(campaigns, when) for when in WHEN]
        print(
            f"{name:18}{cells[0][-1]:6.0f}", *(f"{x:14.1f} %" for each in cells for x in each[:4])
        )


def judge(campaigns: list[Any], when: str) -> tuple[float, ...]:
    """Shares of spans that hold a retrained model's score, the median distance of middles from the
    mean of these, its mean (above 0: better was said than came), the median width, all in %, and
    how many tasks."""
    held, off, wide = [], [], []
    for each in campaigns:
        for task, stated in each["forecasts"].items():
            span, scores = stated[when], [row[task] for row in each["scores"][when]]
            held += [span["low"] <= score <= span["high"] for score in scores]
            mean = float(np.mean(scores))
            sign = 1 if stated["higher_is_better"] else -1
            off.append(sign * (span["middle"] - mean) / abs(mean) * 100)
            wide.append((span["high"] - span["low"]) / abs(mean) * 100)
    return (
        100 * float(np.mean(held)),
        float(np.median(np.abs(off))),
        float(np.mean(off)),
        float(np.median(wide)),
        len(off),
    )


if __name__ == "__main__":
    main()
