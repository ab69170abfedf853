"""Charts as inline SVG: a learning curve with its band, and an interval beside 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allotment.reports import words
from allotment.reports.markup import Html, cells, clean, join, shorten, tag

WIDTH, HEIGHT = 360, 240
DIGIT = 7.2
"""how wide a digit is at most, in the units of the picture; wide enough for every plain font of
this size"""
TEXT_GAP = 8
"""pixels between two texts"""
ROWS = (12, 28, 42)
"""base lines above the chart: the unit, then what each upright line means"""
FROM_LOG = 30.0
"""the ratio of label numbers from which on they are drawn by their logarithm"""


@dataclass(frozen=True)
class Axis:
    """Where numbers lie along one side of the picture."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        low, high, value = (
            math.log(each) if self.log else each for each in (self.low, self.high, value)
        )
        return round(self.start + (value - low) / (high - low) * (self.end - self.start), 1)


@dataclass(frozen=True)
class Mark:
    """An upright line at a number of labels, with what it means."""

    at: float
    text: str
    kind: str
    """hand or buy"""


def find_ticks(low: float, high: float, most: int, least_step: float = 0.0) -> list[float]:
    """Round numbers between two ends, at most so many.

    >>> find_ticks(0, 3220, 5)
    [0.0, 1000.0, 2000.0, 3000.0]
    """
    rough = max((high - low) / max(most - 1, 1), least_step, 1e-300)
    power = 10.0 ** math.floor(math.log10(rough))
    for times in (1, 2, 2.5, 5, 10, 20, 25, 50, 100):
        step = times * power
        if step < least_step or (least_step >= 1 and step != round(step)):
            continue
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [place * step for place in range(first, last + 1)]


def find_log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between two ends."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [times * 10.0**power for power in powers for times in (1, 2, 5)]
    return [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def name_ticks(ticks: Sequence[float]) -> list[str]:
    """Their texts, all with the same decimals, and short ones for thousands and millions.

    >>> name_ticks([0.5, 0.75]), name_ticks([5000, 20000]), name_ticks([-2.0, 0.0])
    (['0.50', '0.75'], ['5k', '20k'], ['−2', '0'])
    """
    top = max(map(abs, ticks), default=0.0)
    unit, letter = next(
        (each for each in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if top >= 10 * each[0]), (1.0, "")
    )
    if top >= 1e13 or 0 < top < 1e-4:
        return [f"{tick:.3g}".replace("-", "−") for tick in ticks]
    scaled = [tick / unit for tick in ticks]
    places = next(
        (
            n
            for n in range(8)
            if all(abs(round(v, n) - v) < 1e-9 * max(top / unit, 1e-9) for v in scaled)
        ),
        8,
    )
    return [words.say_number(value, places) + (letter if value else "") for value in scaled]


def draw_curve(curve: Mapping[str, Any], marks: Sequence[Mark], key: str) -> Html:
    """A task's scores by its number of labels; `key` is the picture's own id on the page."""
    points, seen = curve.get("points") or [], curve.get("seen") or []
    x, y = _find_axes(points, seen, marks)
    parts = [
        tag("title", f"{clean(curve['task'])}: {words.AXIS}", id=f"{key}-title"),
        tag("desc", words.describe_curve(curve), id=f"{key}-desc"),
        _draw_y(x, y),
        _draw_x(x, y),
    ]
    banded = [point for point in points if point[2] is not None and point[3] is not None]
    if len(banded) > 1:
        edge = [(at, low) for at, _, low, _ in banded] + [
            (at, high) for at, _, _, high in reversed(banded)
        ]
        parts.append(tag("path", d=_path(edge, x, y) + "Z", class_="band"))
    elif banded:  # a band of no width is an upright stroke
        ((at, _, low, high),) = banded
        parts.append(tag("path", d=_path([(at, low), (at, high)], x, y), class_="line"))
    if seen:
        dots = "".join(f"M{x.place(at)} {y.place(score)}h0" for at, score in seen)
        parts.append(tag("path", d=dots, class_="dots"))
    if len(points) == 1:
        parts.append(
            tag("circle", cx=x.place(points[0][0]), cy=y.place(points[0][1]), r="3", class_="line")
        )
    elif points:
        parts.append(
            tag("path", d=_path([(at, mean) for at, mean, _, _ in points], x, y), class_="line")
        )
    parts += [_draw_mark(mark, row, x, y) for mark, row in zip(marks, ROWS[1:], strict=False)]
    if curve.get("unit"):
        room = int((WIDTH - 4) / DIGIT)
        parts.append(
            tag("text", shorten(clean(curve["unit"]), room), x="2", y=ROWS[0], class_="quiet")
        )
    return _picture(HEIGHT, key, parts)


def _picture(height: int, key: str, parts: Sequence[Html]) -> Html:
    named = f"{key}-title {key}-desc"
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_labelledby=named)


def _path(points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    return "M" + "L".join(f"{x.place(at)} {y.place(value)}" for at, value in points)


def _find_axes(
    points: Sequence[Any], seen: Sequence[Any], marks: Sequence[Mark]
) -> tuple[Axis, Axis]:
    at = [each[0] for each in (*points, *seen)] + [mark.at for mark in marks]
    values = [value for point in points for value in point[1:] if value is not None] + [
        score for _, score in seen
    ]
    log = min(at) > 0 and max(at) / min(at) >= FROM_LOG
    left_end, right_end = (float(min(at)) if log else min(0.0, float(min(at)))), float(max(at))
    low, high = _widen(min(values), max(values))
    # the texts of the upright axis say how much room it needs
    texts = name_ticks(find_ticks(low, high, 5))
    left = max(30.0, max(map(cells, texts), default=0) * DIGIT + TEXT_GAP)
    top = ROWS[len(marks)] + 12
    x = Axis(left_end, max(right_end, left_end + 1), left, WIDTH - 20, log)
    return x, Axis(low, high, HEIGHT - 40, top)


def _widen(low: float, high: float) -> tuple[float, float]:
    """Some air above and below, and a range even where all is the same but for rounding."""
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1e-12):
        air = 0.06 * (high - low)
    else:
        air = 0.1 * size if size > 1e-9 else 0.5
    return low - air, high + air


