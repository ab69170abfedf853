"""A campaign in a few figures: where it stands and what to do next, and all that its report
shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allotment.advice.doctor import Diagnosis
from allotment.advice.questions import (
    ask_what_if,
    list_reach,
    list_worths,
    trace_frontier,
)
from allotment.arrays import Array
from allotment.campaign.departure import find_departure
from allotment.campaign.evaluation import LEVEL, Evaluation
from allotment.campaign.renaming import rename_plan
from allotment.campaign.rounds import is_groundless, rebase
from allotment.campaign.state import CampaignState, Proposal
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import (
    SPAN_LEVEL,
    Forecast,
    ScoreLevel,
    describe_forecasts,
    find_score_level,
    forecast,
)
from allotment.estimates.response import Response
from allotment.estimates.scoring import tell_scoring
from allotment.estimates.transfer import Transfer
from allotment.formatting import briefly, chance, percent, several
from allotment.job import installed
from allotment.learners.metrics import title_metric
from allotment.learners.validation import FEWEST_SCORED
from allotment.ledger.store import Value
from allotment.orders.order import Order
from allotment.overview import few_baselines, list_caps, shows_ranges
from allotment.plan import Outlook, Plan, unit_of
from allotment.problem import show_exact
from allotment.settings.settings import SETTINGS_FILE, quote
from allotment.solver.baselines import equal_budget
from allotment.standing import PERCENT, UNITS, Standing
from allotment.worth import find_worth

CURVE_POINTS = 24
"""points at which a curve is drawn"""
MODEL_FOLDER = "model"
"""in a campaign's folder, where its trained model is saved unless somebody says otherwise"""
MOST_INSTANCES_NAMED = 5
"""instances in a note"""
EDGES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
EXPLAINED = {
    "labels": ", in labels of each task's own; this method does not say how much score that is"
}
PROMISES = {
    Standing.BETTER: "this plan is better",
    Standing.LIKELY_BETTER: "this plan is probably better",
    Standing.EQUAL: "that is within the noise, and equal budget is fine",
    Standing.TOO_LITTLE: "that is too little to win, and equal budget is fine",
    Standing.WORSE: "take equal budget",
}
"""what a plan's standing means, behind its figures"""
MOST_MOVED_NAMED = 3
"""tasks by which it is told how a plan differs from another"""
HARDLY_ANY = 0.01
"""gains below this are told as no more than that"""
AXES = {PERCENT: "gain in % of the score now", "labels": "gain in labels of its own"}
"""the same beside a learning curve"""


@dataclass(frozen=True)
class Judged:
    """What was found out about what the labels at hand are good for."""

    are_plans_tried: bool = False
    """whether plans were tried out, where the data can do that"""
    is_model_scored: bool = False
    """whether the model of the labels at hand, as they are now, was cross-validated"""


@dataclass(frozen=True)
class Status:
    """Spent, open, expected, next."""

    budget: str
    spent: str
    on_order: str
    left: str
    """below zero where more is spent or on order than there is"""
    tasks: tuple[dict[str, Any], ...]
    """of each: name, kind, cost, have, start, came, open, pool"""
    notes: tuple[str, ...]
    expected: str
    """of the plan for the money that is left"""
    next: str
    """the command to type"""
    standing: Standing = Standing.UNKNOWN
    """of that plan beside equal budget"""
    scores: Mapping[str, Forecast] = field(default_factory=dict)
    """of each task, as far as it was scored"""
    is_planned: bool = False
    """whether these know what the plan will bring; else they are those of now"""
    order: str = ""
    """what to order now, where that is known"""
    advice: tuple[str, ...] = ()
    """whether to measure more, and whether to stop"""
    stale: str = ""
    """that labels came in since the scores were measured"""

    @property
    def money(self) -> str:
        """Spent, on order and left, in one line."""
        rest = f"{self.left[1:]} too much" if self.left.startswith("-") else f"{self.left} left"
        return f"{self.budget}: {self.spent} spent, {self.on_order} on order, {rest}"

    def to_dict(self) -> dict[str, Any]:
        return {
            key: getattr(self, key)
            for key in ("budget", "spent", "on_order", "left", "expected", "standing", "next")
        } | {
            "order": self.order,
            "advice": list(self.advice),
            "stale": self.stale,
            "tasks": list(self.tasks),
            "notes": list(self.notes),
            "scores": self._describe_scores(),
        }

    def _describe_scores(self) -> dict[str, Any]:
        found = describe_forecasts(self.scores)
        for each in found.values():
            if not self.is_planned:
                del each["after"]
        return found


