"""Archives taken apart and put together again."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Members = dict[str, bytes]


def zipped(
    members: Members, path: Path, edit: Callable[[zipfile.ZipInfo], None] | None = None
) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o100644 << 16
            if edit is not None:
                edit(info)
            made.writestr(info, data)
    return path


def rows_of(members: Members, table: str) -> list[Any]:
    return [json.loads(line) for line in members[f"{table}.jsonl"].splitlines()]
