"""Arrays, as types name them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
AnyArray = NDArray[Any]
"""of numbers in whatever form the data have: labels, pictures, predictions"""
