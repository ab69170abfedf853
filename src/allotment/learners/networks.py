"""Networks with a shared trunk, a head for each task and batch norm for each task.

Every network takes a batch and the name of the task that it is for. The perceptron carries a first
axis of runs throughout: many trainings of a small network are one of a stacked network, and a
single one is a stack of one.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from allotment.data.dataset import Target
from allotment.learners.layers import PointConv
from allotment.learners.sharing import SHARED_TRUNK, WITH_ADAPTERS

ADAPTER_SHARE = 8
"""of the channels that adapters see, they are an eighth as wide"""
LEAST_ADAPTER = 8
"""channels inside an adapter"""


def outputs_of(target: Target) -> int:
    """How many numbers a head gives for each instance or pixel."""
    if target.classes:
        return len(target.classes)
    return 3 if target.kind == "normals" else 1


class _RunProduct(torch.autograd.Function):
    """One matrix product for each run. A batched product rounds differently for one run than for
    many; this does not, and on a CPU it is as fast."""

    @staticmethod
    def forward(ctx: Any, batch: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(batch, weight)
        out = batch.new_empty(batch.shape[0], batch.shape[1], weight.shape[2])
        runs = zip(bias.unbind(), batch.unbind(), weight.unbind(), out.unbind(), strict=True)
        for mine, rows, columns, place in runs:
            torch.addmm(mine, rows, columns, out=place)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        batch, weight = ctx.saved_tensors
        grad = grads[0].contiguous()
        for_weight = torch.empty_like(weight)
        for_batch = torch.empty_like(batch) if ctx.needs_input_grad[0] else None
        parts = (
            grad.unbind()
        )  # once for all runs: picking them one by one took as long as a product
        for rows, part, place in zip(batch.mT.unbind(), parts, for_weight.unbind(), strict=True):
            torch.mm(rows, part, out=place)
        if for_batch is not None:
            for part, columns, place in zip(
                parts, weight.mT.unbind(), for_batch.unbind(), strict=True
            ):
                torch.mm(part, columns, out=place)
        return for_batch, for_weight, grad.sum(dim=1, keepdim=True)


class RunLinear(nn.Module):
    """A linear layer for each run: (runs, batch, inputs) -> (runs, batch, outputs)."""

    def __init__(self, runs: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(runs, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(runs, 1, outputs))

    def reset(self, generators: Sequence[torch.Generator]) -> None:
        """Draw each run's weights from its own stream, so that a run does not depend on its
        neighbours."""
        bound = self.weight.shape[1] ** -0.5
        with torch.no_grad():
            for weight, generator in zip(self.weight, generators, strict=True):
                weight.uniform_(-bound, bound, generator=generator)

    def forward(self, batch: Tensor) -> Tensor:
        out: Tensor = _RunProduct.apply(batch, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return out


class RunNorm(nn.Module):
    """Batch norm for each run and task: (runs, tasks, batch, size), with the places of the tasks at
    hand."""

    def __init__(self, runs: int, tasks: int, size: int, momentum: float = 0.1):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(runs, tasks, 1, size))
        self.bias = nn.Parameter(torch.zeros(runs, tasks, 1, size))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(runs, tasks, 1, size))
        self.register_buffer("variance", torch.ones(runs, tasks, 1, size))
        self.momentum = momentum

    def forward(self, batch: Tensor, places: Sequence[int]) -> Tensor:
        at = torch.tensor(places, device=batch.device)
        weight, bias = self.weight[:, at], self.bias[:, at]
        if not self.training:
            return (batch - self.mean[:, at]) * torch.rsqrt(
                self.variance[:, at] + 1e-5
            ) * weight + bias
        mean = batch.mean(dim=2, keepdim=True)
        centred = batch - mean
        variance = centred.square().mean(dim=2, keepdim=True)
        with torch.no_grad():
            size = batch.shape[2]
            wide = variance * (size / max(size - 1, 1))
            for part, place in enumerate(places):
                self.mean[:, place].lerp_(mean[:, part], self.momentum)
                self.variance[:, place].lerp_(wide[:, part], self.momentum)
        return centred * torch.rsqrt(variance + 1e-5) * weight + bias


class Perceptron(nn.Module):
    """For tables: a few fully connected layers shared by all tasks, batch norm and a linear head
    for each."""

    stacks = True
    """every weight and statistic has a first axis of runs"""
    has_random_layers = False
    """unless a network says so, its steps draw random numbers from streams of their own, which
    takes time"""

    def __init__(
        self,
        inputs: int,
        targets: Sequence[Target],
        runs: int = 1,
        hidden: Sequence[int] = (128, 64),
    ):
        super().__init__()
        sizes = [inputs, *hidden]
        self.places = {target.name: place for place, target in enumerate(targets)}
        self.trunk = nn.ModuleList(RunLinear(runs, a, b) for a, b in itertools.pairwise(sizes))
        self.norms = nn.ModuleList(RunNorm(runs, len(targets), size) for size in hidden)
        self.heads = _by_task(
            targets, lambda target: RunLinear(runs, sizes[-1], outputs_of(target))
        )

    def reset(self, generators: Sequence[torch.Generator]) -> None:
        for layer in (*self.trunk, *self.heads.values()):
            layer.reset(generators)

    def features(self, batch: Tensor, task: str) -> Tensor:
        return self._trunk(batch, [task])[:, 0]

    def forward(self, batch: Tensor, task: str) -> Tensor:
        return self.together(batch, [task])[0]

    def together(self, batch: Tensor, tasks: Sequence[str]) -> list[Tensor]:
        """The same for several tasks, whose mini-batches lie one after the other: what they share
        is done once."""
        parts = self._trunk(batch, tasks)
        return [self.heads[_key(task)](parts[:, place]) for place, task in enumerate(tasks)]

    def _trunk(self, batch: Tensor, tasks: Sequence[str]) -> Tensor:
        """(runs, tasks, batch, size)"""
        places = [self.places[task] for task in tasks]
        for layer, norm in zip(self.trunk, self.norms, strict=True):
            mixed = layer(batch).unflatten(1, (len(tasks), -1))
            parts = functional.relu(norm(mixed, places))
            batch = parts.flatten(1, 2)
        return parts


class TaskNorm(nn.Module):
    """Batch norm over images that keeps weights and statistics for each task; `turn` says whose
    images come."""

    def __init__(self, tasks: Sequence[str], channels: int):
        super().__init__()
        self.norms = nn.ModuleDict({_key(task): nn.BatchNorm2d(channels) for task in tasks})
        self.turn: Sequence[str] = tasks[:1]
        """tasks whose mini-batches, all of one size, lie one after the other"""

    def forward(self, batch: Tensor) -> Tensor:
        if len(self.turn) == 1:
            out: Tensor = self.norms[_key(self.turn[0])](batch)
            return out
        parts = batch.chunk(len(self.turn))
        return torch.cat(
            [self.norms[_key(task)](part) for task, part in zip(self.turn, parts, strict=True)]
        )


class TaskAdapter(nn.Module):
    """What each task adds of its own to maps that tasks share: a narrow layer beside the way on,
    which begins with adding nothing (residual adapters). `turn` says whose images come."""

    def __init__(self, tasks: Sequence[str], channels: int):
        super().__init__()
        width = max(LEAST_ADAPTER, channels // ADAPTER_SHARE)
        # no convolutions: what draws the weights of those would draw these, too
        self.down = nn.ParameterDict({_key(task): torch.empty(width, channels) for task in tasks})
        self.up = nn.ParameterDict({_key(task): torch.empty(channels, width) for task in tasks})
        self.turn: Sequence[str] = tasks[:1]
        """tasks whose mini-batches, all of one size, lie one after the other"""

    def reset(self, generator: torch.Generator) -> None:
        for down, up in zip(self.down.values(), self.up.values(), strict=True):
            bound = (3.0 / down.shape[1]) ** 0.5
            with torch.no_grad():
                down.uniform_(-bound, bound, generator=generator)
                up.zero_()

    def forward(self, batch: Tensor) -> Tensor:
        parts = batch.chunk(len(self.turn))
        added = [self._add(task, part) for task, part in zip(self.turn, parts, strict=True)]
        return added[0] if len(added) == 1 else torch.cat(added)

    def _add(self, task: str, batch: Tensor) -> Tensor:
        pixels = batch.permute(0, 2, 3, 1)
        narrow = functional.relu(functional.linear(pixels, self.down[_key(task)]))
        return batch + functional.linear(narrow, self.up[_key(task)]).permute(0, 3, 1, 2)


def list_adapters(network: nn.Module) -> list[TaskAdapter]:
    """All adapters in a network, in their order."""
    return [module for module in network.modules() if isinstance(module, TaskAdapter)]


def norm_per_task(module: nn.Module, tasks: Sequence[str]) -> nn.Module:
    """A trunk of the user's with every BatchNorm2d replaced by one for each task, each starting as
    a copy of it."""
    _replace_norms(module, tasks, {})
    return module


def _replace_norms(
    module: nn.Module, tasks: Sequence[str], made: dict[nn.Module, TaskNorm]
) -> None:
    for name, child in module._modules.items():
        if child is None or isinstance(child, TaskNorm):
            continue
        if not isinstance(child, nn.BatchNorm2d):
            _replace_norms(child, tasks, made)
            continue
        if child not in made:  # a module may have two names
            made[child] = TaskNorm(tasks, child.num_features)
            # copies, because eps and momentum are no part of a state dict
            for key in made[child].norms:
                made[child].norms[key] = copy.deepcopy(child)
        module._modules[name] = made[child]


class Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int, tasks: Sequence[str]):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = TaskNorm(tasks, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = TaskNorm(tasks, outputs)
        self.around = PointConv(inputs, outputs, stride, bias=False)

    def forward(self, batch: Tensor) -> Tensor:
        out = functional.relu(self.first_norm(self.first(batch)))
        return functional.relu(self.second_norm(self.second(out)) + self.around(batch))


class SmallTrunk(nn.Module):
    """For scenes: three halvings and a way back up to half size, so that small things stay where
    they are."""

    has_random_layers = False

    def __init__(
        self,
        tasks: Sequence[str],
        widths: Sequence[int] = (24, 48, 96),
        sharing: str = SHARED_TRUNK,
    ):
        super().__init__()
        adapted = widths if sharing == WITH_ADAPTERS else ()
        self.channels = widths[0]
        self.pooled_channels = widths[-1]
        self.down = nn.ModuleList(
            Block(a, b, 2, tasks) for a, b in zip((3, *widths[:-1]), widths, strict=True)
        )
        self.up = nn.ModuleList(PointConv(b, a) for a, b in itertools.pairwise(widths))
        self.adapters = nn.ModuleList(TaskAdapter(tasks, width) for width in adapted)

    def forward(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        levels = []
        batch = batch * 2 - 1
        for place, block in enumerate(self.down):
            batch = block(batch)
            if self.adapters:
                batch = self.adapters[place](batch)
            levels.append(batch)
        fine = levels[-1]
        for level, narrow in zip(reversed(levels[:-1]), reversed(self.up), strict=True):
            fine = (
                functional.interpolate(narrow(fine), size=level.shape[-2:], mode="bilinear") + level
            )
        return fine, levels[-1]


class DenseHead(nn.Module):
    """An answer for each pixel."""

    def __init__(self, channels: int, outputs: int, tasks: Sequence[str]):
        super().__init__()
        self.conv = nn.Conv2d(channels, 32, 3, padding=1, bias=False)
        self.norm = TaskNorm(tasks, 32)
        self.out = PointConv(32, outputs)

    def forward(self, fine: Tensor, coarse: Tensor, size: tuple[int, int]) -> Tensor:
        out = self.out(functional.relu(self.norm(self.conv(fine))))
        return functional.interpolate(out, size=size, mode="bilinear")


class ImageHead(nn.Module):
    """An answer for the image as a whole."""

    def __init__(self, channels: int, outputs: int):
        super().__init__()
        self.out = nn.Linear(2 * channels, outputs)

    def forward(self, fine: Tensor, coarse: Tensor, size: tuple[int, int]) -> Tensor:
        out: Tensor = self.out(torch.cat([coarse.mean(dim=(2, 3)), coarse.amax(dim=(2, 3))], dim=1))
        return out


class ImageNetwork(nn.Module):
    """A trunk for images and a head for each task.

    Any trunk fits that turns images (n, 3, h, w) with values from 0 to 1 into a fine map with
    `channels` and a coarse one with `pooled_channels`.
    """

    def __init__(self, trunk: nn.Module, targets: Sequence[Target]):
        super().__init__()
        tasks = [target.name for target in targets]
        channels, pooled = int(trunk.channels), int(trunk.pooled_channels)  # type: ignore[arg-type]
        self.has_random_layers = bool(getattr(trunk, "has_random_layers", True))
        self.trunk = norm_per_task(trunk, tasks)
        self.heads = _by_task(
            targets,
            lambda target: (
                ImageHead(pooled, outputs_of(target))
                if target.kind in ("classification", "multilabel", "regression")
                else DenseHead(channels, outputs_of(target), [target.name])
            ),
        )
        self._turning = list_turning(self.trunk)

    def reset(self, generators: Sequence[torch.Generator]) -> None:
        (generator,) = generators
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                bound = (3.0 / module.weight[0].numel()) ** 0.5
                with torch.no_grad():
                    module.weight.uniform_(-bound, bound, generator=generator)
                    if module.bias is not None:
                        module.bias.zero_()
        for adapter in list_adapters(self):  # last, so that all else is as without them
            adapter.reset(generator)

    def features(self, batch: Tensor, task: str) -> Tensor:
        coarse: Tensor = self._see(batch, [task])[1]
        return coarse.mean(dim=(2, 3))

    def forward(self, batch: Tensor, task: str) -> Tensor:
        return self.finish(self._see(batch, [task]), task, (batch.shape[-2], batch.shape[-1]))

    def share(self, batch: Tensor, tasks: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
        """What the trunk makes of the tasks' mini-batches, which lie one after the other, for each
        of them."""
        fine, coarse = (part.chunk(len(tasks)) for part in self._see(batch, tasks))
        return list(zip(fine, coarse, strict=True))

    def finish(self, seen: tuple[Tensor, Tensor], task: str, size: tuple[int, int]) -> Tensor:
        """The answer of a task's head."""
        out: Tensor = self.heads[_key(task)](*seen, size)
        return out

    def _see(self, batch: Tensor, tasks: Sequence[str]) -> tuple[Tensor, Tensor]:
        for module in self._turning:
            module.turn = tasks
        seen: tuple[Tensor, Tensor] = self.trunk(batch)
        return seen


def list_turning(trunk: nn.Module) -> list[TaskNorm | TaskAdapter]:
    """The parts of a trunk that must be told whose images come."""
    return [module for module in trunk.modules() if isinstance(module, TaskNorm | TaskAdapter)]


def _key(task: str) -> str:
    """A task's name as a module's: these may hold no dots and must not hide a method."""
    return "task " + task.replace(".", "\u2024")


def _by_task(targets: Sequence[Target], make: object) -> nn.ModuleDict:
    return nn.ModuleDict({_key(target.name): make(target) for target in targets})  # type: ignore[operator]
