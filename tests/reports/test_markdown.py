"""The report as Markdown: what the page says, whatever names it holds, read back by a parser that
knows nothing of how it was written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from helpers.campaigns import begin, fine, refused
from helpers.reports import EVIL, example, rename
from markdown_it import MarkdownIt
from markdown_it.token import Token

from allotment import InputError
from allotment.campaign.campaign import Campaign
from allotment.reports.blocks import PageBlock
from allotment.reports.markdown import (
    BLOCK_WRITERS,
    BREAK,
    GENERATED,
    escape_markdown,
    save_markdown,
    write_markdown,
)

HOSTILE = [
    *EVIL, "|", "a | b |", "`", "``a`b``", "[a](http://evil.example)", "![a](b.png)", "**a** _b_",
    "~~gone~~", "@everybody", "ann@example.org", "#1", "gh-12", "http://evil.example", ":+1:",
    "www.evil.example", "<!-- --> -->", "$x$ $`y`$", "\\", "\\|", "a\r\n\r\n# b", "- a", "1. a",
    "+ a", "# a", "> a", "===", "---", "&amp;", "<https://evil.example>", "[^1]: a", "    a",
    "^", ":",
]  # fmt: skip
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def parse(text: str) -> list[Token]:
    """The tokens of a text, those within lines among them."""
    found = []
    for token in PARSER.parse(text):
        found += [token, *(token.children or ())]
    return found


def list_types(text: str) -> list[str]:
    """The kinds of tokens, without text and our own comments."""
    return [
        token.type
        for token in parse(text)
        if token.type != "text" and not (token.type == "html_inline" and token.content == BREAK)
    ]


def read(text: str) -> str:
    """What is read."""
    return "".join(token.content for token in parse(text) if token.type in ("text", "code_inline"))


def test_the_words_and_tables_of_the_page() -> None:
    text = write_markdown(example())
    assert text.startswith(
        f"{GENERATED}\n\n# Street scenes\n\nBuy 2,920 cls and 169 seg for 6,300;"
    )
    for line in (
        "## What to buy",
        "| cls | 1.0 | 300 | 2,920 | 2,920 | 46.3 % | 1,460 to 2,970 | 973 to 2,990 | 3.5 |",
        "| **Together** |  |  |  | **6,300** |  |  |  |  |",
        "| equal budget | 80.0 % | +1.2 (0.3 to 2.1) | 97 % | 6,300 | 2,100 | 105 | 4,200 |",
        "- equal images breaks the budget by 12",
        "<details><summary>Figures</summary>",
        "| 4,000 | 80 | 71 | 88.67 |",
        "| seg | −0.40 (−0.60 to −0.20) (harms) | 1 (by definition) | – |",
        "- ✕ not known: Curve of seg",
        "| street-1 | a cat | ✕ a dog (62 % sure) |",
        "  - Why: scores fall; few",
        "- Fingerprint of the data: `b1946ac9`",
    ):
        assert line in text.splitlines(), line
    assert "**What to buy**" not in text  # the heading says it
    kinds = list_types(text)
    assert kinds.count("table_open") == 14  # with the figures of charts, and words beside pictures
    assert "html_inline" not in kinds


def test_numbers_and_money_are_written_as_on_the_page() -> None:
    text = write_markdown(example() | {"style": {"decimal": "comma", "currency": "EUR"}})
    assert "Buy 2.920 cls and 169 seg for 6.300 EUR" in text
    assert "46,3 %" in text


def test_every_block_of_a_page_can_be_written() -> None:
    assert set(BLOCK_WRITERS) == set(get_args(PageBlock))


def test_what_a_text_cannot_answer_is_left_out() -> None:
    asked: dict[str, Any] = {
        "what_if": {
            "instance": {"schema": 1, "unit": "1", "budget": 9, "tasks": [], "gains": {}},
            "unit": "% of score",
        },
        "reach": [],
    }
    assert write_markdown(example() | asked) == write_markdown(example())


@pytest.fixture(scope="module")
def harmless() -> list[str]:
    return list_types(write_markdown(example()))


@pytest.mark.parametrize("evil", HOSTILE)
def test_nothing_in_a_name_becomes_markup(evil: str, harmless: list[str]) -> None:
    text = write_markdown(rename(example(), lambda text: f"{evil}{text}{evil}"))
    text.encode()  # lone surrogates would fail here
    assert list_types(text) == harmless
    assert not re.search("[\x00-\x09\x0b-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe]", text)
    if len(evil) < 40 and evil.isprintable():
        assert " ".join(f"{evil}cls{evil}".split()) in read(text)


@pytest.mark.parametrize("evil", HOSTILE)
def test_no_title_becomes_anything_but_a_title(evil: str) -> None:
    text = write_markdown({"title": f"{evil}1", "decision": f"{evil}2"})
    assert list_types(text)[:4] == ["html_block", "heading_open", "inline", "heading_close"]
    assert list_types(text)[4:7] == ["paragraph_open", "inline", "paragraph_close"]


def test_sites_find_nobody_to_notify_and_nothing_to_link() -> None:
    for given in ("@ann", "x@y.de", "#12", "a/b#12", "GH-1", "https://x.y", "WWW.x.y", ":tada:"):
        shown = escape_markdown(given)
        assert not re.search(r"@\w|#\d|gh-\d|://|www\.|:\w+:", shown, re.IGNORECASE)
        assert read(shown) == given
    assert escape_markdown("3:1, 12:30, a: b") == "3:1, 12:30, a: b"
    assert read(escape_markdown("$a$")) == "$a$"
    assert "$" not in escape_markdown("$a$")


def test_a_code_ends_where_it_ends() -> None:
    text = write_markdown({"about": {"command": "`a` `` | b"}})
    (code,) = (token for token in parse(text) if token.type == "code_inline")
    assert code.content.replace("\\|", "|") == "`a` `` | b"


def test_a_file_takes_the_place_of_a_report_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    save_markdown({"title": "one"}, path)
    save_markdown({"title": "two"}, path)
    assert "# two" in path.read_text()
    path.write_text("# notes of my own")
    with pytest.raises(InputError, match="is no report; name another file with -o"):
        save_markdown({}, path)
    assert path.read_text() == "# notes of my own"
    link = tmp_path / "link.md"
    link.symlink_to(path)
    with pytest.raises(InputError, match="is a link"):
        save_markdown({}, link)
    with pytest.raises(InputError, match="is a folder"):
        save_markdown({}, tmp_path)


def test_wrong_values_are_said_all_at_once() -> None:
    with pytest.raises(InputError, match="plan"):
        write_markdown({"plan": 3, "titel": "x"})


def test_the_command_prints_it_or_writes_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = begin("camp", "--method", "neutral")
    text = write_markdown(Campaign(folder).report())
    assert "| size |" in text
    assert fine("report", folder, "--markdown") == text
    assert fine("report", folder, "--markdown", "-o", "report.md") == "report.md is written.\n"
    assert Path("report.md").read_text() == text
    assert not (folder / "report.html").exists()
    assert "not both" in refused(2, "report", folder, "--markdown", "--json")
    Path("own.md").write_text("mine")
    assert "is no report" in refused(2, "report", folder, "--markdown", "-o", "own.md")
