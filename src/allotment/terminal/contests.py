"""How learners compare, for people."""

from __future__ import annotations

from allotment.formatting import percent
from allotment.learners.contest import CALLED, Contest
from allotment.terminal.page import Page, TextColumn


def show_contest(found: Contest, current: str) -> None:
    """A row for each learner, a column for each task, and what to do about it."""
    page, names = Page(), list(found.skills)
    page.title("Error of the best constant answer that is removed, on labels kept from training")
    columns = [TextColumn("learner", names, "word")]
    for task in found.labels:
        cells = [_show(found.skills[name].get(task)) for name in names]
        columns.append(TextColumn(task, cells, "task"))
    columns.append(TextColumn("mean", [percent(found.means[name]) for name in names]))
    columns.append(TextColumn("training", [f"{found.seconds[name]:.1f} s" for name in names]))
    page.table(columns)
    page.text()
    best = found.best
    if best == current:
        page.text(f"This campaign trains with {best}, and should.")
        return
    page.text(
        f"{CALLED[best].capitalize()} do better than {current}, with which this campaign trains."
        f' To change that, write learner = "{best}" below [training] in campaign.toml; trainings'
        " that are done belong to the other one and would be done anew."
    )


def _show(skill: float | None) -> str:
    return "" if skill is None else percent(skill)
