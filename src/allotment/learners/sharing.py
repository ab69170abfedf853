"""What tasks share of a network for images, by name. No torch is needed."""

from __future__ import annotations

from allotment.errors import suggest

SHARED_TRUNK = "all"
"""all layers of the trunk, as in the paper; only batch norms are each task's own"""
WITH_ADAPTERS = "adapters"
"""the same, with small layers of each task's own after every stage of the trunk"""
SHARINGS = (SHARED_TRUNK, WITH_ADAPTERS)


def check_sharing(name: str) -> str:
    """What is wrong with it; "" if nothing is."""
    return "" if name in SHARINGS else f"unknown {name!r}; {suggest(name, SHARINGS)}"
