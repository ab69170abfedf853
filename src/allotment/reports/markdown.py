"""The report as GitHub-flavoured Markdown, for an issue or a wiki: the page's words and tables.

It is made of the page itself, so that both say the same. Every text passes through one function,
in which nothing stays that could become markup, HTML, a link or a mention of somebody.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from allotment.errors import InputError, Mistake
from allotment.files import plainly, replace_file
from allotment.reports.page import render
from allotment.reports.values import check

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
"""that mean something anywhere in a line"""
OPENINGS = re.compile(r"(?=[-+=])|(?<=\d)(?=[.)])")
"""places in the first word of a line before what would make a list or a heading of it"""
VOID_TAGS = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}
SILENT_TAGS = {"button", "form", "head", "input", "nav", "script", "style", "svg", "template"}
"""elements that say nothing which a text could"""
SILENT_CLASSES = {"legend", "sign"}
"""what explains lines and colours, of which a text has none, and where paper is signed"""
HEAD_SIGNS = {f"h{level}": "#" * level for level in range(1, 7)}
RIGHT_CLASS = "number"
"""class of columns that are set to the right"""


def write_markdown(values: Mapping[str, Any]) -> str:
    """The report of these values, which are those of `page.render`, as Markdown."""
    given = {key: part for key, part in check(values).items() if key not in ASKED}
    page = _read(render(given)).find("main")
    _drop_captions(page)
    return "\n\n".join([GENERATED, *_write_blocks(page.children)]) + "\n"


def save_markdown(values: Mapping[str, Any], path: Path) -> Path:
    """The same as a file, in the place of an earlier report, but of nothing else."""
    text = write_markdown(values)
    with plainly(path):
        if path.is_symlink():
            what = "is a link, which is not followed; name another file with -o, or remove the link"
        elif path.exists() and not path.is_file():
            what = "is a folder, a pipe or a device; name another file with -o"
        elif path.is_file() and not _is_ours(path):
            what = "is there already and is no report; name another file with -o, or move it away"
        else:
            what = ""
    if what:
        raise InputError([Mistake(str(path), what)])
    replace_file(path, text.encode())
    return path


def _drop_captions(page: _PageElement) -> None:
    """Those of tables that stand below a heading of the same words."""
    heads = {_take_text(each) for each in page.list_all(*HEAD_SIGNS)}
    for table in page.list_all("table"):
        if _take_text(table.find("caption")) in heads:
            table.children = [each for each in table.children if not _is_tag(each, "caption")]


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(GENERATED)) == GENERATED.encode()


def escape_markdown(text: str) -> str:
    """Any text, in a form in which Markdown and the sites that show it see letters and no more.

    >>> print(escape_markdown("*a* | [b](c) <d>"))
    \\*a\\* \\| \\[b\\](c) \\<d\\>
    >>> print(escape_markdown("@ann"))
    @<!-- -->ann
    """
    words = [MARKUP.sub(r"\\\1", word) for word in WORD_BREAKS.split(text)]
    return BREAK.join(words).replace("$", "&#36;")  # mathematics, which no backslash prevents


# Reading the page


@dataclass
class _PageElement:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[_PageElement | str] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    @property
    def is_silent(self) -> bool:
        hidden = self.attributes.get("aria-hidden") == "true"
        return hidden or self.tag in SILENT_TAGS or bool(SILENT_CLASSES & {*self.kinds})

    def list_all(self, *tags: str) -> Iterator[_PageElement]:
        """Every element of these tags within it, from the first to the last."""
        for child in self.children:
            if isinstance(child, _PageElement):
                if child.tag in tags:
                    yield child
                yield from child.list_all(*tags)

    def find(self, tag: str) -> _PageElement:
        """The first of them, or one with nothing in it."""
        return next(self.list_all(tag), _PageElement(tag))


class _PageReader(HTMLParser):
    """Makes a tree of a page of ours."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.whole = _PageElement("")
        self._open = [self.whole]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = _PageElement(tag, dict(attrs))
        self._open[-1].children.append(made)
        if tag not in VOID_TAGS:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def _read(page: str) -> _PageElement:
    reader = _PageReader()
    reader.feed(page)
    reader.close()
    return reader.whole


# Lines


def _write_line(children: Sequence[_PageElement | str]) -> str:
    """What stands in one line."""
    return " ".join("".join(map(_write_inline, children)).split())


def _write_inline(child: _PageElement | str) -> str:
    if isinstance(child, str):
        return escape_markdown(child)
    if child.is_silent:
        return ""
    if child.tag == "code":
        return _write_code(_take_text(child))
    inside = _write_line(child.children)
    if child.tag == "small":
        return f" {inside}" if inside.startswith("(") else f" ({inside})"
    return f"{inside}: " if "badge" in child.kinds else inside


