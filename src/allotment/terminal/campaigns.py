"""A campaign for people: its tasks and money, what to order now, and what plans were really
worth."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from allotment.advice.doctor import Diagnosis
from allotment.amounts import show
from allotment.campaign.audit import Audit
from allotment.campaign.campaign import Measured, Ordered
from allotment.campaign.doubts import tell_odd
from allotment.campaign.evaluation import BASE, LEVEL, SAME_IMAGES, Evaluation
from allotment.campaign.intake import Intake
from allotment.campaign.state import CampaignState, Proposal
from allotment.campaign.summary import Status, list_advice, tell_order, tell_outlook
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import Forecast
from allotment.estimates.scoring import tell_scoring
from allotment.formatting import several
from allotment.learners.validation import Scoreboard, show_score
from allotment.orders.strategy import RANDOM, SHARING
from allotment.settings.settings import quote
from allotment.standing import Standing
from allotment.terminal.page import (
    COLUMN_GAP,
    MOST_LIST_LINES,
    MOST_SIDE_BY_SIDE,
    Page,
    TextColumn,
    fit,
    split,
)
from allotment.terminal.plans import explain_forecasts, list_forecasts


def show_tasks(page: Page, status: Status) -> None:
    """What each task costs, has and could still get."""
    rows = status.tasks
    columns = [
        TextColumn("task", [row["name"] for row in rows], "name"),
        TextColumn("kind", [row["kind"] for row in rows], "word"),
        TextColumn("price", [row["cost"] for row in rows]),
        TextColumn("at hand", [str(row["have"]) for row in rows]),
    ]
    if any(row["came"] or row["open"] for row in rows):
        columns += [
            TextColumn("bought", [str(row["came"]) for row in rows]),
            TextColumn("on order", [str(row["open"]) for row in rows]),
        ]
    columns.append(TextColumn("could be labelled", [str(row["pool"]) for row in rows]))
    if status.scores:
        known = list_forecasts([status.scores.get(row["name"]) for row in rows])
        columns += known if status.is_planned else known[:-1]
    # numbers are never cut
    if page.width is not None and len(split(fit(columns, page.width), page.width + COLUMN_GAP)) > 1:
        page.tables(columns[0], columns[1:])
    else:
        page.table(columns)


def show_stale(page: Page, stale: str) -> None:
    """First of all, that what follows does not know of the newest labels."""
    if stale:
        page.text(f"Out of date: {stale}")
        page.text()


def show_status(page: Page, status: Status) -> None:
    """Spent, open, expected, next."""
    show_stale(page, status.stale)
    show_tasks(page, status)
    page.text()
    page.text(f"Budget {status.money}.")
    if status.expected:
        page.text(f"Expected of the plan for what is left: {status.expected}.")
    if status.order:
        page.text(f"Order now: {status.order}.")
    for said in status.advice:
        page.text(said)
    for note in status.notes:
        page.text(f"Note: {note}.")
    page.text(f"Next: {status.next}")


def show_measured(page: Page, measured: Measured, folder: str) -> None:
    """What the estimates say, and what was used of earlier work."""
    if measured.kept and measured.trained:
        page.text(
            f"{several(measured.kept, 'training')} were there already, {measured.trained} were done"
            " now."
        )
    elif measured.kept:
        page.text("Everything was measured already; nothing was trained.")
    if measured.earlier:
        page.text(f"{several(measured.earlier, 'training')} of earlier rounds count, too.")
    for reason, count in measured.left_over.items():
        page.text(f"{several(count, 'earlier training')} kept but not used: {reason}.")
    show_scoring(page, measured.estimates)
    if measured.diagnosis is None:
        page.text(f"There is nothing to plan with: {measured.idle}.")
        return
    show_diagnosis(page, measured.diagnosis)
    proposal = measured.proposal
    if proposal is not None:
        _show_forecasts(page, proposal.forecasts)
        _tell_waiting(page, proposal.waiting)
        page.text()
        page.text(f"Order now: {tell_order(proposal)}.")
    page.text()
    if measured.tried:
        said = ", ".join(f"{key} = {_spell(each)}" for key, each in measured.tried.items())
        page.text(
            f"This is with {said}, which campaign.toml does not say: plans go by the file. To plan"
            " with it, write it there below [estimates]; nothing is trained again."
        )
        return
    page.text(f"Next: allot plan {folder}")


def _spell(value: Any) -> str:
    """A value as TOML has it."""
    return json.dumps(value, ensure_ascii=False)


def show_scoring(page: Page, estimates: Estimates | None) -> None:
    """Which labels scored, where a method keeps some apart or was told."""
    if estimates is not None and (said := tell_scoring(estimates.about)):
        page.text(f"{said[:1].upper()}{said[1:]}.")
        page.text()


def _show_forecasts(page: Page, forecasts: Mapping[str, Forecast]) -> None:
    """Scores now, and what they are expected to be."""
    if not forecasts:
        return
    page.text()
    names = TextColumn("task", list(forecasts), "name")
    page.table([names, *list_forecasts([*forecasts.values()])])
    page.text(explain_forecasts())


def _tell_waiting(page: Page, waiting: Mapping[str, int]) -> None:
    """That labels are counted which did not come back yet."""
    if counts := ", ".join(f"{count} {name}" for name, count in waiting.items() if count):
        page.text(f"What is on order ({counts}) is counted here as if it were at hand.")


def show_diagnosis(page: Page, diagnosis: Diagnosis) -> None:
    """What the doctor says; what does not fit in a line goes on below its beginning."""
    for line in str(diagnosis).splitlines():
        head = re.match(r"- |  \S.*?   *", line)  # of a list, or the name of what follows
        page.text(line, indent=" " * head.end() if head else "")


def show_proposal(page: Page, proposal: Proposal, folder: str, what_if: bool) -> None:
    """What a campaign's plan rests on, promises, and how much of it to order now."""
    plan = proposal.plan
    page.text()
    page.title("What to order now")
    if proposal.found is None:
        page.text(f"{proposal.basis}.")
    else:
        if message := tell_outlook(plan):
            page.text(f"Expected: {message}.")
        if said := tell_scoring(proposal.found.estimates.about):
            page.text(
                f"Measured by the method {proposal.found.estimates.about.get('method')}, {said}."
            )
    _tell_waiting(page, proposal.waiting)
    why = ": why is said above, below Unspent" if proposal.is_empty and plan.unspent else ""
    page.text(f"Order now: {tell_order(proposal)}{why}.")
    for said in list_advice(proposal):
        page.text(said)
    page.text()
    if what_if:
        page.text(
            "This is for another budget than the campaign's; to order it, write the budget into"
            " campaign.toml."
        )
        return
    page.text(f"Next: {_find_step(proposal, folder)}")


