"""Section 4: what planning costs beside what labels cost."""

from __future__ import annotations

from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.comparison import price_validation
from allotment.experiment.entrants import MeasuredPlan, list_ours, list_taba
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown
from allotment.experiment.work import ON_VALIDATION, Question, name_estimates
from allotment.job import Job

COUNTED_AT = "1:20"
"""prices of which the labels are told in dollars"""
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
        prices = book.case.find_prices(COUNTED_AT)
        validation = price_validation(book.case, prices) * CLASS_LABEL
        for each in (*list_taba(book.case), *list_ours()):
            spent = list_hours(book, each)
            if spent:
                hours = sum(spent) / len(spent)
                extra = validation if each.score_on == ON_VALIDATION else 0.0
                row = f"{hours:.2f}", f"{hours * CORE_HOUR:.3f}", f"{extra:.0f}"
                rows.append((each.name, *row))
                values[each.name] = {
                    "core hours": hours, "dollars": hours * CORE_HOUR, "validation labels": extra,
                }  # fmt: skip
        notes = (
            f"The seed set costs {price_seed_set(book):.0f} dollars at the paper's prices, the"
            f" budget {prices.budget * CLASS_LABEL:.0f}. The paper: 25 GPU-hours, less than 50"
            " dollars, beside 252 for its seed set and 8,889 for all labels. It scores on its test"
            " set; who has none buys validation labels beyond those at hand.",
        )
        heads = ("plan", "core hours", "dollars", "dollars of validation labels")
        table = ResultTable("", heads, tuple(rows))
        return Shown("What planning costs", (table,), notes, values)


def list_hours(book: Casebook, plan: MeasuredPlan) -> list[float]:
    """Core hours of what a plan is measured by, of each seed set that is on record."""
    jobs = [name_estimates(book.case, asked) for asked in plan.list_questions(book.case)]
    found = [book.record.get(job.kind, job.needs) for job in jobs]
    return [float(each["seconds"]) / 3600 for each in found if each is not None]


def list_dollars(book: Casebook, plan: MeasuredPlan) -> list[float]:
    return [hours * CORE_HOUR for hours in list_hours(book, plan)]


def price_seed_set(book: Casebook) -> float:
    """Dollars that the labels at hand cost."""
    costs = book.case.find_prices(COUNTED_AT).costs
    return book.case.have * sum(costs.values()) * CLASS_LABEL


EXHIBIT = PlanningCost()
