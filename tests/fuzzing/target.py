"""What is fuzzed: a parser that gets bytes, may refuse them with InputError, and may do nothing
else."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from allotment.errors import AllotmentError, InputError

Mutator = Callable[[bytes, int, int], bytes]
"""from an input, the most bytes that the next may have and a seed to the next input"""
LONGEST_TOLD = 2000
"""letters of one mistake"""
MOST_TOLD = 10_000
"""mistakes in one error"""


@dataclass(frozen=True)
class Target:
    """A parser and what is allowed to it for one input."""

    name: str
    read: Callable[[bytes, Path], object]
    """reads the bytes, with a folder to put them in; whatever it raises but InputError is a
    finding"""
    seeds: Callable[[], Iterable[bytes]]
    covers: tuple[str, ...]
    """modules of allotment that do the reading: their lines are counted"""
    mutate: Mutator | None = None
    """for forms in which changed bytes alone never get far"""
    words: tuple[str, ...] = ()
    """what the parser looks for"""
    longest: int = 1 << 13
    """bytes of one input"""
    seconds: float = 5.0
    """of CPU time for one input, with every branch being recorded"""
    megabytes: int = 200
    """more than before it was read"""


@dataclass(frozen=True)
class Finding:
    """Something that no input may bring about."""

    what: str
    """the same for inputs that show the same fault"""
    told: str

    @property
    def slug(self) -> str:
        letters = "".join(letter if letter.isalnum() else "-" for letter in self.what)
        return f"{letters[:60].strip('-')}-{hashlib.sha256(self.what.encode()).hexdigest()[:6]}"


@dataclass(frozen=True)
class Outcome:
    """What one input took, and what is wrong with that."""

    seconds: float
    megabytes: float
    finding: Finding | None


def attempt(target: Target, data: bytes, scratch: Path) -> Outcome:
    """Read one input in an empty folder."""
    place = scratch / "in"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    begin, held = time.process_time(), _reset_peak()
    finding = None
    try:
        target.read(data, place)
    except AllotmentError as error:
        finding = _judge_error(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        finding = _describe(error)
    seconds, megabytes = time.process_time() - begin, max(0.0, _read_peak() - held)
    if finding is None and seconds > target.seconds:
        finding = Finding(
            "too slow", f"{seconds:.1f} s of CPU time; {target.seconds:g} are allowed"
        )
    if finding is None and megabytes > target.megabytes:
        finding = Finding(
            "too much memory",
            f"{megabytes:.0f} MB more than before; {target.megabytes} are allowed",
        )
    return Outcome(seconds, megabytes, finding)


def _judge_error(error: AllotmentError) -> Finding | None:
    """What is told must fit onto a terminal, and must not be able to take it over."""
    told = [str(each) for each in error.mistakes] if isinstance(error, InputError) else [str(error)]
    if not told or not all(told):
        return Finding(f"nothing told by {_place(error)}", repr(error))
    if len(told) > MOST_TOLD:
        return Finding(f"too many mistakes told by {_place(error)}", f"{len(told)} of them")
    for each in told:
        if len(each) > LONGEST_TOLD:
            return Finding(f"too long a mistake told by {_place(error)}", each[:300])
        if not each.isprintable():
            return Finding(f"unprintable mistake told by {_place(error)}", repr(each)[:300])
    return None


def check_told(reason: str) -> None:
    """Of parsers that refuse with a ValueError, whose words others print."""
    assert len(reason) < 1000, reason
    assert reason.isprintable(), repr(reason)


def _describe(error: BaseException) -> Finding:
    lines = traceback.format_exception(error)
    return Finding(f"{type(error).__name__} in {_place(error)}", "".join(lines)[-3000:])


def _place(error: BaseException) -> str:
    """The innermost function of allotment that it came through, or else of the target."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}allotment{os.sep}" in frame.filename] or frames[
        -1:
    ]
    return f"{Path(ours[-1].filename).stem}.{ours[-1].name}" if ours else "nowhere"


def _reset_peak() -> float:
    """Megabytes held now; from here on the peak is counted anew, where the system can do that."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return 0.0
    return _read_peak()


def _read_peak() -> float:
    try:
        with open("/proc/self/status") as file:
            return next(
                (int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")), 0.0
            )
    except OSError:
        return 0.0
