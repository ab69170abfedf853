"""Parsers of untrusted input: what once broke one of them, and a short time of fuzzing for each."""

from __future__ import annotations

import importlib.util
import json
import mmap
import random
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from fuzz import CORPUS, FINDINGS, SOURCE, quiet_scratch, read_input, run
from fuzzing.mutators import mutate_plain
from fuzzing.registry import NAMES, load
from fuzzing.target import Finding, Target, attempt

from allotment.errors import AllotmentError, InputError, Mistake

MOST_INPUTS = 400
"""for each parser: the same ones come again, so that what passes here passes elsewhere"""
SECONDS = 120
"""for each parser at most"""
INPUTS = [
    pytest.param(path, id=f"{path.parent.name}/{path.name}")
    for path in sorted(FINDINGS.glob("*/*"))
]
pytestmark = [
    # numpy leaves broken archives open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # torch warns of odd pickles, and as an error it would hide more
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason=(
        "fuzzing is guided by atheris, which has wheels for Linux on x86-64 only: pip install"
        " atheris"
    ),
)


def judge_all(name: str, inputs: Iterable[bytes]) -> list[Finding]:
    """The faults that inputs show."""
    target = load(name)
    with quiet_scratch() as scratch:
        found = [attempt(target, each, scratch).finding for each in inputs]
    assert found
    return [each for each in found if each]


@pytest.mark.parametrize("path", INPUTS)
def test_what_once_broke_a_parser_is_read_or_refused(path: Path) -> None:
    assert judge_all(path.parent.name, [read_input(path)]) == []


@pytest.mark.parametrize("name", NAMES)
def test_seeds_and_some_mutations_do_no_harm(name: str) -> None:
    target, dice = load(name), random.Random(0)
    seeds = list(target.seeds())
    mutate = target.mutate or (
        lambda data, most, seed: mutate_plain(data, most, random.Random(seed))
    )
    mutants = [
        mutate(dice.choice(seeds), target.longest, number)
        for number in range(10 if name == "campaign" else 50)
    ]
    assert judge_all(name, [*seeds, *mutants]) == []


def test_a_mutator_gives_the_same_for_the_same_seed() -> None:
    for name in NAMES:
        target = load(name)
        if target.mutate is not None:
            seed = next(iter(target.seeds()))
            made = [
                [target.mutate(seed, target.longest, number) for number in range(20)]
                for _ in range(2)
            ]
            assert made[0] == made[1], name
            assert len(set(made[0])) > 5, name


def test_the_modules_whose_lines_count_are_there() -> None:
    for name in NAMES:
        for module in load(name).covers:
            assert (SOURCE / "allotment" / f"{module}.py").is_file(), f"{name}: {module}"


def judge(read: object, tmp_path: Path, **limits: float) -> Finding | None:
    return attempt(Target("x", read, list, (), **limits), b"", tmp_path).finding  # type: ignore[arg-type]


def test_whatever_a_parser_may_not_do_is_a_finding(tmp_path: Path) -> None:
    def refuse(*mistakes: Mistake) -> object:
        def read(data: bytes, place: Path) -> None:
            raise InputError(mistakes)

        return read

    def take_over(data: bytes, place: Path) -> None:
        raise AllotmentError("\x1b[2J")  # an InputError shows such letters as escapes

    def wait(data: bytes, place: Path) -> None:
        sum(range(3_000_000))

    def hold(data: bytes, place: Path) -> None:
        # asked of the system: a heap may have as much left from other tests, and not grow
        with mmap.mmap(-1, 50_000_000) as held:
            held.write(b"x" * len(held))

    assert judge(lambda data, place: None, tmp_path) is None
    assert judge(refuse(Mistake("cost", "is missing")), tmp_path) is None
    assert "ZeroDivisionError" in judge(lambda data, place: 1 / 0, tmp_path).what
    assert "nothing told" in judge(refuse(), tmp_path).what
    assert "unprintable" in judge(take_over, tmp_path).what
    assert "too long" in judge(refuse(Mistake("x", "x" * 3000)), tmp_path).what
    assert "too many" in judge(refuse(*[Mistake("x", "y")] * 20_000), tmp_path).what
    assert "too slow" in judge(wait, tmp_path, seconds=0.001).what
    if sys.platform == "linux":
        assert "memory" in judge(hold, tmp_path, megabytes=10).what


def test_the_corpus_is_small() -> None:
    assert CORPUS.stat().st_size < 400_000
    assert sum(path.stat().st_size for path in FINDINGS.glob("*/*")) < 400_000


@pytest.mark.long
@needs_atheris
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_new_breaks_a_parser(name: str, tmp_path: Path) -> None:
    result = run(name, tmp_path, SECONDS, inputs=MOST_INPUTS)
    told = [path.read_text() for path in (tmp_path / name / "findings").glob("*.txt")]
    assert not result["findings"], "\n".join([json.dumps(result), *told])
    assert result["inputs"] > 5
