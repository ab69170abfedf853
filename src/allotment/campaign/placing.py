"""Orders on their way out and back in: how one is asked for, where its sheet goes, what is put on
record, and orders that only their sheets still know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from allotment.amounts import show
from allotment.campaign.sharing import list_candidates
from allotment.campaign.state import CampaignState, look, tell_spent
from allotment.connect.connector import CONNECTORS
from allotment.connect.delivery import Parts
from allotment.errors import Infeasible, InputError, Mistake
from allotment.formatting import several
from allotment.job import JSON, Job
from allotment.ledger.books import find_unknown, read_order, write_order
from allotment.ledger.store import Store, Value
from allotment.orders.order import Order, choose
from allotment.orders.sheet import Sheet
from allotment.orders.strategy import RANDOM, SHARING, STRATEGIES
from allotment.settings.settings import quote


def name_strategy(strategy: str | None, together: bool) -> str | None:
    """The strategy that is asked for, if one is; raises InputError unless there is such a one."""
    if together and strategy not in (None, SHARING):
        what = f"is short for --strategy {SHARING}, and another one is named; leave it out"
        raise InputError([Mistake("--together", what)])
    named = SHARING if together else strategy
    if named is not None:
        STRATEGIES.load(named)
    return named


def make_form(everything: bool, strategy: str, stop: bool) -> dict[str, JSON]:
    """How an order was asked for, which is a part of its key: as before there were strategies, of
    those that there were."""
    form: dict[str, JSON] = {"everything": everything, "together": strategy == SHARING}
    form |= {"stop": True} if stop else {}
    return form if strategy in (RANDOM, SHARING) else form | {"strategy": strategy}


def tell_options(everything: bool, strategy: str | None, stop: bool) -> str:
    """What is to be typed to order the same before an earlier order is back."""
    named = "" if strategy is None else f"--strategy {quote(strategy)}"
    given = ("--all" if everything else "", "--together" if strategy == SHARING else named)
    return " ".join(filter(None, (*given, "--stop" if stop else "", "--more")))


def find_place(folder: Path, writer: str, number: int) -> str:
    """Where an order goes of which nobody said it: into the campaign's folder."""
    suffix = CONNECTORS.load(writer).suffix
    if not suffix:
        what = f"is missing; {CONNECTORS.describe(writer)} has to be told where the order goes"
        raise InputError([Mistake("-o", what)])
    return str(folder / f"order-{number}{suffix}")


def find_open(store: Store, state: CampaignState) -> Value | None:
    """The last order of which some did not come back yet."""
    open_orders = {number for number, _, _ in state.open}
    return next((value for value in reversed(store.orders()) if value.number in open_orders), None)


def name_sheet(order: Value) -> Job:
    """That the sheet of an order was written, as something that is on record once."""
    return Job("sheet", {"order": order.key}, {})


def write_sheet(writer: str, sheet: Sheet, place: str) -> None:
    connector = CONNECTORS.load(writer)
    with CONNECTORS.calling(writer):
        connector.write(sheet, place)


def place_order(
    store: Store, state: CampaignState, form: Mapping[str, JSON], writer: str, place: str
) -> Value:
    """Put a plan and an order of it on record, if its sheet can be written; the same plan is
    ordered once in a form."""
    if not state.is_affordable:
        raise Infeasible([tell_spent(state)])
    proposal = state.propose(stop="stop" in form)
    plan, counts = proposal.plan, proposal.tranche.counts
    if form["everything"]:
        counts = plan.counts
    if not any(counts.values()):
        raise Infeasible([f"the plan buys nothing: {'; '.join(plan.why_unspent)}"])
    connector = CONNECTORS.load(writer)
    with CONNECTORS.calling(writer):
        connector.check(place)
    candidates = list_candidates(state, counts)
    costs = {
        task.name: task.price(counts[task.name]) for task in plan.problem.tasks if counts[task.name]
    }
    order = choose(
        candidates,
        counts,
        state.settings.seed,
        form["together"],
        costs=costs,
        strategy=form.get("strategy"),
        inputs=state.stock.inputs,
        labelled=state.stock.labelled,
    )
    store.add_value("plan", proposal.to_dict(), proposal.job.key)
    body = write_order(store, order, plan.problem.tasks)
    body |= {"plan": proposal.job.key, "form": dict(form)}
    if package := STRATEGIES.version_of(form.get("strategy", RANDOM)):
        body["package"] = package  # without it nobody could say how they were chosen
    return store.add_order(
        body, order.items, _name_key(store, {"plan": proposal.job.key, "form": dict(form)})
    )


def _name_key(store: Store, needs: dict[str, JSON]) -> str:
    """The same for the same plan in the same form, unless it was cancelled: then it can be ordered
    again."""
    cancelled = store.cancelled()
    while (
        known := store.find_value("order", Job("order", needs).key)
    ) and known.number in cancelled:
        needs = needs | {"after": known.number}
    return Job("order", needs).key


def take_up(store: Store, state: CampaignState, parts: Parts) -> list[str]:
    """Put orders on record that a sheet of this campaign speaks of and that are not: what was sent
    is to be paid."""
    lost: dict[str, list[tuple[str, str]]] = {}
    for name, task, instance in find_unknown(store, parts.asked):
        lost.setdefault(name, []).append((task, instance))
    notes = []
    for name, items in lost.items():
        there = {task: set(state.ordered[task]) for task in state.settings.names}
        missing = tuple((task, instance) for task, instance in items if instance not in there[task])
        if not missing:
            continue
        value = _record_lost(store, state, name, missing)
        order = read_order(store, value)
        what = (
            f"order {name} was not on record: the campaign was put back to an earlier state since"
            " it was sent"
        )
        again = (
            f"It is on record again as order {value.number}, {several(len(missing), 'label')} for"
            f" {show(order.total)}"
        )
        notes.append(f"{what}. {again} at the prices of today")
        if twice := len(items) - len(missing):
            notes.append(
                f"labels of order {name} that another order asks for as well, to be cancelled"
                f" there: {twice}"
            )
        state = look(state.folder, store, state.files)
    return notes


def _record_lost(
    store: Store, state: CampaignState, name: str, items: tuple[tuple[str, str], ...]
) -> Value:
    try:
        problem = state.rest()
    except Infeasible:  # more is spent than there is, which makes it no cheaper
        problem = state.settings.problem()
    counts = Counter(task for task, _ in items)
    order = Order(
        items,
        state.settings.seed,
        costs={task: problem[task].price(count) for task, count in counts.items()},
    )
    terms = [problem[task] for task in counts]
    body = {"terms": [task.to_dict() for task in terms], **write_order(store, order, terms)}
    body |= {"plan": None, "form": {}, "sheet": name}
    return store.add_order(
        body, items, Job("order", {"sheet": name, "items": list(map(list, items))}).key
    )
