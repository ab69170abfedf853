"""Table 2: Taskonomy, five tasks."""

from __future__ import annotations

from allotment.experiment.case import TASKONOMY_PRICES, Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceComparison, list_questions
from allotment.experiment.entrants import Entrant, list_baselines, list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.work import Question
from allotment.job import Job


class Table2(Exhibit):
    about = "Taskonomy, five tasks, all ways to plan"
    data = "taskonomy"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_baselines(case), *list_taba(case), *list_ours()]

    def list_questions(self, case: Case) -> list[Question]:
        return list_questions(case, self.list_entrants(case))

    def compare(self, book: Casebook) -> PriceComparison:
        entrants = self.list_entrants(book.case)
        return PriceComparison(book, book.case.find_prices(TASKONOMY_PRICES), entrants)

    def list_trainings(self, book: Casebook) -> list[Job]:
        return self.compare(book).list_trainings()

    def show(self, book: Casebook) -> Shown:
        found = self.compare(book)
        return Shown("Table 2: Taskonomy", (found.show(),), values=found.to_dict())


EXHIBIT = Table2()
