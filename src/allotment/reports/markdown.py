"""The report as GitHub-flavoured Markdown, for an issue or a wiki: the page's words and tables.

It is made of the same blocks as the page, so that both say the same. Every text passes through one
function, after which nothing in it becomes markup, HTML, a link or a mention of somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allotment.reports import words
from allotment.reports.blocks import (
    Chart,
    Charts,
    Gallery,
    HtmlColumn,
    Items,
    Note,
    PageTable,
    Pairs,
    Panel,
    Paragraph,
    Section,
    ShownVerdict,
    VerdictList,
)
from allotment.reports.markup import Content, Html, escape
from allotment.reports.saving import save_report
from allotment.reports.values import check
from allotment.reports.view import Decision, decide, list_sections

GENERATED = "<!-- report by allotment -->"
"""in the first line, by which a report is known that a newer one may replace"""
ASKED = ("what_if", "reach")
"""parts that answer readers, which a text does not"""
BREAK = "<!-- -->"
"""between two letters that must not be read as one word: sites look for mentions and links after
they have taken escapes away, and a comment keeps these apart without being seen"""
WORD_BREAKS = re.compile(
    r"(?<=@)(?=\w)|(?<=\#)(?=\d)|(?<=gh-)(?=\d)|(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)",
    re.IGNORECASE,
)
"""within mentions, numbers of issues, links and names of emoji"""
MARKUP = re.compile(r"([\\`*_\[\]<>|~&#])")
"""that means something anywhere in a line"""
OPENINGS = re.compile(r"(?=[-+=])|(?<=\d)(?=[.)])")
"""places in the first word of a line before what would make a list or a heading of it"""

SMALL_PRINT = re.compile(r"<small>(?:\((.*?)\)|(.*?))</small>")
"""a remark in a cell, some in brackets already"""


def write_markdown(values: Mapping[str, Any]) -> str:
    """The report of these values, which are those of `page.render`, as Markdown."""
    given = {key: part for key, part in check(values).items() if key not in ASKED}
    parts = [GENERATED, f"# {_write(given.get('title') or words.TITLE)}"]
    with words.writing(given.get("style") or {}):
        parts += _write_decision(decide(given))
        for section in list_sections(given):
            parts += _write_section(section)
    return "\n\n".join(parts) + "\n"


def save_markdown(values: Mapping[str, Any], path: Path) -> Path:
    """The same as a file, in the place of an earlier report, but of nothing else."""
    return save_report(write_markdown(values), path, GENERATED)


def escape_markdown(text: str) -> str:
    """Any text, in a form in which Markdown and the sites that show it see letters and no more.

    >>> print(escape_markdown("*a* | [b](c) <d>"))
    \\*a\\* \\| \\[b\\](c) \\<d\\>
    >>> print(escape_markdown("@ann"))
    @<!-- -->ann
    """
    words = [MARKUP.sub(r"\\\1", word) for word in WORD_BREAKS.split(text)]
    return BREAK.join(words).replace("$", "&#36;")  # mathematics, which no backslash prevents


# Lines


def _write(content: Content) -> str:
    """What stands in one line, be it text or markup of the page, in which remarks are small."""
    text = Html(SMALL_PRINT.sub(r" (\1\2)", str(escape(content)))).striptags()
    return escape_markdown(" ".join(text.split()))


def _write_code(content: Content) -> str:
    """To the letter, between more backticks than there are in it one after the other."""
    text = escape(content).striptags()
    if not text:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{edge}{text}{edge}{fence}"


def _begin(line: str) -> str:
    """A line that begins no list, heading or rule."""
    first, blank, rest = line.partition(" ")
    return "\\".join(OPENINGS.split(first, maxsplit=1)) + blank + rest


def _stress(line: str) -> str:
    return f"**{line}**" if line else ""


# Blocks


def _write_decision(found: Decision) -> Iterator[str]:
    for line in (*found.before, found.sentence, *found.lines):
        yield _begin(_write(line))
    if found.tiles:
        yield "\n".join(
            f"- {_write(title)}: {_write(figure)}" + (f" ({_write(more)})" if more else "")
            for title, figure, more in found.tiles
        )
    if found.chart is not None:
        yield from _write_chart(found.chart)
    for block in found.scores:
        yield from BLOCK_WRITERS[type(block)](block)
    for line in (found.note, found.order, *found.advice):
        if line:
            yield _begin(_write(line))


def _write_section(section: Section) -> Iterator[str]:
    yield f"## {_write(section.heading)}"
    for block in section.blocks:
        if isinstance(block, PageTable) and block.label != section.heading:
            yield _stress(_write(block.label))
        yield from BLOCK_WRITERS[type(block)](block)


def _write_line(block: Note | Paragraph) -> Iterator[str]:
    yield _begin(_write(block.text))


def _write_table(block: PageTable) -> Iterator[str]:
    columns = block.columns
    lines = [_join_cells([_write(column.head) for column in columns])]
    lines.append(_join_cells(["---:" if each.kind == "number" else "---" for each in columns]))
    for place in block.rows:
        cells = [_write(column.cells[place]) for column in columns]
        lines.append(_join_cells(list(map(_stress, cells)) if place in block.strong else cells))
    if block.has_foot:
        lines.append(_join_cells([_stress(_write(column.foot)) for column in columns]))
    yield "\n".join(lines)


def _join_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write_chart(block: Chart) -> Iterator[str]:
    """What it shows, in words and figures."""
    if block.title:
        yield f"### {_write(block.title)}"
    if block.spoken:
        yield _begin(_write(block.spoken))
    if block.table is not None:
        yield from _fold(words.FIGURES, _write_table(block.table))


def _fold(summary: str, blocks: Iterator[str]) -> Iterator[str]:
    """For those who want to look; GitHub knows these two tags."""
    yield f"<details><summary>{escape(summary)}</summary>"
    yield from blocks
    yield "</details>"


def _write_charts(block: Charts) -> Iterator[str]:
    for each in block.charts:
        yield from _write_chart(each) if isinstance(each, Chart) else _write_line(each)


def _write_panel(block: Panel) -> Iterator[str]:
    """Nothing: it is for the page's script."""
    yield from ()


