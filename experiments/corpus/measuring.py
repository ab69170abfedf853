"""The long part: trainings of all campaigns, in several processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from corpus.campaigns import Campaign, measure
from corpus.kept import Kept
from corpus.replay import train_choices
from corpus.settings import Setting, load_settings
from corpus.surfaces import Surface
from corpus.tables import OPEN
from corpus.ways import WAYS, list_kept_ways, measure_long

PARTS = ("surfaces", "long", "plans")
"""of what is measured: what every judge needs, what ways with trainings of their own plan, and the
plans of all ways"""


def measure_all(workers: int, campaigns: int, parts: Sequence[str]) -> None:
    """Campaign by campaign through all settings, so that a part of them says something of all."""
    settings = [each for each in load_settings() if each.table in OPEN]
    for part in parts:
        for number in range(campaigns):
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                jobs = {pool.submit(_do, part, each, number): each.name for each in settings}
                for job in as_completed(jobs):
                    print(part, jobs[job], number, f"{job.result():.0f} s", flush=True)


def _do(part: str, setting: Setting, number: int) -> float:
    """One campaign's part; CPU seconds that it took."""
    begin, kept = time.process_time(), Kept(setting.name)
    campaign = Campaign(setting, number)
    if part == "surfaces":
        measure(kept, campaign)
    elif kept.get(number, "response") is None:
        return 0.0
    elif part == "long":
        measure_long(kept, campaign)
    else:
        train_choices(Surface(setting, kept, (number,)), [*WAYS, *list_kept_ways()])
    spent = time.process_time() - begin
    if spent > 1:  # else all was there
        kept.put(number, f"seconds of {part}", spent)
    return spent