def summarise(
    state: CampaignState,
    conflicts: int,
    judged: Judged,
    recorded: Sequence[str] = (),
) -> Status:
    """Where a campaign stands; `recorded` are the keys of plans that were shown already."""
    spent, on_order, left = map(show_exact, state.money)
    tasks = [
        {
            "name": task.name,
            "kind": state.stock.targets[task.name].kind,
            "cost": show_exact(task.cost),
            "start": len(state.stock.start[task.name]),
            "have": state.stock.have[task.name],
            "came": state.account.came[task.name],
            "open": state.account.open[task.name],
            "pool": state.pool[task.name],
        }
        for task in state.settings.tasks
    ]
    notes = [state.unsaid] if state.unsaid else []
    notes += [f"weights of the network: {state.unbegun}"] if state.unbegun else []
    if conflicts:
        notes.append(
            f"{several(conflicts, 'label')} with contradicting answers; the"
            f' {state.settings.conflicts} one counts (conflicts = "first", "last" or'
            ' "majority" in campaign.toml)'
        )
    if state.held:
        waits = "waits to be confirmed" if state.held == 1 else "wait to be confirmed"
        name = quote(state.folder)
        notes.append(
            f"{several(state.held, 'label')} that looked odd {waits}; look with: allot history"
            f" {name}; to take what is held back: allot ingest {name} --confirm"
        )
    notes += _note_open(state)
    notes += [f"{quote(state.lost[0])} {state.tell_lost()}"] if state.lost else []
    if state.money[2] < 0:
        over = show_exact(-state.money[2])
        notes.append(
            f"{over} more is spent or on order than the budget; nothing is bought until it is"
            " raised"
        )
    elif state.clashes:
        notes += state.clashes
    elif state.money[2] > 0 and not state.open and not state.can_buy:
        notes.append(state.tell_obstacles().replace("that buys", f"the {left} left buys", 1))
    if state.found is not None and (said := tell_scoring(state.found.estimates.about)):
        notes.append(f"the estimates are {said}")
    step, proposal = _find_next(state, judged, recorded)
    nothing = dict.fromkeys(state.settings.names, 0)
    return Status(
        show_exact(state.settings.budget),
        spent,
        on_order,
        left,
        tuple(tasks),
        tuple(notes),
        "" if proposal is None else tell_outlook(proposal.plan),
        step,
        Standing.UNKNOWN if proposal is None else proposal.plan.standing,
        state.forecast(nothing) if proposal is None else proposal.forecasts,
        proposal is not None,
        "" if proposal is None else tell_order(proposal),
        () if proposal is None else tuple(list_advice(proposal)),
        state.stale,
    )


def _note_open(state: CampaignState) -> list[str]:
    """What did not come back of each order, and what of it can't any more."""
    notes = []
    waiting = Counter((number, task) for number, task, _ in state.open)
    for number in sorted({number for number, _ in waiting}):
        counts = {task: count for (each, task), count in waiting.items() if each == number}
        cancel = f"allot order {quote(state.folder)} --cancel {number}"
        known = sum(count for task, count in counts.items() if task in state.settings.names)
        if known:
            notes.append(
                f"{several(known, 'label')} of order {number} did not come back yet; to give them"
                f" up: {cancel}"
            )
        asked = f"order {number} also asked for" if known else f"order {number} asked for"
        for task in sorted(set(counts).difference(state.settings.names)):
            lost = f"{several(counts[task], 'label')} of {task!r}, which is no task any more"
            notes.append(f"{asked} {lost}; put it back, or give them up: {cancel}")
    gone = sorted(
        {
            name
            for names in state.ordered.values()
            for name in names
            if name not in state.stock.place
        }
    )
    if gone:
        names = ", ".join(gone[:MOST_INSTANCES_NAMED]) + (
            ", ..." if len(gone) > MOST_INSTANCES_NAMED else ""
        )
        lost = (
            f"{several(len(gone), 'ordered instance')} {'is' if len(gone) == 1 else 'are'} not in"
            " the data any more"
        )
        notes.append(
            f"{lost} ({names}); such labels count for nothing until the data have these again"
        )
    return notes