def _write_items(block: Items) -> Iterator[str]:
    yield "\n".join(f"- {_begin(_write(item))}" for item in block.items)


def _write_pairs(block: Pairs) -> Iterator[str]:
    yield "\n".join(_list_pairs(block))


def _list_pairs(block: Pairs) -> Iterator[str]:
    for place, (title, lines) in enumerate(block.pairs):
        write = _write_code if place in block.code else _write
        yield f"- {_begin(_write(title))}: {'; '.join(map(write, lines))}"


def _write_verdicts(block: VerdictList) -> Iterator[str]:
    yield "\n".join(line for each in block.verdicts for line in _list_verdict(each))
    if block.folded:
        lines = [line for each in block.folded for line in _list_verdict(each)]
        yield from _fold(words.FOLDED.format(count=len(block.folded)), iter(["\n".join(lines)]))


def _list_verdict(verdict: ShownVerdict) -> Iterator[str]:
    yield f"- {_begin(_write(verdict.badge))}: {_write(verdict.title)}"
    yield from (f"  {line}" for line in _list_pairs(verdict.reasons))


def _write_gallery(block: Gallery) -> Iterator[str]:
    """What stands beside the pictures, which a text has not: a line for each of them."""
    rows = [row for row in block.rows if any(tile.said for tile in row.tiles)]
    if rows:
        yield f"### {_write(block.title)}"
        said = [HtmlColumn(row.head, [tile.said for tile in row.tiles], "text") for row in rows]
        heads = HtmlColumn(words.HEADS["instance"], block.heads, "name")
        yield from _write_table(PageTable(block.label, [heads, *said]))


BLOCK_WRITERS: dict[type, Callable[[Any], Iterator[str]]] = {
    PageTable: _write_table,
    Note: _write_line,
    Paragraph: _write_line,
    Chart: _write_chart,
    Charts: _write_charts,
    Panel: _write_panel,
    Items: _write_items,
    Pairs: _write_pairs,
    VerdictList: _write_verdicts,
    Gallery: _write_gallery,
}
"""of each block of a page, how it is written"""
