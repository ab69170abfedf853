"""Appendix C: the scores behind the gains of Figure 5."""

from __future__ import annotations

from allotment.experiment.case import RATIOS
from allotment.experiment.casebook import Casebook
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown, dump_mean
from allotment.experiment.exhibits.figure_5 import EXHIBIT as FIGURE_5
from allotment.experiment.outcomes import Plans, find_mean
from allotment.job import JSON, Job

SEED = "seed set"


class Metrics(Exhibit):
    about = "the scores behind figure 5: Jaccard of classes, mIoU of masks"
    data = "voc"

    def list_trainings(self, book: Casebook) -> list[Job]:
        return FIGURE_5.list_trainings(book)

    def show(self, book: Casebook) -> Shown:
        tables, values = [], {}
        for name in RATIOS:
            rows: dict[str, tuple[Plans, bool]] = {SEED: (book.outcomes.nothing, False)}
            for each in FIGURE_5.list_entrants(book.case):
                prices = book.case.find_prices(name)
                rows[each.name] = each.plan(book, prices), each.same
            table, plain = self._list_scores(book, rows, f"Prices {name}")
            tables.append(table)
            values[name] = plain
        return Shown("Appendix: scores on VOC", tuple(tables), values=values)

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


EXHIBIT = Metrics()
