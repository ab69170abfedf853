"""TOML that somebody else wrote: what would keep the parser busy for minutes is refused before it
begins."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from typing import Any

from allotment.errors import InputError, Mistake
from allotment.problem import MOST_CAPS, MOST_TASKS

LARGEST_FILE = 5_000_000
"""bytes"""
MOST_SIGNS = 150_000
"""line ends, equals signs, commas and dots of a text: each takes the parser some microseconds"""
DEEPEST = 30
"""parts of a dotted key: the parser's work grows with their square"""

_PART = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*')[ \t]*+\.[ \t]*+"""
_DEEP = re.compile(rf"(?:^|[\[{{,])[ \t]*+((?:{_PART}){{{DEEPEST}}})", re.MULTILINE)
_TABLES = {
    kind: (re.compile(rf"^[ \t]*+\[\[[ \t]*+{kind}[ \t]*+\]\]", re.MULTILINE), most)
    for kind, most in (("task", MOST_TASKS), ("cap", MOST_CAPS))
}


def load_toml(text: str) -> dict[str, Any]:
    """What a text holds, with exact decimals; raises InputError where it is far too much, and
    whatever tomllib does."""
    for kind, (table, most) in _TABLES.items():
        if (count := sum(1 for _ in table.finditer(text))) > most:
            raise InputError(
                [Mistake(kind, f"there are {count:,}, the limit is {most:,}; leave some out")]
            )
    if (count := sum(map(text.count, "\n=,."))) > MOST_SIGNS:
        what = (
            f"has {count:,} line ends, equals signs, commas and dots, the limit is {MOST_SIGNS:,}"
        )
        raise InputError([Mistake("", f"{what}; is it the right file?")])
    if text.count(".") >= DEEPEST and (deep := _DEEP.search(text)):
        line = text.count("\n", 0, deep.start(1)) + 1
        what = (
            f"a key has more than {DEEPEST} parts between dots, the limit; a task is a few levels"
            " deep"
        )
        raise InputError([Mistake("", what, line)])
    return tomllib.loads(text, parse_float=Decimal)
