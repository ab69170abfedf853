"""What the user decides: campaign.toml, read with every mistake at once, written with a comment on
every key."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from allotment.amounts import short
from allotment.data.dataset import KINDS, Target
from allotment.data.embedded import EMBEDDED_FOLDER
from allotment.data.embedding import Embedding
from allotment.data.source import SOURCES, DataSettings, Source, find_networks
from allotment.errors import InputError, Mistake, cut, make_hints, suggest
from allotment.estimates.method import DEFAULT, METHODS, Method, tell_stepless
from allotment.estimates.options import check_options, make_plain
from allotment.estimates.request import FOLDS
from allotment.learners.built_in import USUAL_NETWORK
from allotment.learners.choice import check_learner, is_stepless
from allotment.learners.editions import FIRST, check_edition
from allotment.learners.learner import BUILT_IN
from allotment.learners.metrics import METRICS, check_metric, find_metric_name, name_metric
from allotment.learners.recipe import check_recipe
from allotment.learners.sharing import SHARED_TRUNK, check_sharing
from allotment.ledger.schema import STORE_FILE
from allotment.ledger.store import CONFLICT_RULES
from allotment.mistakes import Place, Placed
from allotment.notation import read_notation
from allotment.orders.strategy import RANDOM, STRATEGIES
from allotment.problem import Cap, Problem, Task, read_point_worth
from allotment.renames import Renames, rename_keys
from allotment.runs.portion import Portion, check_portion
from allotment.toml import find_lines, parse_toml, read_text, refuse_nesting

SETTINGS_FILE = "campaign.toml"
"""in a campaign's folder"""
TRAINING: dict[str, type] = {
    "learner": str,
    "network": str,
    "edition": int,
    "weights": str,
    "from_scratch": bool,
    "sharing": str,
    "steps": int,
    "epochs": int,
    "batch_size": int,
    "crop": int,
    "accumulate": int,
    "optimiser": str,
    "trunk_rate": float,
    "head_rate": float,
    "final_rate": float,
    "momentum": float,
    "weight_decay": float,
    "patience": int,
    "members": int,
    "device": str,
    "precision": str,
}
HOLD = "hold"
"""labels that look wrong wait until somebody confirms them"""
ODD_RULES = (HOLD, "mark", "take")
"""what may become of labels that look wrong: they wait, are taken and listed, or are taken"""
ANY, DIFFERENT, SAME = "any", "different", "same"
INSTANCE_RULES = (ANY, DIFFERENT, SAME)
"""on which instances tasks are labelled: whatever comes, one task on each (the paper's way), or all
tasks on each (its variant)"""
TARGET: dict[str, type] = {"kind": str, "classes": list, "metric": str, "loss_weight": float}
"""keys of a task that say what it predicts, beside those that say what it costs"""
WAS = "was"
"""the key of a task that had another name before: that name"""
TOP = (
    *(
        "budget",
        "point_worth",
        "method",
        "trainings",
        "seed",
        "strategy",
        "conflicts",
        "odd_labels",
    ),
    *("instances", "count_implied", "data", "training", "estimates", "report", "cluster"),
    *("task", "cap"),
)
NAMES = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    list: "a list of texts",
} | {bool: "true or false"}
SETTINGS_HINTS = {
    "pool": "is counted from the data: leave it out",
    "gain": "is measured: leave it out, or plan with a problem file (allot example)",
    "learner": (
        "an installed one is named below [training]; code, which no file may name, is given with"
        " --learner or in ALLOT_LEARNER"
    ),
    "tasks": "unknown key; write [[task]] above each task",
}
"""what to do about keys of a problem file that have no place in a campaign's settings"""


