"""Texts and links by which somebody might take over a page that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

TEXTS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><script>alert(1)//",
    "</style></svg></title></td><b>", "\"' onload='alert(1)' x=\"", "javascript:alert(1)",
    "<!-- ", "]]>", "&lt;&amp;#60;", "{task} {0} {0.__class__} ${alert(1)} {{ 1 }}",
    "=HYPERLINK(0)", "-2+3+cmd|' /C calc'!A0", "__proto__", "constructor",
    "\u202e\u2066abc 12\u200f", "שלום עולם", "\x00\x07\x1b[31m", "\ud800", "\ufffe\U0001ffff",
    "a\nb\tc\u2028d", "x" * 500, "很" * 500, "e" + "\u0301" * 400, "\\u202e", "</script", "%3Cb%3E",
)  # fmt: skip
FIXED = {
    "plan", "equal budget", "equal images*", "sound", "weak", "unusable", "task", "curve", "method",
    "cell", "power", "geometric", "logarithmic", "table", "labels", "%", "parts", "test", "nobody",
    "picture", "label", "now", "before", "after", "classification", "segmentation",
}  # fmt: skip
"""words that mean something where they stand"""
MANY = "&".join(f"{place}.price=7" for place in range(1000, 6000))
LINKS = (
    "", "#", "#what-if:", "#what-if:=", "#what-if:&&&===", "#what-if:budget", "#what-if:budget=",
    "#what-if:budget=NaN", "#what-if:budget=1e999", "#what-if:budget=-5",
    "#what-if:budget=Infinity", "#what-if:budget=0x10", "#what-if:budget=%00",
    "#what-if:budget=1%2E5", "#what-if:budget=" + "9" * 100_000, "#what-if:budget=٣",
    "#what-if:budget=....", "#what-if:budget=<img src=x onerror=alert(1)>",
    "#what-if:budget=%3Cimg%20src=x%20onerror=alert(1)%3E", "#<script>alert(1)</script>",
    "#what-if:__proto__.price=1", "#what-if:__proto__=1", "#what-if:constructor.prototype=1",
    "#what-if:0.__proto__=1", "#what-if:0.toString=1", "#what-if:-1.price=3",
    "#what-if:99999.price=3", "#what-if:0.price.price=3", "#what-if:0.price=3.", "#what-if:0.=3",
    "#what-if:0.price=" + "(" * 10_000, f"#what-if:{MANY}", "#what-if:" + "&" * 20_000,
    "#what-if:#what-if:#what-if:budget=5", '#what-if:{"budget":{"budget":[1]}}',
)  # fmt: skip


def rename(value: Any, change: Callable[[str], str], names: Iterable[str]) -> Any:
    """The values with every text in them changed, and every name that is a key, wherever it
    stands; but no number, and no word that means something."""
    known = set(names)
    if isinstance(value, Mapping):
        return {
            change(key) if key in known else key: rename(inner, change, known)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [rename(inner, change, known) for inner in value]
    kept = r"[\d./]+|#[0-9a-f]{6}|data:image/.*"  # numbers, colours and pictures
    is_free = isinstance(value, str) and value not in FIXED and not re.fullmatch(kept, value)
    return change(value) if is_free else value


def poison(values: Mapping[str, Any], names: Iterable[str], start: int = 0) -> dict[str, Any]:
    """The values with a hostile text in the place of each; the same one for the same text."""
    chosen: dict[str, str] = {}

    def change(text: str) -> str:
        # the end keeps texts apart that would be the same otherwise
        evil = TEXTS[(start + len(chosen)) % len(TEXTS)]
        return chosen.setdefault(text, f"{evil}{len(chosen)}")

    plain = json.loads(json.dumps(values))
    return {part: rename(inner, change, names) for part, inner in plain.items()}
