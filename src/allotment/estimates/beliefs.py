"""What is believed of tasks that share a model before any of them is measured: a dozen numbers."""

from __future__ import annotations

from dataclasses import dataclass

from allotment.plan import NEUTRAL_EXPONENT


@dataclass(frozen=True)
class Beliefs:
    """Set by hand and held against the open data sets of the corpus (docs/results/beliefs.md).
    Spreads are standard deviations of logarithms."""

    exponent: float = NEUTRAL_EXPONENT
    """of every task's curve from now on"""
    spread: float = 0.4
    """of what labels of tasks are worth that still learn, beside each other"""
    bend: float = 0.8
    """how far what a task gains from now on may be from what it gained so far"""
    shared_bend: float = 0.6
    """the same for all tasks at once: as often more as less, so that more is gained in the mean"""
    flat: float = 0.11
    """chance that a task gains nothing any more: half of these have learnt nothing so far, the
    other half all that there is to learn"""
    late: float = 150.0
    """labels up to which a task that looks flat may only be late: the chance falls to a third"""
    room: float = 0.5
    """power of what is missing to the best possible score with which gains grow"""
    learnt: float = 150.0
    """labels with which a task that learns is half-way from chance to the best answers"""
    learnt_spread: float = 0.35
    """standard deviation of how far it has come, around that"""
    noise: float = 1.5
    """how much more slopes vary between sets of labels than trainings on one set show"""
    transfer: float = 0.4
    """standard deviation of what a label of another task brings, where it brings something, as a
    share of what a label of a task's own does"""
    no_transfer: float = 0.7
    """chance that it brings nothing"""
