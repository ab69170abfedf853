"""Every claim of the paper about Taskonomy, with its verdict."""

from __future__ import annotations

from allotment.corpus.plans import EQUAL_BUDGET, EQUAL_IMAGES
from allotment.experiment.case import Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.claim import (
    USUAL_TABA,
    Claim,
    lead,
    lead_over_best,
    list_numbers,
    pick_best,
    show_claims,
)
from allotment.experiment.entrants import STAR, list_singles
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.exhibits.table_2 import EXHIBIT as TABLE_2
from allotment.experiment.outcomes import find_mean
from allotment.experiment.work import Question
from allotment.job import Job

TASKONOMY_NUMBERS = {
    "segmentation": (0.73, 0.9964),
    "normals": (0.23, 0.9997),
    "depth": (2.24, 0.9998),
    "keypoints": (2.74, 0.9999),
    "edges": (2.17, 0.9998),
}
"""I and b of the paper"""


class ClaimsTaskonomy(Exhibit):
    about = "every claim of the paper about Taskonomy, with its verdict"
    data = "taskonomy"

    def list_questions(self, case: Case) -> list[Question]:
        return TABLE_2.list_questions(case)

    def list_planned(self, case: Case) -> list[tuple[Question, str]]:
        return TABLE_2.list_planned(case)

    def list_trainings(self, book: Casebook) -> list[Job]:
        return TABLE_2.list_trainings(book)

    def show(self, book: Casebook) -> Shown:
        (found,) = TABLE_2.compare(book).values()
        singles = [each.name for each in list_singles(book.case)]
        others = [EQUAL_IMAGES, EQUAL_IMAGES + STAR, *singles]
        poor = pick_best(found, others) - found.entries[EQUAL_BUDGET].totals
        claims = [
            Claim("TABA is the best: over the best baseline", "+0.9",
                  lead_over_best(found, USUAL_TABA, [*others, EQUAL_BUDGET])),
            Claim("equal budget is poor: the best other baseline over it", "+2.2",
                  find_mean(poor)),
            Claim("different images are better than the same", "+6.2",
                  lead(found, EQUAL_IMAGES, EQUAL_IMAGES + STAR)),
        ]  # fmt: skip
        numbers = list_numbers(book, TASKONOMY_NUMBERS)
        values = {each.text: each.to_dict() for each in (*claims, *numbers)}
        title = "What the paper claims about Taskonomy"
        tables = show_claims(claims), show_claims(numbers, "I and b")
        return Shown(title, tables, values=values)


EXHIBIT = ClaimsTaskonomy()
