"""The built-in learner: hard parameter sharing in torch, for tables and for images."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from allotment.data.augment import Augment, nothing_of
from allotment.data.dataset import PIXEL_KINDS, Dataset, Instances, Target
from allotment.data.labels import Labels, Split
from allotment.errors import InputError, Mistake
from allotment.learners.batches import batch_places, hash_of
from allotment.learners.feed import Cropped, Decoded, Wanted, to_labels
from allotment.learners.layers import SafeConvolutions
from allotment.learners.learner import Measure, Patience, labelled, train
from allotment.learners.lookahead import Ends, look_ahead, turns_of
from allotment.learners.losses import answer_of, constant_of, loss_of, thin_out
from allotment.learners.map_skill import MapSkill
from allotment.learners.metrics import CHANCE_ERROR, SKILLS, Running
from allotment.learners.networks import ImageNetwork, Perceptron, SmallTrunk
from allotment.learners.optimiser import make_optimiser, set_rates
from allotment.learners.recipe import Recipe
from allotment.learners.scales import find_scale, read_some
from allotment.learners.scored import ScoredOnData
from allotment.learners.sharing import SHARED_TRUNK, check_sharing
from allotment.learners.weights import find_misfit, read_weights

MakeNetwork = Callable[[tuple[int, ...], Sequence[Target], int], nn.Module]
"""a network from the form of the inputs, the targets and how many runs are stacked"""
STANDARDISED = ("regression", "depth")
LONGER = 9
"""times the steps of a recipe that may follow until a training has converged"""
LARGE_SIDE = 256
"""pixels on each side of pictures of which fewer are scored together"""
WEIGHTS_FILE = "weights.safetensors"
"""in the folder that a state is saved to"""


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


class TorchLearner(ScoredOnData):
    """Multi-task training on partial labels, behind the `Learner` protocol.

    `network` makes the network from (data's inputs, targets, runs); None takes a perceptron for
    tables and a small convolutional net for images, of which tasks share as much as `sharing` says.
    """

    def __init__(
        self,
        data: Dataset,
        split: Split,
        recipe: Recipe | None = None,
        network: MakeNetwork | None = None,
        frozen: nn.Module | None = None,
        sharing: str = SHARED_TRUNK,
    ):
        super().__init__(data, split)
        self.recipe = (recipe or Recipe()).settled()
        self.device = torch.device(self.recipe.device)
        self._feed = self._make_feed(frozen)
        self._tabular = len(self._feed.shape) == 1
        if what := _tell_unshared(sharing, self._tabular, network is not None):
            raise InputError([Mistake("sharing", what)])
        self._make = network or partial(_usual_network, sharing=sharing)
        self._is_foreign = network is not None and not self._tabular

    def _make_feed(self, frozen: nn.Module | None) -> Decoded:
        if not self.recipe.crop:
            return Decoded(self.data, self.device, frozen)
        what = ""
        if frozen is not None:
            what = "random crops can't be cached; train without frozen layers"
        elif self.data.picture_size(0) is None:
            what = "there are no pictures to cut anything out of; leave it out"
        if what:
            raise InputError([Mistake("recipe.crop", what)])
        return Cropped(self.data, self.device, Augment(self.recipe.crop), self.recipe.workers)

    def look_at(self, instances: Instances) -> None:
        """Compute now what is computed once for all trainings: features and labels of
        instances."""
        self._feed.inputs(instances)
        for task in self.tasks:
            self._feed.values(task, instances[self.data.known(task)[instances]])

    def steps(self, labels: Labels) -> int:
        if self.recipe.steps is not None:
            return self.recipe.steps
        most = max((len(labels[task]) for task in self.tasks), default=0)
        return self.recipe.epochs * math.ceil(most / self.recipe.batch_size)

    def find_patience(self, labels: Labels) -> Patience | None:
        """To go on until it has converged, a look after each epoch, if the recipe says so."""
        if not self.recipe.patience:
            return None
        most = max((len(labels[task]) for task in self.tasks), default=0)
        epoch, steps = math.ceil(most / self.recipe.batch_size), self.steps(labels)
        return Patience(
            every=max(epoch, 1),
            looks=self.recipe.patience,
            after=max(steps - 1, 0),
            longer=LONGER * steps,
        )

    def start(self, labels: Labels, seed: int) -> Training:
        return self.start_stack([labels], [seed], self.steps(labels))

    def start_stack(self, labels: Sequence[Labels], seeds: Sequence[int], steps: int) -> Training:
        """Many trainings of so many steps as one, where the network stacks."""
        for each in labels:
            self.check_labels(each)
        network = self.new_network(len(seeds))
        network.reset([torch.Generator().manual_seed(hash_of("weights", seed)) for seed in seeds])  # type: ignore[operator]
        network.to(self.device)
        if not self._tabular:
            network.to(memory_format=self._layout(network))  # type: ignore[call-overload]
        scales = {}
        for name, target in self.targets.items():
            if target.kind in STANDARDISED:
                scales[name] = self._scale(name, labels)
        # by number, so that the order in which labels are listed does not matter
        orders = {task: [np.sort(each[task].instances) for each in labels] for task in self.tasks}
        given = {task: self._given(task, labels) for task in self.tasks}
        optimiser = make_optimiser(self.recipe, network)
        return Training(
            network, optimiser, tuple(labels), tuple(seeds), steps, 0, orders, given, scales
        )

    def new_network(self, runs: int) -> nn.Module:
        """A network for so many runs, with any weights."""
        # modules draw their first weights from the global stream: leave it be
        with torch.random.fork_rng(devices=[]):
            return self._make(self._feed.shape, tuple(self.targets.values()), runs)

    def step(self, state: Training, tasks: Sequence[str]) -> Training:
        state.network.train()
        state.optimiser.zero_grad(set_to_none=True)
        inputs, labels = self._feed.load(self._wanted(state, tasks, state.done))
        if self._feed.looks_ahead and state.done + 1 < state.steps:
            self._feed.expect(self._wanted(state, tasks, state.done + 1))
        labels = [
            self._prepare(state, task, values) for task, values in zip(tasks, labels, strict=True)
        ]
        try:
            self._add_gradients(state, tasks, inputs, labels)
        except RuntimeError as error:
            raise _explain_memory(error, self.recipe) from error
        self.update(state)
        return state

    def update(self, state: Training) -> None:
        """The rest of a step, once its gradients are there."""
        set_rates(self.recipe, state.optimiser, state.done, state.steps)
        state.optimiser.step()
        state.done += 1

    def mini_batch(self, state: Training, task: str, occasion: int) -> tuple[Tensor, Tensor]:
        """Inputs and labels of a task's first mini-batch of the next step (occasion 0), its second
        (1) and so on."""
        inputs, (labels,) = self._feed.load(
            self._wanted(state, [task] * (occasion + 1), state.done)[occasion:]
        )
        return inputs, self._prepare(state, task, labels)

    def _add_gradients(
        self, state: Training, tasks: Sequence[str], inputs: Tensor, labels: list[Tensor]
    ) -> None:
        if hasattr(state.network, "together"):
            with self._training(), self._stream(state, *tasks):
                outputs = state.network.together(inputs, tasks)  # type: ignore[operator]
            losses = [
                self._loss(task, out, values)
                for task, out, values in zip(tasks, outputs, labels, strict=True)
            ]
            torch.autograd.backward(torch.stack(losses).sum())
            return
        if hasattr(state.network, "share") and self.recipe.accumulate == 1 and len(tasks) > 1:
            self._add_shared_gradients(state, tasks, inputs, labels)
            return
        batches = inputs.chunk(len(tasks), dim=1)
        for at, (task, batch, values) in enumerate(zip(tasks, batches, labels, strict=True)):
            self.add_gradient(state, task, list(tasks[:at]).count(task), batch, values)

    def parts_of(self, network: nn.Module) -> int:
        """In how many parts a mini-batch goes through a network."""
        return 1 if hasattr(network, "together") else self.recipe.accumulate

    def add_gradient(
        self,
        state: Training,
        task: str,
        occasion: int,
        batch: Tensor,
        values: Tensor,
        parts: int | None = None,
    ) -> None:
        """Of one mini-batch of one task."""
        parts = min(parts or self.parts_of(state.network), batch.shape[1])
        for number, (part, wanted) in enumerate(
            zip(batch.chunk(parts, 1), values.chunk(parts, 1), strict=True)
        ):
            with self._training(), self._stream(state, task, occasion, number):
                out = self._output(state, part, task)
            share = part.shape[1] / batch.shape[1]
            # at once, so that only one graph is held at a time
            torch.autograd.backward(share * self._loss(task, out, wanted))

    def _add_shared_gradients(
        self, state: Training, tasks: Sequence[str], inputs: Tensor, labels: list[Tensor]
    ) -> None:
        """What all tasks share is done once for all their images: fewer and larger products."""
        batch = inputs[0].contiguous(memory_format=self._layout(state.network))
        with self._training(), self._stream(state, *tasks):
            seen = state.network.share(batch, tasks)  # type: ignore[operator]
        losses = []
        for at, (task, part, values) in enumerate(zip(tasks, seen, labels, strict=True)):
            with self._training(), self._stream(state, task, list(tasks[:at]).count(task), 0):
                out = state.network.finish(part, task, batch.shape[-2:])[None]  # type: ignore[operator]
            losses.append(self._loss(task, out, values))
        torch.autograd.backward(torch.stack(losses).sum())

    def _loss(self, task: str, output: Tensor, values: Tensor) -> Tensor:
        target = self.targets[task]
        # runs share no weight
        return target.loss_weight * loss_of(target, output.float(), values).sum()

    def _layout(self, network: nn.Module) -> torch.memory_format:
        """Channels last, which is as fast or faster for most networks, unless a network says that
        it is not."""
        slower = self.device.type == "cpu" and not getattr(network, "channels_last", True)
        return torch.contiguous_format if slower else torch.channels_last

    @contextlib.contextmanager
    def _training(self) -> Iterator[None]:
        """For passes whose gradients are wanted: networks of users may hold any layer."""
        with (
            self._precision(),
            SafeConvolutions() if self._is_foreign else contextlib.nullcontext(),
        ):
            yield

    def _precision(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16"
        )

    @contextlib.contextmanager
    def _stream(self, state: Training, *key: object) -> Iterator[None]:
        """Random layers draw from a stream of this step and mini-batch alone, so that all arms see
        the same one."""
        if not getattr(state.network, "has_random_layers", True):
            yield
            return
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            # torch's own call looks for GPUs each time: a twentieth of a small network's training
            source = torch.default_generator if self.device.type == "cpu" else torch
            source.manual_seed(hash_of("step", *state.seeds, state.done, *key))
            yield

    def fork(self, state: Training) -> Training:
        network, optimiser = copy.deepcopy((state.network, state.optimiser))
        return replace(state, network=network, optimiser=optimiser)

    def probe(self, state: Training, arms: Mapping[str, Sequence[str]], steps: int) -> Ends:
        """Where arms lead, with gradients that they share computed once; see
        `allotment.learners.lookahead`."""
        try:
            return look_ahead(self, state, arms, steps)
        except RuntimeError as error:
            raise _explain_memory(error, self.recipe) from error

    def probe_gradients(self, arms: Mapping[str, Sequence[str]], steps: int) -> int:
        """Of how many mini-batches `probe` computes gradients."""
        return len(turns_of(arms)) + (steps - 1) * sum(map(len, arms.values())) if steps else 0

    def score_gradients(self, task: str) -> float:
        """What it takes to score a task, in gradients of a mini-batch: half of one for as many,
        metric included."""
        return len(self.list_scored(task)) / self.recipe.batch_size / 2

    def score(self, state: Training, task: str) -> Measure:
        (found,) = self.score_runs(state, task)
        return found

    def score_runs(self, state: Training, task: str) -> list[Measure]:
        """The score of each run of a stack."""
        return self._measure(state, task, self._outputs(state, task, self.list_scored(task)))

    def score_constant(self, state: Training, task: str) -> Measure:
        """The score of the best answer that is the same everywhere, by the labels that a state of
        one run trains on."""
        labels = read_some(state.labels[0][task], partial(self.data.values, task))
        values = self._standardise(state, task, to_labels(self.targets[task], labels)[None])
        best = constant_of(self.targets[task], values[0].cpu()).to(self.device)
        instances = self.list_scored(task)
        size = self._feed.values(task, instances[:1]).shape[1:] if len(instances) else ()
        pixels = size[-2:] if self.targets[task].kind in PIXEL_KINDS else ()
        best = best.view(1, 1, -1, *(1,) * len(pixels))
        parts = ((part, best.expand(1, len(part), -1, *pixels)) for part in _cut(instances, 32))
        (found,) = self._measure(state, task, parts)
        return found

    def _measure(
        self, state: Training, task: str, parts: Iterable[tuple[Instances, Tensor]]
    ) -> list[Measure]:
        """How good outputs are, for each run of them."""
        metric, target = self.metrics[task], self.targets[task]
        skilled = (SKILLS[target.kind], CHANCE_ERROR) if target.kind in SKILLS else ()
        kinds = [each for each in (metric, *skilled) if each is not None]
        runs = (
            [[Running(each, target.kind) for each in kinds] for _ in range(state.runs)]
            if kinds
            else []
        )
        maps = self._start_skills(state, task)
        losses, count = np.zeros(state.runs), 0
        for part, outputs in parts:
            values = self._feed.values(task, part)
            wanted = self._standardise(state, task, values.expand(state.runs, *values.shape))
            losses += loss_of(target, outputs, wanted).cpu().numpy() * len(part)
            count += len(part)
            for run, answer in zip(
                runs, self._answer(state, task, outputs) if runs else (), strict=True
            ):
                for each in run:
                    each.add(answer, values.cpu().numpy())
            if maps:
                seen = self._answer(state, task, maps[0].thin(outputs))
                for skill_of_run, answer in zip(maps, seen, strict=True):
                    skill_of_run.add(answer, maps[0].thin(values).cpu().numpy())
        means = (losses / count if count else np.full(state.runs, np.nan)).tolist()
        found = []
        for place, loss in enumerate(means):
            score = loss if metric is None else runs[place][0].result()
            skill = [each.result() for each in runs[place][-2:]] if skilled else []
            skill += maps[place].result() if maps else ()
            found.append(
                Measure(score, loss, metric is not None and metric.higher_is_better, *skill)
            )
        return found

    def _start_skills(self, state: Training, task: str) -> list[MapSkill]:
        """Of each run, where the task has labels for pixels."""
        target = self.targets[task]
        if target.kind not in PIXEL_KINDS:
            return []
        pictures = len(self.list_scored(task))
        return [MapSkill(target, pictures) for _ in range(state.runs)]

    def predict(self, state: Training, task: str, instances: Instances) -> NDArray[Any]:
        return np.asarray(self.predict_runs(state, task, instances)[0])

    def predict_runs(self, state: Training, task: str, instances: Instances) -> NDArray[Any]:
        """The answers of each run of a stack (runs, n, ...)."""
        parts = [
            self._answer(state, task, outputs)
            for _, outputs in self._outputs(state, task, instances)
        ]
        return np.concatenate(parts, axis=1)

    def features(self, state: Training, task: str, instances: Instances) -> NDArray[Any]:
        """What the trunk makes of instances, for choosing among them."""
        state.network.eval()
        with torch.no_grad():
            inputs = self._gather(state, instances)
            found = state.network.features(inputs if self._tabular else inputs[0], task)  # type: ignore[operator]
        return np.asarray(found.cpu().numpy()[0] if self._tabular else found.cpu().numpy())

    def stack(self, runs: Sequence[tuple[Labels, int]]) -> list[Training]:
        """Many whole trainings as one of a stacked network, taken apart again; one by one if it
        does not stack."""
        state = self.start_many(runs)
        if state is None:
            return [train(self, labels, seed) for labels, seed in runs]
        tasks = labelled(self, runs[0][0])
        for _ in range(state.steps if tasks else 0):
            state = self.step(state, tasks)
        return self.unstack(state)

    def start_many(self, runs: Sequence[tuple[Labels, int]]) -> Training | None:
        """The beginning of a stack of trainings, which are stepped on as one; None if they are no
        stack."""
        if not self.are_alike(runs):
            return None
        labels, seeds = zip(*runs, strict=True)
        return self.start_stack(labels, seeds, self.steps(labels[0]))

    def are_alike(self, runs: Sequence[tuple[Labels, int]]) -> bool:
        """Whether trainings can be one stack: of the same tasks, steps and forms of labels, none of
        which ends when it has converged."""
        if self.recipe.patience:
            return False
        alike = {
            (labelled(self, labels), self.steps(labels), self._soft(labels)) for labels, _ in runs
        }
        return len(alike) == 1 and bool(getattr(self.new_network(1), "stacks", False))

    def _soft(self, labels: Labels) -> tuple[int, ...]:
        """Which tasks train on probabilities: those of a stack must agree, since their labels lie
        side by side."""
        return tuple(
            0 if (values := labels[task].values) is None else values.ndim for task in self.tasks
        )

    def unstack(self, state: Training, size: int = 1) -> list[Training]:
        """Each run of a stack, or so many of them at a time, as a state of its own, ready to be
        scored; its momentum is not kept."""
        parts = []
        for first in range(0, state.runs, size):
            here = slice(first, first + size)
            part = self.start_stack(state.labels[here], state.seeds[here], state.steps)
            part.network.load_state_dict(
                {key: value[here] for key, value in state.network.state_dict().items()}
            )
            part.done = state.done
            parts.append(part)
        return parts

    def save(self, state: Training, folder: Path) -> None:
        """All that answers depend on, as one file of tensors; `load` of a learner on any data with
        the same tasks and inputs of the same form reads it back."""
        from safetensors.torch import save_file

        tensors = _prefix("network", state.network.state_dict())
        if (frozen := self._feed.frozen) is not None:
            tensors |= _prefix("frozen", frozen.state_dict())
        scales = {
            str(place): torch.stack(state.scales[task])
            for place, task in enumerate(self.tasks)
            if task in state.scales
        }
        tensors |= _prefix("scale", scales)
        whole = {key: part.detach().cpu().contiguous().clone() for key, part in tensors.items()}
        save_file(whole, str(folder / WEIGHTS_FILE))

    def load(self, folder: Path, runs: int = 1) -> Training:
        """A state with saved weights, ready to predict; raises InputError unless everything fits.

        Nothing is reserved before the file has been seen to hold it.
        """
        found = read_weights(folder / WEIGHTS_FILE)
        with torch.device("meta"):
            network = self.new_network(runs)
        frozen, scaled = (
            self._feed.frozen,
            [
                place
                for place, target in enumerate(self.targets.values())
                if target.kind in STANDARDISED
            ],
        )
        wanted = _prefix("network", network.state_dict())
        wanted |= {} if frozen is None else _prefix("frozen", frozen.state_dict())
        wanted |= _prefix("scale", {str(place): torch.empty(2, runs) for place in scaled})
        if what := find_misfit(wanted, found):
            what = f"does not fit the network: {what}; was it changed since it was saved?"
            raise InputError([Mistake(str(folder / WEIGHTS_FILE), what)])
        network.load_state_dict(_without_prefix("network", found), assign=True)
        network.to(self.device)
        if not self._tabular:
            network.to(memory_format=self._layout(network))  # type: ignore[call-overload]
        if frozen is not None:
            frozen.load_state_dict(_without_prefix("frozen", found))
            self._feed = self._make_feed(frozen)  # without what untrained layers gave
        names = self.tasks
        scales: dict[str, tuple[Tensor, Tensor]] = {}
        for place in scaled:
            mean, spread = found[f"scale.{place}"].to(self.device)
            scales[names[place]] = (mean, spread)
        nothing = Labels({})
        optimiser = make_optimiser(self.recipe, network)
        return Training(network, optimiser, (nothing,) * runs, (0,) * runs, 0, 0, {}, {}, scales)

    # --- data on its way in ---

    def _gather(self, state: Training, instances: Instances) -> Tensor:
        batch = self._feed.inputs(instances)
        return batch.expand(state.runs, *batch.shape)

    def _wanted(self, state: Training, tasks: Sequence[str], number: int) -> list[Wanted]:
        """Mini-batch `number` of each task."""
        found = []
        for at, task in enumerate(tasks):
            # its second mini-batch of a step is not its first again
            occasion = list(tasks[:at]).count(task)
            places, given = [], []
            for order, values, seed in zip(
                state.orders[task], state.given[task], state.seeds, strict=True
            ):
                if not len(order):
                    raise InputError([Mistake(f"task {task!r}", "has no labels to step on")])
                picks = batch_places(
                    len(order), self.recipe.batch_size, number, seed, task, occasion
                )
                places.append(order[picks])
                if values is not None:
                    given.append(values[torch.from_numpy(picks)])
            key = (*state.seeds, task, number, occasion)
            found.append(Wanted(task, np.stack(places), torch.stack(given) if given else None, key))
        return found

    def _prepare(self, state: Training, task: str, values: Tensor) -> Tensor:
        """Labels as a step wants them: standardised, and of maps the pixels that are trained on."""
        every = getattr(state.network, "every", 1)
        if every > 1 and self.targets[task].kind in PIXEL_KINDS:
            values = thin_out(values, every)
        return self._standardise(state, task, values)

    def _standardise(self, state: Training, task: str, values: Tensor) -> Tensor:
        if task not in state.scales:
            return values
        mean, spread = (_like(part, values) for part in state.scales[task])
        return (values - mean) / spread

    def _given(self, task: str, labels: Sequence[Labels]) -> list[Tensor | None]:
        """Of each run the labels to train on, where any run has given ones; None where all are the
        data's own."""
        if all(each[task].values is None for each in labels):
            return [None] * len(labels)
        found: list[Tensor | None] = []
        for each in labels:
            values = each[task].fill(lambda instances: self.data.values(task, instances))
            if self.targets[task].kind in PIXEL_KINDS:
                values = self._without_borders(task, each[task].instances, values)
            found.append(to_labels(self.targets[task], values[np.argsort(each[task].instances)]))
        return found

    def _without_borders(
        self, task: str, instances: Instances, values: NDArray[Any]
    ) -> NDArray[Any]:
        """Maps without what was predicted beside pictures that do not fill their square: that can
        be no label."""
        found = np.full_like(values, nothing_of(self.targets[task].kind, values.dtype))
        for place, instance in enumerate(instances.tolist()):
            rows, columns = self.data.frame(instance)
            found[place, ..., rows, columns] = values[place, ..., rows, columns]
        return found

    def _scale(self, task: str, labels: Sequence[Labels]) -> tuple[Tensor, Tensor]:
        read = partial(self.data.values, task)
        means, spreads = zip(*(find_scale(each[task], read) for each in labels), strict=True)
        return torch.tensor(means, device=self.device), torch.tensor(spreads, device=self.device)

    # --- answers on their way out ---

    def _output(self, state: Training, inputs: Tensor, task: str) -> Tensor:
        """(runs, batch, ...)"""
        out: Tensor
        if self._tabular:
            out = state.network(inputs, task)
            return out
        batch = inputs[0]
        if batch.ndim == 4:
            batch = batch.contiguous(memory_format=self._layout(state.network))
        out = state.network(batch, task)
        return out[None]

    def _outputs(
        self, state: Training, task: str, instances: Instances
    ) -> Iterator[tuple[Instances, Tensor]]:
        """Parts of the instances, and what the network says of them (runs, n, ...)."""
        state.network.eval()
        for part in _cut(instances, self._count_at_once(instances)):
            with torch.no_grad(), self._precision():
                outputs = self._output(state, self._gather(state, part), task).float()
            yield part, outputs

    def _count_at_once(self, instances: Instances) -> int:
        """Instances that go through the network together: fewer of large pictures, for memory."""
        if self._tabular:
            return 256
        height, width = self.data.inputs(instances[:1]).shape[-2:]
        return max(1, min(32, 32 * LARGE_SIDE**2 // int(height * width)))

    def _answer(self, state: Training, task: str, outputs: Tensor) -> NDArray[Any]:
        """What outputs mean, in the units of the labels (runs, n, ...)."""
        answer = answer_of(self.targets[task], outputs)
        if task in state.scales:
            mean, spread = (_like(each, answer) for each in state.scales[task])
            answer = answer * spread + mean
        return np.asarray(answer.cpu().numpy())


def _prefix(room: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{room}.{name}": part for name, part in tensors.items()}


def _without_prefix(room: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    own = f"{room}."
    return {name.removeprefix(own): part for name, part in tensors.items() if name.startswith(own)}


def _explain_memory(error: RuntimeError, recipe: Recipe) -> Exception:
    """What to lower where there is not memory enough; any other error as it is."""
    text = str(error).lower()
    if (
        not isinstance(error, torch.OutOfMemoryError)
        and "out of memory" not in text
        and "allocate memory" not in text
    ):
        return error
    crop = f", a smaller crop (now {recipe.crop})" if recipe.crop else ""
    what = (
        f"not enough memory for a mini-batch of {recipe.batch_size} in {recipe.accumulate} part(s)"
        f" on {recipe.device}: try accumulate={2 * recipe.accumulate},"
        f" batch_size={max(1, recipe.batch_size // 2)}{crop} or bfloat16"
    )
    return InputError([Mistake("recipe", what)])


def _cut(instances: Instances, size: int) -> list[Instances]:
    """In parts of about that size, at least one."""
    return np.array_split(instances, max(1, math.ceil(len(instances) / size)))


def _like(part: Tensor, other: Tensor) -> Tensor:
    return part.view(-1, *([1] * (other.ndim - 1)))


def _usual_network(
    shape: tuple[int, ...], targets: Sequence[Target], runs: int, sharing: str = SHARED_TRUNK
) -> nn.Module:
    if len(shape) == 1:
        return Perceptron(shape[0], targets, runs)
    trunk = SmallTrunk([target.name for target in targets], sharing=sharing)
    return ImageNetwork(trunk, targets)


def _tell_unshared(sharing: str, is_table: bool, is_given: bool) -> str:
    """Why a network can't share that way; "" if it can."""
    if sharing == SHARED_TRUNK:
        return ""
    if is_table:
        return f"{sharing!r} is for images, and these are tables; leave it out"
    if is_given:
        return f"{sharing!r} is for the usual network; build yours with it, and leave it out here"
    return check_sharing(sharing)
