"""What measured plans are worth, on many data sets.

    python -m corpus settings               draw the purchases that are planned
    python -m corpus measure [--workers 2]  train what is missing; goes on where it was stopped
    python -m corpus replay [--way NAME]    judge ways to plan by what is kept
    python -m corpus report                 the tables and the picture of docs/results/corpus.md

Run it in the folder `experiments`. `settings` and `measure` need the data (ALLOT_TEST_DATA), the
others the kept files alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from corpus.measuring import PARTS, measure_all
from corpus.replay import judge
from corpus.report import show_ways, write_report
from corpus.settings import CAMPAIGNS, list_settings, load_settings, save_settings
from corpus.surfaces import Surface, open_surface
from corpus.tables import OPEN
from corpus.ways import WAYS, list_kept_ways


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["settings", "measure", "replay", "report"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="of each setting")
    parser.add_argument("--way", action="append", help="one of those built in, or FILE.py:FUNCTION")
    parser.add_argument("--part", choices=PARTS, action="append", help="of what is measured")
    asked = parser.parse_args()
    if asked.verb == "settings":
        save_settings(list_settings())
    elif asked.verb == "measure":
        measure_all(asked.workers, asked.campaigns, asked.part or PARTS)
    elif asked.verb == "replay":
        names = asked.way or [*WAYS, *list_kept_ways()]
        surfaces = open_surfaces(asked.campaigns)
        begin = time.perf_counter()
        print(show_ways([judge(name, surfaces) for name in names], surfaces))
        print(f"{time.perf_counter() - begin:.0f} s for {len(names)} ways", file=sys.stderr)
    else:
        write_report(open_surfaces(asked.campaigns))


def open_surfaces(campaigns: int) -> list[Surface]:
    """All that is kept of open tables."""
    found = [open_surface(each, campaigns) for each in load_settings() if each.table in OPEN]
    return [each for each in found if each is not None]


if __name__ == "__main__":
    main()
