"""Table 3: parts of the paper's method taken out or replaced, on VOC."""

from __future__ import annotations

from allotment.experiment.case import RATIOS, Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceComparison, list_questions
from allotment.experiment.entrants import Entrant, FixedPlan, list_ablations
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.work import Question
from allotment.job import Job


class Table3(Exhibit):
    about = "TABA on VOC without transfer, with TAG's, and with set reduction rates"
    data = "voc"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_ablations(case), FixedPlan("equal budget"), FixedPlan("neutral")]

    def list_questions(self, case: Case) -> list[Question]:
        return list_questions(case, self.list_entrants(case))

    def compare(self, book: Casebook) -> dict[str, PriceComparison]:
        entrants = self.list_entrants(book.case)
        return {
            name: PriceComparison(book, book.case.find_prices(name), entrants, has_grid=False)
            for name in RATIOS
        }

    def list_trainings(self, book: Casebook) -> list[Job]:
        return [job for each in self.compare(book).values() for job in each.list_trainings()]

    def show(self, book: Casebook) -> Shown:
        found = self.compare(book)
        return Shown(
            "Table 3: parts of TABA taken out or replaced, on VOC",
            tuple(each.show(f"Prices {name}") for name, each in found.items()),
            values={name: each.to_dict() for name, each in found.items()},
        )


EXHIBIT = Table3()
