"""Orders as the files that people get."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from allotment.connect.connector import CONNECTORS
from allotment.orders.order import Order
from allotment.orders.sheet import Sheet


def write_csv(order: Order, path: str | os.PathLike[str], **about: Any) -> Path:
    CONNECTORS.load("csv").write(Sheet(order, **about), str(path))
    return Path(path)


def write_jsonl(order: Order, path: str | os.PathLike[str], **about: Any) -> Path:
    CONNECTORS.load("jsonl").write(Sheet(order, **about), str(path))
    return Path(path)
