"""Inputs and labels on their way into training: held in memory as far as they fit, or read and
cropped while training goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from allotment.data.augment import Augment, resize
from allotment.data.dataset import PIXEL_KINDS, Dataset, Frame, Instances, Size, Target
from allotment.learners.batches import hash_of

NOWHERE = -1
"""the place of a tensor that was not made yet"""
HELD_BYTES = 1 << 31
"""of pictures and labels that a feed holds if they can be read again: half for pictures, half for
labels"""
INSTANCES_AT_ONCE = 64
"""instances that are read at a time, since they are in memory twice until they are stored"""


@dataclass(frozen=True)
class Wanted:
    """One mini-batch of one task: which instances (runs, batch), and labels given for them that are
    not the data's."""

    task: str
    instances: Instances
    given: Tensor | None
    key: tuple[object, ...]
    """tells its random crops from those of other mini-batches"""

    @property
    def place(self) -> tuple[object, ...]:
        """Tells it from any other, those of another training with the same seed as well."""
        given = b"" if self.given is None else self.given.numpy().tobytes()
        return (*self.key, self.instances.tobytes(), given)


class TensorStore:
    """A tensor for each instance, made once, when it is first wanted; there is memory for those
    that were, and for no others. Those beyond `room` bytes are made whenever they are wanted."""

    def __init__(
        self,
        size: int,
        make: Callable[[Instances], Tensor],
        at_once: bool,
        room: int | None = None,
    ):
        self._size, self._make, self._room = size, make, room
        self._most = size
        """instances that are held at most"""
        self._held: Tensor | None = None
        self._place = np.full(size, NOWHERE, dtype=np.int64)
        self._count = 0
        """of instances that are held"""
        if at_once:
            self._held = make(np.arange(size, dtype=np.int64))
            self._place[:] = np.arange(size)
            self._count = size
        self._in_order = at_once

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one instance's tensor."""
        if self._held is None:
            self._fetch(np.zeros(1, dtype=np.int64))
        assert self._held is not None
        return tuple(self._held.shape[1:])

    def take(self, instances: Instances) -> Tensor:
        """The tensors of instances, in the shape of `instances`."""
        if self._count < self._most:
            missing = np.unique(instances[self._place[instances] == NOWHERE])
            for start in range(0, len(missing), INSTANCES_AT_ONCE):
                end = start + min(INSTANCES_AT_ONCE, self._most - self._count)
                if end > start:
                    self._fetch(missing[start:end])
        if self._held is None:  # nothing was ever wanted, which has a form all the same
            self._fetch(np.zeros(1, dtype=np.int64))
        assert self._held is not None
        places = instances if self._in_order else self._place[instances]
        if self._most < self._size and (places == NOWHERE).any():
            return self._take_beside(instances)
        where = torch.from_numpy(places).to(self._held.device)
        if not is_channels_last(self._held):
            return self._held[where]
        # whole maps at once: picked as they are, channel by channel, they take ten times as long
        maps = self._held.permute(0, 2, 3, 1).index_select(0, where.flatten())
        return maps.view(*where.shape, *maps.shape[1:]).movedim(-1, -3)

    def _take_beside(self, instances: Instances) -> Tensor:
        """Likewise, where some are not held."""
        assert self._held is not None
        flat = instances.ravel()
        places = self._place[flat]
        taken = self._held.new_empty((len(flat), *self._held.shape[1:]))
        held, others = np.flatnonzero(places != NOWHERE), np.flatnonzero(places == NOWHERE)
        taken[torch.from_numpy(held)] = self._held[torch.from_numpy(places[held])]
        for start in range(0, len(others), INSTANCES_AT_ONCE):
            some = others[start : start + INSTANCES_AT_ONCE]
            taken[torch.from_numpy(some)] = self._make(flat[some])
        return taken.view(*instances.shape, *taken.shape[1:])

    def _fetch(self, instances: Instances) -> None:
        made = self._make(instances)
        if self._held is None and self._room is not None:
            self._most = min(self._size, max(1, self._room // made[0].nbytes))
            instances = instances[: self._most]
            made = made[: self._most]
        after = self._count + len(instances)
        if self._held is None or after > len(self._held):
            self._grow(made, after)
        assert self._held is not None
        self._held[self._count : after] = made
        self._place[instances] = np.arange(self._count, after)
        self._count = after

    def _grow(self, like: Tensor, least: int) -> None:
        """Memory for at least so many, and for as many again while there are few."""
        room = min(self._most, max(least, 2 * self._count))
        layout = torch.channels_last if is_channels_last(like) else torch.contiguous_format
        larger = torch.empty(
            (room, *like.shape[1:]), dtype=like.dtype, device=like.device, memory_format=layout
        )
        if self._held is not None:
            larger[: self._count] = self._held[: self._count]
        self._held = larger


def is_channels_last(batch: Tensor) -> bool:
    """Whether the channels of a place lie side by side in memory, and those of others do not."""
    last = batch.ndim == 4 and batch.is_contiguous(memory_format=torch.channels_last)
    return last and not batch.is_contiguous()


def to_float(batch: Tensor) -> Tensor:
    """Images from bytes to 0 .. 1; features as they are."""
    return batch.float().div(255) if batch.dtype == torch.uint8 else batch.float()


def to_labels(target: Target, values: NDArray[Any]) -> Tensor:
    """Labels as training wants them: whole numbers for classes, unless they are probabilities."""
    whole = target.kind in ("classification", "segmentation") and values.dtype.kind != "f"
    return torch.from_numpy(np.array(values, dtype=np.int64 if whole else np.float32))


class Decoded:
    """Every instance decoded once, as far as there is room to hold them; passed once through layers
    that never change, if there are any."""

    looks_ahead = False
    """whether it helps to know the next mini-batches"""

    def __init__(self, data: Dataset, device: torch.device, frozen: nn.Module | None = None):
        self.data, self.device = data, device
        self._frozen = None if frozen is None else frozen.to(device).eval().requires_grad_(False)
        if self._frozen is not None:
            self._frozen.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        in_memory = data.is_in_memory
        # what frozen layers give is held whole: to compute it again takes far longer than reading
        room = HELD_BYTES // 2 if frozen is None else None
        self._inputs = TensorStore(data.size, self._load, in_memory and frozen is None, room)
        room = HELD_BYTES // 2 // max(1, len(data.targets))
        self._values = {
            target.name: TensorStore(data.size, partial(self._label, target), in_memory, room)
            for target in data.targets
        }

    @property
    def frozen(self) -> nn.Module | None:
        """The layers that never change."""
        return self._frozen

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input as networks see it."""
        return self._inputs.shape

    def inputs(self, instances: Instances) -> Tensor:
        return to_float(self._inputs.take(instances))

    def values(self, task: str, instances: Instances) -> Tensor:
        return self._values[task].take(instances)

    def load(self, wanted: Sequence[Wanted]) -> tuple[Tensor, list[Tensor]]:
        """Mini-batches side by side (runs, batches, ...), and the labels of each (runs, batch,
        ...)."""
        inputs = self.inputs(np.concatenate([each.instances for each in wanted], axis=1))
        return inputs, [self._labels(each) for each in wanted]

    def expect(self, wanted: Sequence[Wanted]) -> None:
        """Mini-batches that will be wanted next."""

    def _labels(self, wanted: Wanted) -> Tensor:
        given = wanted.given
        return (
            self.values(wanted.task, wanted.instances) if given is None else given.to(self.device)
        )

    def _load(self, instances: Instances) -> Tensor:
        raw = torch.from_numpy(np.ascontiguousarray(self.data.inputs(instances))).to(self.device)
        if self._frozen is None:
            return raw
        batch = to_float(raw)
        if batch.ndim == 4:
            batch = batch.contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            out: Tensor = self._frozen(batch)
        return out

    def _label(self, target: Target, instances: Instances) -> Tensor:
        return to_labels(target, self.data.values(target.name, instances)).to(self.device)


class Cropped(Decoded):
    """Trains on random crops of images in the size in which they are scored whole, read by threads
    ahead of time."""

    def __init__(self, data: Dataset, device: torch.device, augment: Augment, workers: int):
        super().__init__(data, device)
        self.augment = augment
        self._targets = {target.name: target for target in data.targets}
        self._pool = ThreadPoolExecutor(workers, "crops") if workers else None
        self.looks_ahead = workers > 0
        self._coming: dict[tuple[object, ...], list[Future[tuple[Tensor, Tensor]]]] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, self.augment.crop, self.augment.crop)

    def load(self, wanted: Sequence[Wanted]) -> tuple[Tensor, list[Tensor]]:
        images, labels = [], []
        for each in wanted:
            coming = self._coming.pop(each.place, None)
            if coming is None:
                crops = [self._crop(each, place) for place in range(each.instances.shape[1])]
            else:
                crops = [future.result() for future in coming]
            images += [image for image, _ in crops]
            labels.append(torch.stack([label for _, label in crops])[None].to(self.device))
        return to_float(torch.stack(images)[None].to(self.device)), labels

    def expect(self, wanted: Sequence[Wanted]) -> None:
        if self._pool is None:
            return
        self._coming.clear()  # those of an arm that went another way
        for each in wanted:
            self._coming[each.place] = [
                self._pool.submit(self._crop, each, place)
                for place in range(each.instances.shape[1])
            ]

    def _crop(self, wanted: Wanted, place: int) -> tuple[Tensor, Tensor]:
        instance, target = int(wanted.instances[0, place]), self._targets[wanted.task]
        if wanted.given is None:
            label = self.data.fit(target.name, self.data.label(target.name, instance))
        else:
            label = wanted.given[0, place].numpy()
        frame = self.data.frame(instance)
        if target.kind in PIXEL_KINDS:
            label = label[..., *frame]
        rng = np.random.Generator(np.random.PCG64(hash_of("crop", *wanted.key, place)))
        image, cropped = self.augment.apply(
            self._picture(instance, frame), {target.kind: label}, rng
        )
        return torch.from_numpy(np.ascontiguousarray(image)), to_labels(
            target, np.asarray(cropped[target.kind])
        )

    def _picture(self, instance: int, frame: Frame) -> NDArray[np.uint8]:
        """A whole picture at the size in which it is scored, so that all that trains on it sees the
        same: predicted labels are as large as that, and others are brought to it."""
        rows, columns = (
            range(*each.indices(length)) for each, length in zip(frame, self._size, strict=True)
        )
        return resize(self.data.image(instance), len(rows), len(columns))

    @cached_property
    def _size(self) -> Size:
        """Of an input: height, width."""
        height, width = self.data.inputs(np.zeros(1, dtype=np.int64)).shape[-2:]
        return height, width
