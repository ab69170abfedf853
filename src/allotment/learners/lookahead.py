"""Several arms from one state, for less than one by one: what their first steps share is computed
once.

The first step of every arm starts from the same weights, so the gradient of a mini-batch is the
same in all arms that it is part of: for K tasks 2K gradients make the first step of each task
alone, twice, and beside each other task. After that arms differ. Networks that stack go on as one
network whose runs are the arms. Where layers that tasks share draw at random, all arms see the same
draw in the first step; forks, step by step, see one for each combination of tasks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call

from allotment.learners.learner import Arms
from allotment.learners.optimiser import make_optimiser

if TYPE_CHECKING:
    from allotment.learners.torch_learner import TorchLearner, Training

Turn = tuple[str, int]
"""a task's first mini-batch of a step, its second, ..."""


class Ends(Mapping[str, "Training"]):
    """The state in which each arm ends, made anew whenever it is asked for: all at once would be as
    many models."""

    def __init__(self, arms: Arms, make: Callable[[str], Training]):
        self._arms, self._make = arms, make

    def __getitem__(self, name: str) -> Training:
        if name not in self._arms:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)


@dataclass(frozen=True)
class Push:
    """What one mini-batch does to a state: a gradient, and the statistics that it changes."""

    gradient: dict[str, Tensor]
    """by weight; a weight that has no part in it is left out"""
    statistics: dict[str, tuple[Tensor, Tensor]]
    """by buffer: where it is another, and what it is then, after this mini-batch and its task's
    earlier ones"""


def look_ahead(learner: TorchLearner, state: Training, arms: Arms, steps: int) -> Ends:
    """Where each arm is after so many steps; `state` stays as it is and may go on before the ends
    are looked at."""
    base = learner.fork(state)
    arms = {name: tuple(tasks) for name, tasks in arms.items()}
    if steps < 1:
        return Ends(arms, lambda name: learner.fork(base))
    pushes = push_all(learner, base, turns_of(arms))
    moved = {name: move_statistics(pushes, tasks) for name, tasks in arms.items()}

    def follow(name: str) -> Training:
        end, statistics = learner.fork(base), moved[name]
        if statistics is None:
            return walk(learner, end, arms[name], steps)
        add_up(end.network, [pushes[turn] for turn in turns_of({name: arms[name]})], statistics)
        learner.update(end)
        return walk(learner, end, arms[name], steps - 1)

    stacks = getattr(base.network, "stacks", False) and base.runs == 1
    if not stacks or len(arms) < 2 or None in moved.values():
        return Ends(arms, follow)
    stack = Stack(learner, base, arms)
    stack.first(pushes, moved)
    for _ in range(steps - 1):
        stack.step()
    return Ends(arms, stack.take_out)


def walk(learner: TorchLearner, state: Training, tasks: Sequence[str], steps: int) -> Training:
    for _ in range(steps):
        state = learner.step(state, tasks)
    return state


def turns_of(arms: Arms) -> dict[Turn, list[str]]:
    """Every mini-batch that a step of the arms wants, and the arms that want it; of one task in
    their order."""
    found: dict[Turn, list[str]] = {}
    for name, tasks in arms.items():
        for at, task in enumerate(tasks):
            found.setdefault((task, list(tasks[:at]).count(task)), []).append(name)
    return dict(sorted(found.items(), key=lambda item: item[0][1]))


def push_all(
    learner: TorchLearner, base: Training, turns: Mapping[Turn, object]
) -> dict[Turn, Push]:
    """What each mini-batch does to the state, by itself."""
    work, found = learner.fork(base), {}
    work.network.train()
    before = dict(base.network.named_buffers())
    for task in dict.fromkeys(task for task, _ in turns):
        _set_statistics(work.network, before)
        for occasion in range(sum(other == task for other, _ in turns)):
            work.optimiser.zero_grad(set_to_none=True)
            learner.add_gradient(work, task, occasion, *learner.mini_batch(work, task, occasion))
            gradient = {
                name: weight.grad
                for name, weight in work.network.named_parameters()
                if weight.grad is not None
            }
            found[task, occasion] = Push(gradient, _find_changes(before, work.network))
    return found


def _find_changes(
    before: Mapping[str, Tensor], network: nn.Module
) -> dict[str, tuple[Tensor, Tensor]]:
    return {
        name: (buffer != before[name], buffer.clone())
        for name, buffer in network.named_buffers()
        if not torch.equal(buffer, before[name])
    }


def move_statistics(
    pushes: Mapping[Turn, Push], tasks: Sequence[str]
) -> dict[str, tuple[Tensor, Tensor]] | None:
    """All that a step on these tasks changes of the statistics; None where two tasks change the
    same one, because then each would have started from what the other left."""
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for task in dict.fromkeys(tasks):
        for name, (where, value) in pushes[task, list(tasks).count(task) - 1].statistics.items():
            if name not in found:
                found[name] = where, value
                continue
            other, theirs = found[name]
            if bool((other & where).any()):
                return None
            found[name] = other | where, torch.where(where, value, theirs)
    return found


