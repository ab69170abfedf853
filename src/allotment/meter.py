"""How far long work has come, and how long it will still take: a bar on a terminal, a line in a
notebook, a few lines elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

MOST_PROGRESS_LINES = 8
"""lines where there is no terminal to draw a bar on"""
FIRST_WORD = 0.6
"""seconds after which something is said where there is no bar; what is over sooner needs no word"""
ENOUGH_PIECES = 4
"""pieces of work that tell the time by themselves; of fewer, what was expected beforehand stands
for the others, since the first ones wait for processes to start"""


class Pace:
    """How fast work goes on, and how long it will still take; it is told (done, total)."""

    def __init__(self, seconds: float | None = None):
        """`seconds` is how long it should take, until that can be told from what is done."""
        self.expected = seconds
        self.begun = self.at = time.monotonic()
        self.first: int | None = None
        """how much was done before this run"""
        self.done, self.total = 0, 0

    def count(self, done: int, total: int) -> None:
        if self.first is None:  # what came before, such as loading, says nothing of the pace
            self.first, self.begun = done, time.monotonic()
        self.done, self.total, self.at = done, total, time.monotonic()

    def left(self) -> float | None:
        """Seconds, from what was done in this run or, before anything is, from what was expected;
        None if unknown."""
        now, here = time.monotonic(), self.done - (self.first or 0)
        if here > 0:
            taken, count = self.at - self.begun, here
            if self.expected is not None and here < ENOUGH_PIECES:
                taken += (ENOUGH_PIECES - here) * self.expected / (self.total - (self.first or 0))
                count = ENOUGH_PIECES
            return max(0.0, taken * (self.total - self.done) / count - (now - self.at))
        return None if self.expected is None else max(0.0, self.expected - (now - self.begun))


class Meter(Pace):
    """Shows progress on stderr while a `with` lasts; call it with (done, total)."""

    def __init__(self, what: str, seconds: float | None = None):
        super().__init__(seconds)
        self.what = what
        self.lines = 0
        self._bar: Any = None
        self._line: Any = None
        self._waiting: threading.Timer | None = None

    def __enter__(self) -> Meter:
        self._line = _make_line()
        if self._line is None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._bar = _make_bar(self)
            self._bar.start()
        elif self._line is None:
            self._waiting = threading.Timer(FIRST_WORD, self._say_first)
            self._waiting.daemon = True
            self._waiting.start()
        return self

    def _say_first(self) -> None:
        """That something is being done, while there is nothing else to say yet."""
        if not self.lines:
            is_known = bool(self.total) or self.expected is not None
            said = f"{self.what}: {self.tell()}" if is_known else f"{self.what} ..."
            print(said, file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting.join()  # which may be speaking

    def __call__(self, done: int, total: int) -> None:
        self.count(done, total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
            return
        if self._line is not None:
            self._line.update(Line(f"{self.what}: {self.tell()}"))
            return
        before = self.first or 0
        part = (done - before) * MOST_PROGRESS_LINES // max(total - before, 1)
        if part > self.lines:
            self.lines = part
            print(f"{self.what}: {self.tell()}", file=sys.stderr, flush=True)

    def tell(self) -> str:
        """`12 of 30, about 2 min left`"""
        message = f"{self.done} of {self.total}" if self.total else "preparing"
        left = None if self.is_over else self.left()
        return message if left is None else f"{message}, {spell(left)} left"

    @property
    def is_over(self) -> bool:
        """Whether all is done, which then has to be added up."""
        return 0 < self.total == self.done


class Line:
    """Text that a notebook shows as it is."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _make_line() -> Any:
    """A line of a notebook that can be written anew; None where there is no notebook."""
    if "ipykernel" not in sys.modules:
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return display(Line(""), display_id=True)


Wish = Callable[..., None] | bool | None
"""how people say whether they want to be told: by a function of their own, or with True"""


def ignore(*_: Any) -> None:
    """Tell nobody."""


@contextmanager
def showing(asked: Wish, what: str = "trainings") -> Iterator[Callable[..., None]]:
    """Whom to tell how far it is: the function, nobody, or those who look at the terminal or the
    notebook."""
    if callable(asked):
        yield asked
    elif not asked:
        yield ignore
    else:
        with Meter(what) as meter:
            yield meter


def _make_bar(meter: Meter) -> Any:
    """A bar that asks the meter each time it is drawn, so that the time left counts down between
    two updates."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{meter.tell()}, adding up" if meter.is_over else meter.tell())

    # the bar gives way on a narrow terminal
    time_left = TimeLeft(table_column=Column(no_wrap=True))
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        time_left,
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(meter.what, total=None)
    return bar


def spell(seconds: float) -> str:
    """A time as people say it.

    >>> spell(8), spell(200), spell(9000)
    ('about 8 s', 'about 3 min', 'about 2.5 h')
    """
    if seconds < 100:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
