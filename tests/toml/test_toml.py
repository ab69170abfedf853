"""TOML of others: the line of every key, held against the standard library's parser."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from allotment.errors import InputError
from allotment.mistakes import Place
from allotment.problem_file import parse_problem
from allotment.settings.settings import parse_settings
from allotment.toml import DEEPEST_PLACE, find_lines

HERE = "header_above"
"""a key that stands first in every table with a header, with the header's line as its value"""
MARKS = [
    "a",
    "a-b_1",
    "17",
    "a.b",
    "[[task]]",
    "=",
    "# no",
    "",
    'quo"te',
    "new\nline",
    "ä 🙂",
    "{x",
]


class Writer:
    """Random TOML in which every value holds the number of the line that its key stands on."""

    def __init__(self, seed: int):
        self.dice = random.Random(seed)
        self.text = ""
        self.count = 0

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def write(self, *texts: str) -> None:
        self.text += "".join(texts)

    def part(self) -> str:
        """A new part of a key, in one of the ways to write it."""
        self.count += 1
        name = f"{self.dice.choice(MARKS)}{self.count}"
        if re.fullmatch(r"[A-Za-z0-9_-]+", name) and self.dice.random() < 0.7:
            return name
        if self.dice.random() < 0.3 and "'" not in name and "\n" not in name:
            return f"'{name}'"
        return json.dumps(name, ensure_ascii=self.dice.random() < 0.5 and name.isascii())

    def dot(self) -> str:
        return self.dice.choice([".", " . ", "\t."])

    def comment(self) -> str:
        return self.dice.choice(["", "", "  # [x] {", "# [[task]] key = 1", "\t# ''' \"\"\""])

    def value(self, depth: int) -> None:
        kinds = ["number", "text", "long", "raw", "date"] + ["list", "table"] * (depth < 4)
        getattr(self, f"write_{self.dice.choice(kinds)}")(depth)

    def write_number(self, depth: int) -> None:
        self.write(f"{self.line}{self.dice.choice(['', '.0', 'e0'])}")

    def write_text(self, depth: int) -> None:
        self.write(f'"line {self.line} ] }} , \\" # = \\\\"')

    def write_long(self, depth: int) -> None:
        line, end = self.line, self.dice.choice(['"""', '""""', '"""""'])
        self.write(f'"""line {line}\n[[task]]\nkey = 1 # "" \\"" \\\n  ] }}', end)

    def write_raw(self, depth: int) -> None:
        line = self.line
        self.write(f"'''line {line}\n[table]\n'quoted' = [ \\", self.dice.choice(["'''", "'''''"]))

    def write_date(self, depth: int) -> None:
        self.write(f"{2000 + self.line}-05-27 07:32:00.5")

    def write_list(self, depth: int) -> None:
        self.write("[", self.blank())
        for _ in range(self.dice.randint(0, 4)):
            self.value(depth + 1)
            self.write(self.blank(), ",", self.blank())
        if self.dice.random() < 0.5:
            self.value(depth + 1)
            self.write(self.blank())
        self.write("]")

    def blank(self) -> str:
        """What may stand between entries of a list."""
        return self.dice.choice(["", " ", "\n", " # ] [ {\n", "\n\n\t"])

    def write_table(self, depth: int) -> None:
        self.write("{ ")
        for number in range(self.dice.randint(0, 3)):
            self.write(", " if number else "")
            self.pair(depth + 1)
        self.write(" }")

    def pair(self, depth: int) -> None:
        parts = [self.part() for _ in range(self.dice.choice([1, 1, 1, 2, 3]))]
        self.write(self.dot().join(parts), self.dice.choice([" = ", "="]))
        self.value(depth)

    def statements(self) -> None:
        for _ in range(self.dice.randint(0, 3)):
            self.write(self.dice.choice(["", "  "]))
            self.pair(0)
            self.write(self.comment(), self.dice.choice(["\n", "\n\n# ] =\n"]))

    def header(self, *parts: str, double: bool = False) -> None:
        line, around = self.line, self.dice.choice(["", " "])
        opening, closing = ("[[", "]]") if double else ("[", "]")
        self.write(opening, around, self.dot().join(parts), around, closing, self.comment(), "\n")
        self.write(f"{HERE} = {line}\n")
        self.statements()

    def document(self) -> str:
        self.statements()
        for _ in range(self.dice.randint(1, 4)):
            name, inner, deep = self.part(), self.part(), self.part()
            if self.dice.random() < 0.5:
                self.header(name, inner, deep)
                if self.dice.random() < 0.5:
                    self.header(name)
                self.header(name, inner)
                continue
            for _ in range(self.dice.randint(1, 3)):
                self.header(name, double=True)
                if self.dice.random() < 0.5:
                    self.header(name, inner)
                for _ in range(self.dice.randint(0, 2)):
                    self.header(name, deep, double=True)
                    if self.dice.random() < 0.5:
                        self.header(name, deep, inner)
        return self.text.replace("\n", "\r\n") if self.dice.random() < 0.3 else self.text