def _set_statistics(network: nn.Module, values: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, buffer in network.named_buffers():
            if name in values:
                buffer.copy_(values[name])


def add_up(
    network: nn.Module, pushes: Sequence[Push], statistics: Mapping[str, tuple[Tensor, Tensor]]
) -> None:
    """Give a network the summed gradient of some mini-batches, and the statistics after them."""
    _set_statistics(network, {name: value for name, (_, value) in statistics.items()})
    for name, weight in network.named_parameters():
        parts = [push.gradient[name] for push in pushes if name in push.gradient]
        weight.grad = functools.reduce(torch.add, parts) if parts else None


class Stack:
    """The arms of a probe as the runs of one network."""

    def __init__(self, learner: TorchLearner, base: Training, arms: Arms):
        self._learner, self._base = learner, base
        self._places = {name: place for place, name in enumerate(arms)}
        self._rows = {
            turn: torch.tensor([self._places[name] for name in names], device=learner.device)
            for turn, names in turns_of(arms).items()
        }
        network = learner.new_network(len(arms)).to(learner.device).train()
        mine = dict(base.network.state_dict())
        with torch.no_grad():
            for name, part in network.state_dict().items():
                part.copy_(mine[name].expand_as(part))
        optimiser = make_optimiser(learner.recipe, network)
        for theirs, weight in zip(_weights(base.optimiser), _weights(optimiser), strict=True):
            for key, value in base.optimiser.state.get(theirs, {}).items():
                optimiser.state[weight][key] = _spread(value, theirs, len(arms))
        self._state = replace(base, network=network, optimiser=optimiser)
        self._weights, self._statistics = (
            dict(network.named_parameters()),
            dict(network.named_buffers()),
        )
        self._moved: dict[Tensor, Tensor] = {}
        """of each weight, which arms have a gradient for it"""

    def first(
        self,
        pushes: Mapping[Turn, Push],
        moved: Mapping[str, Mapping[str, tuple[Tensor, Tensor]] | None],
    ) -> None:
        """The step that arms share."""
        for arm, statistics in moved.items():
            for name, (_, value) in (statistics or {}).items():
                self._statistics[name][self._places[arm]] = value[0]
        for turn, rows in self._rows.items():
            self._add(
                rows,
                {name: _repeat(part, len(rows)) for name, part in pushes[turn].gradient.items()},
            )
        self._finish()

    def step(self) -> None:
        """A step of every arm on its own tasks."""
        learner, parts = self._learner, self._learner.parts_of(self._state.network)
        for (task, occasion), rows in self._rows.items():
            part = StackPart(
                self._state.network,
                *(_pick(each, rows) for each in (self._weights, self._statistics)),
            )
            batch, values = (
                _repeat(each, len(rows)) for each in learner.mini_batch(self._state, task, occasion)
            )
            learner.add_gradient(
                replace(self._state, network=part), task, occasion, batch, values, parts
            )
            self._add(
                rows,
                {name: leaf.grad for name, leaf in part.leaves.items() if leaf.grad is not None},
            )
            for name, buffer in self._statistics.items():
                buffer[rows] = part.statistics[name]
        self._finish()

    def _add(self, rows: Tensor, gradient: Mapping[str, Tensor]) -> None:
        for name, part in gradient.items():
            weight = self._weights[name]
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
                self._moved[weight] = torch.zeros(len(weight), dtype=torch.bool)
            weight.grad.index_add_(0, rows, part)
            self._moved[weight][rows.cpu()] = True

    def _finish(self) -> None:
        self._learner.update(self._state)
        self._state.optimiser.zero_grad(set_to_none=True)

    def take_out(self, name: str) -> Training:
        """An arm as a state of its own. What it has no gradient for is as it was, whatever the
        other arms did."""
        place, end = self._places[name], self._learner.fork(self._base)
        with torch.no_grad():
            for mine, weight in zip(
                _weights(end.optimiser), _weights(self._state.optimiser), strict=True
            ):
                if weight in self._moved and self._moved[weight][place]:
                    mine.copy_(weight[place : place + 1])
                    known = self._state.optimiser.state[weight].items()
                    end.optimiser.state[mine] = {
                        key: _single(value, weight, place) for key, value in known
                    }
        _set_statistics(
            end.network, {key: part[place : place + 1] for key, part in self._statistics.items()}
        )
        for kept, group in zip(
            end.optimiser.param_groups, self._state.optimiser.param_groups, strict=True
        ):
            kept["lr"] = group["lr"]
        end.done = self._state.done
        return end


class StackPart(nn.Module):
    """Some runs of a stacked network, as a network of its own with weights that take gradients."""

    def __init__(
        self, network: nn.Module, weights: Mapping[str, Tensor], statistics: Mapping[str, Tensor]
    ):
        super().__init__()
        self._whole = (network,)  # in a tuple, so that its weights are not this module's
        self.has_random_layers = getattr(network, "has_random_layers", True)
        self.leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
        self.statistics = dict(statistics)

    def forward(self, batch: Tensor, task: str) -> Tensor:
        out: Tensor = functional_call(self._whole[0], self.leaves | self.statistics, (batch, task))
        return out


def _weights(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    return [weight for group in optimiser.param_groups for weight in group["params"]]


def _spread(value: object, weight: Tensor, runs: int) -> object:
    """What an optimiser keeps of a weight, for as many runs; a count of steps is one for all of
    them."""
    if isinstance(value, Tensor):
        wide = value.shape == weight.shape
        return value.expand(runs, *value.shape[1:]).clone() if wide else value.clone()
    return value


def _single(value: object, weight: Tensor, place: int) -> object:
    """Of what an optimiser keeps of a stacked weight, one run's."""
    if isinstance(value, Tensor):
        return (value[place : place + 1] if value.shape == weight.shape else value).clone()
    return value


def _pick(tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    return {name: part.detach()[rows] for name, part in tensors.items()}


def _repeat(part: Tensor, runs: int) -> Tensor:
    return part.expand(runs, *part.shape[1:])