def _find_step(proposal: Proposal, folder: str) -> str:
    """What to type after a plan: nothing is ordered while an order is open, unless somebody
    insists."""
    stop = " --stop" if proposal.is_stopped else ""
    if proposal.orders:
        back = (
            f"order {proposal.orders[-1]} is"
            if len(proposal.orders) == 1
            else "the open orders are"
        )
        more = (
            ""
            if proposal.is_empty
            else f"   (or order this before {back} back: allot order {folder}{stop} --more)"
        )
        return f"allot ingest {folder} FILE{more}"
    if proposal.is_empty:
        return f"allot report {folder}"
    all_of_it = (
        ""
        if proposal.tranche.is_all
        else f"   (or all of the plan at once: allot order {folder}{stop} --all)"
    )
    if proposal.can_stop:
        all_of_it += f"   (or only what pays: allot order {folder} --stop)"
    return f"allot order {folder}{stop}{all_of_it}"


def show_order(page: Page, ordered: Ordered, state: CampaignState, folder: str) -> None:
    """What was ordered and where its sheet is."""
    counts = ", ".join(f"{count} {name}" for name, count in ordered.order.counts.items())
    if ordered.is_new:
        page.text(f"Order {ordered.value.number}: {counts} for {show(ordered.order.total)}.")
        if ordered.shared:
            page.text(f"Note: {ordered.shared}.")
    else:
        page.text(
            f"Order {ordered.value.number} is still open ({counts}); nothing new was ordered."
        )
        page.text(f"To order more before it is back: allot order {folder} {ordered.more}")
    part = "; a part of it is a random part" if ordered.strategy in (RANDOM, SHARING) else ""
    page.text(f"Fill in the last column of {ordered.place}, as far as you get{part}.")
    by = "" if ordered.connector is None else f" --from {quote(ordered.connector)}"
    bring = "--oracle" if state.stock.oracle else f"{quote(ordered.place)}{by}"
    page.text(f"Next: allot ingest {folder} {bring}")


