"""Table 1: VOC at 1:20 with a larger budget."""

from __future__ import annotations

from allotment.experiment.case import LARGER, Case
from allotment.experiment.comparison import Comparison, list_inquiries
from allotment.experiment.entrants import Entrant, list_baselines, list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.sheet import Sheet
from allotment.experiment.work import Inquiry
from allotment.job import Job


class Table1(Exhibit):
    about = "VOC at 1:20 with a larger budget"
    data = "voc"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_baselines(case), *list_taba(case), *list_ours()]

    def list_inquiries(self, case: Case) -> list[Inquiry]:
        return list_inquiries(case, self.list_entrants(case))

    def compare(self, sheet: Sheet) -> Comparison:
        entrants = self.list_entrants(sheet.case)
        return Comparison(sheet, sheet.case.find_prices(LARGER), entrants)

    def list_trainings(self, sheet: Sheet) -> list[Job]:
        return self.compare(sheet).list_trainings()

    def show(self, sheet: Sheet) -> Shown:
        found = self.compare(sheet)
        title = "Table 1: VOC with a larger budget"
        return Shown(title, (found.show(),), values=found.to_dict())


EXHIBIT = Table1()