@dataclass(frozen=True)
class Settings:
    """What campaign.toml says. `starts` are the labels that complete data begin with, by task."""

    tasks: tuple[Task, ...]
    budget: Fraction
    data: Mapping[str, Any]
    training: Mapping[str, Any] = field(default_factory=dict)
    method: str = DEFAULT
    trainings: int | None = None
    """how many; the method's own number if None"""
    estimates: Mapping[str, Any] = field(default_factory=dict)
    """options of the method"""
    report: Mapping[str, str] = field(default_factory=dict)
    """how the report writes money and numbers: currency, decimal"""
    cluster: Portion = field(default_factory=Portion)
    """what one job gets where trainings run on a cluster; no result depends on it"""
    seed: int = 0
    strategy: str = RANDOM
    """by which instances are chosen for an order"""
    conflicts: str = "first"
    """which of several answers for one label counts"""
    odd_labels: str = HOLD
    """what becomes of labels that look wrong beside those at hand"""
    caps: tuple[Cap, ...] = ()
    point_worth: Fraction | None = None
    """money that a gain of 1 % of the score, in the mean over tasks, is worth to whoever pays"""
    starts: Mapping[str, int] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """of each task, what it says of its labels: kind, classes, metric, loss_weight"""
    looks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """of each task, the metrics that are looked at beside the one that is planned with; no training
    depends on them"""
    instances: str = ANY
    """whether labels of different tasks are on different instances, or on the same ones"""
    count_implied: bool = False
    """whether labels that follow from others count as labels at hand and as bought ones; the paper
    trains on them, but does not count them"""
    renames: Renames = field(default_factory=Renames)
    """tasks that had another name before"""
    data_names: Renames = field(default_factory=Renames)
    """where tasks are called as they are on record: the same, since the data may have either"""
    text: str = field(default="", repr=False, compare=False)
    """that they were read from"""

    def locate(self, folder: Path, task: str, key: str) -> str:
        """Where a task says something, as messages begin that are found out only with the data."""
        if not (folder / SETTINGS_FILE).exists():  # it is about to be written
            return f"task {task!r}: {key}"
        lines, place = find_lines(self.text), ("task", self.names.index(task))
        line = lines.get((*place, key), lines.get(place, 1))
        return f"{folder / SETTINGS_FILE}:{line}: task {task!r}: {key}"

    @cached_property
    def kept(self) -> Settings:
        """The same with every task under the name that it is on record by: what was trained and
        bought before a task was renamed is found by that."""
        if not self.renames:
            return self
        was = self.renames.was
        plain = [task.to_dict() | {"name": was.get(task.name, task.name)} for task in self.tasks]
        for task in plain:
            if "implies" in task:
                task["implies"] = [was.get(each, each) for each in task["implies"]]
        return replace(
            self,
            tasks=tuple(map(Task.from_dict, plain)),
            caps=tuple(Cap(cap.name, cap.limit, rename_keys(cap.use, was)) for cap in self.caps),
            starts=rename_keys(self.starts, was),
            targets=rename_keys(self.targets, was),
            looks=rename_keys(self.looks, was),
            renames=Renames(),
            data_names=self.renames,
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(task.name for task in self.tasks)

    @property
    def source(self) -> Source:
        """The kind of data that it is about."""
        return SOURCES.load(self.data["name"])

    @property
    def learner(self) -> str:
        """What trains, unless a command says something else."""
        return str(self.training.get("learner", BUILT_IN))

    def data_settings(self, root: Path | None) -> DataSettings:
        """What the source is given to open the data that lie there."""
        options = {key: value for key, value in self.data.items() if key not in ("name", "root")}
        tasks = {name: self.targets.get(name, {}) for name in self.names}
        return DataSettings(options, root, tasks)

    def find_aliases(self, given: DataSettings) -> dict[str, str]:
        """Of tasks that were renamed, what the data call them: the table's column may have kept its
        old name, and be renamed later."""
        renames = self.renames or self.data_names
        if not renames:
            return {}
        with SOURCES.calling(self.data["name"]):
            known = self.source.list_names(given)
        found: dict[str, str] = {}
        for name, old in renames.was.items():
            # of data that do not tell, which do not change either, the old one
            called = name if name in known or (known and old not in known) else old
            found |= {name: called, old: called}
        return found

    @property
    def recipe(self) -> dict[str, Any]:
        """All that a training depends on beside data, labels and seed."""
        targets = {name: dict(said) for name, said in self.targets.items()}
        metrics = {said["metric"] for said in targets.values() if "metric" in said}
        offered = {name: METRICS.version_of(name) for name in sorted(metrics)}
        packages = {name: version for name, version in offered.items() if version is not None}
        own = {"packages": packages} if packages else {}  # where there are none, as before
        return {"training": dict(self.training), "targets": targets} | own | self._implied

    @property
    def unscored_recipe(self) -> dict[str, Any]:
        """All that the answers of a model depend on beside data, labels and seed: by which metric
        they are judged does not change them."""
        targets = {}
        for name, said in self.targets.items():
            if rest := {key: value for key, value in said.items() if key != "metric"}:
                targets[name] = rest
        return {"training": dict(self.training), "targets": targets} | self._implied

    @property
    def _implied(self) -> dict[str, Any]:
        """What trainings depend on where labels imply others; nothing where none do, as before."""
        if not self.implies:
            return {}
        named = {by: list(tasks) for by, tasks in self.implies.items()}
        return {"implies": named} | ({"count_implied": True} if self.count_implied else {})

    @cached_property
    def implies(self) -> dict[str, tuple[str, ...]]:
        """Of tasks, the others of which a label comes along with one of theirs."""
        return {task.name: task.implies for task in self.tasks if task.implies}

    def list_metrics(self, target: Target) -> tuple[str, ...]:
        """The metrics of a task by name, the one that is planned with first."""
        return (name_metric(target), *self.looks.get(target.name, ()))

    def problem(self) -> Problem:
        """The whole of it as a problem, with nothing at hand yet."""
        return self._problem

    @cached_property
    def _problem(self) -> Problem:
        return Problem(self.tasks, self.budget, self.caps, self.count_implied)


def read_settings(folder: Path) -> tuple[Settings, DataSettings]:
    """The settings of a campaign's folder, and what they say of the data, with what was read of
    these; raises InputError with every mistake, its file and line."""
    text = _read_text(folder / SETTINGS_FILE)
    try:
        settings, wrong = parse_settings(text), Placed()
        given = find_data(settings, folder)
        _check_root(settings, given, wrong)
        if wrong.found:
            raise InputError(wrong.located(find_lines(text)))
        return settings, given
    except InputError as error:
        file = str(folder / SETTINGS_FILE)
        found = [
            (file if each.line is None else f"{file}:{each.line}", each) for each in error.mistakes
        ]
        raise InputError(
            Mistake(f"{at}: {each.where}" if each.where else at, each.what) for at, each in found
        ) from None


def _read_text(path: Path) -> str:
    if path.is_file():
        return read_text(path, SETTINGS_FILE)
    what = f"there is none; begin with: allot init {quote(path.parent)}"
    if (path.parent / STORE_FILE).is_file():
        what = (
            "is gone, but not what was measured and bought; put it back, or write it anew with the"
            f" options that it was begun with: allot init {quote(path.parent)} ..."
        )
    raise InputError([Mistake(SETTINGS_FILE, what)])


def quote(path: str | Path) -> str:
    """A folder or file as a shell takes it, for commands that are to be typed."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)  # which would be an option


def check_place(folder: Path) -> None:
    """That a campaign's folder can be made where it is wanted."""
    there = next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
    if not there.is_dir():
        raise InputError(
            [
                Mistake(
                    str(there), "is a file; a campaign is a folder of its own: choose another name"
                )
            ]
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            [Mistake(str(there), "may not be written to; choose a folder that is yours")]
        )


@lru_cache(maxsize=2)  # a command asks for the same text several times
def parse_settings(text: str) -> Settings:
    """The settings in a TOML text; raises InputError with all of its mistakes."""
    wrong = Placed()
    with refuse_nesting(text):
        settings = _build(parse_toml(text), wrong)
    if wrong.found or settings is None:
        raise InputError(wrong.located(find_lines(text)))
    return replace(settings, text=text)


def set_task_keys(text: str, key: str, values: Mapping[str, float]) -> str:
    """The text of settings with a number of some tasks changed, each on the line where it stands or
    below the task's name; all else stays as it was written."""
    settings, lines, rows = parse_settings(text), find_lines(text), text.splitlines(keepends=True)
    # from the last one upwards, so that no line moves that is still to be changed
    for number in reversed(range(len(settings.names))):
        name = settings.names[number]
        if name not in values:
            continue
        row, there = f"{key} = {values[name]:g}\n", lines.get(("task", number, key))
        below = lines["task", number, "name"]
        rows[below if there is None else there - 1 : below if there is None else there] = [row]
    changed = "".join(rows)
    if any(parse_settings(changed).targets[name].get(key) != values[name] for name in values):
        what = f"the tasks are written so that {key} can't be put in; write it yourself"
        raise InputError([Mistake(SETTINGS_FILE, what)])
    return changed


def _build(plain: Mapping[str, Any], wrong: Placed) -> Settings | None:
    hint = make_hints(TOP)
    for key in plain:
        if key not in TOP:
            wrong.add((key,), cut(key, 60), SETTINGS_HINTS.get(key) or f"unknown key; {hint(key)}")
    source, data = _read_data(plain.get("data"), wrong)
    training = _read_training(plain.get("training", {}), source, wrong)
    tasks, starts, targets, looks = _read_tasks(plain.get("task", []), source, wrong)
    renames = _read_renames(plain.get("task", []), wrong)
    caps = _read_caps(plain.get("cap", []), wrong)
    method = plain.get("method", DEFAULT)
    found = _find_method(method, wrong)
    least = 1 if found is None else found.least(len(tasks), FOLDS)
    _check_trainings(plain.get("trainings"), method, least, wrong)
    _check_steps(training, str(method), found, wrong)
    estimates = _read_estimates(plain.get("estimates", {}), str(method), found, wrong)
    report = read_notation(plain.get("report", {}), wrong)
    cluster = _read_cluster(plain.get("cluster", {}), wrong)
    seed = plain.get("seed", 0)
    if type(seed) is not int or seed < 0:
        wrong.add(("seed",), "seed", f"{short(seed)} is not a whole number of 0 or more")
    strategy = plain.get("strategy", RANDOM)
    if strategy not in STRATEGIES:
        wrong.add(("strategy",), "strategy", STRATEGIES.tell_unknown(strategy))
    if plain.get("conflicts", "first") not in CONFLICT_RULES:
        what = f"unknown {short(plain['conflicts'])}; {suggest(plain['conflicts'], CONFLICT_RULES)}"
        wrong.add(("conflicts",), "conflicts", what)
    if plain.get("odd_labels", HOLD) not in ODD_RULES:
        what = f"unknown {short(plain['odd_labels'])}; {suggest(plain['odd_labels'], ODD_RULES)}"
        wrong.add(("odd_labels",), "odd_labels", what)
    if plain.get("instances", ANY) not in INSTANCE_RULES:
        what = f"unknown {short(plain['instances'])}; {suggest(plain['instances'], INSTANCE_RULES)}"
        wrong.add(("instances",), "instances", what)
    if not isinstance(plain.get("count_implied", False), bool):
        what = f"{short(plain['count_implied'])} is neither true nor false"
        wrong.add(("count_implied",), "count_implied", what)
    point_worth = _read_point_worth(plain, wrong)
    if "budget" not in plain:
        wrong.add(
            (),
            "budget",
            "is missing; write budget = 500 (all there is to spend) above the first table",
        )
    try:
        problem = Problem(tasks or [Task("?", 1)], plain.get("budget", 0), caps if tasks else ())
    except InputError as error:
        wrong.adopt_named(error.mistakes, _list_places(plain))
        return None
    return Settings(
        tasks=tuple(tasks),
        budget=problem.budget,
        data=data,
        training=training,
        method=str(method),
        trainings=plain.get("trainings"),
        estimates=estimates,
        report=report,
        cluster=cluster,
        seed=plain.get("seed", 0),
        strategy=str(strategy),
        conflicts=plain.get("conflicts", "first"),
        odd_labels=plain.get("odd_labels", HOLD),
        caps=problem.caps,
        point_worth=point_worth,
        starts=starts,
        targets=targets,
        looks=looks,
        instances=plain.get("instances", ANY),
        count_implied=plain.get("count_implied", False),
        renames=renames,
    )


def _read_point_worth(plain: Mapping[str, Any], wrong: Placed) -> Fraction | None:
    if "point_worth" not in plain:
        return None
    try:
        return read_point_worth(plain["point_worth"])
    except InputError as error:
        wrong.found += [(("point_worth",), mistake) for mistake in error.mistakes]
        return None


def _check_steps(
    training: Mapping[str, Any], name: str, method: Method | None, wrong: Placed
) -> None:
    """That the learner has steps where the method looks some of them ahead."""
    stepless = is_stepless(str(training.get("learner", BUILT_IN)))
    if stepless and method is not None and (what := tell_stepless(name, method)):
        wrong.add(("method",), "method", what)


def _read_estimates(given: Any, name: str, method: Method | None, wrong: Placed) -> dict[str, Any]:
    """The options of the method."""
    if not isinstance(given, Mapping):
        wrong.add(("estimates",), "estimates", "is not a table; write [estimates]")
        return {}
    found: dict[str, Any] = make_plain(dict(given))
    if method is not None:
        for mistake in check_options(name, method.options, found, is_plain=True):
            wrong.add(("estimates", mistake.where), f"estimates: {mistake.where}", mistake.what)
    return found


def _read_cluster(given: Any, wrong: Placed) -> Portion:
    """What one job gets of a cluster."""
    if not isinstance(given, Mapping):
        wrong.add(("cluster",), "cluster", "is not a table; write [cluster]")
        return Portion()
    given = {key: float(each) if isinstance(each, Decimal) else each for key, each in given.items()}
    mistakes = list(check_portion(given))
    for mistake in mistakes:
        where = f"cluster: {cut(mistake.where, 60)}"
        wrong.add(("cluster", mistake.where), where, mistake.what)
    return Portion() if mistakes else Portion(**given)


def _list_places(plain: Mapping[str, Any]) -> list[tuple[str, Place]]:
    """Tasks and caps as mistakes call them, and where they stand."""
    return [
        (f"{kind} {row.get('name')!r}", (kind, number))
        for kind in ("task", "cap")
        for number, row in _tables(plain.get(kind, []), kind, Placed())
    ]


def _find_method(name: Any, wrong: Placed) -> Method | None:
    try:
        return METHODS.load(name)
    except InputError as error:
        for mistake in error.mistakes:
            wrong.add(("method",), mistake.where, mistake.what)
        return None


def _check_trainings(given: Any, method: Any, least: int, wrong: Placed) -> None:
    if isinstance(given, Mapping):
        what = (
            "is a table; did you mean [training]? A number of trainings stands above the first"
            " table"
        )
        wrong.add(("trainings",), "trainings", what)
        return
    if given is not None and (type(given) is not int or given < least):
        what = f"{short(given)} is not a whole number of {least} or more"
        what += f", which method = {short(method)} needs" if least > 1 else ""
        wrong.add(
            ("trainings",), "trainings", what + ('; method = "neutral" takes none' if least else "")
        )


def _read_data(given: Any, wrong: Placed) -> tuple[Source | None, dict[str, Any]]:
    if not isinstance(given, Mapping):
        wrong.add(("data",), "data", 'is missing; write [data] and below it name = "table"')
        return None, {}
    source = _find_source(given.get("name"), wrong)
    if source is None:
        return None, {}
    known: dict[str, type] = {"name": str}
    if source.root:
        known["root"] = str
    known |= {key.name: key.kind for key in source.keys}
    found = _read_keys(given, known, "data", wrong)
    if source.root and "root" not in given:
        wrong.add(("data",), "data: root", "is missing; write where the data lie")
    elif not found.get("root", "?").strip():
        wrong.add(("data", "root"), "data: root", "is empty; write where the data lie")
    return source, found


def _find_source(name: Any, wrong: Placed) -> Source | None:
    if name is None:
        wrong.add(("data", "name"), "data: name", f"is missing; {suggest('', SOURCES)}")
        return None
    try:
        return SOURCES.load(name)
    except InputError as error:
        for mistake in error.mistakes:
            wrong.add(("data", "name"), "data: name", mistake.what)
        return None


def _read_training(given: Any, source: Source | None, wrong: Placed) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        wrong.add(("training",), "training", "is not a table; write [training]")
        return {}
    found = _read_keys(given, TRAINING, "training", wrong)
    if what := _check_network(found.get("network", USUAL_NETWORK), source):
        wrong.add(("training", "network"), "training: network", what)
    elif what := check_edition(found.get("network", USUAL_NETWORK), found.get("edition", FIRST)):
        wrong.add(("training", "edition"), "training: edition", what)
    if what := check_learner(found.get("learner", BUILT_IN)):
        wrong.add(("training", "learner"), "training: learner", what)
    if found.get("from_scratch") and "weights" in found:
        what = "does not go with weights; leave one of them out"
        wrong.add(("training", "from_scratch"), "training: from_scratch", what)
    if what := _check_shared(found):
        wrong.add(("training", "sharing"), "training: sharing", what)
    for mistake in check_recipe(found):
        wrong.add(("training", mistake.where), f"training: {mistake.where}", mistake.what)
    # which is what a file without the line means: the same trainings go by the same names
    if found.get("sharing") == SHARED_TRUNK:
        del found["sharing"]
    return found


def _check_shared(training: Mapping[str, Any]) -> str:
    """What is wrong with what it says that tasks share; "" if nothing is."""
    sharing = training.get("sharing", SHARED_TRUNK)
    if (what := check_sharing(sharing)) or sharing == SHARED_TRUNK:
        return what
    if training.get("learner", BUILT_IN) != BUILT_IN:
        return "is for the built-in learner; leave it or learner out"
    if training.get("members", 1) > 1:
        return "is for images, and members are for tables; leave one of them out"
    return ""


def _check_network(network: str, source: Source | None) -> str:
    """What is wrong with it for such data; "" if nothing is."""
    if network == USUAL_NETWORK or (source is not None and network in source.networks):
        return ""
    networks = find_networks()
    if network not in networks:
        return f"unknown {network!r}; {suggest(network, [USUAL_NETWORK, *networks])}"
    if source is None:
        return ""
    return (
        f"{network!r} is for {networks[network]}, and the data are {source.name}; take"
        f" {USUAL_NETWORK!r}"
    )


def _read_keys(
    given: Mapping[str, Any], known: Mapping[str, type], table: str, wrong: Placed
) -> dict[str, Any]:
    """The known keys of a table, with their types checked."""
    found = {}
    hint = make_hints(known)
    for key, value in given.items():
        if key not in known:
            what = SETTINGS_HINTS.get(key) or f"unknown key; {hint(key)}"
            wrong.add((table, key), f"{table}: {cut(key, 60)}", what)
        elif (kept := _typed(value, known[key])) is None:
            wrong.add((table, key), f"{table}: {key}", f"{short(value)} is not {NAMES[known[key]]}")
        else:
            found[key] = kept
    return found


def _typed(value: Any, kind: type) -> Any:
    """The value if it is of the kind (a whole number is a number, too); None if not."""
    if kind is float and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    if kind is list:
        return (
            list(value)
            if isinstance(value, list) and all(isinstance(each, str) for each in value)
            else None
        )
    return value if type(value) is kind else None


def _read_tasks(
    given: Any, source: Source | None, wrong: Placed
) -> tuple[list[Task], dict[str, int], dict[str, dict[str, Any]], dict[str, tuple[str, ...]]]:
    tasks: list[Task] = []
    starts: dict[str, int] = {}
    targets: dict[str, dict[str, Any]] = {}
    looks: dict[str, tuple[str, ...]] = {}
    rows = _tables(given, "task", wrong)
    if not rows and not wrong.found:
        wrong.add(("task",), "task", "there is none; write [[task]] and below it a name and a cost")
    for number, row in rows:
        label = (
            f"task {row['name']!r}" if isinstance(row.get("name"), str) else f"task {number + 1}"
        )
        said, metrics = _read_target(row, ("task", number), label, wrong)
        if hinted := [key for key in row if key in SETTINGS_HINTS]:
            for key in hinted:
                wrong.add(("task", number, key), f"{label}: {key}", SETTINGS_HINTS[key])
        if row.get("tiers") == {}:
            what = "is empty; write [{ after = 1000, cost = 15 }], or leave it out"
            wrong.add(("task", number, "tiers"), f"{label}: tiers", what)
        rest = {
            key: value
            for key, value in row.items()
            if key not in (*TARGET, WAS) and key not in SETTINGS_HINTS
        }
        try:
            task = Task.from_dict(rest)
        except InputError as error:
            wrong.adopt(error.mistakes, ("task", number), label)
            continue
        tasks.append(task)
        called = row.get(WAS, task.name) if source is not None and source.tasks else task.name
        said_of_it = said | {"metric": metrics}
        _check_target(("task", number), task.name, str(called), said_of_it, source, wrong)
        if said:
            targets[task.name] = said
        if metrics[1:]:
            looks[task.name] = metrics[1:]
        if "have" in row:
            starts[task.name] = task.have
    complete = source is not None and source.complete
    _check_starts([task.name for task in tasks], starts, complete, wrong)
    return tasks, starts, targets, looks


def _read_renames(given: Any, wrong: Placed) -> Renames:
    """Which tasks had another name, as far as the settings alone tell whether that can be."""
    rows = _tables(given, "task", Placed())
    names = {row.get("name") for _, row in rows if isinstance(row.get("name"), str)}
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for number, row in rows:
        name, old = row.get("name"), row.get(WAS)
        if WAS not in row or not isinstance(name, str):
            continue
        what = ""
        if not isinstance(old, str) or not old.strip():
            what = f"{short(old)} is not the name that the task had before, in quotes"
        elif old == name:
            what = "is the name that it has; leave it out"
        elif old in names:
            what = f"{old!r} is a task of its own here; only one of them can be that one"
        elif old in owners:
            what = f"{old!r} is what {owners[old]!r} was, too; only one of them can be that one"
        if what:
            wrong.add(("task", number, WAS), f"task {name!r}: {WAS}", what)
        else:
            found[name], owners[str(old)] = str(old), name
    return Renames(found)


def _read_target(
    row: Mapping[str, Any], place: Place, label: str, wrong: Placed
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a task says of its labels, with the first of its metrics, and all of these."""
    own = {key: value for key, value in row.items() if key in TARGET}
    said = {key: _typed(value, TARGET[key]) for key, value in own.items()}
    metrics = _read_metrics(own.get("metric"))
    if metrics:
        said["metric"] = metrics[0]
    for key in [key for key, value in said.items() if value is None]:
        form = NAMES[TARGET[key]]
        if key == "metric":
            form += ", or several in a list, the first to plan with"
        wrong.add((*place, key), f"{label}: {key}", f"{short(own[key])} is not {form}")
    return said, metrics


def _read_metrics(given: Any) -> tuple[str, ...]:
    """The metrics that a task names, one or a list of them; none where it is neither."""
    several = [given] if isinstance(given, str) else _typed(given, list) or []
    return tuple(dict.fromkeys(map(find_metric_name, several)))


def _check_target(
    place: Place,
    name: str,
    called: str,
    said: Mapping[str, Any],
    source: Source | None,
    wrong: Placed,
) -> None:
    """What a task says of its labels, as far as that can be told without them; `called` is what the
    data call it, where they have names of their own."""

    def add(key: str, what: str) -> None:
        wrong.add((*place, key), f"task {name!r}: {key}", what)

    if source is None:  # which is a mistake of its own
        return
    kind, weight = said.get("kind"), said.get("loss_weight")
    kinds = tuple(source.kinds or KINDS)
    if source.tasks:
        for key in said.keys() & {"kind", "classes"}:
            add(key, f"is settled by {source.name}; leave it out")
        kind = source.tasks[called].kind if called in source.tasks else None
    elif kind is not None and kind not in kinds:
        add("kind", f"a target of a {source.name} can't be {kind!r}; {suggest(kind, kinds)}")
        return
    for metric in said["metric"]:
        # of a kind that nobody said it waits for a look at the data
        if kind and (what := check_metric(metric, kind)):
            add("metric", what)
    if weight is not None and not 0 <= weight < math.inf:
        add("loss_weight", f"{weight} is not a finite number of 0 or more")


def _check_root(settings: Settings, given: DataSettings, wrong: Placed) -> None:
    """That the data are where they are said to be, and what their source sees at a glance."""
    if given.root is not None and not given.root.exists():
        what = (
            f"{settings.data['root']!r}: there is no such file or folder"
            f" ({given.root.absolute()}); write where the data lie now"
        )
        wrong.add(("data", "root"), "data: root", what)
        return
    with SOURCES.calling(settings.data["name"]):
        found = settings.source.check(given)
    for place, mistake in found:
        wrong.add(place, mistake.where, mistake.what)
    if not found:
        _check_columns(settings, given, wrong)
        _check_metrics(settings, given, wrong)


def _check_columns(settings: Settings, given: DataSettings, wrong: Placed) -> None:
    """That of a task's two names the data have one: the other would be learned from."""
    if not settings.renames:
        return
    with SOURCES.calling(settings.data["name"]):
        known = settings.source.list_names(given)
    dropped = given.options.get("drop", ())
    for number, name in enumerate(settings.names):
        old = settings.renames.was.get(name)
        if old is not None and {name, old} <= {*known} and old not in dropped:
            what = (
                f"the data have both {name!r} and {old!r}; take one of the two columns out, or"
                f" leave it out with drop = [{json.dumps(old, ensure_ascii=False)}]"
            )
            wrong.add(("task", number, WAS), f"task {name!r}: {WAS}", what)


def _check_metrics(settings: Settings, given: DataSettings, wrong: Placed) -> None:
    """That tasks whose kind is found in the data are scored as such a kind can be."""
    for number, name in enumerate(settings.names):
        said = settings.targets.get(name, {})
        called = given.call(name)
        if "metric" not in said or "kind" in said or called in settings.source.tasks:
            continue
        with SOURCES.calling(settings.data["name"]):
            kind = settings.source.guess_kind(given, called)
        kinds = (settings.source.kinds or KINDS) if kind is None else [kind]
        for metric in (said["metric"], *settings.looks.get(name, ())):
            if what := check_metric(metric, *kinds):
                wrong.add(("task", number, "metric"), f"task {name!r}: metric", what)


def find_root(settings: Settings, folder: Path) -> Path | None:
    """Where the data lie; None for a source that has no root."""
    return find_path(folder, settings.data["root"]) if settings.source.root else None


def find_data(settings: Settings, folder: Path) -> DataSettings:
    """What the source of a campaign in this folder is given, with every file where it lies."""
    given = settings.data_settings(find_root(settings, folder))
    aliases = settings.find_aliases(given)
    files = {
        key.name: str(find_path(folder, given.options[key.name]))
        for key in settings.source.keys
        if key.is_path and key.name in given.options
    }
    keep = folder / EMBEDDED_FOLDER
    options = {**given.options, **files}
    tasks = rename_keys(given.tasks, aliases)
    found = replace(given, options=options, tasks=tasks, aliases=aliases)
    return replace(found, open_network=_open_network, keep=keep)


def _open_network(weights: Path) -> Embedding:
    try:
        from allotment.learners.frozen import FrozenNetwork
    except ImportError:
        what = "a trained network needs torch: pip install 'allotment[train]'"
        raise InputError([Mistake("data: pictures", what)]) from None
    return FrozenNetwork.open(weights)


def find_path(folder: Path, path: str) -> Path:
    """A path of the settings: one that is not absolute begins at the campaign's folder, which need
    not be there yet."""
    whole = Path(os.path.normpath(folder.absolute() / Path(path).expanduser()))
    here = Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def find_lost(folder: Path) -> Path | None:
    """Where the data of a campaign should be, if they are not there."""
    path = find_root(parse_settings(_read_text(folder / SETTINGS_FILE)), folder)
    return None if path is None or path.exists() else path.absolute()


def _check_starts(
    names: Iterable[str], starts: Mapping[str, int], complete: bool, wrong: Placed
) -> None:
    """Complete data need a number of labels to begin with; a table may have one, for every task or
    for none."""
    if not starts and not complete:
        return
    for number, name in enumerate(names):
        if name not in starts:
            what = f"is missing; write have = 50, the number of labels that {name!r} begins with"
            if not complete:
                what += (
                    ", or leave it out of the other tasks too: then all filled cells are at hand"
                )
            wrong.add(("task", number), f"task {name!r}: have", what)


def _read_caps(given: Any, wrong: Placed) -> list[Cap]:
    caps = []
    for number, row in _tables(given, "cap", wrong):
        try:
            caps.append(Cap.from_dict(row))
        except InputError as error:
            wrong.adopt(error.mistakes, ("cap", number), f"cap {number + 1}")
    return caps


def _tables(given: Any, kind: str, wrong: Placed) -> list[tuple[int, Mapping[str, Any]]]:
    if not isinstance(given, list) or not all(isinstance(row, Mapping) for row in given):
        wrong.add((kind,), kind, f"write [[{kind}]], in double brackets, above each {kind}")
        return []
    return list(enumerate(given))
