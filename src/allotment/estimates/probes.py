"""What one more mini-batch of a task does for another task, measured beside a training: the scores
of Eq. 5."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from allotment.arrays import Array
from allotment.data.labels import Labels, shuffle
from allotment.errors import InputError, Mistake, reading, suggest
from allotment.learners.learner import (
    Learner,
    Patience,
    State,
    count_gradients,
    count_scoring,
    labelled,
    probe,
    train,
)

Number = TypeVar("Number", int, float)
AHEAD = 1
"""steps that arms take unless told; more of them pay where to score a probe is more work than K^2
gradients"""
ROUNDING = 1e-9
"""of a score: two scores that are no further apart are the same, but for the order of sums"""
BY_RUN = ("trained", "probed", "scoring", "planned")
"""what probes know of each training"""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores after the arms of each probe; not a number where there was none."""

    alone: Array
    """[probe, j]: of task j, trained alone"""
    joint: Array
    """[probe, i, j]: of task j, trained with a mini-batch of i beside its own"""

    @property
    def double(self) -> Array:
        """[probe, j]: of task j, trained on two mini-batches of its own."""
        return np.diagonal(self.joint, axis1=1, axis2=2)

    def to_dict(self) -> dict[str, Any]:
        return {"alone": to_plain(self.alone), "joint": to_plain(self.joint)}


@dataclass(frozen=True)
class Cost:
    """Gradients of one mini-batch each: those of the trainings, and those that probing added to
    them."""

    training: int
    probing: int
    """of the look-aheads; a learner with a `probe` of its own may share some of them between
    arms"""
    scoring: float
    """the work of the scores, in gradients; 0 where the learner does not say"""
    scores: int
    """how often a task was scored"""

    @property
    def ratio(self) -> float:
        """What probing adds to the trainings, as a multiple of them."""
        return (self.probing + self.scoring) / self.training if self.training else float("inf")


