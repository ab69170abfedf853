"""A few answers of a model as people will look at them: small, and next to the labels that they
should have been."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.dataset import PIXEL_KINDS, Dataset, Instances, Target
from allotment.errors import InputError, Mistake
from allotment.learners.learner import Learner, State

KEPT_SIDE = 48
"""pixels along the longer side of an answer that is kept for looking at"""
DIGITS = 7
"""of an answer that are kept: as many as a 32-bit number has"""
_STEPS = 255
"""into which the range of an answer in pixels is cut: one byte for each"""


def keep_examples(
    learner: Learner, state: State, data: Dataset, target: Target, asked: Instances, count: int
) -> dict[str, Any]:
    """What the model says of some of the asked instances, as plain values."""
    chosen = spread(asked, count)
    answers = learner.predict(state, target.name, chosen) if len(chosen) else np.zeros(0)
    if target.kind not in PIXEL_KINDS:
        return {"instances": chosen.tolist(), "said": shorten_answers(answers)}
    packed = []
    for instance, answer in zip(chosen.tolist(), answers, strict=True):
        rows, columns = data.frame(instance)
        packed.append(pack_map(target, answer[..., rows, columns]))
    return {"instances": chosen.tolist(), "said": packed}


def spread(asked: Instances, count: int) -> Instances:
    """So many of them, from all over their order: neighbours are often alike.

    >>> spread(np.arange(10), 2).tolist()
    [2, 7]
    """
    if len(asked) <= count:
        return asked
    return asked[((np.arange(count) + 0.5) * len(asked) / count).astype(np.int64)]


def pack_map(target: Target, answer: AnyArray) -> dict[str, Any]:
    """An answer in pixels, a byte for each number: a class, or how far it is from the lowest to the
    highest."""
    if target.kind == "segmentation":
        answer = answer.argmax(axis=0)
    small = shrink(answer, KEPT_SIDE)
    low, high = 0.0, float(_STEPS)
    if target.kind != "segmentation":
        small = np.nan_to_num(small.astype(np.float64))
        low, high = float(small.min()), float(small.max())
        small = np.round((small - low) / max(high - low, 1e-12) * _STEPS)
    packed = base64.b64encode(small.astype(np.uint8).tobytes()).decode()
    return {"shape": list(small.shape), "low": low, "high": high, "bytes": packed}


def unpack_map(target: Target, packed: Any) -> AnyArray:
    """The answer that was packed: classes (height, width), or numbers; raises InputError for
    anything else, since it may come from an archive."""
    try:
        shape = tuple(map(int, packed["shape"]))
        low, high = float(packed["low"]), float(packed["high"])
        found = np.frombuffer(base64.b64decode(packed["bytes"], validate=True), dtype=np.uint8)
        has_form = shape[:-2] == ((3,) if target.kind == "normals" else ())
        if not has_form or max(shape) > KEPT_SIDE or math.prod(shape) != len(found):
            raise ValueError("its shape is not that of an answer")
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError("its range is not finite")
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise InputError([Mistake("answer", f"can't be read ({error})")]) from None
    whole = found.reshape(shape)
    if target.kind == "segmentation":
        return np.minimum(whole, len(target.classes) - 1)
    return np.asarray(low + whole / _STEPS * (high - low))


def shrink(array: AnyArray, side: int) -> AnyArray:
    """Every so many pixels of an array (..., height, width), so that it has at most `side` along
    each; as it is if it has no more."""
    height, width = array.shape[-2:]
    factor = min(1.0, side / max(height, width))
    return resize(array, (max(1, round(height * factor)), max(1, round(width * factor))))


def resize(array: AnyArray, size: tuple[int, int]) -> AnyArray:
    """An array (..., height, width) in another size, each pixel that of the nearest one."""
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(np.int64)
        for new, old in zip(size, array.shape[-2:], strict=True)
    )
    return np.asarray(array[..., rows[:, None], columns])


def shorten_answers(answers: AnyArray) -> list[Any]:
    """Answers as JSON keeps them: None where they are not finite."""
    flat = [_shorten(each) for each in answers.ravel().tolist()]
    if answers.ndim == 1:
        return flat
    width = answers.shape[1]
    return [flat[at : at + width] for at in range(0, len(flat), width)]


def _shorten(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def read_answers(target: Target, said: Sequence[Any]) -> list[AnyArray]:
    """The answers of `keep_examples`, one after the other; raises InputError where they are
    none."""
    if target.kind in PIXEL_KINDS:
        return [unpack_map(target, each) for each in said]
    try:
        found = [np.array(each, dtype=np.float64) for each in said]
    except (TypeError, ValueError):
        raise InputError([Mistake("answer", "is not made of numbers")]) from None
    form = () if target.kind == "regression" else (len(target.classes),)
    if any(each.shape != form for each in found):
        raise InputError([Mistake("answer", "is not one of the task's kind")])
    return found