def _find_next(
    state: CampaignState, judged: Judged, recorded: Sequence[str]
) -> tuple[str, Proposal | None]:
    """The next command, and what is proposed for the money that is left, where that is known
    already."""
    name = quote(state.folder)
    if state.lost:
        return f"allot ingest {name} {quote(state.lost[0])}", None
    if state.held and len(state.open) <= state.held:
        return f"allot history {name}", None
    if state.open:
        return f"allot ingest {name} FILE", None
    if state.clashes and state.money[2] >= 0:
        return f"edit {quote(state.folder / SETTINGS_FILE)}, then: allot check {name}", None
    if not state.can_buy:
        return f"allot {_find_end(state, judged)} {name}", None
    if state.measures and (state.found is None or not state.found.fresh):
        return f"allot estimate {name}", None
    if not state.is_looked_through:
        return f"allot plan {name}", None
    # then the plan itself need not be known
    if not state.measures and not recorded and state.buys_something:
        return f"allot plan {name}", None
    proposal = state.propose()
    if proposal.is_empty:
        return f"allot {_find_end(state, judged)} {name}", None
    step = "order" if proposal.job.key in recorded else "plan"
    return f"allot {step} {name}", proposal


def _find_end(state: CampaignState, judged: Judged) -> str:
    """What to do where nothing is left to buy: see how good the model is, train it, look back."""
    if state.stock.oracle and not judged.are_plans_tried:
        return "evaluate"
    if max(state.stock.have.values()) < FEWEST_SCORED or (state.folder / MODEL_FOLDER).exists():
        return "report"
    if state.stock.oracle or judged.is_model_scored:
        return "train"
    return "evaluate"


def tell_outlook(plan: Plan) -> str:
    """What a plan promises over equal budget, in one sentence; nothing where that is not known."""
    look = plan.outlook
    if look is None:
        return ""
    if plan.counts == equal_budget(plan.problem):
        return "as much as equal budget, which is the same plan"
    low, high = briefly(look.low, "+"), briefly(look.high, "+")
    unit = unit_of(plan.evidence)
    sure = f"({LEVEL * 100:.0f} %: {low} to {high}; chance {chance(look.chance)})"
    promise = PROMISES[plan.standing]
    if is_groundless(plan.evidence):
        promise = "not to be relied on, for the method found nothing to go by"
    return (
        f"{briefly(look.mean, '+')} {UNITS.get(unit, unit)} over equal budget"
        f" {sure}{EXPLAINED.get(unit, '')}; {promise}"
    )


def tell_knowing(plan: Plan) -> str:
    """What it would bring at most to know more, in one sentence; nothing where that is not known,
    or where draws agree for want of knowledge."""
    look = plan.outlook
    if look is None or look.knowing_more is None or is_groundless(plan.evidence):
        return ""
    unit = unit_of(plan.evidence)
    more = briefly(look.knowing_more)
    if look.knowing_more < HARDLY_ANY:
        more = f"less than {HARDLY_ANY}"
    return (
        "If it were known exactly what labels are worth, plans would gain"
        f" {more} {UNITS.get(unit, unit)} more on average: that is the most that measuring more can"
        " bring"
    )


def tell_order(proposal: Proposal) -> str:
    """What to order now, how much of the plan that is, and why not more: the same on every page."""
    plan, tranche = proposal.plan, proposal.tranche
    labels = ", ".join(f"{count} {name}" for name, count in tranche.counts.items() if count)
    money = show_exact(plan.problem.price(tranche.counts))
    if not labels:
        return "nothing"
    if tranche.is_all:
        return f"all of the plan, {labels} for {money}: {tranche.why}"
    return f"{labels} for {money}, {percent(tranche.share)} of what the plan spends: {tranche.why}"


