"""Table 1: VOC at 1:20 with a larger budget."""

from __future__ import annotations

from allotment.experiment.case import LARGER, Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import PriceComparison, list_questions
from allotment.experiment.entrants import Entrant, list_baselines, list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.work import Question
from allotment.job import Job


class Table1(Exhibit):
    about = "VOC at 1:20 with a larger budget"
    data = "voc"

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_baselines(case), *list_taba(case), *list_ours()]

    def list_questions(self, case: Case) -> list[Question]:
        return list_questions(case, self.list_entrants(case))

    def compare(self, book: Casebook) -> PriceComparison:
        entrants = self.list_entrants(book.case)
        return PriceComparison(book, book.case.find_prices(LARGER), entrants)

    def list_trainings(self, book: Casebook) -> list[Job]:
        return self.compare(book).list_trainings()

    def show(self, book: Casebook) -> Shown:
        found = self.compare(book)
        title = "Table 1: VOC with a larger budget"
        return Shown(title, (found.show(),), values=found.to_dict())


EXHIBIT = Table1()
