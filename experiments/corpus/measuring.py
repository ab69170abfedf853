"""The long part: trainings of all campaigns, in several processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from allotment.corpus.kept import Kept
from allotment.corpus.plans import PURCHASE, Counts
from allotment.corpus.replay import find_planner, list_choices
from allotment.corpus.setting import Setting, load_settings
from allotment.corpus.surface import KeptSurface
from allotment.corpus.ways import KEPT_WAYS, WAYS
from corpus.campaigns import Campaign, measure, train_missing
from corpus.locked import LOCKED_WAYS
from corpus.rounds import measure_long
from corpus.settings import FOLDER

PARTS = ("surfaces", "long", "plans")
"""of what is measured: what every judge needs, what ways with trainings of their own plan, and the
plans of all ways"""


def measure_all(workers: int, campaigns: int, parts: Sequence[str], locked: bool = False) -> None:
    """Campaign by campaign through all settings, so that a part of them says something of all."""
    settings = [each for each in load_settings(FOLDER) if each.is_locked == locked]
    for part in parts:
        for number in range(campaigns):
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                jobs = {pool.submit(_do, part, each, number): each.name for each in settings}
                for job in as_completed(jobs):
                    print(part, jobs[job], number, f"{job.result():.0f} s", flush=True)


def _do(part: str, setting: Setting, number: int) -> float:
    """One campaign's part; CPU seconds that it took."""
    begin, kept = time.process_time(), Kept(setting.name, FOLDER)
    campaign = Campaign(setting, number)
    if part == "surfaces":
        measure(kept, campaign)
    elif kept.get(number, "response") is None:
        return 0.0
    elif part == "long":
        measure_long(kept, campaign)
    else:
        names = LOCKED_WAYS if setting.is_locked else (*WAYS, *KEPT_WAYS)
        train_choices(KeptSurface(setting, (number,), kept), names)
    spent = time.process_time() - begin
    if spent > 1:  # else all was there
        name = f"seconds of {part}"
        kept.put(number, name, spent + (kept.get(number, name) or 0.0))
    return spent


def train_choices(surface: KeptSurface, names: Sequence[str]) -> None:
    """Train out what ways plan, in the purchases of the surface."""
    runs: dict[int, list[tuple[Counts, int]]] = {number: [] for number in surface.campaigns}
    for name in names:
        chosen = list_choices(surface, name, find_planner(name, [surface]))
        for number, choice in chosen.items():
            runs[number].append((choice.counts, PURCHASE))
    for number, each in runs.items():
        train_missing(surface.kept, Campaign(surface.setting, number), each)
