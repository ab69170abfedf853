"""The few operations on arrays that scenes are rendered with.

Vectors are columns of (3, n) arrays; a table holds one scene, solid or paint per place of its last
axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment.arrays import AnyArray


def table(values: Sequence[Any]) -> AnyArray:
    """The values side by side, in float32."""
    return np.ascontiguousarray(np.moveaxis(np.array(values, dtype=np.float32), 0, -1))


def each(values: AnyArray, counts: AnyArray | Sequence[int]) -> AnyArray:
    """Each place of a table as often as it is counted."""
    return np.repeat(values, counts, axis=-1)


def column(vector: AnyArray) -> AnyArray:
    """One vector for all columns."""
    return np.asarray(vector, dtype=np.float32)[:, None]


def dot(a: AnyArray, b: AnyArray) -> AnyArray:
    """Sums of products in a fixed order, which BLAS would not keep."""
    total = a[0] * b[0]
    total += a[1] * b[1]
    total += a[2] * b[2]
    return np.asarray(total)


def apply(matrix: AnyArray, vectors: AnyArray) -> AnyArray:
    """Each matrix (3, 3, n) times its vector."""
    return dot(matrix.swapaxes(0, 1), vectors)


def put(target: AnyArray, where: AnyArray, values: AnyArray | Sequence[Any]) -> None:
    """Write the values over some columns."""
    # many times faster than target[:, where] = values
    for row, part in zip(target, values, strict=True):
        row[where] = part


def square(vector: AnyArray) -> float:
    """The squared length of one vector, faster than numpy's."""
    x, y, z = vector.tolist()
    return float(x * x + y * y + z * z)


def find_borders(differ: Callable[[Any, Any], AnyArray], shape: tuple[int, ...]) -> AnyArray:
    """Pixels that differ from the one beside, above or below."""
    marks = np.zeros(shape, dtype=bool)
    here, later, before = slice(None), slice(1, None), slice(None, -1)
    for a, b in (((here, here, later), (here, here, before)), ((here, later), (here, before))):
        found = differ(a, b)
        marks[a] |= found
        marks[b] |= found
    return marks


def colours(codes: str) -> AnyArray:
    """Hexadecimal codes as rows of red, green and blue from 0 to 1."""
    return np.array([list(bytes.fromhex(code)) for code in codes.split()]) / 255