def tell_prospect(proposal: Proposal) -> str:
    """What the order is expected to bring beside the noise, and whether to stop here; nothing where
    that is not known."""
    found = proposal.prospect
    if found is None:
        return ""
    unit = UNITS.get(found.unit, found.unit)
    low, high = briefly(found.gain.low, "+"), briefly(found.gain.high, "+")
    said = (
        f"Expected of this order: {briefly(found.gain.middle, '+')} {unit}"
        f" ({SPAN_LEVEL * 100:.0f} %: {low} to {high})"
    )
    if found.noise is None:
        return said
    said += f"; two trainings on the same labels differ by about {briefly(found.noise)}"
    if not found.is_below_noise:
        return said
    end = f"stopping here is reasonable, with {show_exact(found.left)} left unspent"
    if found.whole >= found.noise:
        whole = f"{briefly(found.whole)} {unit}"
        end += f", unless the {whole} that all of the plan brings are worth that"
    return f"{said}. That could not be told from luck: {end}"


def tell_departure(proposal: Proposal) -> str:
    """How far the plan goes from the neutral one for the same money, and why; nothing where nothing
    was measured."""
    found = find_departure(proposal.plan)
    if found is None:
        return ""
    if not any(found.moved.values()):
        return "What was measured moves nothing: this is the neutral plan, which trains nothing"
    moved = [name for name in found.moved if found.moved[name]]
    # the neutral plan takes labels of a task that does not count for worth nothing
    weighed = [name for name in moved if name in found.worths]
    named = (weighed or moved)[:MOST_MOVED_NAMED]
    more = len(moved) - len(named)
    rest = f" and {several(more, 'other task')}" if more else ""
    counts = ", ".join(f"{name} {found.moved[name]:+,}" for name in named)
    why = ""
    if weighed:
        times = ", ".join(briefly(found.worths[name]) for name in named)
        why = (
            f", as a label of these is taken to be worth {times} times what that plan takes it for"
        )
    unit, lead = UNITS.get(found.unit, found.unit), found.lead
    middle, low, high = (briefly(each, "+") for each in (lead.middle, lead.low, lead.high))
    return (
        f"Beside the neutral plan, which trains nothing, {percent(found.share)} of the money goes"
        f" elsewhere: {counts}{rest}{why}. This is stated to bring {middle} {unit}"
        f" ({SPAN_LEVEL * 100:.0f} %: {low} to {high}; chance {chance(found.chance)})"
    )


def tell_stop(proposal: Proposal) -> str:
    """From where on labels cost more than they bring, and whether the plan ends there; nothing
    where that is not known."""
    return "" if proposal.stop is None else proposal.stop.say(proposal.is_stopped)


def list_advice(proposal: Proposal) -> list[str]:
    """Whether to measure more, and whether to stop: sentences, the same on every page."""
    told = (
        tell_departure(proposal),
        tell_knowing(proposal.plan),
        tell_prospect(proposal),
        tell_stop(proposal),
    )
    return [f"{said}." for said in told if said]


# The report


def collect(
    state: CampaignState,
    proposal: Proposal | None,
    last: Value | None,
    diagnosis: Value | None,
    evaluation: Value | None,
    orders: Sequence[Value],
    status: Status,
) -> dict[str, Any]:
    """The values of a report, as far as they are known; `last` is the plan on record, for when
    nothing is left."""
    values: dict[str, Any] = {
        "title": f"Labels for {state.folder.resolve().name}",
        "about": _about(state),
    }
    plan = None
    if proposal is not None:
        plan = proposal.plan
    elif last is not None:
        plan = Plan.from_dict(rename_plan(last.body["plan"], state.settings.renames.now))
    if plan is not None:
        evidence = _find_evidence(state, plan, last)
        values["plan"] = _plan(plan, None if proposal is None else state.stock.have)
        if proposal is not None:
            _add_scores(values["plan"], proposal.forecasts)
            values["order"] = tell_order(proposal)
            values["advice"] = list_advice(proposal)
        if proposal is None:
            values["decision"] = _tell_done(state, plan)
        if proposal is not None:
            _add_questions(values, plan, state.metrics)
        values["comparison"] = compare_plans(plan, evidence)
        if plan.outlook is not None:
            values["outlook"] = describe_outlook(plan.outlook, unit_of(evidence))
    if state.stale:
        values["stale"] = state.stale
    if state.found is not None:
        estimates = rebase(state.found.estimates, state.have)
        counts = {} if plan is None else plan.counts
        values["curves"] = trace_curves(estimates, counts, state.metrics)
        values["transfer"] = describe_transfer(estimates)
    if diagnosis is not None:
        values["verdicts"] = [
            each.to_dict()
            | {"share": min(1.0, each.share), "name": state.settings.renames.call(each.name)}
            for each in Diagnosis.from_dict(diagnosis.body).findings
        ]
    if evaluation is not None:
        found = Evaluation.from_dict(evaluation.body).rename(state.settings.renames.now)
        rows = [
            {key: row[key] for key in ("name", "gains", "total", "ahead")} for row in found.rows()
        ]
        values["evaluation"] = {
            "tasks": list(found.tasks),
            "repeats": found.repeats,
            "level": LEVEL,
            "rows": rows,
        }
    values["rounds"] = _rounds(state, orders, status)
    values["style"] = dict(state.settings.report)
    return values


