"""HTML and SVG that cannot be broken by what it shows: all text is escaped, and nothing else makes
tags."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

EMPTY = {"meta"}
"""tags that have no end"""
TURNING = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
"""characters that turn the direction of what follows, which could make 12 look like 21"""
NAME_CELLS = 100
"""cells of a name in a table, as long as a task's name may be"""

NARROW = 24
"""and of one at the head of a column"""


class Html(str):
    """Text that is markup already; a plain str is not, and is escaped wherever it is put in."""

    __slots__ = ()


Content = str | Html


def clean(text: str) -> str:
    """The text with escapes for what a browser would act on, refuse or not show; white space
    becomes a blank.

    >>> clean("a\\x00b\\u202ec\\n")
    'a\\\\u0000b\\\\u202ec '
    """
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
    return text if isinstance(text, Html) else Html(html.escape(clean(text)))


def join(parts: Sequence[Content], between: Content = "") -> Html:
    """The parts one after the other."""
    return Html(escape(between).join(map(escape, parts)))


def tag(tag_name: str, *inside: Content, **attributes: Content | float | None) -> Html:
    """An element; of an attribute `_` becomes `-` and one at the end is dropped; None leaves the
    attribute out.

    >>> tag("th", "a < b", scope="row", class_="name")
    '<th scope="row" class="name">a &lt; b</th>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    end = "" if tag_name in EMPTY else f"</{tag_name}>"
    return Html(f"<{tag_name}{given}>{join(inside)}{end}")


def fill(sentence: str, **parts: Content) -> Html:
    """A sentence of ours with parts that are escaped."""
    return Html(escape(sentence).format(**{key: escape(part) for key, part in parts.items()}))


def name(text: str, width: int = NAME_CELLS) -> Html:
    """A name in a sentence or a table: its direction stays its own, and it is cut if it is too
    wide."""
    shown = shorten(clean(text), width)
    return tag("bdi", shown, title=None if shown == clean(text) else shorten(text, 1000))


def note(text: Content) -> Html:
    """A remark; nothing for an empty one."""
    return tag("p", text, class_="note") if text else Html()


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


@dataclass(frozen=True)
class HtmlColumn:
    """A column of a table; its kind is number (to the right), name or text."""

    head: Content
    cells: Sequence[Content]
    kind: str = "number"
    foot: Content = ""
    classes: Sequence[str] = ()
    """of each cell, beside its kind"""

    def show(self, place: int) -> Html:
        """One cell."""
        more = f" {self.classes[place]}" if self.classes and self.classes[place] else ""
        return tag("td", self.cells[place], class_=self.kind + more)


def table(label: str, columns: Sequence[HtmlColumn], strong: Collection[int] = ()) -> Html:
    """The columns side by side, the first one naming the rows; where it is too wide it scrolls by
    itself.

    `strong` are the places of rows that stand out.
    """
    first, *rest = columns
    head = tag(
        "tr", *(tag("th", column.head, scope="col", class_=column.kind) for column in columns)
    )
    rows = []
    for place, title in enumerate(first.cells):
        line = [
            tag("th", title, scope="row", class_=first.kind),
            *(column.show(place) for column in rest),
        ]
        rows.append(tag("tr", *line, class_="strong" if place in strong else None))
    parts = [tag("caption", label), tag("thead", head), tag("tbody", *rows)]
    if any(column.foot for column in columns):
        ends = [tag("th", first.foot, scope="row", class_=first.kind)]
        ends += [tag("td", column.foot, class_=column.kind) for column in rest]
        parts.append(tag("tfoot", tag("tr", *ends)))
    return tag(
        "div", tag("table", *parts), class_="wide", role="region", aria_label=label, tabindex="0"
    )
