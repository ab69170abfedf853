"""Numbers for people: values, money and shares, as all tables and sentences show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from allotment.amounts import show, to_decimal


def number(value: float) -> str:
    """A value with six digits that count."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def numbers(values: Sequence[float]) -> list[str]:
    """Values of one column: six digits of the largest, and the same number of decimals in all."""
    top = max(map(abs, values), default=0.0)
    if not 1e-4 <= top < 1e15:
        return [f"{value:.6g}" for value in values]
    most = max(0, 5 - math.floor(math.log10(top)))
    places = next(n for n in range(most + 1) if all(round(v, n) == round(v, most) for v in values))
    return [f"{v:.{places}f}" if round(v, places) or not v else f"{v:.1g}" for v in values]


def amounts(values: Sequence[Fraction]) -> list[str]:
    """Money of one column: exact, and with the same number of decimals where that is possible."""
    texts = [show(value) for value in values]
    places = max((len(text.partition(".")[2]) for text in texts), default=0)
    if places > 6 or any(text.startswith("~") for text in texts):
        return texts
    return [f"{to_decimal(value):.{places}f}" for value in values]


def percent(share: float) -> str:
    """A share as a manager reads it.

    >>> percent(0.463), percent(0.00042)
    ('46.3 %', '0.04 %')
    """
    return (
        f"{share:.1%}".replace("%", " %")
        if abs(share) >= 0.001 or not share
        else f"{share * 100:.1g} %"
    )


def chance(share: float) -> str:
    """How likely something is, by draws that are never all there could be.

    >>> chance(0.97), chance(0.999), chance(0.0)
    ('97 %', 'above 99 %', 'below 1 %')
    """
    if share > 0.99:
        return "above 99 %"
    if share < 0.01:
        return "below 1 %"
    return f"{share:.0%}".replace("%", " %")


def briefly(value: float, sign: str = "") -> str:
    """Two digits, and no power of ten where people count: `sign="+"` shows it always.

    >>> briefly(1.234), briefly(114.0, "+"), briefly(-0.0123)
    ('1.2', '+110', '-0.012')
    """
    return f"{float(f'{value:.2g}'):{sign}.10g}"


def rounded(price: float | None) -> str:
    """A break-even price, which is known to four digits."""
    return "-" if price is None else number(float(f"{price:.4g}"))


def find_places(width: float) -> int:
    """Decimals with which an interval of this width keeps two digits."""
    return 2 if not width else min(max(0, 1 - math.floor(math.log10(abs(width)) + 1e-9)), 6)


def several(count: int, what: str) -> str:
    """A count with its noun.

    >>> several(1, "task"), several(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
