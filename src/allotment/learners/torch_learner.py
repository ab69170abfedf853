"""The built-in learner: hard parameter sharing in torch, for tables and for images."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from allotment.data.dataset import Dataset, Instances, Target
from allotment.data.labels import Labels, Split, TaskLabels
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.batches import batch_places, hash_of
from allotment.learners.learner import Measure
from allotment.learners.losses import answer_of, loss_of
from allotment.learners.metrics import metric_of
from allotment.learners.networks import ImageNetwork, Perceptron, SmallTrunk

STANDARDISED = ("regression", "depth")
OPTIMISERS = ("sgd", "adam", "adamw")


@dataclass(frozen=True)
class Recipe:
    """How to train. Epochs go over the task with most labels; `steps` overrides them."""

    epochs: int = 30
    steps: int | None = None
    batch_size: int = 32
    optimiser: str = "sgd"
    trunk_rate: float = 0.02
    head_rate: float = 0.05
    final_rate: float = 0.0001
    """where the cosine ends (P12)"""
    momentum: float = 0.9
    weight_decay: float = 0.0
    device: str = "cpu"
    precision: str = "float32"
    """or bfloat16: mixed precision"""

    def __post_init__(self) -> None:
        mistakes = []
        for key in ("epochs", "batch_size"):
            if getattr(self, key) < 1:
                mistakes.append(Mistake(key, f"{getattr(self, key)} is below 1"))
        if self.optimiser not in OPTIMISERS:
            mistakes.append(Mistake("optimiser", f"unknown {self.optimiser!r}; {suggest(self.optimiser, OPTIMISERS)}"))
        if self.precision not in ("float32", "bfloat16"):
            mistakes.append(Mistake("precision", f"{self.precision!r} is neither float32 nor bfloat16"))
        if mistakes:
            raise InputError([mistake.under("recipe") for mistake in mistakes])


@dataclass
class Training:
    """The state of one training, or of a stack of them."""

    network: nn.Module
    optimiser: torch.optim.Optimizer
    labels: tuple[Labels, ...]
    seeds: tuple[int, ...]
    steps: int
    done: int
    orders: dict[str, list[Instances]]
    """of each task and run, the labelled instances in the order that mini-batches count them"""
    given: dict[str, list[Tensor | None]]
    """likewise, labels that are not all the data's own"""
    scales: dict[str, tuple[Tensor, Tensor]]
    """(mean, spread) of each standardised task's labels, for each run"""

    @property
    def runs(self) -> int:
        return len(self.seeds)