def _add_questions(values: dict[str, Any], plan: Plan, metrics: Mapping[str, str]) -> None:
    """What a reader may ask of a plan that is not bought yet."""
    evidence = plan.evidence
    unit = UNITS.get(unit_of(evidence), unit_of(evidence))
    if (instance := ask_what_if(plan)) is not None:
        values["what_if"] = {"instance": instance, "unit": unit, "is_mean": True}
    if (found := trace_frontier(plan)) is not None:
        values["frontier"] = found | {"unit": unit}
    values["worths"] = list_worths(plan)
    values["knowing"] = None if plan.outlook is None else plan.outlook.knowing_more
    if isinstance(evidence, Estimates):
        values["reach"] = list_reach(evidence, metrics)


def describe_outlook(look: Outlook, unit: str) -> dict[str, Any]:
    """What is shown of an outlook, with what it comes to."""
    found = {key: getattr(look, key) for key in ("mean", "low", "high", "level", "chance")}
    return found | {"unit": unit, "standing": look.standing(unit)}


def _find_evidence(state: CampaignState, plan: Plan, last: Value | None) -> Estimates | None:
    """What a plan rests on: it says so itself, or, where it was read from the record, the record
    does."""
    if isinstance(plan.evidence, Estimates):
        return plan.evidence
    number = None if last is None else last.body["estimates"]
    for value in state.estimates:
        if value.number == number:
            have = {task.name: task.have for task in plan.problem.tasks}
            estimates = state.read_estimates(value)
            return rebase(estimates, have) if set(have) == set(estimates.tasks) else None
    return None


def compare_plans(plan: Plan, evidence: Estimates | None) -> list[dict[str, Any]]:
    """The plan beside its baselines, each with what the estimates expect of the plan over it."""
    rows = [row.to_dict() for row in plan.compare(few_baselines(plan.problem)).rows]
    if evidence is None:
        for row in rows:
            del row["value"]
    else:
        worth = find_worth(plan.problem, evidence)
        for row, cell in zip(rows, worth.list_cells([row["value"] for row in rows]), strict=True):
            row["worth"] = cell
    for row in rows[1:]:
        if evidence is not None and row["counts"] != plan.counts:
            row["outlook"] = _look_over(evidence, plan, row["counts"])
    return rows


def _look_over(evidence: Estimates, plan: Plan, other: Mapping[str, int]) -> dict[str, Any]:
    more = evidence.gain_over(plan.problem, plan, other)
    low, high = map(float, np.quantile(more, EDGES))
    found = {"mean": float(more.mean()), "low": low, "high": high, "level": LEVEL}
    return found | {"chance": float(np.mean(more > 0)), "unit": unit_of(evidence)}


def _tell_done(state: CampaignState, plan: Plan) -> str:
    """In place of a decision where none is left to take, or none can be: what was bought."""
    came, waiting = _list_labels(state.account.came), _list_labels(state.account.open)
    parts = [f"bought: {came}"] if came else []
    parts += [f"on order: {waiting}"] if waiting else []
    said = "; ".join(parts) or "nothing is bought"
    price = show_exact(plan.problem.price(plan.counts))
    why = f" {'; '.join(state.clashes)}." if state.clashes else ""
    last = f"The last plan was: {_list_labels(plan.counts) or 'nothing'} for {price}."
    if dict(plan.counts) == dict(state.account.came):
        last = "That is what the plan said."
    return f"{said[:1].upper()}{said[1:]} (budget {state.tell_money()}).{why} {last}"


