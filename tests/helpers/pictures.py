"""Pictures as bytes of a file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def png(array: NDArray[Any] | Sequence[Any], dtype: Any = np.uint8, palette: bool = False) -> bytes:
    image = Image.fromarray(np.asarray(array, dtype=dtype))
    if palette:
        image.putpalette(bytes(range(256)) * 3)
    made = io.BytesIO()
    image.save(made, format="PNG")
    return made.getvalue()
