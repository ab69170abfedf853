"""Weights from files that others trained: which names fit, which do not, and what is left over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from allotment.errors import InputError, Mistake, suggest
from allotment.learners.backbones import mark_trained

WEIGHT_PREFIXES = (
    "",
    "backbone.",
    "classifier.",
    "module.",
    "module.backbone.",
    "module.classifier.",
)
"""under which a file may keep the weights of a whole module"""
INSIDE = ("state_dict", "model", "weights")
"""keys under which a checkpoint may hold its weights"""
KERAS = {"kernel": "weight", "depthwise_kernel": "weight", "gamma": "weight", "beta": "bias"}
KERAS |= {"moving_mean": "running_mean", "moving_variance": "running_var"}
COUNTER = "num_batches_tracked"
"""files of older versions of torch do not have it, and it changes nothing"""


@dataclass(frozen=True)
class Loaded:
    """What became of a file's weights; print it."""

    used: tuple[str, ...]
    """the module's names that were filled"""
    left: tuple[str, ...]
    """the file's names that the module has no use for"""
    skipped: tuple[str, ...]
    """the module's names that the file has in another size: these wait for a first draw"""

    def __str__(self) -> str:
        parts = [f"{len(self.used)} weights loaded"]
        if self.skipped:
            parts.append(f"skipped for their size: {_listed(self.skipped)}")
        if self.left:
            parts.append(f"not used: {_listed(self.left)}")
        return "; ".join(parts)


def load_weights(
    module: nn.Module, path: str | Path, *, skip_other_classes: bool = False
) -> Loaded:
    """Fill a backbone or a head from a `.safetensors`, `.pth`, `.pt` or `.npz` file; everything
    must fit.

    A module's `no_use_for` names what a file may hold besides. With `skip_other_classes`, layers
    whose number of outputs alone differs, as a classifier's for other classes, are left to be drawn
    anew.
    """
    wanted = {
        name: part for name, part in module.state_dict().items() if not name.endswith(COUNTER)
    }
    inside, left = _part_for(module, wanted, read_weights(path))
    others = {
        name for name in wanted if name in inside and inside[name].shape != wanted[name].shape
    }
    skipped = {
        name
        for name in others
        if skip_other_classes and inside[name].shape[1:] == wanted[name].shape[1:]
    }
    mistakes = _misfits(wanted, inside, others - skipped)
    if mistakes:
        raise InputError([mistake.under(str(path)) for mistake in mistakes])
    used = [name for name in wanted if name not in skipped]
    with torch.no_grad():
        for name in used:
            wanted[name].copy_(inside[name])
    for owner in {_owner(name) for name in used} - {_owner(name) for name in skipped}:
        mark_trained(module.get_submodule(owner))
    return Loaded(tuple(used), tuple(left), tuple(sorted(skipped)))


def _part_for(
    module: nn.Module, wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], list[str]]:
    """The part of a file that belongs to the module, by its names there, and the file's names of
    the rest."""
    prefix = max(WEIGHT_PREFIXES, key=lambda start: sum(start + name in given for name in wanted))
    inside, left = {}, []
    for name, part in given.items():
        short = name.removeprefix(prefix)
        if short not in wanted and short.endswith(COUNTER):
            continue
        if not name.startswith(prefix) or (
            short not in wanted and short.startswith(_no_use_for(module))
        ):
            left.append(name)
        else:
            inside[short] = part
    return inside, left


def find_misfit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str:
    """Why tensors can't take the place of others of the same names; "" if they can."""
    if strange := sorted(wanted.keys() ^ given.keys()):
        way = "is missing" if strange[0] in wanted else "has no place in it"
        return f"{_shown(strange[0])} {way}"
    for name, part in wanted.items():
        found = given[name]
        if found.shape != part.shape or found.dtype != part.dtype:
            forms = [f"{tuple(each.shape)} of {each.dtype}" for each in (found, part)]
            return f"{_shown(name)} is {' for '.join(forms)}"
        if found.is_floating_point() and not bool(torch.isfinite(found).all()):
            return f"{_shown(name)} holds something that is no finite number"
    return ""


def _shown(name: str) -> str:
    return repr(name[:100])


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a weights file by name; nothing in it is run."""
    path = Path(path)
    readers = {
        ".safetensors": _read_safetensors,
        ".pth": _read_torch,
        ".pt": _read_torch,
        ".npz": _read_arrays,
    }
    if path.suffix not in readers:
        raise InputError(
            [Mistake(str(path), f"is of an unknown kind; give one of {', '.join(readers)}")]
        )
    if not path.is_file():
        what = (
            "is no file, but a folder, a pipe or a device"
            if path.exists()
            else "there is no such file"
        )
        raise InputError([Mistake(str(path), f"{what}; check the path")])
    try:
        found = readers[path.suffix](path) if path.stat().st_size else {}
    except InputError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes its reader say
        what = (
            f"cannot be read as {path.suffix} of plain tensors ({_reason(error)}); fetch it or save"
            " it again"
        )
        raise InputError([Mistake(str(path), what)]) from None
    if not found:
        raise InputError(
            [Mistake(str(path), "holds no tensors by name; fetch it or save it again")]
        )
    return found


def _reason(error: Exception) -> str:
    """Its first sentence: the next ones advise to trust the file."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words.partition('. ')[0][:200]}"


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return dict(load_file(str(path)))


def _read_torch(path: Path) -> dict[str, Tensor]:
    found = torch.load(path, map_location="cpu", weights_only=True)
    for key in INSIDE:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
    if not isinstance(found, Mapping):
        raise InputError(
            [Mistake(str(path), f"holds a {type(found).__name__}, not weights by name")]
        )
    return {str(name): part for name, part in found.items() if isinstance(part, Tensor)}


def _read_arrays(path: Path) -> dict[str, Tensor]:
    # else numpy leaves a bad one open
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        named = (_from_keras(name, arrays[name]) for name in arrays.files)
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in named}


def _from_keras(name: str, array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Keras puts a kernel's height and width first and calls things otherwise."""
    last = name.rpartition(".")[2]
    if last == "depthwise_kernel":
        array = array.transpose(2, 3, 0, 1)
    elif last == "kernel" and array.ndim == 4:
        array = array.transpose(3, 2, 0, 1)
    elif last == "kernel":
        array = array.T
    return (f"{_owner(name)}.{KERAS[last]}" if last in KERAS else name), array


def _no_use_for(module: nn.Module) -> tuple[str, ...]:
    return tuple(getattr(module, "no_use_for", ()))


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _misfits(
    wanted: Mapping[str, Tensor], inside: Mapping[str, Tensor], others: set[str]
) -> list[Mistake]:
    missing = [name for name in wanted if name not in inside]
    unexpected = [name for name in inside if name not in wanted]
    mistakes = []
    if missing:
        near = f"; {suggest(missing[0], unexpected)}" if unexpected else ""
        mistakes.append(
            Mistake("missing", f"{_listed(missing)}: is this another network's file?{near}")
        )
    if unexpected:
        mistakes.append(
            Mistake("unexpected", f"{_listed(unexpected)}: the module has no layer of that name")
        )
    if others:
        sizes = [
            f"{name} {tuple(inside[name].shape)} for {tuple(wanted[name].shape)}"
            for name in sorted(others)
        ]
        hint = (
            "`skip_other_classes=True` leaves out layers that differ in their number of outputs"
            " alone"
        )
        mistakes.append(Mistake("other sizes", f"{_listed(sizes)}; {hint}"))
    return mistakes


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more
