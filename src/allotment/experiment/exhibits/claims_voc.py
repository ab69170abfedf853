"""Every claim of the paper about VOC, with its verdict."""

from __future__ import annotations

import numpy as np

from allotment.corpus.plans import EQUAL_BUDGET, EQUAL_IMAGES
from allotment.experiment.case import LARGER, RATIOS, SEGMENTATION, Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.claim import Claim, lead, lead_over_best, pick_best, show_claims
from allotment.experiment.comparison import PriceComparison
from allotment.experiment.entrants import GRID_BEST, STAR, USUAL_AHEAD, find_best, list_singles
from allotment.experiment.exhibit import Exhibit, ResultTable, Shown
from allotment.experiment.exhibits.figure_2 import EXHIBIT as FIGURE_2
from allotment.experiment.exhibits.figure_4b import EXHIBIT as FIGURE_4B
from allotment.experiment.exhibits.figure_5 import EXHIBIT as FIGURE_5
from allotment.experiment.exhibits.table_1 import EXHIBIT as TABLE_1
from allotment.experiment.exhibits.table_3 import EXHIBIT as TABLE_3
from allotment.experiment.outcomes import Mean, find_mean
from allotment.experiment.work import Question
from allotment.job import Job

CLAIMED_IN = (FIGURE_2, FIGURE_4B, FIGURE_5, TABLE_1, TABLE_3)
TABA_NAME = f"TABA, m = {USUAL_AHEAD}"
LEADS = {"1:3": "+0.3", "1:20": "+0.6", "1:30": "+2.8", LARGER: "+1.8"}
"""of TABA over the best baseline of the paper"""
OVER_TAG = {"1:3": "+1.9", "1:20": "+0.6", "1:30": "+2.0"}
OVER_0999 = {"1:3": "0.0", "1:20": "+0.5", "1:30": "+2.6"}
OVER_ALONE = {"1:3": "+3.6", "1:20": "+0.5", "1:30": "+1.1"}
PUBLISHED = {"classes": (1.13, 0.999), "segmentation": (2.03, 0.997)}
"""I and b of the paper"""


