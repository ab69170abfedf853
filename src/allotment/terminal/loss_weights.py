"""What other loss weights would bring, for people."""

from __future__ import annotations

import math

from allotment.advice.loss_weights import WeightSweep
from allotment.terminal.page import Page, TextColumn


def show_sweep(page: Page, found: WeightSweep, folder: str, written: bool) -> None:
    """A row for each trial, and what to do about it."""
    page.title("Gain in % of the score over the loss weights as they are, on labels kept apart")
    names = [_name(found, number) for number in range(len(found.trials))]
    columns = [TextColumn("loss weights", names, "word")]
    for at, task in enumerate(found.tasks):
        cells = [f"{gains[:, at].mean():+.2f}" for gains in found.gains]
        columns.append(TextColumn(task, ["", *cells[1:]], "task"))
    means = []
    for mean, error in zip(found.means, found.errors, strict=True):
        means.append(f"{mean:+.2f}" + ("" if math.isnan(error) else f" ± {error:.2f}"))
    columns.append(TextColumn("mean", ["", *means[1:]]))
    page.table(columns)
    page.text()
    if not found.changed:
        page.text("No change is clearly better; leave them as they are.")
        page.text(f"Next: allot estimate {folder}")
        return
    said = ", ".join(f"{task}: loss_weight = {each:g}" for task, each in found.changed.items())
    if written:
        page.text(
            f"Written into campaign.toml ({said}). Estimates and evaluations train with it from now"
            " on; what was measured before belongs to the other weights."
        )
        page.text(f"Next: allot estimate {folder}")
        return
    page.text(
        f"Better: {said}. Write it below [[task]] in campaign.toml, or: allot loss-weights {folder}"
        " --write"
    )


def _name(found: WeightSweep, number: int) -> str:
    now, trial = found.trials[0], found.trials[number]
    changed = [f"{task} {each:g}" for task, each in trial.items() if each != now[task]]
    return ", ".join(changed) or "as they are"
