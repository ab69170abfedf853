"""How plans, frontiers and estimates show themselves in a notebook: the page of what is known of
them, in a frame of its own from which nothing reaches the notebook."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from allotment.advice.questions import LEVEL_SHOWN, find_knee
from allotment.campaign.summary import describe_transfer, trace_curves
from allotment.estimates.estimates import Estimates
from allotment.formatting import several
from allotment.frontiers import Frontier
from allotment.plan import Plan
from allotment.problem import show_exact
from allotment.reports.page import render
from allotment.reports.plans import collect_plan, find_unit

FRAME_HEIGHT = 640
"""pixels; what is longer is scrolled"""
FRONTIER_TITLE, ESTIMATES_TITLE = "What budgets bring", "What labels are worth"
FRONTIER_POINTS = 48
UNNAMED_METRIC = "score"


def draw(value: Plan | Frontier | Estimates) -> str:
    """The page of a value as HTML for a notebook; its `repr` is for those who see no frames."""
    page = render(collect(value))
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" width="100%"'
        f' height="{FRAME_HEIGHT}" frameborder="0">{html.escape(repr(value))}</iframe>'
    )


def collect(value: Plan | Frontier | Estimates) -> dict[str, Any]:
    """What a page shows of it, in the form of `page.render`."""
    if isinstance(value, Estimates):
        return collect_estimates(value)
    return collect_frontier(value) if isinstance(value, Frontier) else collect_plan(value)


def collect_frontier(frontier: Frontier) -> dict[str, Any]:
    """What every budget brings, and what the whole one buys."""
    points, budget = _list_points(frontier), show_exact(frontier.problem.budget)
    bought = ", ".join(f"{name} {each[-1]}" for name, each in frontier.counts.items())
    values: dict[str, Any] = {
        "title": FRONTIER_TITLE,
        "decision": f"All of {budget} buys {bought}; frontier.at(budget) is the plan for less.",
    }
    if len(points) > 1:
        unit, knee = find_unit(frontier.evidence), find_knee(points)
        shown = {"points": points, "budget": budget, "level": LEVEL_SHOWN}
        values["frontier"] = shown | {"unit": unit, "knee": knee}
    return values


def _list_points(frontier: Frontier) -> list[list[float | None]]:
    """[money, mean, low, high] at some budgets; low and high are None without draws."""
    sampled, evidence = frontier.to_dict(FRONTIER_POINTS), frontier.evidence
    budgets, values = sampled["budgets"], sampled["values"]
    if not isinstance(evidence, Estimates):
        pairs = zip(budgets, values, strict=True)
        return [[float(budget), value, None, None] for budget, value in pairs]
    weights = np.array([frontier.problem[task].weight for task in evidence.tasks])
    points: list[list[float | None]] = []
    for place, budget in enumerate(budgets):
        counts = {task: sampled["counts"][task][place] for task in evidence.tasks}
        gains = evidence.gains_of(counts) @ weights / max(weights.sum(), 1e-300)
        low, high = np.quantile(gains, [(1 - LEVEL_SHOWN) / 2, (1 + LEVEL_SHOWN) / 2])
        points.append([float(budget), float(gains.mean()), float(low), float(high)])
    return points


def collect_estimates(estimates: Estimates) -> dict[str, Any]:
    """What labels of each task bring, and what tasks do for each other."""
    metrics = dict.fromkeys(estimates.tasks, UNNAMED_METRIC)
    about = {key: each for key, each in estimates.about.items() if key != "measured"}
    said = (
        f"{several(estimates.draws, 'draw')} of what labels are worth to"
        f" {several(len(estimates.tasks), 'task')}; al.allocate(problem, estimates) makes a plan"
        " of them."
    )
    return {
        "title": ESTIMATES_TITLE,
        "decision": said,
        "curves": trace_curves(estimates, {}, metrics),
        "transfer": describe_transfer(estimates),
        "about": about,
    }
