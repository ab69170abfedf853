"""A trained network that pictures are seen through: nothing of it is trained here, so that what it
answers is computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from allotment.data.embedding import BY_NETWORK, EMBEDDED_DIGITS, SMALLEST_SEEN
from allotment.errors import InputError, Mistake
from allotment.learners.mobilenet import MobileNet
from allotment.learners.resnet import ResNet
from allotment.learners.squeezenet import SqueezeNet
from allotment.learners.weights import COUNTER, WEIGHT_PREFIXES, load_weights, read_weights
from allotment.machine import settled

FROZEN_NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet18": lambda: ResNet(18, output_stride=32),
    "resnet34": lambda: ResNet(34, output_stride=32),
    "resnet50": lambda: ResNet(50, output_stride=32),
    "resnet101": lambda: ResNet(101, output_stride=32),
    "mobilenet": lambda: MobileNet(output_stride=32),
    "squeezenet": lambda: SqueezeNet(output_stride=16),
}
"""networks whose weights are known by their names and sizes; with the strides that these were
trained with, since nothing but the mean of a map is taken"""


@dataclass(frozen=True, eq=False)
class FrozenNetwork:
    """The mean of each of a trained network's last channels over the whole picture."""

    kind: str
    """one of FROZEN_NETWORKS"""
    weights: Path
    digest: str
    """of the file of weights"""
    module: nn.Module
    least_side = SMALLEST_SEEN[BY_NETWORK]

    @classmethod
    def open(cls, weights: Path) -> FrozenNetwork:
        """The network that a file holds the weights of, by their names and sizes."""
        kind = find_kind(weights)
        module = FROZEN_NETWORKS[kind]()
        load_weights(module, weights)
        _check_finite(module, weights)
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(kind, weights, digest, module.eval().requires_grad_(False))

    @property
    def name(self) -> str:
        return f"{self.kind} {self.digest}"

    @property
    def width(self) -> int:
        channels = self.module.channels
        assert isinstance(channels, int)
        return channels

    def embed(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """One picture at a time, so that none depends on which others there are."""
        found = np.empty((len(pictures), self.width), dtype=np.float32)
        with settled(), torch.inference_mode():
            for place, picture in enumerate(pictures):
                answer = self.module(torch.from_numpy(picture)[None].float() / 255)
                found[place] = answer.mean(dim=(2, 3))[0].numpy()
        if not np.isfinite(found).all():
            what = "holds weights with which pictures become no finite numbers; is it damaged?"
            raise InputError([Mistake(str(self.weights), what)])
        return np.round(found, EMBEDDED_DIGITS)

    def save(self, path: Path) -> None:
        """Its weights as safetensors, for a model that is asked elsewhere."""
        from safetensors.torch import save_file

        save_file(self.module.state_dict(), str(path))


def find_kind(path: Path) -> str:
    """Which network a file holds the weights of; raises InputError where it is none."""
    given = read_weights(path)
    fitting: dict[str, int] = {}
    for kind, make in FROZEN_NETWORKS.items():
        with torch.device("meta"):  # names and sizes without memory or time
            wanted = make().state_dict()
        if any(_fits(wanted, given, prefix) for prefix in WEIGHT_PREFIXES):
            fitting[kind] = len(wanted)
    if fitting:  # a deep network has all weights of a shallow one, and more
        return max(fitting, key=lambda kind: fitting[kind])
    what = f"holds the weights of none of {', '.join(FROZEN_NETWORKS)}; docs/vision.md says more"
    raise InputError([Mistake(str(path), what)])


def _fits(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor], prefix: str) -> bool:
    """Whether all weights are there, each in its size."""
    for name, part in wanted.items():
        found = given.get(prefix + name)
        if not name.endswith(COUNTER) and (found is None or found.shape != part.shape):
            return False
    return True


def _check_finite(module: nn.Module, path: Path) -> None:
    for name, part in module.state_dict().items():
        if part.is_floating_point() and not bool(torch.isfinite(part).all()):
            what = f"{name} holds something that is no finite number; is the file damaged?"
            raise InputError([Mistake(str(path), what)])
