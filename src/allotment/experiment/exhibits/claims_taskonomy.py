"""Every claim of the paper about Taskonomy, with its verdict."""

from __future__ import annotations

from allotment.experiment.case import Case
from allotment.experiment.claim import Claim, lead, lead_over_best, pick_best, show_claims
from allotment.experiment.entrants import (
    EQUAL_BUDGET,
    EQUAL_IMAGES,
    SAME,
    USUAL_AHEAD,
    list_singles,
)
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.exhibits.table_2 import EXHIBIT as TABLE_2
from allotment.experiment.outcomes import find_mean
from allotment.experiment.sheet import Sheet
from allotment.experiment.work import Inquiry
from allotment.job import Job


class ClaimsTaskonomy(Exhibit):
    about = "every claim of the paper about Taskonomy, with its verdict"
    data = "taskonomy"

    def list_inquiries(self, case: Case) -> list[Inquiry]:
        return TABLE_2.list_inquiries(case)

    def list_trainings(self, sheet: Sheet) -> list[Job]:
        return TABLE_2.list_trainings(sheet)

    def show(self, sheet: Sheet) -> Shown:
        found, taba = TABLE_2.compare(sheet), f"TABA, m = {USUAL_AHEAD}"
        singles = [each.name for each in list_singles(sheet.case)]
        others = [EQUAL_IMAGES, EQUAL_IMAGES + SAME, *singles]
        poor = pick_best(found, others) - found.entries[EQUAL_BUDGET].totals
        claims = [
            Claim("TABA is the best: over the best baseline", "+0.9",
                  lead_over_best(found, taba, [*others, EQUAL_BUDGET])),
            Claim("equal budget is poor: the best other baseline over it", "+2.2",
                  find_mean(poor)),
            Claim("different images are better than the same", "+6.2",
                  lead(found, EQUAL_IMAGES, EQUAL_IMAGES + SAME)),
        ]  # fmt: skip
        values = {each.text: each.to_dict() for each in claims}
        title = "What the paper claims about Taskonomy"
        return Shown(title, (show_claims(claims),), values=values)


EXHIBIT = ClaimsTaskonomy()
