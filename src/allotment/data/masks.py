"""What a segmentation mask says of the image as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import VOID
from allotment.errors import InputError, Mistake
from allotment.mistakes import MOST_LISTED, Collected


def classes_of_masks(
    masks: NDArray[np.integer],
    classes_count: int,
    ignore: Sequence[int] = (VOID,),
    background: Sequence[int] = (),
) -> NDArray[np.float32]:
    """Which classes are in each mask (n, height, width): 0 or 1 for each but the `background`, in
    their order.

    Pixels to `ignore` say nothing, so a mask with no others is unknown (NaN) throughout.

    >>> classes_of_masks(np.array([[[0, 2], [2, 255]]]), 3, background=(0,)).tolist()
    [[0.0, 1.0]]
    """
    masks = np.asarray(masks)
    _check(masks, classes_count, ignore, background)
    found = np.zeros((len(masks), classes_count), dtype=np.float32)
    wrong: dict[int, int] = {}
    # one at a time: all at once would need many times the memory of the masks
    for row, mask in enumerate(masks):
        values = np.setdiff1d(mask, ignore)
        if not len(values):
            found[row] = np.nan
        elif values[0] < 0 or values[-1] >= classes_count:
            wrong[row] = int(values[0] if values[0] < 0 else values[-1])
        else:
            found[row, values] = 1
    if wrong:
        raise InputError(_strange(wrong, classes_count))
    return np.delete(found, list(background), axis=1)


def _check(
    masks: NDArray[np.integer], count: int, ignore: Sequence[int], background: Sequence[int]
) -> None:
    wrong = Collected()
    if masks.ndim != 3 or masks.dtype.kind not in "iu":
        wrong.add(
            "masks",
            f"are {masks.shape} of {masks.dtype}; whole numbers (instances, height, width) are"
            " needed",
        )
    if count < 1:
        wrong.add("classes_count", f"{count} is below 1")
    if both := [each for each in ignore if 0 <= each < count]:
        wrong.add(
            "ignore",
            f"{both[0]} is one of the {count} classes; name it as background to leave it out",
        )
    if strange := [each for each in background if not 0 <= each < count]:
        wrong.add(
            "background", f"{strange[0]} is none of the {count} classes, which are counted from 0"
        )
    wrong.raise_all()


def _strange(wrong: dict[int, int], count: int) -> list[Mistake]:
    listed = list(wrong.items())
    hint = f"is none of {count} classes; raise classes_count, or ignore it"
    found = [
        Mistake(f"mask {row}", f"a pixel of {value} {hint}") for row, value in listed[:MOST_LISTED]
    ]
    if len(listed) > MOST_LISTED:
        found.append(Mistake("masks", f"the same in {len(listed) - MOST_LISTED} more"))
    return found