class ClaimsVoc(Exhibit):
    about = "every claim of the paper about VOC, with its verdict"
    data = "voc"

    def list_questions(self, case: Case) -> list[Question]:
        return [asked for each in CLAIMED_IN for asked in each.list_questions(case)]

    def list_planned(self, case: Case) -> list[tuple[Question, str]]:
        return [planned for each in CLAIMED_IN for planned in each.list_planned(case)]

    def list_trainings(self, book: Casebook) -> list[Job]:
        return [job for each in CLAIMED_IN for job in each.list_trainings(book)]

    def show(self, book: Casebook) -> Shown:
        claims = self.list_claims(book)
        tables = (show_claims(claims), self._list_numbers(book))
        values = {each.text: each.to_dict() for each in claims}
        return Shown("What the paper claims about VOC", tables, values=values)

    def list_claims(self, book: Casebook) -> list[Claim]:
        main = FIGURE_5.compare(book) | TABLE_1.compare(book)
        usual = [EQUAL_IMAGES, *(each.name for each in list_singles(book.case)), EQUAL_BUDGET]
        best = main["1:20"].entries[GRID_BEST].totals - pick_best(main["1:20"], usual)
        found = [
            Claim("allocation matters: range of the sweep", "7.1", self._find_range(book)),
            Claim("the optimum is none of the heuristics: the grid's best over the best of them",
                  "+1.5", find_mean(best)),
            Claim("masks gain from class labels: with them, over without, at equal budget",
                  "+12.7", self._find_help(book)),
            Claim("the ranking of baselines changes with prices: equal images over equal budget,"
                  " at 1:3 more than at 1:30", "6.3", self._find_turn(main)),
            Claim("different images are better than the same", "-",
                  lead(main["1:20"], EQUAL_IMAGES, EQUAL_IMAGES + STAR)),
        ]  # fmt: skip
        for task in book.case.tasks:
            text = f"pseudo-label curves have the shape of real ones: {task}, correlation"
            found.append(Claim(text, "-", self._find_likeness(book, task), ""))
        for name, comparison in main.items():
            text = f"TABA is the best: over the best baseline, {name}"
            found.append(Claim(text, LEADS[name], lead_over_best(comparison, TABA_NAME, usual)))
        ablations = TABLE_3.compare(book)
        for other, words, printed in (
            ("I = 1", "transfer counts: TABA over I = 1", OVER_ALONE),
            ("TAG", "by metrics better than TAG's by losses", OVER_TAG),
            ("b = 0.999", "own b better than 0.999", OVER_0999),
        ):
            for name in RATIOS:
                ahead = lead(ablations[name], "TABA", other)
                found.append(Claim(f"{words}, {name}", printed[name], ahead))
        return found

    def _find_range(self, book: Casebook) -> Mean:
        outcomes = book.outcomes
        totals = np.stack(
            [outcomes.find_totals(outcomes.repeat(each)) for each in FIGURE_2.list_plans(book)]
        )
        return find_mean(find_best(totals) + find_best(-totals))

    def _find_help(self, book: Casebook) -> Mean:
        """What classes add to masks where both get the same money."""
        outcomes, plans = book.outcomes, FIGURE_2.list_plans(book)
        counts = plans[len(plans) // 2]
        place = book.case.tasks.index(SEGMENTATION)
        together = outcomes.find_gains(outcomes.repeat(counts))[..., place]
        own = {SEGMENTATION: counts[SEGMENTATION]}
        alone = outcomes.find_gains(outcomes.repeat(own), tasks=(SEGMENTATION,))[..., 0]
        return find_mean(together - alone)

    def _find_turn(self, main: dict[str, PriceComparison]) -> Mean:
        ahead = {
            name: main[name].entries[EQUAL_IMAGES].totals - main[name].entries[EQUAL_BUDGET].totals
            for name in ("1:3", "1:30")
        }
        return find_mean(ahead["1:3"] - ahead["1:30"])

    def _find_likeness(self, book: Casebook, task: str) -> Mean:
        """Correlation of both curves over their sizes, in each seed set."""
        sizes, pseudo = FIGURE_4B.find_points(book, task)
        outcomes = book.outcomes
        if len(sizes) < 3:
            return find_mean(np.full((1, 1), np.nan))
        real = np.array(
            [
                outcomes.find_scores(outcomes.repeat({task: size}), tasks=(task,))[..., 0]
                for size in sizes
            ]
        ).mean(axis=2)
        rows = []
        for mine, theirs in zip(real.T, pseudo, strict=True):
            known = np.isfinite(mine).all() and np.isfinite(theirs).all()
            moves = known and mine.std() > 0 and theirs.std() > 0
            rows.append([float(np.corrcoef(mine, theirs)[0, 1]) if moves else np.nan])
        return find_mean(np.array(rows))

    def _list_numbers(self, book: Casebook) -> ResultTable:
        """I and b beside the published ones."""
        rows = []
        for task, (worth, rate) in PUBLISHED.items():
            ours = _find_numbers(book, task)
            rows.append((task, f"{worth}", str(ours[0]), f"{rate}", f"{ours[1].value:.4f}"))
        heads = ("task", "I, paper", "I, here", "b, paper", "b, here (mean)")
        return ResultTable("I and b", heads, tuple(rows))


def _find_numbers(book: Casebook, task: str) -> tuple[Mean, Mean]:
    """I and b of TABA over seed sets: in the paper a curve is I (1 - b^N) / (1 - b)."""
    found = []
    (taba,) = [each for each in FIGURE_5.list_entrants(book.case) if each.name == TABA_NAME]
    for asked in taba.list_questions(book.case):
        estimates = book.find_estimates(asked)
        if estimates is not None:
            place = estimates.tasks.index(task)
            worth = float(estimates.worths[:, place, place].mean())
            found.append((worth, float(estimates.about["rates"][task])))
    rows = np.array(found).reshape(-1, 2)
    return find_mean(rows[:, :1]), find_mean(rows[:, 1:])


EXHIBIT = ClaimsVoc()
