"""Figure 4 b: a task alone with more real labels, and with as many labels of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from allotment.arrays import Array
from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.drawings import draw_lines
from allotment.experiment.entrants import ALONE_METHOD
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean, spell_mean
from allotment.experiment.outcomes import Mean, find_mean
from allotment.experiment.work import ON_TEST, Question
from allotment.job import JSON, Job

REAL, PSEUDO = "real", "pseudo"
SCORED_ON_TEST = (
    "Both kinds of curves are scored on the test part, those on pseudo-labels as the paper does;"
    " no plan is made of them."
)


class Figure4b(Exhibit):
    about = "gain of each task of VOC alone, with more real labels and with pseudo-labels"
    data = "voc"

    def list_questions(self, case: Case) -> list[Question]:
        """Curves on pseudo-labels, scored on the test part as the paper does."""
        return [
            Question(ALONE_METHOD, seed_set, score_on=ON_TEST) for seed_set in range(case.seed_sets)
        ]

    def find_points(self, book: Casebook, task: str) -> tuple[list[int], Array]:
        """Sizes, and the mean score of each seed set at each."""
        sizes: list[int] = []
        rows = np.full((book.case.seed_sets, 0), np.nan)
        for asked in self.list_questions(book.case):
            found = book.find_estimates(asked)
            points: Mapping[str, Any] | None = None
            if found is not None:
                points = found.about["measured"]["points"].get(task)
            if points is None:
                continue
            if not sizes:
                sizes = list(points["sizes"])
                rows = np.full((book.case.seed_sets, len(sizes)), np.nan)
            rows[asked.seed_set] = np.mean(points["scores"], axis=0)
        return sizes, rows

    def list_trainings(self, book: Casebook) -> list[Job]:
        """Real labels at the same sizes, once the sizes are known."""
        jobs, outcomes = [], book.outcomes
        for task in book.case.tasks:
            for size in self.find_points(book, task)[0]:
                jobs += book.train_out(outcomes.repeat({task: size}), tasks=(task,))
        return jobs

    def find_lines(self, book: Casebook, task: str) -> tuple[list[int], dict[str, list[Mean]]]:
        """Gains in % over the first size, of both kinds of labels."""
        sizes, pseudo = self.find_points(book, task)
        outcomes = book.outcomes
        sign = 1.0 if outcomes.points_up(task) else -1.0
        real = [
            outcomes.find_scores(outcomes.repeat({task: size}), tasks=(task,))[..., 0].mean(axis=1)
            for size in sizes
        ]
        both = {REAL: np.array(real).T, PSEUDO: pseudo}
        return sizes, {
            f"{task}, {name} labels": _find_gains(scores, sign, sizes)
            for name, scores in both.items()
        }

    def show(self, book: Casebook) -> Shown:
        found = {task: self.find_lines(book, task) for task in book.case.tasks}

        def draw(figure: Any) -> None:
            axes = figure.subplots(1, len(found))
            for each, (sizes, lines) in zip(np.atleast_1d(axes), found.values(), strict=True):
                draw_lines(each, sizes, lines)
                each.set_xlabel("labels added")
                each.set_ylabel("gain over the labels at hand, %")

        tables, notes = [], [SCORED_ON_TEST]
        values: dict[str, JSON] = {"score_on": ON_TEST}
        for task, (sizes, lines) in found.items():
            rows = tuple(
                (str(size), *(spell_mean(means[place]) for means in lines.values()))
                for place, size in enumerate(sizes)
            )
            tables.append(ResultTable("", ("labels added", *lines), rows))
            values[task] = {"sizes": sizes} | {
                name: [dump_mean(each) for each in means] for name, means in lines.items()
            }
            notes += _tell_likeness(task, list(lines.values()))
        title = "Figure 4 b: real labels and pseudo-labels"
        return Shown(title, tuple(tables), tuple(notes), values, draw, (9.0, 4.0))


def _find_gains(scores: Array, sign: float, sizes: Sequence[int]) -> list[Mean]:
    """Of scores by seed set and size: gains in % over the first size."""
    if not len(sizes) or not scores.size:
        return []
    first = np.where(scores[:, :1] == 0, np.nan, scores[:, :1])
    gains = 100 * sign * (scores - first) / np.abs(first)
    return [find_mean(gains[:, place : place + 1]) for place in range(len(sizes))]


def _tell_likeness(task: str, lines: Sequence[Sequence[Mean]]) -> list[str]:
    """Whether the two curves have one shape, whatever their size."""
    real, pseudo = (np.array([each.value for each in means]) for means in lines)
    known = np.isfinite(real) & np.isfinite(pseudo)
    if known.sum() < 3 or real[known].std() == 0 or pseudo[known].std() == 0:
        return []
    correlation = float(np.corrcoef(real[known], pseudo[known])[0, 1])
    return [f"{task}: correlation of the two curves over their sizes {correlation:.2f}."]


EXHIBIT = Figure4b()