def _list_labels(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _plan(plan: Plan, have: Mapping[str, int] | None) -> dict[str, Any]:
    """`have` is what is at hand, without what is on order; None leaves it out, for a plan of the
    past."""
    look, rows = plan.outlook, []
    plateau = plan.plateau if look is None else look.plateau
    limits = plan.break_even if have is not None and shows_ranges(plan, None) else {}
    for task in plan.problem.tasks:
        count = plan.counts[task.name]
        row = {"name": task.name, "cost": show_exact(task.cost), "count": count}
        row |= {} if have is None else {"have": have[task.name]}
        row |= {"spend": show_exact(task.price(count)), "plateau": list(plateau[task.name])}
        row["break_even"] = limits.get(task.name)
        if look is not None:
            row["low"], row["high"] = look.counts[task.name]
        rows.append(row)
    spent = plan.problem.price(plan.counts)
    money = {"budget": show_exact(plan.problem.budget), "spent": show_exact(spent)}
    return {"tasks": rows, "caps": list_caps(plan)} | money


def _add_scores(plan: dict[str, Any], forecasts: Mapping[str, Forecast]) -> None:
    for row in plan["tasks"]:
        if (found := forecasts.get(row["name"])) is not None:
            row["score"] = found.to_dict()


def trace_curves(
    estimates: Estimates, counts: Mapping[str, int], metrics: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What each task scores by labels of its own, as expected, with what single trainings showed;
    its gain where a method does not know scores."""
    measured = estimates.about.get("measured", {}).get("response")
    response = None if measured is None else Response.from_dict(measured)
    found = []
    for place, task in enumerate(estimates.tasks):
        have = max(estimates.have[place], 1)
        bought = counts.get(task, 0)
        grid = np.unique(
            np.round(
                np.geomspace(max(have / 4, 1), have + max(3 * have, 1.5 * bought), CURVE_POINTS)
            )
        )
        if (level := find_score_level(estimates, task)) is not None and response is not None:
            found.append(_trace_score(level, grid, metrics[task], response))
            continue
        if estimates.law != "power":
            grid = grid[grid >= have]
        gains = _own_gains(estimates, place, grid)
        low, high = np.quantile(gains, EDGES, axis=0)
        points = [
            [float(n), *map(float, row)]
            for n, *row in zip(grid, gains.mean(axis=0), low, high, strict=True)
        ]
        unit = unit_of(estimates)
        found.append({"task": task, "unit": AXES.get(unit, unit), "level": LEVEL, "points": points})
    return found


def _trace_score(level: ScoreLevel, grid: Array, metric: str, response: Response) -> dict[str, Any]:
    have = dict(zip(level.estimates.tasks, level.estimates.have, strict=True))
    points = []
    for labels in grid.tolist():
        span = level.find_span(have | {level.task: int(labels)})
        points.append([labels, span.middle, span.low, span.high])
    at = response.tasks.index(level.task)
    scored = zip(response.counts[:, at].tolist(), response.scores[:, at].tolist(), strict=True)
    seen = [[float(count), score] for count, score in scored if np.isfinite(score)]
    unit = title_metric(metric)
    return {"task": level.task, "unit": unit, "level": LEVEL, "points": points, "seen": seen}


def _own_gains(estimates: Estimates, place: int, labels: Array) -> Array:
    """[draw, point]: the gain at so many labels over the number at hand; below 0 where there were
    fewer."""
    have = float(max(estimates.have[place], 1))
    if estimates.by_pairs:  # what they do for all tasks counts as their own there
        both = estimates.worths[:, :, place, None], estimates.shapes[:, :, place, None]
        return np.asarray(_rise(*both, labels - have).sum(axis=1))
    worths, shapes = estimates.worths[:, place, place, None], estimates.shapes[:, place, None]
    if estimates.law == "power":
        return np.asarray(worths * (have**-shapes - labels**-shapes))
    return _rise(worths, shapes, labels - have)


def _rise(worths: Array, shapes: Array, more: Array) -> Array:
    """What so many labels more add by the geometric law; they may be fewer than none."""
    return np.asarray(
        worths * np.where(shapes < 1, (1 - shapes**more) / np.maximum(1 - shapes, 1e-12), more)
    )


def describe_transfer(estimates: Estimates) -> dict[str, Any] | None:
    """Rows are whose labels, columns which task gains: what twice the labels bring in %, or, where
    a method counts in labels, what one of them is worth in the gaining task's own."""
    if unit_of(estimates) != PERCENT:
        return _transfer_in_labels(estimates)
    size = len(estimates.tasks)
    cells, low, high = (np.zeros((size, size)) for _ in range(3))
    for place, task in enumerate(estimates.tasks):
        counts = dict.fromkeys(estimates.tasks, 0) | {task: max(estimates.have[place], 1)}
        gains = estimates.gains_of(counts)
        cells[place] = gains.mean(axis=0)
        low[place], high[place] = np.quantile(gains, EDGES, axis=0)
    called = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    tables = {
        "cells": cells.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "called": called.tolist(),
    }
    return {"tasks": list(estimates.tasks), "unit": PERCENT} | tables


def _transfer_in_labels(estimates: Estimates) -> dict[str, Any] | None:
    """As it was measured, with the diagonal that is 1 by definition; None where it was not."""
    measured = estimates.about.get("measured", {}).get("transfer")
    if measured is None:
        return None
    transfer = Transfer.from_dict(measured)
    tables = dict(
        zip(("cells", "low", "high"), (transfer.matrix, *transfer.interval(LEVEL)), strict=True)
    )
    shown: dict[str, Any] = {
        "tasks": list(transfer.tasks),
        "unit": "labels",
        "called": transfer.called().tolist(),
    }
    for key, table in tables.items():
        square = np.where(np.eye(len(transfer.tasks), dtype=bool), 1.0, table)
        shown[key] = [
            [each if np.isfinite(each) else None for each in line] for line in square.tolist()
        ]
    return shown


def _rounds(state: CampaignState, orders: Sequence[Value], status: Status) -> list[dict[str, Any]]:
    waiting: dict[int, dict[str, int]] = {}
    for number, task, _ in state.open:
        waiting.setdefault(number, {}).setdefault(task, 0)
        waiting[number][task] += 1
    rounds: list[dict[str, Any]] = []
    have = {task: len(state.stock.start[task]) for task in state.settings.names}
    scores = _find_scores(state, have)
    for order in orders:
        bought = Order.from_dict(order.body["order"]).rename(state.settings.renames.now).counts
        rounds.append({"number": order.number, "open": waiting.get(order.number, {})})
        rounds[-1]["bought"] = {task: bought[task] for task in have if bought.get(task)}
        have = {task: count + bought.get(task, 0) for task, count in have.items()}
        before, scores = scores, _find_scores(state, have)
        pairs = {task: [before.get(task), score] for task, score in scores.items()}
        rounds[-1] |= {"scores": pairs} if pairs else {}
        if state.paid is not None and order.number in state.paid:
            rounds[-1]["spent"] = show_exact(state.paid[order.number][0])
    rounds.append({"number": len(orders) + 1, "open": {}, "next": status.next})
    if status.expected:
        rounds[-1]["expected"] = status.expected
    return rounds


def _find_scores(state: CampaignState, have: Mapping[str, int]) -> dict[str, float]:
    """What each task scored with so many labels, by the estimates that were made of just these."""
    for value in reversed(state.estimates):
        estimates = state.read_estimates(value)
        if dict(zip(estimates.tasks, estimates.have, strict=True)) == dict(have):
            return {task: each.now.middle for task, each in forecast(estimates, have, have).items()}
    return {}


def _about(state: CampaignState) -> dict[str, Any]:
    about: dict[str, Any] = {"data": state.settings.data["name"], "method": state.settings.method}
    if state.found is not None:
        needs = state.found.value.body["needs"]
        keys = ("trainings", "folds", "seed", "learner", "data", "labels")
        about |= {("data fingerprint" if key == "data" else key): needs[key] for key in keys}
        about["training"] = needs["recipe"]["training"]
        if options := needs.get("options"):
            about["options of the method"] = options
        if said := tell_scoring(state.found.estimates.about):
            del about["folds"]  # which do not take turns there
            about["scores"] = said
    return about | {f"{name} version": version or "none" for name, version in installed().items()}