def _draw_y(x: Axis, y: Axis) -> Html:
    ticks = find_ticks(y.low, y.high, 5)
    lines = "".join(f"M{x.start} {y.place(tick)}H{x.end}" for tick in ticks)
    texts = [
        tag("text", text, x=x.start - 5, y=y.place(tick) + 4, text_anchor="end")
        for tick, text in zip(ticks, name_ticks(ticks), strict=True)
    ]
    return tag("g", tag("path", d=lines, class_="grid"), *texts)


def _draw_x(x: Axis, y: Axis) -> Html:
    ticks = _thin(x) if x.log else pick_ticks(x, 6, least_step=1.0)
    strokes = "".join(f"M{x.place(tick)} {y.start}v4" for tick, _ in ticks)
    texts = [
        tag("text", text, x=x.place(tick), y=y.start + 17, text_anchor="middle")
        for tick, text in ticks
    ]
    axis = tag("path", d=f"M{x.start} {y.start}H{x.end}{strokes}", class_="axis")
    middle = round((x.start + x.end) / 2, 1)
    return tag(
        "g",
        axis,
        *texts,
        tag("text", words.AXIS, x=middle, y=HEIGHT - 6, text_anchor="middle", class_="quiet"),
    )


def pick_ticks(x: Axis, most: int, least_step: float = 0.0) -> list[tuple[float, str]]:
    """Ticks of a level axis with their texts: fewer where the texts are wide, and none that would
    be cut."""
    for fewer in range(most, 1, -1):
        ticks = find_ticks(x.low, x.high, fewer, least_step)
        texts = name_ticks(ticks)
        wide = max(map(cells, texts), default=0) * DIGIT
        if len(ticks) < 2 or x.place(ticks[1]) - x.place(ticks[0]) >= wide + TEXT_GAP:
            break
    return [
        pair
        for pair in zip(ticks, texts, strict=True)
        if wide / 2 <= x.place(pair[0]) <= WIDTH - wide / 2
    ]


def _thin(x: Axis) -> list[tuple[float, str]]:
    """Ticks of an axis by logarithm; each has a unit of its own, since 50 and 20,000 stand side by
    side."""
    kept, end = [], 0.0
    for tick in find_log_ticks(x.low, x.high):
        (text,), at = name_ticks([tick]), x.place(tick)
        half = cells(text) * DIGIT / 2
        if at - half >= end and at + half <= WIDTH:
            kept.append((tick, text))
            end = at + half + TEXT_GAP
    return kept


def _draw_mark(mark: Mark, row: float, x: Axis, y: Axis) -> Html:
    at, wide = x.place(mark.at), cells(mark.text) * DIGIT
    if at + wide <= WIDTH:
        anchor, side = "start", at - 1
    elif at >= wide:
        anchor, side = "end", at + 1
    else:
        anchor, side = "start", max(0.0, WIDTH - wide)
    text = tag(
        "text",
        mark.text,
        x=round(side, 1),
        y=row,
        text_anchor=anchor,
        class_=f"quiet {mark.kind}-text",
    )
    # the line ends below the texts, so that it crosses none of them
    return tag("g", tag("path", d=f"M{at} {y.end - 4}V{y.start}", class_=mark.kind), text)


def draw_interval(outlook: Mapping[str, Any], key: str) -> Html:
    """Where the difference to equal budget lies, beside 0."""
    low, high, mean = (float(outlook[end]) for end in ("low", "high", "mean"))
    left, right = _widen(min(low, mean, 0.0), max(high, mean, 0.0))
    x = Axis(left, right, 20, WIDTH - 20)
    ticks = pick_ticks(x, 7)
    strokes = "".join(f"M{x.place(tick)} 40v4" for tick, _ in ticks)
    parts = [
        tag("title", words.HEADS["ahead"], id=f"{key}-title"),
        tag("desc", words.describe_interval(outlook), id=f"{key}-desc"),
        tag("path", d=f"M20 40H{WIDTH - 20}{strokes}", class_="axis"),
        *(tag("text", text, x=x.place(tick), y="58", text_anchor="middle") for tick, text in ticks),
        tag("path", d=f"M{x.place(0.0)} 4V40", class_="hand"),
        tag("path", d=f"M{x.place(low)} 14H{x.place(high)}V30H{x.place(low)}Z", class_="band"),
        tag("path", d=f"M{x.place(mean)} 10V34", class_="line"),
    ]
    return _picture(62, key, parts)


def draw_keys(level: str) -> Html:
    """What the marks of a learning curve mean."""
    shapes = {
        words.LINE: tag("path", d="M1 6H27", class_="line"),
        words.BAND.format(level=level): tag("path", d="M1 1H27V11H1Z", class_="band"),
        words.DOTS: tag("path", d="M7 6h0M14 3h0M21 8h0", class_="dots"),
        words.MARK_HAND: tag("path", d="M14 0V12", class_="hand"),
        words.MARK_PLAN: tag("path", d="M14 0V12", class_="buy"),
    }
    items = [
        tag("li", tag("svg", shape, viewBox="0 0 28 12", aria_hidden="true"), text)
        for text, shape in shapes.items()
    ]
    return tag("ul", join(items), class_="legend")