def walk(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every place of what was parsed, with what is there."""
    yield place, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from walk(each, (*place, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from walk(each, (*place, number))


def line_in(value: Any) -> int | None:
    """The line that a value says it stands on."""
    if isinstance(value, str):
        return int(value.split()[1])
    if isinstance(value, int | float):
        return int(value)
    return value.year - 2000 if hasattr(value, "year") else None


@pytest.mark.parametrize("seed", range(400))
def test_every_key_is_found_on_its_line(seed: int) -> None:
    text = Writer(seed).document()
    lines, parsed = find_lines(text), tomllib.loads(text)
    shallow = {place: value for place, value in walk(parsed) if len(place) <= DEEPEST_PLACE}
    assert set(lines) == set(shallow)
    for place, value in shallow.items():
        if place and place[-1] == HERE:
            assert (lines[place[:-1]], lines[place]) == (value, value + 1)
        elif (line := line_in(value)) is not None:
            assert lines[place] == line


def test_what_lies_deep_has_the_line_of_what_it_is_in() -> None:
    text = "a = [\n" + "[\n" * 20 + "1\n" + "]\n" * 20 + "]\n[b.c.d.e.f.g.h.i.j]\nk = 1\n"
    lines = find_lines(text)
    assert max(map(len, lines)) == DEEPEST_PLACE
    assert lines[("a", *[0] * (DEEPEST_PLACE - 1))] == DEEPEST_PLACE
    assert lines[tuple("bcdefghi")] == 44


FIRST = '[[task]]\nname = "b"\ncost = 1\n'
LAST = '[[task]]\nname = "a"\ncost = -1 # wrong\n'
BODIES = {
    "plain": LAST,
    "a header in a text": f'x = """\n[[task]]\ncost = 2\n"""\n{LAST}',
    "a header in a comment": f"# [[task]]\n{LAST}".replace("]]\nname", "]] # [\nname"),
    "quoted": '[[ "task" ]]\n\'name\' = "a"\n"co\\u0073t" = -1 # wrong\n',
    "in line": 'task = [\n  { name = "b", cost = 1 },\n  { name = "a", cost = -1 }, # wrong\n]\n',
    "another table before": f"[other]\n[[other.task]]\nname = 1\n{LAST}",
    "brackets in a list": f'x = [\n"]",\n[1], # [[task]]\n]\n{LAST}',
    "a table within": f"{FIRST}[task.x]\ncost = 2\n{LAST}",
    "a list of tables within": f"{FIRST}[[task.cap]]\n[[task.cap]]\n{LAST}",
    "ends of lines as in Windows": LAST.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", BODIES)
def test_both_formats_find_the_same_line(name: str) -> None:
    text = f"budget = 1\n{BODIES[name]}"
    wanted = text[: text.index("# wrong")].count("\n") + 1
    for parse in (parse_problem, parse_settings):
        with pytest.raises(InputError) as caught:
            parse(text)
        found = {each.line for each in caught.value.mistakes if each.where == "task 'a': cost"}
        assert found == {wanted}, parse


@pytest.mark.parametrize("parse", [parse_problem, parse_settings])
def test_names_that_read_like_labels_have_their_own_line(parse: Any) -> None:
    text = 'budget = 1\n[[task]]\nname = "a: b"\ncost = 1\n[[task]]\nname = "a: b"\ncost = 1\n'
    with pytest.raises(InputError) as caught:
        parse(text)
    found = [each for each in caught.value.mistakes if "is there twice" in each.what]
    assert [each.line for each in found] == [6]


def test_the_entries_of_a_list_have_their_own_lines() -> None:
    curve = 'curve = "geometric", informativeness = 1, reduction'
    text = (
        'budget = 1\n[[task]]\nname = "a"\ncost = 1\n[task.gain]\ncurve = "sum"\nparts = [\n'
        f"  {{ {curve} = 0.9 }},\n  {{ {curve} = 9 }},\n]\n"
    )
    with pytest.raises(InputError) as caught:
        parse_problem(text)
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.where) == (9, "task 'a': gain: part 2: reduction")


def test_campaigns_and_problems_say_alike_what_is_no_toml() -> None:
    for text in ("budget = 1,5\n", "budget = 1\n[task]\n[task]\n", "a = [\n", "a = " + "[" * 9999):
        said = []
        for parse in (parse_problem, parse_settings):
            with pytest.raises(InputError) as caught:
                parse(text)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_lines_of_a_large_text_are_found_in_a_moment() -> None:
    rows = [f"k{number} = [{{ a.b = {number}.5 }}]" for number in range(30_000)]
    assert len(find_lines("\n".join(rows))) == 1 + 4 * 30_000
    long = 'a = """' + "x" * 4_000_000 + '"""\nb = 1'
    assert find_lines(long)["b",] == 2
