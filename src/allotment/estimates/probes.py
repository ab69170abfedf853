"""What one more mini-batch of a task does for another task, measured beside a training: the scores of Eq. 5."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.labels import Labels
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.learner import Learner, Patience, State, labelled, probe, train

Array = NDArray[np.float64]


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
    """Gradients of one mini-batch each: those of the trainings, and those that probing added to them."""

    training: int
    probing: int
    """a learner with a `probe` of its own may share some of them between arms"""
    scores: int
    """how often a task was scored"""

    @property
    def ratio(self) -> float:
        return self.probing / self.training if self.training else float("inf")


@dataclass(frozen=True, eq=False)
class Probes:
    """Probes of one or more trainings. Nothing is divided yet: numerators and denominators of Eq. 5 stay apart."""

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
        """[probe, i, j]: how much better j is with i beside it than alone, whichever way its score points.

        Off the diagonal these are the numerators of Eq. 5; on it, where i is j itself, the denominators.
        """
        if score not in ("metric", "loss"):
            raise InputError([Mistake("score", f"unknown {score!r}; {suggest(score, ('metric', 'loss'))}")])
        scores = self.metric if score == "metric" else self.loss
        up = np.array(self.higher_is_better) if score == "metric" else np.zeros(len(self.tasks), dtype=bool)
        return np.asarray(np.where(up, 1.0, -1.0) * (scores.joint - scores.alone[:, None, :]))

    @property
    def cost(self) -> Cost:
        count, tasks = len(self), len(self.tasks)
        mini_batches = sum(len(arm) for arm in _arms(self.tasks).values())
        return Cost(sum(self.trained.values()), count * self.ahead * mini_batches, count * tasks * (tasks + 1))

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
            "trained": dict(self.trained),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Probes:
        """The probes that `to_dict` wrote."""
        needs = ("tasks", "higher_is_better", "ahead", "runs", "at", "metric", "loss")
        if missing := [Mistake(key, "is missing") for key in needs if key not in plain]:
            raise InputError(missing)
        count, tasks = len(plain["runs"]), len(plain["tasks"])
        metric, loss = (
            Scores(to_array(plain[key]["alone"], count, tasks), to_array(plain[key]["joint"], count, tasks, tasks))
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
            dict(plain.get("trained", {})),
        )


def join(parts: Iterable[Probes]) -> Probes:
    """Probes of several trainings, or of parts of one, as one."""
    given = list(parts)
    if not given:
        raise InputError([Mistake("probes", "none are given; join at least one")])
    first, mistakes = given[0], []
    for key in ("tasks", "higher_is_better", "ahead"):
        for other in given[1:]:
            if getattr(other, key) != getattr(first, key):
                found = f"{getattr(first, key)} and {getattr(other, key)} differ; only like probes can be joined"
                mistakes.append(Mistake(key, found))
                break
    seen = [(run, step) for each in given for run, step in zip(each.runs, each.at.tolist(), strict=True)]
    if len(set(seen)) < len(seen):
        run, step = next(one for at, one in enumerate(seen) if one in seen[:at])
        what = f"step {step} of training {run!r} is there twice; give each training a `run` of its own"
        mistakes.append(Mistake("runs", what))
    if mistakes:
        raise InputError(mistakes)
    metric, loss = (
        Scores(*(np.concatenate([getattr(getattr(each, key), arm) for each in given]) for arm in ("alone", "joint")))
        for key in ("metric", "loss")
    )
    return replace(
        first,
        runs=tuple(run for run, _ in seen),
        at=np.array([step for _, step in seen], dtype=np.int64),
        metric=metric,
        loss=loss,
        trained={run: steps for each in given for run, steps in each.trained.items()},
    )


def probe_once(
    learner: Learner, state: State, tasks: Sequence[str], *, steps: int = 5, run: str = "", at: int = 0
) -> Probes:
    """One probe of a state, which stays as it is: `steps` steps of every arm, then the scores of the arm's tasks.

    Arm (i, j) serves both cells, i to j and j to i: gradients are added, so the order says nothing.
    """
    arms = _arms(tasks)
    size = len(tasks)
    alone, joint = np.full((2, 1, size), np.nan), np.full((2, 1, size, size), np.nan)
    up = [True] * size
    # at once where the learner may share gradients between arms; else one by one, since each holds a copy of the model
    for part in [arms] if hasattr(learner, "probe") else [{name: arm} for name, arm in arms.items()]:
        for name, end in probe(learner, state, part, steps).items():
            members = [int(place) for place in name.split()]
            for target in set(members):
                found = learner.score(end, tasks[target])
                both = [value if np.isfinite(value) else np.nan for value in (found.metric, found.loss)]
                up[target] = found.higher_is_better
                if len(members) == 1:
                    alone[:, 0, target] = both
                else:
                    joint[:, 0, sum(members) - target, target] = both
    metric, loss = (Scores(*each) for each in zip(alone, joint, strict=True))
    return Probes(tuple(tasks), tuple(up), steps, (run,), np.array([at], dtype=np.int64), metric, loss)


def _arms(tasks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What a probe trains on, named by the places of its tasks: each task alone, twice, and with each other."""
    alone = {f"{j}": (task,) for j, task in enumerate(tasks)}
    pairs = itertools.combinations_with_replacement(range(len(tasks)), 2)
    return alone | {f"{i} {j}": (tasks[i], tasks[j]) for i, j in pairs}


