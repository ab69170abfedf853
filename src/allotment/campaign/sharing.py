"""Whether labels of several tasks lie on the same instances: what may be ordered, and what is to be
said where there are too few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from allotment.campaign.evaluation import Trial
from allotment.campaign.state import CampaignState
from allotment.data.labels import Labels
from allotment.formatting import several
from allotment.orders.order import Item
from allotment.orders.strategies._places import draw_rank
from allotment.settings.settings import DIFFERENT, Settings
from allotment.stock.stock import Stock

ON_PURPOSE = 'instances = "any" in campaign.toml lets tasks share them without a word'


def list_candidates(state: CampaignState, counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Of each task, the instances that an order of so many labels may choose from: where tasks are
    to stay apart, those that no other task has, with as many others as are wanted beyond them."""
    stock, ordered = state.stock, state.ordered
    found = {name: stock.candidates(name, ordered[name]) for name in counts}
    if state.settings.instances != DIFFERENT:
        return found
    for name, names in found.items():
        taken = _list_taken(stock, ordered, name)
        apart = [each for each in names if each not in taken]
        if (lacking := counts[name] - len(apart)) > 0:
            rest = [each for each in names if each in taken]
            rank = draw_rank(rest, state.settings.seed, name)
            apart += [rest[place] for place in rank[:lacking].tolist()]
        found[name] = apart
    return found


def _list_taken(stock: Stock, ordered: Mapping[str, Collection[str]], task: str) -> set[str]:
    """Instances on which another task has a label or waits for one."""
    taken: set[str] = set()
    for other in stock.targets:
        if other != task:
            taken.update(ordered.get(other, ()))
            taken.update(stock.ids[at] for at in stock.labels[other].instances.tolist())
    return taken


def tell_shared(state: CampaignState, items: Sequence[Item]) -> str:
    """That an order could not keep tasks apart, and how many of its instances they share; nothing
    where it could, or should not. The state is that of before it was placed."""
    if state.settings.instances != DIFFERENT:
        return ""
    times = Counter(instance for _, instance in items)
    taken = {task: _list_taken(state.stock, state.ordered, task) for task, _ in items}
    shared = {name for task, name in items if times[name] > 1 or name in taken[task]}
    if not shared:
        return ""
    return (
        f"{len(shared)} of its {several(len(times), 'instance')} will have labels of several tasks:"
        f" too few are left for tasks to stay apart. {ON_PURPOSE}"
    )


def tell_start(settings: Settings, stock: Stock) -> str:
    """The same of the labels that a campaign begins with."""
    shared = count_shared(stock.start)
    if settings.instances != DIFFERENT or not shared:
        return ""
    return (
        f"{several(shared, 'instance')} begin with labels of several tasks: there are too few for"
        f" tasks to stay apart, so begin with fewer, or say that it is meant: {ON_PURPOSE}"
    )


def count_shared(labels: Labels) -> int:
    """Instances with labels of several tasks."""
    times = Counter(at for mine in labels.values() for at in mine.instances.tolist())
    return sum(count > 1 for count in times.values())


def tell_crowded(state: CampaignState, trials: Sequence[Trial]) -> list[str]:
    """Of plans that are tried out, how many of their labels must share instances."""
    if state.settings.instances != DIFFERENT:
        return []
    stock = state.stock
    begun = {at for mine in stock.start.values() for at in mine.instances.tolist()}
    free, found = len({*stock.parts.train.tolist()} - begun), []
    for trial in trials:
        over = sum(trial.counts.values()) - free
        if over > 0 and not trial.same:
            what = f"{trial.name} wants {several(over + free, 'label')} on instances of their own"
            found.append(f"{what}, of which {free} are left: {over} share one with another task")
    return found
