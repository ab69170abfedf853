"""Every claim of the paper about VOC, with its verdict."""

from __future__ import annotations

import numpy as np

from allotment.corpus.plans import EQUAL_BUDGET, EQUAL_IMAGES
from allotment.experiment.case import LARGER, RATIOS, SEGMENTATION, Case
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
from allotment.experiment.comparison import PriceComparison
from allotment.experiment.entrants import (
    GRID_BEST,
    STAR,
    USUAL_AHEAD,
    find_best,
    list_singles,
    list_taba,
)
from allotment.experiment.exhibit import Exhibit, Shown
from allotment.experiment.exhibits.cost import EXHIBIT as COST
from allotment.experiment.exhibits.cost import list_dollars, price_seed_set
from allotment.experiment.exhibits.figure_2 import EXHIBIT as FIGURE_2
from allotment.experiment.exhibits.figure_4b import EXHIBIT as FIGURE_4B
from allotment.experiment.exhibits.figure_5 import EXHIBIT as FIGURE_5
from allotment.experiment.exhibits.table_1 import EXHIBIT as TABLE_1
from allotment.experiment.exhibits.table_3 import EXHIBIT as TABLE_3
from allotment.experiment.outcomes import Mean, find_mean
from allotment.experiment.work import Question
from allotment.job import Job

CLAIMED_IN = (COST, FIGURE_2, FIGURE_4B, FIGURE_5, TABLE_1, TABLE_3)
LEADS = {"1:3": "+0.3", "1:20": "+0.6", "1:30": "+2.8", LARGER: "+1.8"}
"""of TABA over the best baseline of the paper"""
OVER_TAG = {"1:3": "+1.9", "1:20": "+0.6", "1:30": "+2.0"}
OVER_0999 = {"1:3": "0.0", "1:20": "+0.5", "1:30": "+2.6"}
OVER_ALONE = {"1:3": "+3.6", "1:20": "+0.5", "1:30": "+1.1"}
VOC_NUMBERS = {"classes": (1.13, 0.999), "segmentation": (2.03, 0.997)}
"""I and b of the paper"""
FEWEST_STEPS = 3
"""between sizes of a curve, that a correlation says something of its shape"""


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
        numbers = list_numbers(book, VOC_NUMBERS)
        tables = (show_claims(claims), show_claims(numbers, "I and b"))
        values = {each.text: each.to_dict() for each in (*claims, *numbers)}
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
            text = (
                "pseudo-label curves have the shape of real ones, both scored on the test part:"
                f" {task}, correlation of what a label adds from size to size"
            )
            found.append(Claim(text, "-", self._find_likeness(book, task), ""))
        for name, comparison in main.items():
            text = f"TABA is the best: over the best baseline, {name}"
            found.append(Claim(text, LEADS[name], lead_over_best(comparison, USUAL_TABA, usual)))
        found.append(
            Claim("planning is cheaper than labels: the seed set's price less the machine's",
                  "+202", self._find_saving(book), "dollars", digits=3)
        )  # fmt: skip
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
        """Correlation of both curves' gains for a label, between sizes, in each seed set: any two
        curves that rise go together themselves, straight ones as well."""
        sizes, pseudo = FIGURE_4B.find_points(book, task)
        outcomes = book.outcomes
        if len(sizes) < FEWEST_STEPS + 1:
            return find_mean(np.full((1, 1), np.nan))
        real = np.array(
            [
                outcomes.find_scores(outcomes.repeat({task: size}), tasks=(task,))[..., 0]
                for size in sizes
            ]
        ).mean(axis=2)
        rows = []
        for mine, theirs in zip(real.T, pseudo, strict=True):
            steps = [np.diff(each) / np.diff(sizes) for each in (mine, theirs)]
            bends = all(np.isfinite(each).all() and each.std() > 0 for each in steps)
            rows.append([float(np.corrcoef(*steps)[0, 1]) if bends else np.nan])
        return find_mean(np.array(rows))

    def _find_saving(self, book: Casebook) -> Mean:
        """Of TABA in each seed set, without its validation labels: the paper has its test set."""
        (taba,) = list_taba(book.case, (USUAL_AHEAD,))
        saved = [[price_seed_set(book) - each] for each in list_dollars(book, taba)]
        return find_mean(np.array(saved).reshape(-1, 1))


EXHIBIT = ClaimsVoc()
