"""How good a model of the labels at hand is: each label is asked of a model that never saw it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from allotment.arrays import AnyArray, Ints
from allotment.data.dataset import PIXEL_KINDS, VOID, Dataset, Instances, Target
from allotment.data.labels import Labels, TaskLabels, shuffle
from allotment.errors import InputError, Mistake, reading
from allotment.formatting import number
from allotment.learners.learner import Learner, State, train_many
from allotment.learners.metrics import LOSS, METRICS, Metric, title_metric
from allotment.learners.shown_answers import keep_examples, shorten_answers
from allotment.quantiles import student

PARTS = 5
"""parts of the labels at hand, each of which is asked of a model of the others"""
FEWEST_SCORED = 5
"""labels of a task that say something about how good its answers are"""
SCORE_LEVEL = 0.9
"""of the intervals of scores"""
RESAMPLES = 1000
"""times that the scored instances are drawn anew for an interval"""
DRAWN_AT_MOST = 20_000_000
"""instances that are drawn for an interval in all: of many instances fewer draws say as much"""
FEWEST_RESAMPLES = 100
WIDENED = 1.5
"""times that an interval is as wide as drawing the scored instances anew makes it: models of all
parts share most of their labels, and so their luck; by tuning tables (benchmarks/forecasts.py)"""
NEVER_SEEN = 3.0
"""divided by a number of instances: the share at most, by 95 %, of what was in none of them"""
PICTURES_LOOKED_AT = 200
"""pictures whose pixels say which constant answer is best"""
ANSWERED_AT_ONCE = 64
"""pictures whose answers are held at a time"""
SHOWN_OF_A_PART = 2
"""pictures of each part whose answers are kept for people to look at"""


@dataclass(frozen=True)
class TaskScore:
    """How good the answers of a task are in one metric, and what the best constant answer gets."""

    task: str
    metric: str
    mean: float
    """over all labels, each answered by a model that did not see it; not a number if unknown"""
    low: float
    high: float
    """an interval of SCORE_LEVEL: where the score of such models lies on other instances like
    these, as far as the labels tell"""
    constant: float
    """the score of the best answer that is the same for every instance"""
    higher_is_better: bool
    labels: int
    """that it was scored on"""

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.mean)

    @property
    def is_better(self) -> bool:
        """Than the best constant answer."""
        ahead = self.mean - self.constant
        return ahead > 0 if self.higher_is_better else ahead < 0

    @property
    def title(self) -> str:
        """The metric as people write it."""
        return title_metric(self.metric)

    def __str__(self) -> str:
        if not self.is_known:
            return f"{self.task} {self.title} unknown with {self.labels} labels"
        span = f"({show_score(self.low)} to {show_score(self.high)})"
        beside = f"best constant answer {show_score(self.constant)}"
        return f"{self.task} {self.title} {show_score(self.mean)} {span}, {beside}"


@dataclass(frozen=True)
class Scoreboard:
    """How good the model of the labels at hand is, task by task."""

    scores: tuple[TaskScore, ...]
    """of each task, the metric that is planned with first"""
    parts: int
    """in how many the labels were cut, each answered by a model of the others"""
    level: float = SCORE_LEVEL

    def __getitem__(self, task: str) -> TaskScore:
        """The score of a task in the metric that is planned with."""
        for score in self.scores:
            if score.task == task:
                return score
        raise KeyError(task)

    def rename(self, names: Mapping[str, str]) -> Scoreboard:
        """The same with other names for some tasks."""
        scores = [replace(each, task=names.get(each.task, each.task)) for each in self.scores]
        return replace(self, scores=tuple(scores))

    def __str__(self) -> str:
        return "\n".join(map(str, self.scores))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, None for what is not known; `from_dict` reads them back."""
        rows = [{key: _plain(each) for key, each in asdict(row).items()} for row in self.scores]
        return {"scores": rows, "parts": self.parts, "level": self.level}

    @classmethod
    @reading("the scores")
    def from_dict(cls, plain: Mapping[str, Any]) -> Scoreboard:
        """The scores that `to_dict` wrote."""
        figures = ("mean", "low", "high", "constant")
        rows = []
        for row in plain["scores"]:
            known = {key: math.nan if row[key] is None else float(row[key]) for key in figures}
            rows.append(TaskScore(**{**row, **known}))
        return cls(tuple(rows), int(plain["parts"]), float(plain["level"]))