class TorchLearner:
    """Multi-task training on partial labels, behind the `Learner` protocol.

    `network` makes the network from (data's inputs, targets, runs); None takes a perceptron for tables and a small
    convolutional net for images.
    """

    def __init__(
        self,
        data: Dataset,
        split: Split,
        recipe: Recipe | None = None,
        network: Callable[[tuple[int, ...], Sequence[Target], int], nn.Module] | None = None,
        frozen: nn.Module | None = None,
    ):
        self.data, self.split, self.recipe = data, split, recipe or Recipe()
        self.targets = {target.name: target for target in data.targets}
        self.metrics = {name: metric_of(target) for name, target in self.targets.items()}
        self.device = torch.device(self.recipe.device)
        self._inputs = self._load_inputs(frozen)
        self._make = network or _usual_network
        self._values: dict[str, Tensor] = {}

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.targets)

    def steps(self, labels: Labels) -> int:
        if self.recipe.steps is not None:
            return self.recipe.steps
        most = max((len(labels[task]) for task in self.tasks), default=0)
        return self.recipe.epochs * math.ceil(most / self.recipe.batch_size)

    def start(self, labels: Labels, seed: int) -> Training:
        return self._start([labels], [seed])

    def _start(self, labels: Sequence[Labels], seeds: Sequence[int]) -> Training:
        for each in labels:
            self._check(each)
        shape = tuple(self._inputs.shape[1:])
        with torch.random.fork_rng(devices=[]):  # modules draw their first weights from the global stream: leave it be
            network = self._make(shape, tuple(self.targets.values()), len(seeds))
        network.reset([torch.Generator().manual_seed(hash_of("weights", seed)) for seed in seeds])  # type: ignore[operator]
        network.to(self.device)
        if not self._tabular:
            # half as fast again on a CPU
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        steps = {self.steps(each) for each in labels}
        if len(steps) > 1:
            raise InputError([Mistake("labels", "runs of one stack must take the same number of steps")])
        scales = {}
        for name, target in self.targets.items():
            if target.kind in STANDARDISED:
                scales[name] = self._scale(name, labels)
        orders = {task: [_order(each[task]) for each in labels] for task in self.tasks}
        given = {task: self._given(task, labels) for task in self.tasks}
        optimiser = self._optimiser(network)
        return Training(network, optimiser, tuple(labels), tuple(seeds), steps.pop(), 0, orders, given, scales)

    def _check(self, labels: Labels) -> None:
        mistakes = [
            Mistake(f"task {name!r}", f"is not one of the learner's; {suggest(name, self.tasks)}")
            for name in labels
            if name not in self.targets
        ]
        for name in self.tasks:
            unknown = labels[name].instances[~labels[name].is_pseudo]
            if len(unknown) and not self.data.known(name)[unknown].all():
                mistakes.append(Mistake(f"task {name!r}", "a label is used that the data does not have"))
        if mistakes:
            raise InputError(mistakes)

    def _optimiser(self, network: nn.Module) -> torch.optim.Optimizer:
        recipe = self.recipe
        heads = list(network.heads.parameters())  # type: ignore[union-attr]
        ids = {id(weight) for weight in heads}
        trunk = [weight for weight in network.parameters() if id(weight) not in ids]
        groups = [{"params": trunk, "lr": recipe.trunk_rate}, {"params": heads, "lr": recipe.head_rate}]
        if recipe.optimiser == "sgd":
            return torch.optim.SGD(groups, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
        kind = torch.optim.Adam if recipe.optimiser == "adam" else torch.optim.AdamW
        return kind(groups, weight_decay=recipe.weight_decay)

    def step(self, state: Training, tasks: Sequence[str]) -> Training:
        state.network.train()
        state.optimiser.zero_grad(set_to_none=True)
        batches = [self._batch(state, task, occasion) for occasion, task in _occasions(tasks)]
        inputs = _to_float(self._inputs[torch.cat([places for places, _ in batches], dim=1)])
        with self._precision(), self._stream(state):
            outputs = self._outputs(state, inputs, tasks)
        total = torch.zeros((), device=self.device)
        for task, output, (_, values) in zip(tasks, outputs, batches, strict=True):
            losses = loss_of(self.targets[task], output.float(), values)
            total = total + self.targets[task].loss_weight * losses.sum()  # runs share no weight
        torch.autograd.backward(total)
        self._set_rates(state)
        state.optimiser.step()
        state.done += 1
        return state

    def _set_rates(self, state: Training) -> None:
        recipe = self.recipe
        turn = (1 + math.cos(math.pi * min(state.done / max(state.steps, 1), 1.0))) / 2
        for group, first in zip(state.optimiser.param_groups, (recipe.trunk_rate, recipe.head_rate), strict=True):
            group["lr"] = min(recipe.final_rate, first) + (first - min(recipe.final_rate, first)) * turn

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    @contextlib.contextmanager
    def _stream(self, state: Training) -> Iterator[None]:
        """Random layers of a user's network draw from a stream of this step alone, so that forks see the same one."""
        if self._make is _usual_network:  # it has none
            yield
            return
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(hash_of("step", *state.seeds, state.done))
            yield

    def fork(self, state: Training) -> Training:
        network, optimiser = copy.deepcopy((state.network, state.optimiser))
        return replace(state, network=network, optimiser=optimiser)

    def score(self, state: Training, task: str) -> Measure:
        (found,) = self.score_runs(state, task)
        return found

    def score_runs(self, state: Training, task: str) -> list[Measure]:
        """The score of each run of a stack."""
        known = self.split.validation[self.data.known(task)[self.split.validation]]
        metric = self.metrics[task]
        answers, loss = self._answer(state, task, known)
        values = self.data.values(task, known)
        found = []
        for run in range(state.runs):
            number = loss[run] if metric is None else metric(answers[run], values)
            found.append(Measure(number, loss[run], metric is not None and metric.higher_is_better))
        return found

    def predict(self, state: Training, task: str, instances: Instances) -> NDArray[Any]:
        return np.asarray(self._answer(state, task, instances, with_loss=False)[0][0])

    def features(self, state: Training, task: str, instances: Instances) -> NDArray[Any]:
        """What the trunk makes of instances, for choosing among them."""
        state.network.eval()
        with torch.no_grad():
            inputs = self._gather(state, instances)
            found = state.network.features(inputs if self._tabular else inputs[0], task)  # type: ignore[operator]
        return np.asarray(found.cpu().numpy()[0] if self._tabular else found.cpu().numpy())

    def stack(self, runs: Sequence[tuple[Labels, int]]) -> list[Training]:
        """Many whole trainings as one of a stacked network, taken apart again; images are trained one by one."""
        from allotment.learners.learner import labelled, train

        alike = {(labelled(self, labels), self.steps(labels), self._soft(labels)) for labels, _ in runs}
        if not self._tabular or len(alike) > 1:
            return [train(self, labels, seed) for labels, seed in runs]
        state = self._start([labels for labels, _ in runs], [seed for _, seed in runs])
        tasks = labelled(self, runs[0][0])
        for _ in range(state.steps if tasks else 0):
            state = self.step(state, tasks)
        return self.unstack(state)

    def _soft(self, labels: Labels) -> tuple[int, ...]:
        """Which tasks train on probabilities: those of a stack must agree, since their labels lie side by side."""
        return tuple(0 if (values := labels[task].values) is None else values.ndim for task in self.tasks)

    def unstack(self, state: Training) -> list[Training]:
        """Each run of a stack as a state of its own, ready to be scored; its momentum is not kept."""
        singles = []
        for run, (labels, seed) in enumerate(zip(state.labels, state.seeds, strict=True)):
            single = self._start([labels], [seed])
            single.network.load_state_dict(
                {key: part[run : run + 1] for key, part in state.network.state_dict().items()}
            )
            single.done = state.done
            singles.append(single)
        return singles

    def save(self, state: Training, path: str | Path) -> None:
        """Weights and statistics as safetensors, with what they belong to."""
        from safetensors.torch import save_file

        about = {"seeds": state.seeds, "done": state.done, "recipe": asdict(self.recipe), "data": self.data.fingerprint}
        tensors = {key: part.contiguous() for key, part in state.network.state_dict().items()}
        save_file(tensors, str(path), {"allotment": json.dumps(about)})

    def load(self, path: str | Path, labels: Labels, seed: int) -> Training:
        """A state with saved weights, ready to be scored and to predict."""
        from safetensors.torch import load_file

        state = self.start(labels, seed)
        try:
            state.network.load_state_dict(load_file(str(path)))
        except Exception as error:
            raise InputError(
                [Mistake(str(path), f"these weights do not fit the network: {str(error)[:200]}")]
            ) from None
        state.done = state.steps
        return state

    # --- data on its way in ---

    @property
    def _tabular(self) -> bool:
        return self._inputs.ndim == 2

    def _load_inputs(self, frozen: nn.Module | None) -> Tensor:
        """All inputs, decoded once; passed once through layers that never change, if there are any."""
        raw = torch.from_numpy(np.ascontiguousarray(self.data.inputs(np.arange(self.data.size, dtype=np.int64))))
        if frozen is None:
            return raw.to(self.device)
        frozen = frozen.to(self.device).eval()
        with torch.no_grad():
            return torch.cat([frozen(_to_float(part.to(self.device))) for part in torch.split(raw, 64)])

    def _gather(self, state: Training, instances: Instances) -> Tensor:
        batch = _to_float(self._inputs[torch.from_numpy(instances).to(self.device)])
        return batch.expand(state.runs, *batch.shape)

    def _task_values(self, task: str) -> Tensor:
        """Every known label of a task; the places of unknown ones hold anything."""
        if task not in self._values:
            values = self.data.values(task, np.arange(self.data.size, dtype=np.int64))
            whole = self.targets[task].kind in ("classification", "segmentation")
            self._values[task] = torch.from_numpy(values.astype(np.int64 if whole else np.float32)).to(self.device)
        return self._values[task]

    def _batch(self, state: Training, task: str, occasion: int) -> tuple[Tensor, Tensor]:
        """Mini-batch number `done` of a task: which instances, and their labels, (runs, batch, ...)."""
        places, values = [], []
        for order, given, seed in zip(state.orders[task], state.given[task], state.seeds, strict=True):
            if not len(order):
                raise InputError([Mistake(f"task {task!r}", "has no labels to step on")])
            picks = batch_places(len(order), self.recipe.batch_size, state.done, seed, task, occasion)
            places.append(order[picks])
            if given is not None:
                values.append(given[torch.from_numpy(picks)])
        chosen = torch.from_numpy(np.stack(places)).to(self.device)
        wanted = torch.stack(values).to(self.device) if values else self._task_values(task)[chosen]
        if task in state.scales:
            mean, spread = (_like(part, wanted) for part in state.scales[task])
            wanted = (wanted - mean) / spread
        return chosen, wanted

    def _given(self, task: str, labels: Sequence[Labels]) -> list[Tensor | None]:
        """Of each run the labels to train on, where any run has given ones; None where all are the data's own."""
        if all(each[task].values is None for each in labels):
            return [None] * len(labels)
        found: list[Tensor | None] = []
        for each in labels:
            have = each[task]
            values = np.asarray(have.fill(lambda instances: self.data.values(task, instances)))
            if have.values is None:
                values = self.data.values(task, _order(have))
            whole = self.targets[task].kind in ("classification", "segmentation") and values.dtype.kind != "f"
            found.append(torch.from_numpy(values.astype(np.int64 if whole else np.float32)))
        return found

    def _scale(self, task: str, labels: Sequence[Labels]) -> tuple[Tensor, Tensor]:
        means, spreads = [], []
        for each in labels:
            have = each[task]
            values = have.fill(lambda instances: self.data.values(task, instances))
            good = np.sort(values[~np.isnan(values)].astype(np.float64))  # sorted: sums depend on the order
            means.append(float(good.mean()) if len(good) else 0.0)
            spreads.append(max(float(good.std()), 1e-6) if len(good) else 1.0)
        return torch.tensor(means, device=self.device), torch.tensor(spreads, device=self.device)

    # --- answers on their way out ---

    def _outputs(self, state: Training, inputs: Tensor, tasks: Sequence[str]) -> list[Tensor]:
        """Of each task (runs, batch, ...), from their mini-batches one after the other."""
        if hasattr(state.network, "together"):
            return list(state.network.together(inputs, tasks))  # type: ignore[operator]
        whole = inputs if self._tabular else inputs[0].contiguous(memory_format=torch.channels_last)
        parts = whole.chunk(len(tasks), dim=1 if self._tabular else 0)
        outputs = [state.network(part, task) for part, task in zip(parts, tasks, strict=True)]
        return outputs if self._tabular else [output[None] for output in outputs]

    def _answer(
        self, state: Training, task: str, instances: Instances, with_loss: bool = True
    ) -> tuple[NDArray[Any], list[float]]:
        """Answers of each run (runs, n, ...) and its mean loss."""
        target = self.targets[task]
        state.network.eval()
        answers, losses, counts = [], [torch.zeros(state.runs)], [0]
        with torch.no_grad(), self._precision():
            for part in np.array_split(instances, max(1, math.ceil(len(instances) / 256))):
                outputs = self._outputs(state, self._gather(state, part), [task])[0].float()
                answer = answer_of(target, outputs)
                if task in state.scales:
                    mean, spread = (_like(each, answer) for each in state.scales[task])
                    answer = answer * spread + mean
                answers.append(answer.cpu())
                if with_loss and len(part):
                    values = self._task_values(task)[torch.from_numpy(part).to(self.device)]
                    values = values.expand(state.runs, *values.shape)
                    if task in state.scales:
                        values = (values - _like(state.scales[task][0], values)) / _like(state.scales[task][1], values)
                    losses.append(loss_of(target, outputs, values).cpu() * len(part))
                    counts.append(len(part))
        loss = torch.stack(losses).sum(dim=0) / max(sum(counts), 1)
        none = [float("nan")] * state.runs
        return torch.cat(answers, dim=1).numpy(), loss.tolist() if sum(counts) else none


def _order(labels: TaskLabels) -> Instances:
    """Real labels by number, so that their listing does not matter; given values keep their own order."""
    return np.sort(labels.instances) if labels.values is None else labels.instances


def _occasions(tasks: Sequence[str]) -> list[tuple[int, str]]:
    """How often each task came before: its second mini-batch of a step is not its first again."""
    return [(list(tasks[:at]).count(task), task) for at, task in enumerate(tasks)]


def _to_float(batch: Tensor) -> Tensor:
    """Images from bytes to 0 .. 1; features as they are."""
    return batch.float().div(255) if batch.dtype == torch.uint8 else batch.float()


def _like(part: Tensor, other: Tensor) -> Tensor:
    return part.view(-1, *([1] * (other.ndim - 1)))


def _usual_network(shape: tuple[int, ...], targets: Sequence[Target], runs: int) -> nn.Module:
    if len(shape) == 1:
        return Perceptron(shape[0], targets, runs)
    return ImageNetwork(SmallTrunk([target.name for target in targets]), targets)
