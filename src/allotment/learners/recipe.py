"""How a network is trained."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from allotment.errors import InputError, Mistake, suggest

OPTIMISERS = ("sgd", "adam", "adamw")
PRECISIONS = ("auto", "float32", "bfloat16")
MOST_AT_ONCE = 1_000_000
"""instances of a mini-batch"""
MOST_MEMBERS = 50
"""networks of one training"""
DEVICES = ("auto", "cpu", "cuda", "mps", "xpu", "hpu", "xla")
"""that torch can train on; a number may follow, as in cuda:1"""


@dataclass(frozen=True)
class Recipe:
    """How to train. Epochs go over the task with most labels; `steps` overrides them.

    >>> Recipe(steps=200, optimiser="adam", trunk_rate=0.003, head_rate=0.003).batch_size
    32
    """

    epochs: int = 30
    steps: int | None = None
    batch_size: int = 32
    optimiser: str = "sgd"
    trunk_rate: float = 0.02
    head_rate: float = 0.05
    final_rate: float = 0.0001
    """where the cosine ends (P12)"""
    momentum: float = 0.9
    weight_decay: float = 0.0
    members: int = 1
    """networks of one training on a table, each of which leaves out other labels; their answers are
    drawn towards the best constant as far as these labels advise it. 1 trains one network, as it
    is"""
    crop: int = 0
    """side of random crops, scaled and flipped at random, that images are trained on; 0 trains on
    them as they are"""
    accumulate: int = 1
    """a mini-batch in so many parts, one after the other: less memory, the same gradients but for
    batch norm"""
    patience: int = 0
    """goes on after the last step, at the last rate, until the loss of labels that are held back
    has not fallen for so many epochs in a row; 0 ends with the last step"""
    workers: int = 2
    """threads that read and crop the images of the steps to come"""
    device: str = "auto"
    """or cpu, cuda, mps ...; auto is a GPU of CUDA where there is one, else the CPU"""
    precision: str = "auto"
    """or float32, or bfloat16: mixed precision; auto mixes on a GPU that can"""

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(key, f"{getattr(self, key)} is below {least}")
            for key, least in (
                ("epochs", 1),
                ("batch_size", 1),
                ("accumulate", 1),
                ("members", 1),
                ("crop", 0),
                ("patience", 0),
                ("workers", 0),
            )
            if getattr(self, key) < least
        ]
        if self.batch_size > MOST_AT_ONCE:
            mistakes.append(
                Mistake("batch_size", f"{self.batch_size} is above {MOST_AT_ONCE}; 32 is usual")
            )
        if self.members > MOST_MEMBERS:
            mistakes.append(
                Mistake("members", f"{self.members} is above {MOST_MEMBERS}; 4 is usual")
            )
        if self.steps is not None and self.steps < 0:
            mistakes.append(Mistake("steps", f"{self.steps} is below 0"))
        for key in ("trunk_rate", "head_rate", "final_rate", "momentum", "weight_decay"):
            if not 0 <= getattr(self, key) < float("inf"):
                mistakes.append(
                    Mistake(key, f"{getattr(self, key)} is not a finite number of 0 or more")
                )
        if self.optimiser not in OPTIMISERS:
            mistakes.append(
                Mistake(
                    "optimiser",
                    f"unknown {self.optimiser!r}; {suggest(self.optimiser, OPTIMISERS)}",
                )
            )
        if self.precision not in PRECISIONS:
            mistakes.append(
                Mistake(
                    "precision",
                    f"unknown {self.precision!r}; {suggest(self.precision, PRECISIONS)}",
                )
            )
        if mistakes:
            raise InputError([mistake.under("recipe") for mistake in mistakes])

    def describe(self) -> dict[str, Any]:
        """As settings say it: all that makes a training what it is, without what does not count."""
        keys = ["epochs" if self.steps is None else "steps", "batch_size", "optimiser"]
        keys += ["trunk_rate", "head_rate", "final_rate", "weight_decay"]
        keys += ["momentum"] if self.optimiser == "sgd" else []
        keys += [key for key in ("crop", "patience") if getattr(self, key)]
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name in keys}

    def settled(self) -> Recipe:
        """The same with device and precision of this machine in place of auto."""
        if (self.device, self.precision) == ("auto", "auto") and _is_for_cpu():
            return replace(self, device="cpu", precision="float32")
        import torch

        device, precision = self.device, self.precision
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            kind = torch.device(device).type
        except RuntimeError:
            raise InputError(
                [Mistake("recipe.device", f"torch knows no device {device!r}; try cpu or cuda")]
            ) from None
        if not _is_there(torch, kind):
            raise InputError(
                [Mistake("recipe.device", f"there is no {kind} device here; take cpu or auto")]
            )
        if precision == "auto":
            precision = (
                "bfloat16" if kind == "cuda" and torch.cuda.is_bf16_supported() else "float32"
            )
        return replace(self, device=device, precision=precision)


def _is_for_cpu() -> bool:
    """Whether torch was built without any GPU, as its own file says; loading all of it to ask takes
    seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    built = dict(re.findall(r"^(cuda|hip)\b[^=\n]*= *(\S+)", text, re.MULTILINE))
    return built == {"cuda": "None", "hip": "None"}


def _is_there(torch: Any, kind: str) -> bool:
    """Whether this machine has a device of this kind; of what torch alone can't tell the first
    training will."""
    modules = {"cuda": torch.cuda, "mps": torch.backends.mps, "xpu": getattr(torch, "xpu", None)}
    found = modules.get(kind)
    return found is None or bool(found.is_available())


def check_recipe(given: Mapping[str, Any]) -> list[Mistake]:
    """What is wrong with what settings say of it, without torch: also what would train nothing, or
    not count."""
    mistakes = []
    known = {each.name for each in fields(Recipe)}
    try:
        Recipe(**{key: value for key, value in given.items() if key in known})
    except InputError as error:
        mistakes += [replace(each, where=each.where.rpartition(" ")[2]) for each in error.mistakes]
    if given.get("steps") == 0:
        mistakes.append(
            Mistake("steps", '0 would train nothing; give 1 or more, or set method = "neutral"')
        )
    if "steps" in given and "epochs" in given:
        mistakes.append(Mistake("epochs", "does not count beside steps; leave one of them out"))
    if given.get("patience") and given.get("members", 1) > 1:
        mistakes.append(Mistake("patience", "is for one network; leave it or members out"))
    device = given.get("device", "auto")
    if not re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", device):
        mistakes.append(Mistake("device", f"unknown {device!r}; known: {', '.join(DEVICES)}"))
    return mistakes
