"""A job: what is to be computed, by kind and needs. Its key names all that its result may depend
on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

from allotment import __version__
from allotment.amounts import short
from allotment.errors import InputError, Mistake, cut

SHA256 = re.compile(r"[0-9a-f]{64}")
"""a hash as it is written: a key, a mask's name"""

JSON: TypeAlias = Any
"""None, bool, int, float, str, and lists and dicts (with text as keys) of them"""

DEEPEST_VALUE = 60
"""levels of lists and objects within each other; also the end of a list that contains itself"""
LONGEST_NUMBER = 1024  # bits
MOST_VALUE_MISTAKES = 20
"""mistakes in one value that are listed; the others are like them"""
_FINGERPRINT = re.compile("[0-9a-f]{64}")


def canonical(value: JSON) -> str:
    """The one text of a plain value: sorted keys, no spaces, ASCII. Raises InputError for what JSON
    has no form for.

    >>> canonical({"b": (1, 2.5), "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    wrong: list[Mistake] = []
    plain = _plain(value, None, wrong, DEEPEST_VALUE)
    if wrong:
        raise InputError(wrong[:MOST_VALUE_MISTAKES])
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parse(text: str | bytes) -> JSON:
    """The value of a JSON text; raises ValueError for anything that `canonical` would not have
    written as JSON."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


@dataclass(frozen=True, eq=False)
class Job:
    """A pure function's name and arguments; two jobs are the same if their keys are."""

    kind: str
    needs: Mapping[str, JSON]
    versions: Mapping[str, JSON] | None = None
    """of the programs that do it; those installed here if left out"""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind.strip() or not self.kind.isprintable():
            raise InputError(
                [Mistake("kind of a job", f"{short(self.kind)} is not a name; write 'probe'")]
            )
        if not isinstance(self.needs, Mapping):
            what = f"{short(self.needs)} is not a mapping; write {{'task': 'seg', 'size': 100}}"
            raise InputError([Mistake(f"job {self.kind!r}: needs", what)])
        versions = installed() if self.versions is None else self.versions
        for name, given in (("needs", self.needs), ("versions", versions)):
            try:  # a copy of its own, so that nobody changes it from afar
                object.__setattr__(self, name, json.loads(canonical(given)))
            except InputError as error:
                raise InputError(
                    mistake.under(f"job {self.kind!r}: {name}") for mistake in error.mistakes
                ) from None

    @cached_property
    def key(self) -> str:
        """64 hexadecimal digits that change when the kind, the needs or a version does."""
        text = canonical({"kind": self.kind, "needs": self.needs, "versions": self.versions})
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        # without fingerprints, which tell a reader nothing
        needs = canonical(
            {key: each for key, each in self.needs.items() if not _FINGERPRINT.search(str(each))}
        )
        return f"job {self.kind!r} {needs if len(needs) <= 100 else needs[:97] + '...'}"


@cache
def installed() -> dict[str, str | None]:
    """The versions that results depend on; torch's without the seconds that loading it would
    take."""
    try:
        torch: str | None = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = None
    return {"allotment": __version__, "torch": torch}


# of a value: that of what contains it, and its key there
_Place: TypeAlias = tuple["_Place | None", str | int]


def _plain(value: JSON, place: _Place | None, wrong: list[Mistake], levels: int) -> JSON:
    """The same value of dicts and lists only; what has no form in JSON is noted with its place."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= LONGEST_NUMBER:
            return value
        wrong.append(
            Mistake(_spell(place), "is a number of more than 300 digits; write it as text")
        )
    elif isinstance(value, float):
        if math.isfinite(value):
            return value
        wrong.append(Mistake(_spell(place), f"{float(value)} has no form in JSON; write None"))
    elif not isinstance(value, Mapping | list | tuple):
        what = (
            f"{short(value)} of type {type(value).__name__} has no form in JSON; make it a number,"
            " a text or a list"
        )
        wrong.append(Mistake(_spell(place), what))
    elif not levels:
        wrong.append(
            Mistake(
                _spell(place), f"is nested more than {DEEPEST_VALUE} levels deep; make it flatter"
            )
        )
    elif isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                wrong.append(
                    Mistake(
                        _spell(place), f"the key {short(key)} is not text; write {str(key)[:40]!r}"
                    )
                )
        return {key: _plain(part, (place, key), wrong, levels - 1) for key, part in value.items()}
    else:
        return [_plain(part, (place, index), wrong, levels - 1) for index, part in enumerate(value)]
    return None


def _spell(place: _Place | None) -> str:
    """`sizes[3].task`"""
    parts: list[str] = []
    while place is not None and len(parts) < 12:
        place, key = place
        parts.append(f"[{key}]" if isinstance(key, int) else f".{cut(key, 40)}")
    return "".join(reversed(parts)).lstrip(".") or "the value"


def _refuse_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON; write null")


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {short(twice)} stands twice")
    return made


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)
