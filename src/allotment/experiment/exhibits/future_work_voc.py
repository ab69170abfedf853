"""Of the paper's future work, on VOC: reduction rates between tasks beside TABA's own."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from allotment.corpus.plans import EQUAL_BUDGET, NEUTRAL_PLAN
from allotment.estimates.estimates import Estimates
from allotment.estimates.taba import PairRates
from allotment.experiment.case import RATIOS, Case
from allotment.experiment.casebook import Casebook
from allotment.experiment.claim import lead
from allotment.experiment.comparison import PriceTables
from allotment.experiment.entrants import (
    PAIR_RATES,
    PLAIN_TABA,
    THREE_TASKS,
    Entrant,
    FixedPlan,
    list_future,
)
from allotment.experiment.exhibit import ResultTable, Shown, dump_mean
from allotment.experiment.outcomes import Mean, find_mean


class FutureWork(PriceTables):
    """TABA with and without options of the paper's future work."""

    has_grid = False

    def list_entrants(self, case: Case) -> list[Entrant]:
        return [*list_future(case), FixedPlan(EQUAL_BUDGET), FixedPlan(NEUTRAL_PLAN)]

    def show(self, book: Casebook) -> Shown:
        found = self.compare(book)
        options = [each.name for each in list_future(book.case) if each.name != PLAIN_TABA]
        leads = {
            name: {option: lead(each, option, PLAIN_TABA) for option in options}
            for name, each in found.items()
        }
        shown = self.tabulate(book.case, found)
        tables = [_show_leads(leads), *shown.tables, _show_rates(book)]
        tables += [_show_excess(book)] if THREE_TASKS in options else []
        over = {
            name: {option: dump_mean(mean) for option, mean in row.items()}
            for name, row in leads.items()
        }
        return replace(shown, tables=tuple(tables), values={**shown.values, "over TABA": over})


def _show_leads(leads: dict[str, dict[str, Mean]]) -> ResultTable:
    rows = [
        (option, name, _spell(mean)) for name, row in leads.items() for option, mean in row.items()
    ]
    heads = ("option", "prices", "D_T over TABA, points (95 %)")
    return ResultTable("What the options win over TABA", heads, tuple(rows))


def _spell(mean: Mean) -> str:
    return f"{mean.value:+.2f} ± {mean.reach:.2f}" if np.isfinite(mean.value) else "-"


def _find_estimates(book: Casebook, name: str) -> list[Estimates]:
    """What one of the entrants concluded, in the seed sets of which it is on record."""
    (entrant,) = (each for each in list_future(book.case) if each.name == name)
    found = map(book.find_estimates, entrant.list_questions(book.case))
    return [each for each in found if each is not None]


def _show_rates(book: Casebook) -> ResultTable:
    """As reaches, -1 / log b labels, of which the geometric mean over seed sets is shown."""
    told = [
        PairRates.from_dict(each.about["between"])
        for each in _find_estimates(book, PAIR_RATES)
        if "between" in each.about
    ]
    rows = []
    for source, target in itertools.permutations(book.case.tasks if told else (), 2):
        places = [(each.tasks.index(source), each.tasks.index(target)) for each in told]
        own = [each.rates[i, i] for each, (i, _) in zip(told, places, strict=True)]
        pair = [each.rates[i, j] for each, (i, j) in zip(told, places, strict=True)]
        shown = sum(bool(each.shown[at]) for each, at in zip(told, places, strict=True))
        reaches = [f"{_find_reach(each):.0f}" for each in (own, pair)]
        rows.append((source, target, *reaches, f"{shown} of {len(told)}"))
    heads = ("labels of", "for", "reach of b_i", "reach of b_ij", "seed sets whose curve shows it")
    return ResultTable("Reduction rates between tasks, as labels to 1/e", heads, tuple(rows))


def _find_reach(rates: list[float]) -> float:
    reaches = -1 / np.log(np.clip(rates, 1e-12, 1 - 1e-12))
    return float(np.exp(np.log(reaches).mean()))


def _show_excess(book: Casebook) -> ResultTable:
    """What two tasks do for a third beyond the sum, in its own labels, over seed sets."""
    measured = [each.about.get("measured", {}) for each in _find_estimates(book, THREE_TASKS)]
    told = [each["triples"] for each in measured if "triples" in each]
    tasks, rows = book.case.tasks, []
    for first, second in itertools.combinations(tasks if told else (), 2):
        for target in (task for task in tasks if task not in (first, second)):
            cells = []
            for each in told:
                i, k, j = (each["tasks"].index(task) for task in (first, second, target))
                cells.append([each["excess"][i][k][j]])
            known = find_mean(np.array(cells, dtype=float))
            rows.append((f"{first}, {second}", target, _spell(known)))
    heads = ("labels of both", "for", "beyond the sum, in labels of its own (95 %)")
    return ResultTable("Transfer of three tasks", heads, tuple(rows))


class FutureWorkVoc(FutureWork):
    about = "TABA on VOC with reduction rates between tasks, which the paper leaves for later"
    data = "voc"
    prices = tuple(RATIOS)
    title = "Future work of the paper on VOC"


EXHIBIT = FutureWorkVoc()