def probe_training(
    learner: Learner,
    labels: Labels,
    seed: int,
    *,
    every: int = 10,
    steps: int = 5,
    run: str | None = None,
    enough: Callable[[Probes], bool] | None = None,
    patience: Patience | None = None,
) -> tuple[Probes, State]:
    """A whole training on all labelled tasks, probed after every so many steps, and the state it ends in.

    That state is the one of a training without probes, to the byte. `steps` is the paper's m, which it leaves open;
    a probe is taken only where its `steps` still lie within the training. `enough` sees all probes so far after each
    new one; once it says yes the training goes on without.
    """
    tasks = _check(learner, labels, every, steps)
    run = f"{seed} on {labels.fingerprint[:12]}" if run is None else run
    last = learner.steps(labels) - steps
    found: list[Probes] = []
    done, closed = 0, False

    def watch(step: int, state: State) -> None:
        nonlocal done, closed
        done = step
        if closed or step % every or step > last:
            return
        found.append(probe_once(learner, state, tasks, steps=steps, run=run, at=step))
        closed = enough is not None and enough(join(found))

    state = train(learner, labels, seed, patience=patience, watch=watch)
    if not found:
        raise InputError([Mistake("patience", f"the training ended after {done} steps, before its first probe")])
    return replace(join(found), trained={run: done * len(tasks)}), state


def _check(learner: Learner, labels: Labels, every: int, steps: int) -> tuple[str, ...]:
    """The tasks to probe; every mistake at once."""
    mistakes = [
        Mistake(key, f"{value} is below 1; take a whole number of steps")
        for key, value in (("every", every), ("steps", steps))
        if value < 1
    ]
    for name in labels:
        if name not in learner.tasks:
            what = f"is not one of the learner's; {suggest(name, learner.tasks)}"
            mistakes.append(Mistake(f"task {name!r}", what))
    tasks = labelled(learner, labels)
    if len(tasks) < 2:
        has = f"only {tasks[0]!r} has labels" if tasks else "no task has labels"
        mistakes.append(Mistake("labels", f"{has}; transfer is measured between two tasks or more"))
    elif not mistakes and (room := learner.steps(labels)) < every + steps:
        what = f"the training takes {room} steps, the first probe ends at {every + steps}; lower `every` or `steps`"
        mistakes.append(Mistake("every", what))
    if mistakes:
        raise InputError(mistakes)
    return tasks


def to_plain(array: Array) -> Any:
    """Nested lists with None for what is not a number, so that every JSON reader takes them."""
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    return plain.tolist()


def to_array(plain: Any, *shape: int) -> Array:
    """The array that `to_plain` wrote; `shape` tells how many axes there are where there is nothing in them."""
    try:
        found = np.array(plain, dtype=float)
    except (TypeError, ValueError):
        raise InputError([Mistake("scores", f"are not numbers in lists of equal length ({shape} in all)")]) from None
    return found.reshape(shape) if not found.size and 0 in shape else found