def show_intake(page: Page, intake: Intake, status: Status, folder: str) -> None:
    """What was taken, what was not, and where that is listed."""
    delivery = intake.delivery
    if delivery.again and intake.parts.accepted:
        page.text(
            f"{intake.parts.name} was taken in before (delivery {delivery.number}); nothing was"
            " changed."
        )
        page.text(f"Next: {status.next}")
        return
    if intake.is_empty:
        page.text(f"Nothing came back yet: there is no label in {intake.parts.name}.")
    elif intake.is_useless:
        page.text(f"Nothing in {intake.parts.name} can be used; is it the right file?")
    else:
        _show_taken(page, intake)
    for note in intake.parts.notes:
        page.text(f"{note[:1].upper()}{note[1:]}{'' if note.endswith('?') else '.'}")
    for where, reason in intake.parts.rejected[:MOST_LIST_LINES]:
        page.text(f"  {where}: {reason}", indent="    ")
    if len(intake.parts.rejected) > MOST_LIST_LINES:
        page.text(f"  and {len(intake.parts.rejected) - MOST_LIST_LINES} more")
    if intake.rejected is not None:
        again = f"mend {intake.parts.name} and ingest it again"
        remedy = "mend the rows there and ingest that file" if any(intake.parts.rows) else again
        page.text(
            f"All that could not be taken is listed in {intake.rejected} with the reason; {remedy}."
        )
        if any(intake.parts.rows) and not all(intake.parts.rows):
            page.text(f"What has no row there could not be read; mend it in {intake.parts.name}.")
    if intake.parts.held:
        _show_odd(page, intake, folder)
    page.text(f"Budget {status.money}.")
    page.text(f"Next: {status.next}")


def _show_odd(page: Page, intake: Intake, folder: str) -> None:
    """What looks wrong, and how to say that it is right or mend it."""
    held = intake.parts.held
    looks = "looks odd" if len(held) == 1 else "look odd"
    fate = "held back" if intake.holds else "taken all the same"
    page.text(f"{several(len(held), 'label')} {looks} and {_be(len(held))} {fate}:")
    waiting = [each.label for each in held] if intake.holds else []
    for line in tell_odd(held, [*intake.parts.accepted, *waiting]):
        page.text(f"  {line}", indent="    ")
    listed = "" if intake.odd is None else quote(intake.odd)
    page.text(f"{'It is' if len(held) == 1 else 'All of them are'} listed in {listed}.")
    if not intake.holds:
        page.text(f"What is wrong can be put right: allot correct {folder} --help")
        return
    if len(held) == 1:
        page.text(f"If it is right: allot ingest {folder} --confirm")
        page.text("If not, mend it in that list and ingest the list. Until then it is on order.")
        return
    page.text(f"If they are right: allot ingest {folder} --confirm")
    page.text(
        f"If some are, leave only these in the list: allot ingest {folder} {listed} --confirm"
    )
    page.text("Mend those that are wrong there and ingest the list. Until then they are on order.")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def show_audit(page: Page, found: Audit, folder: str) -> None:
    """What was looked at, what is harmed, and what to do about it."""
    for what, said in found.lines:
        page.text(f"{what}: {said}")
    for file, made, lacks in found.copies:
        page.text(f"copy: {file} of {made}, {_tell_rest(lacks)}")
    page.text()
    if not found.faults:
        page.text("Everything is as it was written, and agrees.")
        return
    page.text("Harmed:")
    for fault in found.faults:
        page.text(f"- {fault}", indent="  ")
    page.text()
    if found.copies:
        page.text(
            "The copies were sound when they were made. To put back the newest that is, with what"
            " was there kept"
        )
        page.text(f"beside it under another name: allot restore {folder}")
    else:
        page.text(
            "There is no copy; put back an archive of `allot pack` with: allot unpack FILE.zip"
            " FOLDER"
        )


def _tell_rest(lacks: int) -> str:
    """What a copy has beside the store."""
    if lacks == 0:
        return "with everything"
    return (
        f"without the last {lacks} entries"
        if lacks > 0
        else f"with {-lacks} entries more than the store"
    )


def _show_taken(page: Page, intake: Intake) -> None:
    """How many labels are new, known, or other than those that are there."""
    delivery, counts = intake.delivery, f'conflicts = "{intake.rule}" in campaign.toml'
    page.text(f"{several(intake.new, 'new label')} from {intake.parts.name}.")
    if delivery.duplicates:
        page.text(f"{several(delivery.duplicates, 'label')} as known already.")
    if delivery.conflicts:
        contradict = (
            "contradicts an earlier one" if delivery.conflicts == 1 else "contradict earlier ones"
        )
        which = "the majority" if intake.rule == "majority" else f"the {intake.rule} one"
        page.text(
            f"{several(delivery.conflicts, 'label')} {contradict}; all are kept, and {which} counts"
            f" ({counts})."
        )
    if had := intake.same + intake.differ:
        which = "what was delivered" if intake.rule == "last" else "what is in the data"
        differ = (
            f"{intake.differ} {'differs' if intake.differ == 1 else 'differ'}: both are kept, and"
            f" {which} counts"
        )
        message = (
            f"{intake.same} the same, {differ} ({counts})" if intake.differ else "All the same"
        )
        page.text(f"Where the data have a label already: {had}. {message}.")


