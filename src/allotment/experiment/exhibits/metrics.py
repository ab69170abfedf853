"""Appendix C: the scores behind the gains of Figure 5."""

from __future__ import annotations

from allotment.experiment.case import RATIOS
from allotment.experiment.exhibit import Exhibit, Shown, Table, dump_mean
from allotment.experiment.exhibits.figure_5 import EXHIBIT as FIGURE_5
from allotment.experiment.outcomes import Plans, find_mean
from allotment.experiment.sheet import Sheet
from allotment.job import JSON, Job

SEED = "seed set"


class Metrics(Exhibit):
    about = "the scores behind figure 5: Jaccard of classes, mIoU of masks"
    data = "voc"

    def list_trainings(self, sheet: Sheet) -> list[Job]:
        return FIGURE_5.list_trainings(sheet)

    def show(self, sheet: Sheet) -> Shown:
        tables, values = [], {}
        for name in RATIOS:
            rows: dict[str, tuple[Plans, bool]] = {SEED: (sheet.outcomes.nothing, False)}
            for each in FIGURE_5.list_entrants(sheet.case):
                prices = sheet.case.find_prices(name)
                rows[each.name] = each.plan(sheet, prices), each.same
            table, plain = self._list_scores(sheet, rows, f"Prices {name}")
            tables.append(table)
            values[name] = plain
        return Shown("Appendix: scores on VOC", tuple(tables), values=values)

    def _list_scores(
        self, sheet: Sheet, rows: dict[str, tuple[Plans, bool]], title: str
    ) -> tuple[Table, JSON]:
        cells, values = [], {}
        for name, (plans, same) in rows.items():
            scores = sheet.outcomes.find_scores(plans, same)
            means = [find_mean(scores[..., place]) for place in range(scores.shape[2])]
            values[name] = [dump_mean(each) for each in means]
            shown = ["-" if each.value != each.value else f"{each.value:.3f}" for each in means]
            cells.append((name, *shown))
        return Table(title, ("plan", *sheet.case.tasks), tuple(cells)), values


EXHIBIT = Metrics()
