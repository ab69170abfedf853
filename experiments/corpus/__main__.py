"""What measured plans are worth, on many data sets.

    python -m corpus settings               draw the purchases that are planned
    python -m corpus measure [--workers 2]  train what is missing; goes on where it was stopped
    python -m corpus report                 the tables and the picture of docs/results/corpus.md
    python -m corpus recall [--locked]      what the first edition planned; needs the history
    python -m corpus learn [--workers 2]    numbers of the estimates: docs/results/beliefs.md
    python -m corpus rules                  how plans may leave neutral, in the same document
    python -m corpus measure --locked       the one reported run, 14 campaigns of each setting
    python -m corpus report --locked        its tables and picture in docs/results/locked.md

Run it in the folder `experiments`. `settings` and `measure` need the data (ALLOT_TEST_DATA),
`report` and `learn` the kept files alone; so does `allot experiment replay`, which judges any way
to plan.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from allotment.corpus.report import write_report
from allotment.corpus.setting import load_settings, save_settings
from allotment.corpus.surface import open_surfaces
from allotment.estimates.beliefs import Beliefs
from corpus.first_edition import keep_first_edition
from corpus.learning import learn, write_learnt
from corpus.locked import LOCKED_CAMPAIGNS, open_tried, write_locked
from corpus.measuring import PARTS, measure_all
from corpus.rules import write_rules
from corpus.settings import CAMPAIGNS, FOLDER, list_settings

RESULTS = FOLDER.parents[1] / "docs" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "verb", choices=["settings", "measure", "recall", "report", "learn", "rules"]
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--campaigns", type=int, help="of each setting")
    parser.add_argument("--part", choices=PARTS, action="append", help="of what is measured")
    parser.add_argument("--locked", action="store_true", help="data sets that nobody looked at")
    asked = parser.parse_args()
    campaigns = asked.campaigns or (LOCKED_CAMPAIGNS if asked.locked else CAMPAIGNS)
    if asked.verb == "settings":
        save_settings(list_settings(), FOLDER)
    elif asked.verb == "measure":
        measure_all(asked.workers, campaigns, asked.part or PARTS, asked.locked)
    elif asked.verb == "recall":
        keep_first_edition(campaigns, asked.locked)
    elif asked.verb == "learn":
        write_learnt(learn(Beliefs(), asked.workers), RESULTS / "beliefs.md")
    elif asked.verb == "rules":
        write_rules(asked.workers, RESULTS / "beliefs.md")
    elif asked.locked:
        settings = [each for each in load_settings(FOLDER) if each.is_locked]
        write_locked(open_tried(settings, FOLDER), RESULTS / "locked.md")
    else:
        write_report(open_surfaces(FOLDER, campaigns), RESULTS / "corpus.md")


if __name__ == "__main__":
    main()