def _take_text(element: _PageElement) -> str:
    return "".join(
        child if isinstance(child, str) else _take_text(child) for child in element.children
    )


def _write_code(text: str) -> str:
    """To the letter, between more backticks than there are in it one after the other."""
    if not text.strip():
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    inner = text.replace("|", "\\|")  # which would end the cell of a table even there
    edge = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{edge}{inner}{edge}{fence}"


def _begin(line: str) -> str:
    """A line that begins no list, heading or rule."""
    first, blank, rest = line.partition(" ")
    return "\\".join(OPENINGS.split(first, maxsplit=1)) + blank + rest


def _stress(line: str) -> str:
    return f"**{line}**" if line else ""


# Blocks


def _write_blocks(children: Sequence[_PageElement | str]) -> Iterator[str]:
    """Paragraphs, tables and lists, one after the other."""
    loose: list[_PageElement | str] = []
    for child in children:
        if not isinstance(child, _PageElement) or child.tag not in _BLOCK_WRITERS:
            loose.append(child)
            continue
        yield from _write_loose(loose)
        loose = []
        if not child.is_silent:
            yield from _BLOCK_WRITERS[child.tag](child)
    yield from _write_loose(loose)


def _write_loose(children: Sequence[_PageElement | str]) -> Iterator[str]:
    if line := _write_line(children):
        yield _begin(line)


def _write_within(element: _PageElement) -> Iterator[str]:
    return _write_blocks(element.children)


def _write_paragraph(element: _PageElement) -> Iterator[str]:
    return _write_loose(element.children)


def _write_head(element: _PageElement) -> Iterator[str]:
    if line := _write_line(element.children):
        yield f"{HEAD_SIGNS[element.tag]} {line}"


def _write_details(element: _PageElement) -> Iterator[str]:
    """What is looked at by those who want to; GitHub knows these two tags."""
    parts = [each for each in element.children if not _is_tag(each, "summary")]
    summary = html.escape(" ".join(_take_text(element.find("summary")).split()))
    blocks = list(_write_blocks(parts))
    if blocks:
        yield f"<details><summary>{summary}</summary>"
        yield from blocks
        yield "</details>"


def _is_tag(child: _PageElement | str, *tags: str) -> bool:
    return isinstance(child, _PageElement) and child.tag in tags


def _write_table(element: _PageElement) -> Iterator[str]:
    head, *rest = [(row, list(row.list_all("th", "td"))) for row in element.list_all("tr")]
    caption = _write_line(element.find("caption").children)
    last = [*element.find("tfoot").list_all("tr")]
    lines = [_join_cells([_write_line(cell.children) for cell in head[1]])]
    lines.append(_join_cells(["---:" if RIGHT_CLASS in cell.kinds else "---" for cell in head[1]]))
    for row, cells in rest:
        texts = [_write_line(cell.children) for cell in cells]
        is_strong = "strong" in row.kinds or row in last
        lines.append(_join_cells([_stress(text) if is_strong else text for text in texts]))
    yield from ([_stress(caption)] if caption else [])
    yield "\n".join(lines)


def _join_cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write_list(element: _PageElement) -> Iterator[str]:
    """A list, or keys with what they are; one in another stands further to the right."""
    lines = list(_list_items(element))
    if lines:
        yield "\n".join(lines)


def _list_items(element: _PageElement) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, _PageElement) and child.tag == "li":
            yield from _write_item(child)
    yield from (f"- {_begin(f'{key}: {said}')}" for key, said in _list_keys(element))


def _write_item(element: _PageElement) -> Iterator[str]:
    inner = [child for child in element.children if _is_tag(child, "ul", "ol", "dl")]
    line = _write_line([child for child in element.children if child not in inner])
    yield f"- {_begin(line)}"
    for child in inner:
        if isinstance(child, _PageElement):
            yield from (f"  {each}" for each in _list_items(child))


def _list_keys(element: _PageElement) -> list[tuple[str, str]]:
    """Keys with all that is said of them."""
    found: list[tuple[str, list[str]]] = []
    for child in element.children:
        if isinstance(child, _PageElement) and child.tag == "dt":
            found.append((_write_line(child.children), []))
        elif isinstance(child, _PageElement) and child.tag == "dd" and found:
            found[-1][1].append(_write_line(child.children))
    return [(key, "; ".join(said)) for key, said in found]


_BLOCK_WRITERS: dict[str, Callable[[_PageElement], Iterator[str]]] = {
    **dict.fromkeys(("main", "section", "div", "figure", "header", "footer", "nav"), _write_within),
    **dict.fromkeys(HEAD_SIGNS, _write_head),
    **dict.fromkeys(("ul", "ol", "dl"), _write_list),
    "p": _write_paragraph,
    "details": _write_details,
    "table": _write_table,
}
