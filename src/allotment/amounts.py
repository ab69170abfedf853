"""Exact numbers: decimals in, whole multiples of one unit inside."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction

LARGEST_AMOUNT = 10**15
"""of money or labels; what is larger is taken for a mistake"""
FINEST = 12  # decimal places


def exact(value: object) -> Fraction:
    """The number that was written, to the last digit: `exact("0.035")` is 7/200, and so is
    `exact(0.035)`.

    Raises ValueError with a sentence for people.
    """
    if type(value) is int and -LARGEST_AMOUNT <= value <= LARGEST_AMOUNT:  # most are
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, str | int | Fraction | Decimal | float):
        if isinstance(value, numbers.Number) and hasattr(value, "item"):  # a number of numpy's
            return exact(value.item())
        raise ValueError(f"{short(value)} is not a number")
    try:
        number = _parse(value)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        raise ValueError(f"{short(value)} is not a number") from None
    if isinstance(number, Decimal):
        number = _round(number, value)
    fraction = Fraction(number)
    if abs(fraction) > LARGEST_AMOUNT:
        raise ValueError(f"{short(value)} is too large (the limit is 10^15)")
    if fraction.denominator > 10**FINEST:
        raise ValueError(f"{short(value)} has too many digits (at most {FINEST} decimal places)")
    return fraction


def _parse(value: str | int | Fraction | Decimal | float) -> Decimal | Fraction | int:
    if isinstance(value, str) and "/" in value and len(value) < 80:
        return Fraction(value)
    if isinstance(value, str | float):
        return Decimal(value.strip() if isinstance(value, str) else repr(float(value)))
    return value


def _round(number: Decimal, value: object) -> Decimal | int:
    """The same number in a form that a Fraction is quickly made of."""
    if not number.is_finite():
        raise ValueError(f"{short(value)} is not a finite number")
    if number and number.adjusted() < -FINEST:
        raise ValueError(f"{short(value)} is too small to count (the limit is 10^-{FINEST})")
    if number and number.adjusted() > 15:  # before 10^400 becomes an integer of 400 digits
        return LARGEST_AMOUNT + 1
    # a million digits would take Fraction minutes
    rounded = number.quantize(Decimal(10) ** -FINEST, context=Context(prec=40))
    if rounded != number:
        raise ValueError(f"{short(value)} has too many digits (at most {FINEST} decimal places)")
    return rounded


def whole(value: object) -> int:
    """A whole number; raises ValueError with a sentence for people."""
    if type(value) is int and -LARGEST_AMOUNT <= value <= LARGEST_AMOUNT:
        return value
    fraction = exact(value)
    if fraction.denominator != 1:
        raise ValueError(f"{short(value)} is not a whole number")
    return int(fraction)


def common_unit(amounts: Iterable[Fraction]) -> Fraction:
    """The largest unit of which every amount is a whole multiple (1 if all are zero)."""
    unit = Fraction(0)
    for amount in amounts:
        numerator = math.gcd(
            unit.numerator * amount.denominator, amount.numerator * unit.denominator
        )
        unit = Fraction(numerator, unit.denominator * amount.denominator)
    return unit or Fraction(1)


def show(amount: Fraction) -> str:
    """The shortest exact decimal: `6300`, `0.035`; a fraction that has none is rounded and marked
    with `~`."""
    if amount.denominator == 1:
        return str(amount.numerator)
    if 10**FINEST % amount.denominator:  # no decimal, or one of more places than can be read
        return f"~{float(amount):.6g}"
    return f"{to_decimal(amount):f}"


def to_decimal(amount: Fraction) -> Decimal:
    """The amount as a decimal, exact wherever it has a finite one."""
    return Decimal(amount.numerator) / Decimal(amount.denominator)


def short(value: object) -> str:
    """The value as it was given, cut to a length that fits into a message."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a number of about {value.bit_length() * 0.30103:.0f} digits"
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # Python does not print numbers of more than 4300 digits
        text = f"a {type(value).__name__} of thousands of digits"
    return text if len(text) <= 40 else text[:37] + "..."
