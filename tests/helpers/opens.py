"""What commands open, counted from within: run as a process of its own, since no audit hook is ever
taken off.

python -m helpers.opens COMMANDS.json     prints, for each list of words, how often what was opened
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from helpers.campaigns import fine

NAMES = {"campaign.toml": "settings", "table.csv": "table", "table.parquet": "table"}
STORE = "campaign.sqlite"

opened: Counter[str] = Counter()


def note(event: str, args: tuple[Any, ...]) -> None:
    """A file that is opened to be read, or a store; what is written goes elsewhere first."""
    if event == "open" and isinstance(args[0], str | os.PathLike):
        name = NAMES.get(Path(args[0]).name)
        if name is not None and not args[2] & (os.O_WRONLY | os.O_RDWR):
            opened[name] += 1
    elif event == "sqlite3.connect":
        name, _, how = os.fsdecode(args[0]).partition("?")
        if Path(name).name == STORE:
            opened["to read" if how == "mode=ro" else "to write"] += 1


def main() -> None:
    sys.addaudithook(note)
    counts = []
    for command in json.loads(Path(sys.argv[1]).read_text()):
        opened.clear()
        fine(*command)
        counts.append(dict(opened))
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
