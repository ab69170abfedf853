"""Editions of set-ups: a name may come to mean another network, and what was begun with the earlier
one goes on with it. No torch is needed."""

from __future__ import annotations

FIRST = 1
"""the edition of whatever does not say"""
NEWEST = {"voc-small": 3, "taskonomy-small": 3}
"""of set-ups that have had more than one"""
KEEPING_FIRST = ("voc-small", "taskonomy-small")
"""set-ups that keep the first layers of a network as somebody trained them, and so can't begin
without these"""


def newest_edition(network: str) -> int:
    """The edition that a network's name means from now on."""
    return NEWEST.get(network, FIRST)


def check_edition(network: str, edition: int) -> str:
    """What is wrong with it; "" if nothing is."""
    newest = newest_edition(network)
    if FIRST <= edition <= newest:
        return ""
    return f"there is no edition {edition} of {network!r}; the newest is {newest}"
