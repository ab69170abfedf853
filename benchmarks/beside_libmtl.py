"""Steps per second beside LibMTL's own training loop, on the same data, network, losses and batch
size.

`python benchmarks/beside_libmtl.py --libmtl FOLDER --data FOLDER`: the folder that holds LibMTL's
package, as its authors publish it, and the one that holds VOC2012 and taskonomy. The loops take
turns in one process, and no layer is frozen. docs/results/vision-speed.md says what is equal and
what is not.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import importlib.util
import io
import re
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from allotment.data.dataset import VOID, ArrayData, Dataset, Target
from allotment.data.labels import Labels, Split, draw
from allotment.data.taskonomy import read_taskonomy
from allotment.data.voc import read_voc
from allotment.learners.backbones import Stages, narrow_down
from allotment.learners.deeplab import DeepLab
from allotment.learners.mobilenet import MobileNet
from allotment.learners.recipe import Recipe
from allotment.learners.resnet import ResNet
from allotment.learners.torch_learner import STANDARDISED, TorchLearner

UNNEEDED = {"torch_geometric": (), "cvxpy": (), "qpsolvers": ("solve_qp",)}
"""what LibMTL imports for methods other than equal weighting, and the names it takes from there"""
CASES: dict[str, Callable[[Path, int], Dataset]] = {
    "VOC, two tasks": lambda root, side: read_voc(root / "VOC2012", side),
    "Taskonomy, five tasks": lambda root, side: read_taskonomy(root / "taskonomy", side),
}
BACKBONES: dict[str, Callable[[], Any]] = {
    "mobilenet": lambda: MobileNet(8),
    "resnet18": lambda: ResNet(18),
}
NARROW, WIDTH, SPREAD = 128, 64, (1, 2, 4)
"""channels that the heads see, their width, and the rates of their dilated convolutions"""


@dataclass(frozen=True)
class Settings:
    """What both loops are given alike."""

    backbone: str
    optimiser: str
    side: int
    batch: int
    steps: int
    rounds: int
    rate: float = 0.01
    momentum: float = 0.9
    dropout: float = 0.1

    def make_backbone(self) -> Stages:
        return narrow_down(BACKBONES[self.backbone](), NARROW)


@dataclass
class Clock:
    """Adds up wall time and the CPU time of all threads of this process."""

    wall: float = 0.0
    cpu: float = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


def decode(data: Dataset, count: int) -> tuple[ArrayData, Labels]:
    """Labels of each task on images of its own, `count` of them, everything decoded."""
    tasks = [target.name for target in data.targets]
    drawn = draw(data, np.arange(data.size, dtype=np.int64), dict.fromkeys(tasks, count), seed=0)
    used = np.unique(np.concatenate([drawn[task].instances for task in tasks]))
    values = {task: data.values(task, used) for task in tasks}
    missing = {task: ~data.known(task)[used] for task in tasks}
    held = ArrayData(data.name, data.targets, data.inputs(used), values, missing)
    return held, Labels({task: np.searchsorted(used, drawn[task].instances) for task in tasks})


class Ours:
    """`TorchLearner` with `DeepLab`, as a user has it."""

    name = "allotment"

    def __init__(self, data: ArrayData, labels: Labels, settings: Settings):
        def network(shape: tuple[int, ...], targets: Sequence[Target], runs: int) -> nn.Module:
            made: Any = settings.make_backbone()
            return DeepLab(made, targets, width=WIDTH, rates=SPREAD, dropout=settings.dropout)

        nothing = np.zeros(0, dtype=np.int64)
        parts = Split(np.arange(data.size, dtype=np.int64), nothing, nothing)
        recipe = Recipe(
            steps=settings.steps * (settings.rounds + 1),
            batch_size=settings.batch,
            optimiser=settings.optimiser,
            trunk_rate=settings.rate,
            head_rate=settings.rate,
            momentum=settings.momentum,
            device="cpu",
            precision="float32",
        )
        self.learner = TorchLearner(data, parts, recipe, network)
        self.state = self.learner.start(labels, seed=0)
        self.steps = settings.steps

    def go(self) -> None:
        for _ in range(self.steps):
            self.state = self.learner.step(self.state, self.learner.tasks)


class Theirs:
    """LibMTL's `Trainer.train` with equal weighting and hard parameter sharing, an epoch a
    round."""

    def __init__(
        self,
        libmtl: Any,
        data: ArrayData,
        labels: Labels,
        settings: Settings,
        start: nn.Module,
        last: bool = False,
    ):
        self.name = "LibMTL, channels last" if last else "LibMTL"
        self.meters = Clock()
        layout = torch.channels_last if last else torch.contiguous_format
        encoder, decoders = copy_network(start, data.targets, settings, layout)
        rule: dict[str, Any] = {"optim": settings.optimiser, "lr": settings.rate}
        if settings.optimiser == "sgd":
            rule["momentum"] = settings.momentum
        about = {
            target.name: {
                "metrics": ["error"],
                "metrics_fn": make_metric(libmtl, target, self.meters),
                "loss_fn": make_loss(libmtl, target),
                "weight": [0],
            }
            for target in data.targets
        }
        with contextlib.redirect_stdout(io.StringIO()):
            self.trainer = make_trainer(libmtl)(
                about,
                "EW",
                "HPS",
                lambda: encoder,
                decoders,
                rep_grad=False,
                multi_input=True,
                optim_param=rule,
                scheduler_param=None,
                weight_args={},
                arch_args={},
            )
        self.loaders = {
            target.name: DataLoader(to_tensors(data, labels, target), settings.batch, shuffle=True)
            for target in data.targets
        }

    def go(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            self.trainer.train(self.loaders, None, epochs=1)


def load_libmtl(folder: Path) -> Any:
    """LibMTL from its own source."""
    for name, parts in UNNEEDED.items():
        if importlib.util.find_spec(name) is None:
            stand_in = types.ModuleType(name)
            vars(stand_in).update(dict.fromkeys(parts))
            sys.modules[name] = stand_in
    sys.path.insert(0, str(folder))
    return importlib.import_module("LibMTL")


def make_trainer(libmtl: Any) -> Any:
    """Its trainer on the CPU, for it sets a GPU wherever it runs, and without the evaluation after
    each epoch."""

    class CpuTrainer(libmtl.Trainer):  # type: ignore[misc]
        device = property(lambda self: torch.device("cpu"), lambda self, value: None)

        def test(self, *args: object, **kwargs: object) -> None:
            pass

    return CpuTrainer


class Encoder(nn.Module):
    """A backbone that is given its images in the layout of its weights."""

    def __init__(self, backbone: nn.Module, layout: torch.memory_format):
        super().__init__()
        self.backbone, self.layout = backbone, layout

    def forward(self, batch: Tensor) -> Tensor:
        out: Tensor = self.backbone(batch.contiguous(memory_format=self.layout))
        return out


class Decoder(nn.Module):
    """A head whose maps are brought to the size of the labels, as `DeepLab` does it."""

    def __init__(self, head: nn.Module, side: int):
        super().__init__()
        self.head, self.side = head, side

    def forward(self, batch: Tensor) -> Tensor:
        out: Tensor = self.head(batch)
        return (
            out
            if out.ndim == 2
            else functional.interpolate(out, size=(self.side, self.side), mode="bilinear")
        )


def copy_network(
    start: Any, targets: Sequence[Target], settings: Settings, layout: torch.memory_format
) -> tuple[nn.Module, nn.ModuleDict]:
    """The same layers with the same weights, but with one batch norm for all tasks."""
    backbone = settings.make_backbone()
    shared = {
        re.sub(r"\.norms\.task [^.]*\.", ".", key): part
        for key, part in start.backbone.state_dict().items()
    }
    backbone.load_state_dict(shared)
    heads = zip(targets, start.heads.values(), strict=True)
    decoders = nn.ModuleDict(
        {target.name: Decoder(copy.deepcopy(head), settings.side) for target, head in heads}
    )
    for module in (backbone, decoders):
        module.to(memory_format=layout)  # type: ignore[call-overload]
    return Encoder(backbone, layout), decoders


def to_tensors(data: ArrayData, labels: Labels, target: Target) -> TensorDataset:
    """A task's images and labels as its network wants them, so that nothing is left to do for each
    step."""
    chosen = labels[target.name].instances
    images = torch.from_numpy(data.inputs(chosen)).float().div(255)
    values = data.values(target.name, chosen)
    if target.kind == "segmentation":
        return TensorDataset(images, torch.from_numpy(values.astype(np.int64)))
    values = values.astype(np.float64)
    if target.kind in STANDARDISED:
        values = (values - np.nanmean(values)) / np.nanstd(values)
    return TensorDataset(images, torch.from_numpy(values.astype(np.float32)))


def make_loss(libmtl: Any, target: Target) -> Any:
    """The loss that `allotment.learners.losses` has for the task, as one would write it for
    LibMTL."""

    def across_classes(outputs: Tensor, values: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, values, ignore_index=VOID)

    def of_classes(outputs: Tensor, values: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(outputs, values)

    def of_maps(outputs: Tensor, values: Tensor) -> Tensor:
        values = values if values.ndim == 4 else values[:, None]
        known = ~values.isnan()
        return ((outputs - values.nan_to_num()).abs() * known).sum() / known.sum().clamp_min(1)

    losses = {"segmentation": across_classes, "multilabel": of_classes}

    class Loss(libmtl.loss.AbsLoss):  # type: ignore[misc]
        def compute_loss(self, pred: Tensor, gt: Tensor) -> Tensor:
            return losses.get(target.kind, of_maps)(pred, gt)

    return Loss()


def make_metric(libmtl: Any, target: Target, clock: Clock) -> Any:
    """A cheap error for its meters: the share of wrong classes, or the mean distance."""

    def wrong(outputs: Tensor, values: Tensor) -> Tensor:
        if target.kind == "multilabel":
            return ((outputs > 0) != (values > 0)).float().mean()
        if target.kind == "segmentation":
            return ((outputs.argmax(dim=1) != values) & (values != VOID)).float().mean()
        return (outputs - values.view_as(outputs)).abs().nanmean()

    class Error(libmtl.metrics.AbsMetric):  # type: ignore[misc]
        def update_fun(self, pred: Tensor, gt: Tensor) -> None:
            with clock.running():
                self.record.append(wrong(pred, gt).item())
                self.bs.append(len(pred))

        def score_fun(self) -> list[float]:
            return [float(np.average(self.record, weights=self.bs))]

    return Error()


def check_same(libmtl: Any, data: Dataset, settings: Settings) -> float:
    """How far apart one step takes the weights of both, as a share of how far it takes them; batch
    norms aside.

    With as many labels as a mini-batch has, both see the same one, and one batch norm does what
    several would. Weights have double precision here, because the many layers of a network that is
    not trained yet make rounding large.
    """
    settings = replace(settings, optimiser="sgd", steps=1, rounds=1, dropout=0.0)
    held, labels = decode(data, settings.batch)
    torch.set_default_dtype(torch.float64)
    ours = Ours(held, labels, settings)
    before = copy.deepcopy(ours.state.network)
    theirs = Theirs(libmtl, held, labels, settings, before)
    ours.go()
    theirs.go()
    old, new = (
        _weights(*copy_network(network, held.targets, settings, torch.contiguous_format))
        for network in (before, ours.state.network)
    )
    torch.set_default_dtype(torch.float32)
    other = _weights(theirs.trainer.model.encoder, theirs.trainer.model.decoders)
    far = max(float((new[name] - old[name]).abs().max()) for name in old)
    return max(float((new[name] - other[name]).abs().max()) for name in old) / far


def _weights(*modules: nn.Module) -> dict[str, Tensor]:
    """Those of convolutions and fully connected layers."""
    return {
        f"{at} {name}": layer.weight.detach()
        for at, module in enumerate(modules)
        for name, layer in module.named_modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    }


def compare(libmtl: Any, title: str, data: Dataset, settings: Settings) -> bool:
    """Print the steps per second of every round and the ratios of the totals; whether ours is at
    least as fast."""
    print(
        f"{title}: {settings.backbone}, {settings.side} px, batches of {settings.batch},"
        f" {settings.steps} steps a round, {settings.optimiser}, {torch.get_num_threads()}"
        " thread(s)"
    )
    apart = check_same(libmtl, data, settings)
    print(f"    one step of both from the same weights differs by {apart:.1e} of its size")
    assert apart < 1e-4
    held, labels = decode(data, settings.batch * settings.steps)
    ours = Ours(held, labels, settings)
    start = copy.deepcopy(ours.state.network)
    peers = [Theirs(libmtl, held, labels, settings, start, last) for last in (False, True)]
    rounds = take_turns([ours, *peers], settings)
    good = [judge(ours.name, peer, rounds) for peer in peers]
    return all(good)


def take_turns(loops: Sequence[Ours | Theirs], settings: Settings) -> dict[str, list[Clock]]:
    """The time of each round of each loop."""
    rounds: dict[str, list[Clock]] = {loop.name: [] for loop in loops}
    for loop in loops:  # once to warm up
        loop.go()
        if isinstance(loop, Theirs):
            loop.meters.cpu = 0.0
    for number in range(settings.rounds):
        for loop in loops[:: 1 if number % 2 == 0 else -1]:
            this = Clock()
            with this.running():
                loop.go()
            rounds[loop.name].append(this)
    for name, clocks in rounds.items():
        for kind in ("wall", "cpu"):
            each = " ".join(f"{settings.steps / getattr(clock, kind):.2f}" for clock in clocks)
            print(f"    steps per second of {kind} time, {name}: {each}")
    return rounds


def judge(name: str, peer: Theirs, rounds: dict[str, list[Clock]]) -> bool:
    """Print how many times as fast ours is as a peer; whether it is as fast at least."""
    ours, theirs = rounds[name], rounds[peer.name]
    wall, cpu, mine = (
        sum(c.wall for c in theirs),
        sum(c.cpu for c in theirs),
        sum(c.cpu for c in ours),
    )
    ratio = wall / sum(c.wall for c in ours)
    pairs = [b.cpu / a.cpu for a, b in zip(ours, theirs, strict=True)]
    print(f"    {name} / {peer.name}: {ratio:.3f} (wanted: 1)  {'ok' if ratio >= 1 else 'MISSED'}")
    print(
        f"        by CPU time {cpu / mine:.3f}; in single rounds {min(pairs):.2f} to"
        f" {max(pairs):.2f}, the middle one {np.median(pairs):.3f}; without its metrics"
        f" {(cpu - peer.meters.cpu) / mine:.3f}"
    )
    return ratio >= 1


def main() -> int:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument(
        "--libmtl", type=Path, required=True, help="folder that holds the package LibMTL"
    )
    reader.add_argument(
        "--data", type=Path, required=True, help="folder that holds VOC2012 and taskonomy"
    )
    reader.add_argument("--rounds", type=int, default=10)
    reader.add_argument("--steps", type=int, default=5, help="of a round")
    reader.add_argument("--batch", type=int, default=4)
    reader.add_argument("--side", type=int, default=64, help="of the images, in pixels")
    reader.add_argument("--threads", type=int, default=1)
    reader.add_argument("--backbone", choices=BACKBONES, default="mobilenet")
    reader.add_argument("--optimiser", choices=("sgd", "adam"), default="sgd")
    given = reader.parse_args()
    torch.set_num_threads(given.threads)
    libmtl = load_libmtl(given.libmtl)
    settings = Settings(
        given.backbone, given.optimiser, given.side, given.batch, given.steps, given.rounds
    )
    fast = [
        compare(libmtl, title, read(given.data, given.side), settings)
        for title, read in CASES.items()
    ]
    return 0 if all(fast) else 1


if __name__ == "__main__":
    sys.exit(main())
