"""Arrays by name in a file that can hold nothing else: no part of it is ever run."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from allotment.arrays import AnyArray
from allotment.errors import InputError, Mistake

LARGEST_ARRAYS = 1_000_000_000
"""bytes of such a file"""
MAYBE_CHANGED = "was it changed since it was saved?"
"""what may be the matter with a file that does not fit"""


def save_arrays(
    path: Path, arrays: Mapping[str, AnyArray], about: Mapping[str, str] | None = None
) -> None:
    """Write arrays of numbers, with a few words about them."""
    _check_library()
    from safetensors.numpy import save_file

    save_file(
        {name: np.asarray(each, order="C") for name, each in arrays.items()},
        str(path),
        None if about is None else dict(about),
    )


def read_arrays(path: Path) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """The arrays that `save_arrays` wrote, and the words; raises InputError for anything else."""
    _check_library()
    from safetensors import safe_open

    try:
        size = path.stat().st_size
        if size > LARGEST_ARRAYS:
            what = f"is larger than {LARGEST_ARRAYS // 10**6} MB; is it the right file?"
            raise InputError([Mistake(str(path), what)])
        with safe_open(str(path), framework="numpy") as file:
            found = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            return found, dict(file.metadata() or {})
    except InputError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes its reader say
        reason = " ".join(str(error).split())[:200]
        what = f"can't be read as plain arrays ({type(error).__name__}: {reason}); {MAYBE_CHANGED}"
        raise InputError([Mistake(str(path), what)]) from None


def _check_library() -> None:
    if importlib.util.find_spec("safetensors") is None:
        what = "safetensors, which it is saved with, is not installed: pip install safetensors"
        raise InputError([Mistake("model", what)])


def find_strange(found: Mapping[str, AnyArray], wanted: Mapping[str, tuple[int, ...]]) -> str:
    """Why arrays are not those of the names and shapes that are wanted, all of them finite numbers;
    "" if they are."""
    if strange := sorted(found.keys() ^ wanted.keys()):
        way = "is missing" if strange[0] in wanted else "has no place in it"
        return f"{strange[0][:100]!r} {way}"
    for name, shape in wanted.items():
        each = found[name]
        if each.dtype != np.float64 or each.shape != shape:
            return f"{name!r} is {each.shape} of {each.dtype}, not {shape} of float64"
        if not np.isfinite(each).all():
            return f"{name!r} holds something that is no finite number"
    return ""
