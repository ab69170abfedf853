"""Options of methods: what each of them may be, wherever it was written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from allotment.amounts import short
from allotment.errors import Mistake, cut, suggest
from allotment.estimates.reduction import MODES
from allotment.estimates.transfer import ESTIMATORS


@dataclass(frozen=True)
class OptionForm:
    """What an option may be."""

    words: str
    fits: Callable[[Any], bool]
    names: tuple[str, ...] = ()
    """all there are, where it is one of some"""
    is_plain: bool = True
    """whether a file and a command can say it; else Python alone"""

    def refuse(self, value: Any) -> str:
        """What is wrong with a value that does not fit."""
        if self.names:
            return f"unknown {short(value)}; {suggest(value, self.names)}"
        return f"{short(value)} is not {self.words}"


RATES_OWN, RATES_BETWEEN = "own", "between"
"""whose reduction rates are measured: those of each task, or of each pair of them, too"""
MOST_OF_AN_OPTION = 1_000_000
"""far beyond what anybody means: a list of that many trainings is still made at once"""


def _is_whole(value: Any) -> bool:
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_number and 1 <= value <= MOST_OF_AN_OPTION


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and abs(value) < math.inf


def _is_amount(value: Any) -> bool:
    return _is_whole(value) or (_is_number(value) and 0 < value < 1)


def _are_sizes(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    sizes = list(value)
    whole = all(_is_whole(size) or (size == 0 and not isinstance(size, bool)) for size in sizes)
    return whole and bool(sizes) and sizes == sorted(set(sizes))


def _one_of(names: Iterable[str]) -> OptionForm:
    known = tuple(names)
    return OptionForm(f"one of {', '.join(known)}", lambda value: value in known, known)


_WHOLE = OptionForm("a whole number of 1 or more, up to a million", _is_whole)
_FLAG = OptionForm("true or false", lambda value: isinstance(value, bool))
_ANYTHING = OptionForm("anything", lambda value: True, is_plain=False)
OPTION_FORMS: dict[str, OptionForm] = {
    **dict.fromkeys(("every", "ahead", "runs", "repetitions", "ensemble", "draws"), _WHOLE),
    "sizes": OptionForm("whole numbers of 0 or more in rising order", _are_sizes),
    "validation": OptionForm(
        "a share between 0 and 1 or a whole number of labels of each task", _is_amount
    ),
    "mode": _one_of(MODES),
    "estimator": _one_of(ESTIMATORS),
    "rates": _one_of((RATES_OWN, RATES_BETWEEN)),
    "triples": _FLAG,
    "own_gain": _FLAG,
    "fallback": _FLAG,
    "best": OptionForm("a number", _is_number),
    **dict.fromkeys(("score_on", "pool", "beliefs", "together", "probing"), _ANYTHING),
}
"""of the built-in methods; what a package's own options may be is for it to say"""
_REFUSED = {
    "score_on": "is for experiments, from Python: a campaign scores on labels at hand",
    "pool": "is settled by the campaign's data; leave it out",
}


def check_options(
    method: str, known: Sequence[str], given: Mapping[str, Any], *, is_plain: bool = False
) -> list[Mistake]:
    """What is wrong with options for a method that knows these; `is_plain` where they come from a
    file or a command."""
    mistakes = []
    usable = [key for key in known if not is_plain or OPTION_FORMS.get(key, _WHOLE).is_plain]
    for key, value in given.items():
        form = OPTION_FORMS.get(key)
        if key in known and is_plain and form is not None and not form.is_plain:
            mistakes.append(Mistake(key, _REFUSED.get(key, "can be given from Python alone")))
        elif key not in known:
            hint = suggest(key, usable) if usable else "it has none"
            mistakes.append(Mistake(cut(key, 60), f"is no option of method {method!r}; {hint}"))
        elif form is not None and value is not None and not form.fits(value):
            mistakes.append(Mistake(key, form.refuse(value)))
    return mistakes


def make_plain(value: Any) -> Any:
    """A value of a file of settings as JSON has it: its decimals are exact, others need not be."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: make_plain(each) for key, each in value.items()}
    return [make_plain(each) for each in value] if isinstance(value, list) else value


def read_option(text: str) -> Any:
    """The value that a command says by a text; commas make a list.

    >>> read_option("50,100,200"), read_option("0.2"), read_option("soft")
    ([50, 100, 200], 0.2, 'soft')
    """
    if "," in text:
        return [read_option(part) for part in text.split(",") if part.strip()]
    given = text.strip()
    if given in ("true", "false"):
        return given == "true"
    for kind in (int, float):
        try:
            return kind(given)
        except ValueError:
            continue
    return given