def show_score(value: float) -> str:
    """A score with three digits that count.

    >>> show_score(0.98234), show_score(13264.2)
    ('0.982', '13300')
    """
    return "-" if not math.isfinite(value) else number(float(f"{value:.3g}"))


def deal(data: Dataset, labels: Labels, parts: int, seed: int) -> Ints:
    """Of each instance the part that it belongs to, -1 where it has no label.

    All labels of an instance, and of a group, are in one part. Parts get as many labels of each
    task and of each of its classes as can be, in an order that depends on the seed alone.
    """
    marks = _mark(data, labels)
    units: dict[Any, list[int]] = {}
    for instance in shuffle(np.array(sorted(marks), dtype=np.int64), "parts", seed).tolist():
        unit = instance if data.groups is None else data.groups[instance].item()
        units.setdefault(unit, []).append(instance)
    found = np.full(data.size, -1, dtype=np.int64)
    held: list[dict[Any, int]] = [{} for _ in range(parts)]
    for members in units.values():
        own = [mark for member in members for mark in marks[member]]

        def fill(part: int, own: list[Any] = own) -> tuple[int, int]:
            return sum(held[part].get(mark, 0) for mark in own), sum(held[part].values())

        least = min(range(parts), key=fill)
        found[members] = least
        for mark in own:
            held[least][mark] = held[least].get(mark, 0) + 1
    return found


def _mark(data: Dataset, labels: Labels) -> dict[int, list[tuple[str, int]]]:
    """Of each labelled instance its tasks, with the class where that is one of several."""
    marks: dict[int, list[tuple[str, int]]] = {}
    targets = {target.name: target for target in data.targets}
    for task, mine in labels.items():
        classes = np.zeros(len(mine), dtype=np.int64)
        if targets[task].kind == "classification" and len(mine):
            classes = np.asarray(data.values(task, mine.instances), dtype=np.int64)
        for instance, place in zip(mine.instances.tolist(), classes.tolist(), strict=True):
            marks.setdefault(instance, []).append((task, place))
    return marks


def answer_parts(
    learner: Learner,
    data: Dataset,
    labels: Labels,
    *,
    parts: int,
    chosen: Sequence[int],
    seed: int,
) -> list[dict[str, Any]]:
    """For each of the chosen parts, what a model of all others says of its labels, as plain values.

    It depends on no metric: whole answers are kept or, of pictures, what all metrics can be made
    of.
    """
    part_of = deal(data, labels, parts, seed)
    runs = []
    for part in chosen:
        others = {task: mine.keep(part_of[mine.instances] != part) for task, mine in labels.items()}
        runs.append((Labels(others), seed + part))
    targets = {target.name: target for target in data.targets}
    constants = {
        task: find_constants(targets[task], _look(data, targets[task], mine))
        for task, mine in labels.items()
        if len(mine)
    }
    found = []
    for part, state in zip(chosen, train_many(learner, runs), strict=True):
        answers = {}
        for task, mine in labels.items():
            asked = np.sort(mine.instances[part_of[mine.instances] == part])
            if len(asked):
                answers[task] = _answer(learner, state, data, targets[task], asked, constants[task])
        found.append(answers)
    return found


