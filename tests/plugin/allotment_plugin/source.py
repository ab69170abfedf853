"""Noisy sine waves: twelve samples of each, of which its frequency and its phase are to be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from allotment.data.source import DataSettings, Key, KnownTask, Place, Source
from allotment.errors import InputError, Mistake

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset

SAMPLES = 12
LEAST = 20


class Sines(Source):
    """Waves that are made up, so that every label is known."""

    name = "sines"
    about = "Noisy sine waves: how fast each is, and how it begins."
    keys = (
        Key("count", int, "how many waves there are", 200),
        Key("noise", float, "how far a sample is off, of a wave that is 1 high", 0.1),
        Key("seed", int, "draws the waves"),
    )
    complete = True
    tasks: Mapping[str, KnownTask] = {
        "frequency": KnownTask("regression", 3, 40),
        "start": KnownTask("classification", 1, 40),
    }
    budget = 120

    def check(self, given: DataSettings) -> Sequence[tuple[Place, Mistake]]:
        count = given.options.get("count", LEAST)
        if count >= LEAST:
            return ()
        what = f"{count} are too few; write {LEAST} or more"
        return [(("data", "count"), Mistake("data: count", what))]

    def open(self, given: DataSettings) -> Dataset:
        if wrong := self.check(given):
            raise InputError(mistake for _, mistake in wrong)
        import numpy as np

        from allotment.data.dataset import ArrayData, Target

        count = given.options.get("count", 200)
        rng = np.random.default_rng(given.options.get("seed", 0))
        frequency, rises = rng.uniform(0.5, 2, count), rng.integers(0, 2, count)
        time = np.linspace(0, 1, SAMPLES)
        waves = np.sin(2 * np.pi * (frequency[:, None] * time + 0.5 * (1 - rises[:, None])))
        waves += given.options.get("noise", 0.1) * rng.normal(size=waves.shape)
        return ArrayData(
            name="sines",
            targets=(
                Target("frequency", "regression"),
                Target("start", "classification", ("falling", "rising")),
            ),
            features=waves.astype(np.float32),
            labels={"frequency": frequency.astype(np.float32), "start": rises.astype(np.int64)},
            ids=tuple(f"wave-{number}" for number in range(count)),
        )


SOURCE = Sines()