def show_evaluation(page: Page, evaluation: Evaluation) -> None:
    """The table of the paper: gains of every plan with their spread, and how far the first is
    ahead."""
    rows = evaluation.rows()
    _show_gains(page, rows, evaluation.tasks)
    own = (
        "each with its own draw and training"
        if evaluation.repeats > 1
        else "with its own draw and training"
    )
    page.text(
        f"Gains in % of the score with the {BASE}, on the test part: mean ± standard deviation of "
        f"{several(evaluation.repeats, 'repeat')}, {own}. D_T is their mean over tasks. "
        f"Ahead: the paired difference in D_T, with its {LEVEL * 100:.0f} % interval."
    )
    if any(row["name"] == SAME_IMAGES for row in rows):
        page.text(f"({SAME_IMAGES}: all tasks on the same instances)")
    page.text(judge(rows, evaluation.repeats))


def show_scores(page: Page, board: Scoreboard) -> None:
    """How good the model of the labels at hand is, beside the best constant answer."""
    rows, level = board.scores, f"{board.level * 100:.0f} %"
    ways = {True: "higher", False: "lower"}
    spans = [f"{show_score(row.low)} to {show_score(row.high)}" for row in rows]
    page.table(
        [
            TextColumn("task", [row.task for row in rows], "name"),
            TextColumn("metric", [row.title for row in rows], "word"),
            TextColumn("now", [show_score(row.mean) for row in rows]),
            TextColumn(
                f"{level} interval",
                [span if row.is_known else "-" for row, span in zip(rows, spans, strict=True)],
            ),
            TextColumn("best constant", [show_score(row.constant) for row in rows]),
            TextColumn("better is", [ways[row.higher_is_better] for row in rows], "word"),
            TextColumn("labels", [str(row.labels) for row in rows]),
        ]
    )
    page.text()
    page.text(
        f"Cross-validated: the labels at hand in {board.parts} parts, each asked of a model that"
        " was trained on the others; a model of all labels should be no worse. The interval comes"
        " from drawing the scored instances anew (bootstrap), half as wide again, since models"
        " share most of their labels and so their luck. Best constant: the best answer that is the"
        " same for every instance."
    )
    for row in rows:
        if not row.is_known:
            why = f"{several(row.labels, 'label')} can't tell how good it is"
            page.text(f"Note: {row.task}: {why} by {row.title}; label more of it.")
        elif not row.is_better:
            page.text(
                f"Note: {row.task}: by {row.title} the model is no better than the best constant"
                " answer yet."
            )


def _show_gains(page: Page, rows: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> None:
    """One table if it fits; else D_T and the lead first, and the gains of the tasks below."""
    plans = TextColumn("plan", [row["name"] for row in rows], "name")
    gains = [
        TextColumn(task, [_spread(row["gains"][task]) for row in rows], "task") for task in tasks
    ]
    total = TextColumn("D_T", [_spread(row["total"]) for row in rows])
    ahead = TextColumn("this plan ahead by", [_ahead(row["ahead"]) for row in rows], "word")
    whole = [plans, *gains, total, ahead]
    if page.fits(whole) or len(tasks) > MOST_SIDE_BY_SIDE:
        page.table(whole, "--json has them")
        page.text()
        return
    page.table([plans, total, ahead])
    page.text()
    page.tables(plans, gains)


def judge(rows: Sequence[Mapping[str, Any]], repeats: int) -> str:
    """What the intervals say of this plan beside every other, in one sentence."""
    if repeats < 2:
        return "One repeat says nothing about the noise."
    found: dict[Standing, list[str]] = {standing: [] for standing in Standing}
    for row in rows[1:]:
        found[Standing.of_span(row["ahead"])].append(row["name"])
    told_apart = (Standing.BETTER, Standing.WORSE)
    sure = [f"{how} than {_enumerate(found[how])}" for how in told_apart if found[how]]
    parts = [f"this plan is {' and '.join(sure)}"] if sure else []
    if others := found[Standing.EQUAL]:
        both = (
            f"{'it' if sure else 'this plan'} and"
            f" {'each of ' if len(others) > 1 else ''}{_enumerate(others)}"
        )
        parts.append(
            f"between {both} the difference is within the noise: {repeats} repeats cannot tell"
            " which is better"
        )
    if unknown := found[Standing.UNKNOWN]:
        parts.append(
            f"nothing can be told about {_enumerate(unknown)}, for want of a D_T in every repeat"
        )
    message = "; ".join(parts) or "there is no other plan to compare this one with"
    return f"{message[0].upper()}{message[1:]}."


def _enumerate(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _spread(pair: Sequence[float | None]) -> str:
    mean, deviation = pair
    if mean is None:
        return "-"
    return f"{mean:+.1f}" if deviation is None else f"{mean:+.1f} ± {deviation:.1f}"


def _ahead(span: Sequence[float] | None) -> str:
    return "" if span is None else f"{span[0]:+.2f} ({span[1]:+.2f} to {span[2]:+.2f})"