def _answer(
    learner: Learner,
    state: State,
    data: Dataset,
    target: Target,
    asked: Instances,
    constants: Sequence[AnyArray],
) -> dict[str, Any]:
    plain: dict[str, Any] = {"instances": asked.tolist()}
    if target.kind in PIXEL_KINDS:
        plain |= _tally(learner, state, data, target, asked, constants)
        plain["shown"] = keep_examples(learner, state, data, target, asked, SHOWN_OF_A_PART)
    else:
        plain["said"] = shorten_answers(learner.predict(state, target.name, asked))
    if hasattr(learner, "with_validation"):
        twin = learner.with_validation(Labels({target.name: asked}))
        plain["loss"] = _plain(twin.score(state, target.name).loss)
        if hasattr(twin, "score_constant"):
            plain["constant_loss"] = _plain(twin.score_constant(state, target.name).loss)
    return plain


def _tally(
    learner: Learner,
    state: State,
    data: Dataset,
    target: Target,
    asked: Instances,
    constants: Sequence[AnyArray],
) -> dict[str, Any]:
    """Of each picture what metrics are made of, by the model and by each constant answer."""
    names = list_tallied(target.kind)
    model: dict[str, list[Any]] = {name: [] for name in names}
    same: list[dict[str, list[Any]]] = [{name: [] for name in names} for _ in constants]
    for begin in range(0, len(asked), ANSWERED_AT_ONCE):
        some = asked[begin : begin + ANSWERED_AT_ONCE]
        values = data.values(target.name, some)
        said = [learner.predict(state, target.name, some)]
        said += [_repeat(each, values) for each in constants]
        for answers, into in zip(said, [model, *same], strict=True):
            for name in names:
                tally = METRICS[name].tally
                assert tally is not None
                for place in range(len(some)):
                    counted = tally(answers[place : place + 1], values[place : place + 1])
                    into[name].append(_pack(counted))
    return {"tallies": model, "constant_tallies": same}


def list_tallied(kind: str) -> list[str]:
    """Metrics of which all others of a kind of picture are made: those that count alike share
    one."""
    ways: dict[Any, str] = {}
    for name in METRICS:
        try:
            metric = METRICS[name]
        except InputError:  # of a package that is broken
            continue
        if kind in metric.kinds and metric.tally is not None:
            ways.setdefault(metric.tally, name)
    return list(ways.values())


def _pack(counted: AnyArray) -> list[list[Any]]:
    """Where there is something, and what: most pictures have few of many classes."""
    flat = np.asarray(counted).ravel()
    return [[place, flat[place].item()] for place in np.flatnonzero(flat).tolist()]


