"""Table 3: parts of the paper's method taken out or replaced, on VOC."""

from __future__ import annotations

from allotment.experiment.case import RATIOS, Case
from allotment.experiment.comparison import Comparison, list_inquiries
from allotment.experiment.entrants import Entrant, Fixed, list_ablations
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.sheet import Sheet
from allotment.experiment.work import Inquiry
from allotment.job import Job


class Table3(Exhibit):
    about = "TABA on VOC without transfer, with TAG's, and with set reduction rates"
    data = "voc"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_ablations(case), Fixed("equal budget"), Fixed("neutral")]

    def list_inquiries(self, case: Case) -> list[Inquiry]:
        return list_inquiries(case, self.list_entrants(case))

    def compare(self, sheet: Sheet) -> dict[str, Comparison]:
        entrants = self.list_entrants(sheet.case)
        return {
            name: Comparison(sheet, sheet.case.find_prices(name), entrants, has_grid=False)
            for name in RATIOS
        }

    def list_trainings(self, sheet: Sheet) -> list[Job]:
        return [job for each in self.compare(sheet).values() for job in each.list_trainings()]

    def show(self, sheet: Sheet) -> Shown:
        found = self.compare(sheet)
        return Shown(
            "Table 3: parts of TABA taken out or replaced, on VOC",
            tuple(each.show(f"Prices {name}") for name, each in found.items()),
            values={name: each.to_dict() for name, each in found.items()},
        )


EXHIBIT = Table3()
