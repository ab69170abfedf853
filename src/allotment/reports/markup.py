"""Markup that cannot be broken by what it shows: all text is cleaned and escaped, and nothing but
the templates and the few inline pieces below makes tags."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

TURNING = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
"""characters that turn the direction of what follows, which could make 12 look like 21"""
TIED_SIGN = re.compile(r"(?<=[\d}]) %")
"""a sign that stays on the line of its number, which may come in the place of {...}"""
NAME_CELLS = 100
"""cells of a name in a table, as long as a task's name may be"""
NARROW = 24
"""and of one at the head of a column"""

Html = Markup
Content = str | Html
"""text, which is escaped wherever it is put in, or markup already"""


@cache
def load_templates() -> Environment:
    """The templates beside this module; whatever they print is escaped as below."""
    return Environment(
        loader=PackageLoader("allotment.reports"),
        autoescape=True,
        finalize=_finish,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finish(value: Any) -> Any:
    return escape(value) if isinstance(value, str) else value


def clean(text: str) -> str:
    """The text with escapes for what a browser would act on, refuse or not show; white space
    becomes a blank.

    >>> clean("a\\x00b\\u202ec\\n")
    'a\\\\u0000b\\\\u202ec '
    """
    if text.isascii() and text.isprintable():
        return text  # as most are
    return "".join(map(_clean_character, text))


def _clean_character(character: str) -> str:
    if character.isspace():
        return " "
    return f"\\u{ord(character):04x}" if _is_hidden(character) else character


def _is_hidden(character: str) -> bool:
    code = ord(character)
    # are no characters, by Unicode's word
    never = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return never or code in TURNING or unicodedata.category(character) in ("Cc", "Cs")


def escape(text: Content) -> Html:
    """The text as markup."""
    if isinstance(text, Html):
        return text
    return Html(TIED_SIGN.sub("\u00a0%", html.escape(clean(text))))


def join(parts: Sequence[Content], between: Content = "") -> Html:
    """The parts one after the other."""
    return escape(between).join([escape(part) for part in parts])


def fill(sentence: str, **parts: Content) -> Html:
    """A sentence of ours with parts that are escaped."""
    return Html(str(escape(sentence)).format(**{key: escape(part) for key, part in parts.items()}))


def small(text: Content) -> Html:
    """A remark within a cell."""
    return Html("<small>{}</small>").format(escape(text))


def name(text: str, width: int = NAME_CELLS) -> Html:
    """A name in a sentence or a table: its direction stays its own, and it is cut if it is too
    wide."""
    shown = shorten(clean(text), width)
    if shown == clean(text):
        return Html("<bdi>{}</bdi>").format(escape(shown))
    whole = escape(shorten(text, 1000))
    return Html('<bdi title="{}">{}</bdi>').format(whole, escape(shown))


def cells(text: str) -> int:
    """About how wide it is, in digits."""
    seen = [each for each in text if not unicodedata.combining(each)]
    return len(seen) + sum(unicodedata.east_asian_width(each) in "WF" for each in seen)


def shorten(text: str, width: int) -> str:
    """The text within so many cells, cut in its middle, since names often differ at their end.

    >>> shorten("segmentation of roads", 12)
    'segmen…roads'
    """
    if len(text) <= 4 * width and cells(text) <= width:
        return text
    head, tail = width // 2, (width - 1) // 2
    first, last = _take(text, head), _take(text[::-1], tail)[::-1]
    return f"{first}…{last}"


def _take(text: str, width: int) -> str:
    """The beginning of a text; marks on letters count too, or thousands of them would be kept."""
    taken, used = "", 0
    for each in text:
        used += max(cells(each), 1)
        if used > width:
            break
        taken += each
    return taken
