"""The paper's data sets as it uses them, at its own size and at one for two cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from allotment.errors import InputError, Mistake, suggest


@dataclass(frozen=True)
class Prices:
    """What labels cost, and how much there is to spend."""

    name: str
    costs: Mapping[str, int]
    budget: int


@dataclass(frozen=True)
class Case:
    """A data set, the network that is trained on it, and how often."""

    data: str
    setup: str
    tasks: tuple[str, ...]
    have: int
    """the paper's n: labels of each task to begin with, on different instances"""
    seed_sets: int
    """that are drawn; all figures are over these"""
    purchases: int
    """of each plan and seed set, nested and paired: plans of one purchase share what both buy"""
    prices: tuple[Prices, ...]
    validation: int
    """labels of each task that score what a method measures, beyond the n"""
    implies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """labels that come with those of another task, for training alone"""
    looked_at: int = 0
    """runs that measure transfer; 0: the method's own number"""

    def find_prices(self, name: str) -> Prices:
        for each in self.prices:
            if each.name == name:
                return each
        known = [each.name for each in self.prices]
        raise InputError([Mistake("prices", f"there are none of {name!r}; {suggest(name, known)}")])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Case:
        given = dict(plain)
        given["tasks"] = tuple(given["tasks"])
        given["prices"] = tuple(Prices(**each) for each in given["prices"])
        given["implies"] = {task: tuple(others) for task, others in given["implies"].items()}
        return cls(**given)


CLASSES, SEGMENTATION = "classes", "segmentation"
LARGER = "1:20, larger budget"
"""the paper's Table 1"""
RATIOS = {"1:3": 3, "1:20": 20, "1:30": 30}
"""of the prices of a class label and a mask"""
TASKONOMY_COSTS = {"segmentation": 10, "normals": 3, "depth": 3, "keypoints": 2, "edges": 3}
"""P14"""
TASKONOMY_PRICES = "10:3:3:2:3"


def _price_voc(have: int, larger: int) -> tuple[Prices, ...]:
    """The budget buys as many labels of each task as are there; in Table 1 more (P13)."""
    found = [
        Prices(name, {CLASSES: 1, SEGMENTATION: ratio}, have * (1 + ratio))
        for name, ratio in RATIOS.items()
    ]
    return (*found, Prices(LARGER, {CLASSES: 1, SEGMENTATION: 20}, larger))


def _price_taskonomy(have: int) -> tuple[Prices, ...]:
    budget = have * sum(TASKONOMY_COSTS.values())
    return (Prices(TASKONOMY_PRICES, TASKONOMY_COSTS, budget),)


SMALL, FULL = "small", "full"
SIZES = (SMALL, FULL)
VOC_IMPLIES = {SEGMENTATION: (CLASSES,)}
"""a mask tells the classes of its image, which joins the classification set (P13)"""
CASES: Mapping[tuple[str, str], Case] = {
    ("voc", SMALL): Case(
        "voc", "voc-small", (CLASSES, SEGMENTATION), 80, 5, 3, _price_voc(80, 80 * 21 * 3 // 2),
        validation=40, implies=VOC_IMPLIES,
    ),
    ("voc", FULL): Case(
        "voc", "voc-paper", (CLASSES, SEGMENTATION), 300, 1, 10, _price_voc(300, 9300),
        validation=100, implies=VOC_IMPLIES, looked_at=10,
    ),
    ("taskonomy", SMALL): Case(
        "taskonomy", "taskonomy-small", tuple(TASKONOMY_COSTS), 20, 5, 3, _price_taskonomy(20),
        validation=10, looked_at=5,
    ),
    ("taskonomy", FULL): Case(
        "taskonomy", "taskonomy-paper", tuple(TASKONOMY_COSTS), 10_000, 1, 5,
        _price_taskonomy(10_000), validation=1000, looked_at=5,
    ),
}  # fmt: skip
"""by data set and size: n, budgets and repeats of `full` are the paper's (P13 - P16); `small` has
less of both n and budget, so that the pool has enough labels for all of it on one task"""


def find_case(data: str, size: str) -> Case:
    """A case by data set and size."""
    if size not in SIZES:
        raise InputError([Mistake("config", f"unknown {size!r}; {suggest(size, SIZES)}")])
    known = sorted({each for each, _ in CASES})
    if data not in known:
        raise InputError([Mistake("data", f"unknown {data!r}; {suggest(data, known)}")])
    return CASES[data, size]
