"""How those who wait are kept informed: functions that long work calls as it goes on."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""is called with how many trainings or jobs are done, and of how many"""
NamedProgress = Callable[[int, int, str], None]
"""is called with what they belong to as well: a task, a method, a repeat"""
