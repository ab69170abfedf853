"""Weights of networks, from wherever people got them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from allotment.learners.weights import load_weights, read_weights
from fuzzing.mutators import safetensors_mutator, zip_mutator
from fuzzing.target import Target

MODULES = ("learners/weights",)


def _network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Linear(2, 2))


def _reads(ending: str) -> Callable[[bytes, Path], None]:
    def read(data: bytes, place: Path) -> None:
        path = place / f"weights{ending}"
        path.write_bytes(data)
        found = read_weights(path)
        assert all(
            isinstance(name, str) and isinstance(part, Tensor) for name, part in found.items()
        )
        load_weights(_network(), path, skip_other_classes=True)

    return read


def _state() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return _network().state_dict()


def _make_pth() -> Iterable[bytes]:
    whole = _state()
    forms = (
        whole,
        {"state_dict": {f"module.{key}": part for key, part in whole.items()}},
        {"model": whole, "epoch": 3},
    )
    for form in forms:
        for new in (True, False):
            made = io.BytesIO()
            torch.save(form, made, _use_new_zipfile_serialization=new)
            yield made.getvalue()


def _make_npz() -> Iterable[bytes]:
    made = io.BytesIO()
    np.savez(made, **{key: part.numpy() for key, part in _state().items()})
    yield made.getvalue()
    made = io.BytesIO()
    shapes = {
        "0.kernel": (1, 1, 1, 2),
        "0.bias": (2,),
        "1.gamma": (2,),
        "2.depthwise_kernel": (1, 1, 2, 1),
    }
    np.savez(made, **{name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    yield made.getvalue()


TARGETS = (
    Target("weights-pth", _reads(".pth"), _make_pth, MODULES, zip_mutator, (), 1 << 14),
    Target("weights-npz", _reads(".npz"), _make_npz, MODULES, zip_mutator, (), 1 << 14),
    Target(
        "weights-safetensors",
        _reads(".safetensors"),
        lambda: [save(_state())],
        MODULES,
        safetensors_mutator,
    ),
)