@dataclass(frozen=True, eq=False)
class Probes:
    """Probes of one or more trainings. Nothing is divided yet: numerators and denominators of Eq. 5
    stay apart."""

    tasks: tuple[str, ...]
    higher_is_better: tuple[bool, ...]
    """of each task's metric; a loss is better when lower"""
    ahead: int
    """steps that each arm takes: the paper's m"""
    runs: tuple[str, ...]
    """of each probe, the training it belongs to"""
    at: NDArray[np.int64]
    """of each probe, after which step of its training it was taken"""
    metric: Scores
    loss: Scores
    trained: Mapping[str, int] = field(default_factory=dict)
    """gradients of one mini-batch that each training took by itself"""
    probed: Mapping[str, int] = field(default_factory=dict)
    """gradients that the look-aheads from each training took"""
    scoring: Mapping[str, float] = field(default_factory=dict)
    """the work of their scores, in gradients"""
    planned: Mapping[str, int] = field(default_factory=dict)
    """how many probes each training was to have; given as `probes` it has the same again, unless by
    `every`"""
    sources: bool = False
    """whether arms step on the source alone, as TAG's do: then `alone` has the scores before any
    step, and `joint` [probe, i, j] those of j after steps on i"""

    def __post_init__(self) -> None:
        count, tasks = len(self.runs), len(self.tasks)
        shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
            "higher_is_better": (np.shape(self.higher_is_better), (tasks,)),
            "at": (self.at.shape, (count,)),
        }
        for key, scores in (("metric", self.metric), ("loss", self.loss)):
            shapes[f"{key}.alone"] = scores.alone.shape, (count, tasks)
            shapes[f"{key}.joint"] = scores.joint.shape, (count, tasks, tasks)
        mistakes = [
            Mistake(key, f"has the shape {given}; {count} probes of {tasks} tasks make it {wanted}")
            for key, (given, wanted) in shapes.items()
            if given != wanted
        ]
        if mistakes:
            raise InputError(mistakes)

    def __len__(self) -> int:
        return len(self.runs)

    def gains(self, score: str = "metric") -> Array:
        """[probe, i, j]: how much better j is with i beside it than alone, whichever way its score
        points.

        Off the diagonal these are the numerators of Eq. 5; on it, where i is j itself, the
        denominators. What is left of a score by rounding is 0: nobody should divide by it.
        """
        if score not in ("metric", "loss"):
            raise InputError(
                [Mistake("score", f"unknown {score!r}; {suggest(score, ('metric', 'loss'))}")]
            )
        scores = self.metric if score == "metric" else self.loss
        up = (
            np.array(self.higher_is_better)
            if score == "metric"
            else np.zeros(len(self.tasks), dtype=bool)
        )
        alone = scores.alone[:, None, :]
        gains = np.where(up, 1.0, -1.0) * (scores.joint - alone)
        return np.asarray(np.where(np.abs(gains) <= ROUNDING * np.abs(alone), 0.0, gains))

    @property
    def cost(self) -> Cost:
        spent = sum(self.trained.values()), sum(self.probed.values()), sum(self.scoring.values())
        return Cost(*spent, len(self) * len(self.tasks) * (len(self.tasks) + 1))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None stands for what is not a number."""
        return {
            "tasks": list(self.tasks),
            "higher_is_better": list(self.higher_is_better),
            "ahead": self.ahead,
            "runs": list(self.runs),
            "at": self.at.tolist(),
            "metric": self.metric.to_dict(),
            "loss": self.loss.to_dict(),
            **{key: dict(getattr(self, key)) for key in BY_RUN},
            **({"sources": True} if self.sources else {}),
        }

    @classmethod
    @reading("the probes")
    def from_dict(cls, plain: Mapping[str, Any]) -> Probes:
        """The probes that `to_dict` wrote."""
        needs = ("tasks", "higher_is_better", "ahead", "runs", "at", "metric", "loss")
        if missing := [Mistake(key, "is missing") for key in needs if key not in plain]:
            raise InputError(missing)
        count, tasks = len(plain["runs"]), len(plain["tasks"])
        metric, loss = (
            Scores(
                to_array(plain[key]["alone"], count, tasks),
                to_array(plain[key]["joint"], count, tasks, tasks),
            )
            for key in ("metric", "loss")
        )
        return cls(
            tuple(plain["tasks"]),
            tuple(bool(up) for up in plain["higher_is_better"]),
            int(plain["ahead"]),
            tuple(plain["runs"]),
            np.array(plain["at"], dtype=np.int64),
            metric,
            loss,
            **{key: dict(plain.get(key, {})) for key in BY_RUN},
            sources=bool(plain.get("sources", False)),
        )


def join(parts: Iterable[Probes]) -> Probes:
    """Probes of several trainings, or of parts of one, as one."""
    given = list(parts)
    if not given:
        raise InputError([Mistake("probes", "none are given; join at least one")])
    first, mistakes = given[0], []
    for key in ("tasks", "higher_is_better", "ahead", "sources"):
        for other in given[1:]:
            if getattr(other, key) != getattr(first, key):
                found = (
                    f"{getattr(first, key)} and {getattr(other, key)} differ; only like probes can"
                    " be joined"
                )
                mistakes.append(Mistake(key, found))
                break
    seen = [
        (run, step) for each in given for run, step in zip(each.runs, each.at.tolist(), strict=True)
    ]
    if len(set(seen)) < len(seen):
        run, step = next(one for at, one in enumerate(seen) if one in seen[:at])
        what = (
            f"step {step} of training {run!r} is there twice; give each training a `run` of its own"
        )
        mistakes.append(Mistake("runs", what))
    if mistakes:
        raise InputError(mistakes)
    metric, loss = (
        Scores(
            np.concatenate([scores.alone for scores in parts]),
            np.concatenate([scores.joint for scores in parts]),
        )
        for parts in ([each.metric for each in given], [each.loss for each in given])
    )
    return replace(
        first,
        runs=tuple(run for run, _ in seen),
        at=np.array([step for _, step in seen], dtype=np.int64),
        metric=metric,
        loss=loss,
        trained=_add_up(each.trained for each in given),
        probed=_add_up(each.probed for each in given),
        scoring=_add_up(each.scoring for each in given),
        planned=_add_up(each.planned for each in given),
    )


def _add_up(parts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """Parts of one training together."""
    total: dict[str, Number] = {}
    for part in parts:
        for run, amount in part.items():
            total[run] = total[run] + amount if run in total else amount
    return total


def probe_once(
    learner: Learner,
    state: State,
    tasks: Sequence[str],
    *,
    steps: int = AHEAD,
    run: str = "",
    at: int = 0,
) -> Probes:
    """One probe of a state, which stays as it is: `steps` steps of every arm, then the scores of
    the arm's tasks.

    Arm (i, j) serves both cells, i to j and j to i: gradients are added, so the order says nothing.
    """
    arms = make_arms(tasks)
    size = len(tasks)
    alone, joint = np.full((2, 1, size), np.nan), np.full((2, 1, size, size), np.nan)
    up = [True] * size
    # at once where the learner may share gradients between arms; else one by one, since each holds
    # a copy of the model
    for part in (
        [arms] if hasattr(learner, "probe") else [{name: arm} for name, arm in arms.items()]
    ):
        for name, end in probe(learner, state, part, steps).items():
            members = [int(place) for place in name.split()]
            for target in set(members):
                found = learner.score(end, tasks[target])
                both = [
                    value if np.isfinite(value) else np.nan for value in (found.metric, found.loss)
                ]
                up[target] = found.higher_is_better
                if len(members) == 1:
                    alone[:, 0, target] = both
                else:
                    joint[:, 0, sum(members) - target, target] = both
    metric, loss = (Scores(*each) for each in zip(alone, joint, strict=True))
    probed, scoring = (
        {run: count_gradients(learner, arms, steps)},
        {run: count_scoring(learner, arms)},
    )
    place = np.array([at], dtype=np.int64)
    return Probes(
        tuple(tasks), tuple(up), steps, (run,), place, metric, loss, probed=probed, scoring=scoring
    )


def probe_sources(
    learner: Learner,
    state: State,
    tasks: Sequence[str],
    *,
    steps: int = AHEAD,
    run: str = "",
    at: int = 0,
) -> Probes:
    """One probe as TAG takes it: the scores of all tasks before, and after steps on each source
    alone."""
    size, arms = len(tasks), make_arms(tasks, sources=True)
    before, after = np.full((2, 1, size), np.nan), np.full((2, 1, size, size), np.nan)
    before[:, 0], up = _score_all(learner, state, tasks)
    for name, end in probe(learner, state, arms, steps).items():
        after[:, 0, int(name)], _ = _score_all(learner, end, tasks)
    metric, loss = (Scores(*each) for each in zip(before, after, strict=True))
    # each task is scored as often as by `probe_once`: once more than there are tasks
    scoring = {run: count_scoring(learner, make_arms(tasks))}
    probed = {run: count_gradients(learner, arms, steps)}
    place = np.array([at], dtype=np.int64)
    found = Probes(
        tuple(tasks), up, steps, (run,), place, metric, loss, probed=probed, scoring=scoring
    )
    return replace(found, sources=True)


def _score_all(
    learner: Learner, state: State, tasks: Sequence[str]
) -> tuple[Array, tuple[bool, ...]]:
    """[metric or loss, task], and of each task whether its metric is better when higher."""
    found = [learner.score(state, task) for task in tasks]
    values = np.array([[each.metric for each in found], [each.loss for each in found]])
    return np.where(np.isfinite(values), values, np.nan), tuple(
        each.higher_is_better for each in found
    )


def make_arms(tasks: Sequence[str], sources: bool = False) -> dict[str, tuple[str, ...]]:
    """What a probe trains on, named by the places of its tasks: each task alone and, unless only
    sources are wanted, twice, and with each other."""
    alone: dict[str, tuple[str, ...]] = {f"{j}": (task,) for j, task in enumerate(tasks)}
    if sources:
        return alone
    pairs = itertools.combinations_with_replacement(range(len(tasks)), 2)
    return alone | {f"{i} {j}": (tasks[i], tasks[j]) for i, j in pairs}


def probe_training(
    learner: Learner,
    labels: Labels,
    seed: int,
    *,
    every: int | None = None,
    probes: int | None = None,
    minutes: float | None = None,
    budget: float = 1.0,
    steps: int = AHEAD,
    scored: int | None = None,
    run: str | None = None,
    enough: Callable[[Probes], bool] | None = None,
    patience: Patience | None = None,
    sources: bool = False,
) -> tuple[Probes, State]:
    """A whole training on all labelled tasks, probed on its way, and the state it ends in: to the
    byte that of a training without probes.

    Probes are taken after `every` so many steps, or `probes` of them, or as many as fit into
    `minutes`, or (the usual way) as often as `budget` allows: probing then takes at most so many
    times the work of the training itself. Minutes are turned into a number of probes before the
    start, which `planned` keeps. A probe is taken only where its `steps` (the paper's m, which it
    leaves open) still lie within the training.

    Arms are scored on `scored` validation instances, drawn by seed once for the training; on all of
    them if None. `enough` sees all probes so far after each new one; once it says yes the training
    goes on without. With `sources` probes are those of TAG (`probe_sources`).
    """
    tasks = _check(
        learner,
        labels,
        {"every": every, "probes": probes, "minutes": minutes},
        budget,
        steps,
        scored,
    )
    scorer = learner if scored is None else score_on_some(learner, scored, seed)
    run = f"{seed} on {labels.fingerprint[:12]}" if run is None else run
    last = learner.steps(labels) - steps
    if minutes is not None:
        probes = count_within(minutes, time_probe(scorer, labels, seed, steps))
    apart = every or space_within(budget, scorer, tasks, steps)
    most = last // apart if probes is None else min(probes, last)
    if most < 1:
        raise InputError(
            [_explain_no_room(learner.steps(labels), apart if probes is None else 1, steps, every)]
        )
    every = every or last // most
    found: list[Probes] = []
    done, closed = 0, False

    def watch(step: int, state: State) -> None:
        nonlocal done, closed
        done = step
        if closed or step % every or step > every * most:
            return
        look = probe_sources if sources else probe_once
        found.append(look(scorer, state, tasks, steps=steps, run=run, at=step))
        closed = enough is not None and enough(join(found))

    state = train(learner, labels, seed, patience=patience, watch=watch)
    if not found:
        raise InputError(
            [Mistake("patience", f"the training ended after {done} steps, before its first probe")]
        )
    return replace(join(found), trained={run: done * len(tasks)}, planned={run: most}), state


def score_on_some(learner: Learner, count: int, seed: int) -> Learner:
    """The same learner, scored on so many of its validation instances."""
    chosen = shuffle(learner.validation, "scored", seed)[:count]  # type: ignore[attr-defined]
    found: Learner = learner.with_validation(chosen)  # type: ignore[attr-defined]
    return found


def space_within(budget: float, learner: Learner, tasks: Sequence[str], steps: int = AHEAD) -> int:
    """The fewest steps between two probes for which probing takes at most `budget` times the work
    of training."""
    arms = make_arms(tasks)
    work = count_gradients(learner, arms, steps) + count_scoring(learner, arms)
    return max(1, math.ceil(work / (budget * len(tasks)) - 1e-9))


@dataclass(frozen=True)
class Timing:
    """Seconds on this machine."""

    step: float
    probe: float


def time_probe(learner: Learner, labels: Labels, seed: int = 0, steps: int = AHEAD) -> Timing:
    """How long a step on all labelled tasks takes, and a probe, in a training of which nothing is
    kept."""
    tasks = labelled(learner, labels)
    state = learner.step(learner.start(labels, seed), tasks)  # the first of all has more to do
    begun = time.perf_counter()
    state = learner.step(state, tasks)
    between = time.perf_counter()
    probe_once(learner, state, tasks, steps=steps)
    return Timing(between - begun, time.perf_counter() - between)


def count_within(minutes: float, timing: Timing) -> int:
    """How many probes fit into the time."""
    count = int(minutes * 60 / max(timing.probe, 1e-9))
    if count < 1:
        what = f"{minutes:g} is too short for one probe, which takes {timing.probe / 60:.2g} here"
        raise InputError([Mistake("minutes", what)])
    return count


def _check(
    learner: Learner,
    labels: Labels,
    pace: Mapping[str, float | None],
    budget: float,
    steps: int,
    scored: int | None,
) -> tuple[str, ...]:
    """The tasks to probe; every mistake at once."""
    counts = {"every": pace["every"], "probes": pace["probes"], "steps": steps, "scored": scored}
    mistakes = [
        Mistake(key, f"{value} is below 1; take a whole number")
        for key, value in counts.items()
        if value is not None and value < 1
    ]
    for key, value in {"minutes": pace["minutes"], "budget": budget}.items():
        if value is not None and not 0 < value < float("inf"):
            mistakes.append(Mistake(key, f"{value} is not a number above 0"))
    if len(given := [key for key, value in pace.items() if value is not None]) > 1:
        mistakes.append(
            Mistake(", ".join(given), "each says how many probes there are; give one of them")
        )
    if scored is not None and not (
        hasattr(learner, "with_validation") and hasattr(learner, "validation")
    ):
        mistakes.append(
            Mistake("scored", "the learner has no `with_validation`; leave it out to score on all")
        )
    for name in labels:
        if name not in learner.tasks:
            what = f"is not one of the learner's; {suggest(name, learner.tasks)}"
            mistakes.append(Mistake(f"task {name!r}", what))
    tasks = labelled(learner, labels)
    mistakes += check_tasks(tasks)
    if mistakes:
        raise InputError(mistakes)
    return tasks


def check_tasks(tasks: Sequence[str]) -> list[Mistake]:
    """Whether there is anything to measure between the tasks that have labels."""
    if len(tasks) >= 2:
        return []
    has = f"only {tasks[0]!r} has labels" if tasks else "no task has labels"
    return [Mistake("labels", f"{has}; transfer is measured between two tasks or more")]


def _explain_no_room(room: int, apart: int, steps: int, every: int | None) -> Mistake:
    what = f"the training takes {room} steps, the first probe ends at {apart + steps}; "
    if every is not None:
        return Mistake("every", what + "lower `every` or `steps`")
    if room <= steps:
        return Mistake("steps", what + "lower `steps`")
    return Mistake("budget", what + "raise `budget`, or score on fewer instances (`scored`)")


def to_plain(array: Array) -> Any:
    """Nested lists with None for what is not a number, so that every JSON reader takes them."""
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    return plain.tolist()


def to_array(plain: Any, *shape: int) -> Array:
    """The array that `to_plain` wrote; `shape` tells how many axes there are where there is nothing
    in them."""
    try:
        found = np.array(plain, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            [Mistake("scores", f"are not numbers in lists of equal length ({shape} in all)")]
        ) from None
    return found.reshape(shape) if not found.size and 0 in shape else found