def find_constants(target: Target, values: AnyArray) -> list[AnyArray]:
    """Answers, the same everywhere, among which the best one is, whatever the metric."""
    if target.kind in ("classification", "segmentation"):
        whole = values.astype(np.int64).ravel()
        if target.kind == "segmentation":
            whole = whole[whole != VOID]
        counts = np.bincount(whole, minlength=len(target.classes))
        return [counts / max(int(counts.sum()), 1)]
    if target.kind == "multilabel":
        known = ~np.isnan(values)
        shares = np.where(known, values, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        return [shares.astype(np.float64)]
    if target.kind == "normals":
        vectors = np.moveaxis(values, 1, -1).reshape(-1, 3).astype(np.float64)
        vectors = vectors[~np.isnan(vectors).any(axis=1)]
        return [vectors.mean(axis=0) if len(vectors) else np.zeros(3)]
    numbers = values[~np.isnan(values)].astype(np.float64)
    if not len(numbers):
        return [np.zeros(())]
    return [np.asarray(numbers.mean()), np.asarray(np.median(numbers))]


def _look(data: Dataset, target: Target, mine: TaskLabels) -> AnyArray:
    """The labels that constant answers are made of: of pictures some pixels of some of them."""
    if target.kind not in PIXEL_KINDS:
        return data.values(target.name, mine.instances)
    values = data.values(target.name, np.sort(mine.instances)[:PICTURES_LOOKED_AT])
    step = max(1, values.shape[-1] // 64)
    return np.asarray(values[..., ::step, ::step])


def _repeat(answer: AnyArray, values: AnyArray) -> AnyArray:
    """A constant answer in the form of predictions for these labels."""
    pixels = values.shape[-2:] if values.ndim >= 3 else ()
    shaped = answer.reshape(1, *answer.shape, *(1,) * len(pixels))
    return np.broadcast_to(shaped, (len(values), *answer.shape, *pixels))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def add_up(
    data: Dataset,
    metrics: Mapping[str, Sequence[str]],
    found: Sequence[Mapping[str, Any]],
    seed: int = 0,
) -> Scoreboard:
    """The scores that the answers of all parts come to, in each task's metrics."""
    scores = []
    for target in data.targets:
        answers = [part[target.name] for part in found if target.name in part]
        for name in metrics[target.name]:
            blank = TaskScore(target.name, name, math.nan, math.nan, math.nan, math.nan, False, 0)
            blank = replace(
                blank,
                higher_is_better=name != LOSS and METRICS[name].higher_is_better,
                labels=sum(len(each["instances"]) for each in answers),
            )
            enough = blank.labels >= FEWEST_SCORED
            scores.append(_score(data, target, blank, answers, seed) if enough else blank)
    return Scoreboard(tuple(scores), len(found))


def _score(
    data: Dataset, target: Target, blank: TaskScore, answers: Sequence[Mapping[str, Any]], seed: int
) -> TaskScore:
    if blank.metric == LOSS:
        return _score_losses(blank, answers)
    metric = METRICS[blank.metric]
    asked = np.concatenate([np.array(each["instances"], dtype=np.int64) for each in answers])
    if target.kind in PIXEL_KINDS:
        compute, constants = _from_tallies(metric, target, answers)
    else:
        compute, constants = _from_answers(data, metric, target, asked, answers)
    if compute is None:
        return blank
    mean = compute(np.arange(len(asked)))
    units = asked if data.groups is None else np.unique(data.groups[asked], return_inverse=True)[1]
    low, high = _widen(mean, _find_interval(compute, units, seed))
    if low == high and metric.higher_is_better and 0 <= mean <= 1:
        # all answers are right, or all wrong, and so they are however they are drawn
        reach = NEVER_SEEN / len(np.unique(units))
        low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    best = max if metric.higher_is_better else min
    # the R2 of a mean is 0 but for rounding
    known = [round(each, 12) for each in constants if math.isfinite(each)]
    return replace(
        blank, mean=mean, low=low, high=high, constant=best(known) if known else math.nan
    )


Compute = Callable[[Ints], float]
"""the metric over some of the scored instances, by their places"""


def _from_answers(
    data: Dataset,
    metric: Metric,
    target: Target,
    asked: Instances,
    answers: Sequence[Mapping[str, Any]],
) -> tuple[Compute, list[float]]:
    values = np.asarray(data.values(target.name, asked))
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    said = np.array([each for part in answers for each in part["said"]], dtype=np.float64)
    constants = [metric(_repeat(each, values), values) for each in find_constants(target, values)]
    if not metric.ranks:
        return lambda places: metric(said[places], values[places]), constants
    part_of = np.repeat(np.arange(len(answers)), [len(each["instances"]) for each in answers])

    def rank_parts(places: Ints) -> float:
        """The mean over parts of what each one's model makes of their order."""
        found = []
        for part in range(len(answers)):
            mine = places[part_of[places] == part]
            found.append((metric(said[mine], values[mine]), len(mine)))
        known = [(value, count) for value, count in found if math.isfinite(value)]
        if not known:  # hardly any labels: better than nothing
            return metric(said[places], values[places])
        return float(np.average([value for value, _ in known], weights=[n for _, n in known]))

    return rank_parts, constants


def _from_tallies(
    metric: Metric, target: Target, answers: Sequence[Mapping[str, Any]]
) -> tuple[Compute | None, list[float]]:
    """Nothing of a metric that is not made of parts: answers for pixels are not kept."""
    alike = [name for name in answers[0]["tallies"] if METRICS[name].tally is metric.tally]
    if metric.tally is None or metric.finish is None or not alike:
        return None, []
    finish = metric.finish
    shape = _shape_of(metric, target)

    def unpack(parts: Iterable[Mapping[str, Any]]) -> AnyArray:
        packed = [each for part in parts for each in part[alike[0]]]
        table = np.zeros((len(packed), math.prod(shape)))
        for row, pairs in enumerate(packed):
            for place, count in pairs:
                table[row, place] = count
        return table

    own = unpack(part["tallies"] for part in answers)
    constants = []
    for place in range(len(answers[0]["constant_tallies"])):
        table = unpack(part["constant_tallies"][place] for part in answers)
        constants.append(float(finish(table.sum(axis=0).reshape(shape))))
    return lambda places: float(finish(own[places].sum(axis=0).reshape(shape))), constants


def _shape_of(metric: Metric, target: Target) -> tuple[int, ...]:
    """Of what a metric counts, as it is for one small picture."""
    assert metric.tally is not None
    size = len(target.classes) or 1
    values = np.zeros((1, 3, 1, 1) if target.kind == "normals" else (1, 1, 1))
    said = np.zeros((1, size, 1, 1)) if target.classes else values
    return tuple(np.asarray(metric.tally(said, values)).shape)


def _score_losses(blank: TaskScore, answers: Sequence[Mapping[str, Any]]) -> TaskScore:
    """Losses are known for whole parts: the interval is that of their mean."""
    sizes = np.array([len(each["instances"]) for each in answers], dtype=np.float64)
    losses, constants = (
        np.array([math.nan if each.get(key) is None else each[key] for each in answers])
        for key in ("loss", "constant_loss")
    )
    mean = float(np.average(losses, weights=sizes))
    reach = math.nan
    if len(losses) > 1:
        reach = (
            student((1 - SCORE_LEVEL) / 2, len(losses) - 1)
            * float(losses.std(ddof=1))
            / math.sqrt(len(losses))
        )
    constant = float(np.average(constants, weights=sizes))
    return replace(blank, mean=mean, low=mean - reach, high=mean + reach, constant=constant)


def _find_interval(compute: Compute, units: Ints, seed: int) -> tuple[float, float]:
    """From drawing the scored instances, or groups of them, anew (the bootstrap)."""
    names, unit = np.unique(units, return_inverse=True)
    order = np.argsort(unit, kind="stable")
    bounds = np.searchsorted(unit[order], np.arange(len(names) + 1))
    times = min(RESAMPLES, max(FEWEST_RESAMPLES, DRAWN_AT_MOST // len(units)))
    rng = np.random.Generator(np.random.PCG64(seed))
    found = []
    for _ in range(times):
        drawn = rng.integers(0, len(names), len(names))
        if len(names) == len(units):
            places = order[drawn]
        else:
            places = np.concatenate([order[bounds[each] : bounds[each + 1]] for each in drawn])
        value = compute(places)
        if math.isfinite(value):
            found.append(value)
    if len(found) < FEWEST_RESAMPLES // 2:
        return math.nan, math.nan
    outside = (1 - SCORE_LEVEL) / 2
    low, high = np.quantile(found, [outside, 1 - outside])
    return float(low), float(high)


def _widen(mean: float, interval: tuple[float, float]) -> tuple[float, float]:
    """An interval as wide as it should be, within 0 and 1 if it is."""
    low, high = interval
    wide = mean - WIDENED * max(mean - low, 0.0), mean + WIDENED * max(high - mean, 0.0)
    if low >= 0:
        wide = max(wide[0], 0.0), wide[1]
    return (wide[0], min(wide[1], 1.0)) if high <= 1 else wide


def check_scorable(counts: Mapping[str, int]) -> None:
    """Raises InputError unless some task has labels enough to be scored on them."""
    if max(counts.values(), default=0) < FEWEST_SCORED:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        what = f"{listed}: too few to tell how good a model is; label {FEWEST_SCORED} or more"
        raise InputError([Mistake("labels at hand", f"{what} of a task")])
