"""Section 4: what planning costs beside what labels cost."""

from __future__ import annotations

from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.entrants import list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown
from allotment.experiment.work import Question, name_estimates
from allotment.job import Job

CORE_HOUR = 0.05
"""dollars for an hour of one core, as clouds ask for it"""
CLASS_LABEL = 0.04
"""dollars for a class label, with which the paper's seed set of 300 of each at 1 : 20 costs its
252"""


class PlanningCost(Exhibit):
    about = "what planning costs beside what labels cost, on VOC"
    data = "voc"

    def list_questions(self, case: Case) -> list[Question]:
        entrants = [*list_taba(case), *list_ours()]
        return [asked for each in entrants for asked in each.list_questions(case)]

    def list_trainings(self, book: Casebook) -> list[Job]:
        return []

    def show(self, book: Casebook) -> Shown:
        rows, values = [], {}
        for each in (*list_taba(book.case), *list_ours()):
            spent = []
            for asked in each.list_questions(book.case):
                job = name_estimates(book.case, asked)
                found = book.record.get(job.kind, job.needs)
                if found is not None:
                    spent.append(float(found["seconds"]))
            if spent:
                hours = sum(spent) / len(spent) / 3600
                rows.append((each.name, f"{hours:.2f}", f"{hours * CORE_HOUR:.3f}"))
                values[each.name] = {"core hours": hours, "dollars": hours * CORE_HOUR}
        prices = book.case.find_prices("1:20")
        seed = book.case.have * sum(prices.costs.values()) * CLASS_LABEL
        notes = (
            f"The seed set costs {seed:.0f} dollars at the paper's prices, the budget"
            f" {prices.budget * CLASS_LABEL:.0f}. The paper: 25 GPU-hours, less than 50 dollars,"
            " beside 252 for its seed set and 8,889 for all labels.",
        )
        table = ResultTable("", ("plan", "core hours", "dollars"), tuple(rows))
        return Shown("What planning costs", (table,), notes, values)


EXHIBIT = PlanningCost()
