"""Appendix C: the scores behind the gains of Figure 5."""

from __future__ import annotations

from typing import ClassVar

from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceTables
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean
from allotment.experiment.exhibits.figure_5 import EXHIBIT as FIGURE_5
from allotment.experiment.outcomes import Plans, find_mean
from allotment.experiment.work import Question
from allotment.job import JSON, Job

SEED = "seed set"


class AppendixScores(Exhibit):
    """The scores behind the gains of another exhibit; nothing is measured or trained beyond it."""

    behind: ClassVar[PriceTables]
    title: ClassVar[str]

    def list_questions(self, case: Case) -> list[Question]:
        return self.behind.list_questions(case)

    def list_planned(self, case: Case) -> list[tuple[Question, str]]:
        return self.behind.list_planned(case)

    def list_trainings(self, book: Casebook) -> list[Job]:
        return self.behind.list_trainings(book)

    def show(self, book: Casebook) -> Shown:
        tables, values = [], {}
        for name in self.behind.prices:
            rows: dict[str, tuple[Plans, bool]] = {SEED: (book.outcomes.nothing, False)}
            for each in self.behind.list_entrants(book.case):
                prices = book.case.find_prices(name)
                rows[each.name] = each.plan(book, prices), each.same
            table, plain = self._list_scores(book, rows, f"Prices {name}")
            tables.append(table)
            values[name] = plain
        return Shown(self.title, tuple(tables), values=values)

    def _list_scores(
        self, book: Casebook, rows: dict[str, tuple[Plans, bool]], title: str
    ) -> tuple[ResultTable, JSON]:
        cells, values = [], {}
        for name, (plans, same) in rows.items():
            scores = book.outcomes.find_scores(plans, same)
            means = [find_mean(scores[..., place]) for place in range(scores.shape[2])]
            values[name] = [dump_mean(each) for each in means]
            shown = ["-" if each.value != each.value else f"{each.value:.3f}" for each in means]
            cells.append((name, *shown))
        return ResultTable(title, ("plan", *book.case.tasks), tuple(cells)), values


class Metrics(AppendixScores):
    about = "the scores behind figure 5: Jaccard of classes, mIoU of masks"
    data = "voc"
    behind = FIGURE_5
    title = "Appendix: scores on VOC"


EXHIBIT = Metrics()
