"""Appendix D: what a label of each task does for the others, beside what the paper printed."""

from __future__ import annotations

from typing import Any

import numpy as np

from allotment.arrays import Array
from allotment.estimates.transfer import Transfer
from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.drawings import draw_matrix
from allotment.experiment.entrants import USUAL_AHEAD, list_taba
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown
from allotment.experiment.outcomes import find_mean
from allotment.experiment.work import Question
from allotment.job import Job

PRINTED = np.array(
    [
        [1.00, 0.32, -0.37, -0.21, 0.00],
        [-0.51, 1.00, 0.16, -0.20, -0.20],
        [0.92, 0.72, 1.00, -0.30, -0.09],
        [0.92, 0.51, 0.20, 1.00, 0.11],
        [0.57, 1.12, -0.33, -0.19, 1.00],
    ]
)
"""the paper's matrix: rows give, columns gain"""


class Relatedness(Exhibit):
    about = "what a label of each Taskonomy task does for the others, as a picture"
    data = "taskonomy"

    def list_questions(self, case: Case) -> list[Question]:
        return [
            asked for each in list_taba(case, (USUAL_AHEAD,)) for asked in each.list_questions(case)
        ]

    def list_trainings(self, book: Casebook) -> list[Job]:
        return []

    def find_matrices(self, book: Casebook) -> Array:
        """[seed set, i, j], of those that are on record."""
        found = []
        for asked in self.list_questions(book.case):
            estimates = book.find_estimates(asked)
            if estimates is not None:
                transfer = Transfer.from_dict(estimates.about["measured"]["transfer"])
                order = [transfer.tasks.index(task) for task in book.case.tasks]
                found.append(transfer.plain[np.ix_(order, order)])
        return np.array(found).reshape(-1, len(book.case.tasks), len(book.case.tasks))

    def show(self, book: Casebook) -> Shown:
        tasks, matrices = book.case.tasks, self.find_matrices(book)
        title = "Appendix: relatedness of tasks on Taskonomy"
        if not len(matrices):
            return Shown(title, (), ("Nothing is measured yet.",))
        mean = matrices.mean(axis=0)

        def draw(figure: Any) -> None:
            axes = figure.subplots(1, 2)
            for each, values, name in zip(
                axes, (mean, PRINTED), ("measured here", "printed in the paper"), strict=True
            ):
                draw_matrix(each, values, tasks)
                each.set_title(name, fontsize=10)

        rows = []
        for place, task in enumerate(tasks):
            cells = [find_mean(matrices[:, place, other][:, None]) for other in range(len(tasks))]
            rows.append((task, *map(str, cells)))
        table = ResultTable("", ("a label of", *tasks), tuple(rows))
        values = {"mean": np.round(mean, 4).tolist(), "printed": PRINTED.tolist()}
        return Shown(title, (table,), self._tell_signs(mean), values, draw, (11.0, 4.6))

    def _tell_signs(self, mean: Array) -> tuple[str, ...]:
        off = ~np.eye(len(mean), dtype=bool) & (PRINTED != 0)
        same = int((np.sign(mean) == np.sign(PRINTED))[off].sum())
        return (f"Signs agree with the printed ones in {same} of {int(off.sum())} cells.",)


EXHIBIT = Relatedness()
