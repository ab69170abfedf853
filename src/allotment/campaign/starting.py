"""How a campaign begins: from a few words on the command line to a folder with commented
settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from allotment.amounts import show
from allotment.campaign.campaign import Campaign
from allotment.campaign.choosing import choose_learner
from allotment.campaign.sharing import tell_start
from allotment.campaign.state import CampaignState, Files
from allotment.data.embedding import BY_PIXELS
from allotment.data.inspection import IGNORE
from allotment.data.roles import FORMS
from allotment.data.source import (
    SOURCES,
    STEPS,
    DataSettings,
    Key,
    KnownTask,
    Source,
    read_options,
)
from allotment.data.targets import FEW_VALUES
from allotment.errors import InputError, Mistake, Undecided, suggest
from allotment.estimates.letter import RUNS_BY_NETWORK, RUNS_OPTION, ToTheLetter
from allotment.estimates.method import DEFAULT, METHODS, looks_ahead
from allotment.estimates.request import FOLDS
from allotment.learners.built_in import USUAL_NETWORK, tell_unfit
from allotment.learners.choice import AUTO, is_own, is_stepless
from allotment.learners.editions import FIRST, newest_edition
from allotment.learners.metrics import check_metric, title_metric
from allotment.learners.sharing import SHARED_TRUNK
from allotment.learners.tempering import MEMBERS
from allotment.mistakes import Collected
from allotment.settings.settings import (
    SETTINGS_FILE,
    TRAINING,
    Settings,
    find_data,
    find_path,
    parse_settings,
    quote,
)
from allotment.settings.template import write_template
from allotment.stock.fingerprints import keep_rows
from allotment.stock.stock import Stock, open_stock

if TYPE_CHECKING:
    from allotment.learners.setups import Setup

EXAMPLE_METRIC = {
    "classification": "balanced_accuracy",
    "multilabel": "f1",
    "regression": "r2",
    "segmentation": "accuracy",
    "depth": "rmse",
    "normals": "loss",
    "edges": "mae",
    "keypoints": "mae",
}
"""one that a kind of task can be scored by beside its usual one"""
TEMPERED_STEPS = 150
"""of a training with several members, which together do as well with fewer steps
(docs/results/skill.md)"""

RECIPE_KEYS = (
    *("epochs", "batch_size", "crop", "accumulate", "optimiser", "trunk_rate", "head_rate"),
    *("final_rate", "momentum", "weight_decay", "patience"),
)
"""of [training] that `--set` takes; the others have options of their own"""
TAKEN = "the built-in perceptrons train; to compare them with gradient boosting and straight lines"
"""what is said of tables for which nobody names a learner"""


class Started(NamedTuple):
    """A campaign, and what was settled for the user without asking."""

    campaign: Campaign
    notes: tuple[str, ...]
    files: Files | None = None
    """settings and data, as they were read to be checked"""


def begin(
    folder: str | Path,
    *,
    data: str = "table",
    root: str | None = None,
    targets: Sequence[str] = (),
    costs: Mapping[str, str] | None = None,
    have: Mapping[str, str] | None = None,
    budget: str | None = None,
    method: str = DEFAULT,
    estimates: Mapping[str, Any] | None = None,
    id: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    kinds: Mapping[str, str] | None = None,
    classes: Mapping[str, str] | None = None,
    metrics: Mapping[str, Sequence[str]] | None = None,
    options: Mapping[str, str] | None = None,
    network: str = USUAL_NETWORK,
    weights: str | None = None,
    from_scratch: bool = False,
    sharing: str = SHARED_TRUNK,
    steps: int | None = None,
    learner: str | None = None,
) -> Started:
    """A new campaign. Settings and data are checked before anything is written; all mistakes are
    named at once.

    A `network` other than the usual one brings its size of pictures and its recipe along, and is
    given the file of its trained `weights`, or is said to start `from_scratch`. `sharing` is what
    tasks share of a network for images: "all" of its trunk, or that with "adapters" of their own.

    `learner` is the name of what trains; "auto" compares those built in on the labels at hand.
    `estimates` are options of the method.

    `options` are keys of the data's source or of the recipe, as texts; `id`, `group`, `drop`,
    `delimiter`, `encoding`, `decimal` and `sheet` are those of a table. `columns` says what columns
    of it hold (`{"when": "date"}`), or that one is the `id`, the `group` or to be left out
    (`ignore`).
    """
    folder, source = Path(folder), SOURCES.load(data)
    costs, have, kinds, classes = costs or {}, have or {}, kinds or {}, classes or {}
    names = list(targets) or list(source.tasks)
    metrics = metrics or {}
    named = {"cost": costs, "have": have, "kind": kinds, "classes": classes}
    wrong = Collected()
    setup = wrong.attempt(_find_setup, network)
    recipe, own_keys = wrong.attempt(_read_recipe, source, options or {}) or ({}, {})
    given = wrong.attempt(read_options, source, own_keys) or {}
    if setup is not None and "side" not in own_keys:
        given["side"] = setup.side
    layout = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "sheet": sheet}
    given |= {key: value for key, value in layout.items() if value is not None}
    roles = {"id": id, "group": group, "drop": list(drop)}
    given |= wrong.attempt(_read_columns, roles, columns or {}) or {}
    given |= _choose_pictures(source, folder, given, network, weights)
    where = None if root is None else find_path(folder, _relative(root, folder))
    settling = DataSettings(given, where, {name: {} for name in names})
    lost = _find_lost_targets(source, settling)
    wrong.found += lost
    wrong.attempt(_check, source, root, names, budget, named | {"metric": metrics}, bool(lost))
    wrong.attempt(_check_weights, network, weights, from_scratch)
    wrong.raise_all()
    keys, notes = _begin_data(source, folder, root, settling)
    tasks = {name: _begin_task(source, name, named, setup) for name in names}
    for name in names:
        usual = source.tasks.get(name, KnownTask("", 0))
        if implied := [each for each in usual.implies if each in names]:
            tasks[name]["implies"] = implied
    for name, several in metrics.items():
        tasks[name]["metric"] = several[0] if len(several) == 1 else list(several)
    own = None if weights is None or "weights" in given else _relative(weights, folder)
    training = _begin_training(source, network, own, from_scratch, steps) | settle_machine()
    training = _settle_recipe(training, recipe, steps)
    if sharing != SHARED_TRUNK:
        training["sharing"] = sharing
    if learner not in (None, AUTO):
        training = {"learner": learner} | (recipe if is_stepless(str(learner)) else training)
    own_budget = source.budget if setup is None else setup.budget or source.budget
    money = _number(budget or str(own_budget or 0))
    write = partial(
        write_template, keys, tasks, money, method, instances=source.instances,
        estimates=_begin_options(method, network) | dict(estimates or {}),
    )  # fmt: skip
    checked = _check_data(write(training), folder, settling)
    if checked is None:
        return Started(Campaign.create(folder, write(training)), notes)
    (settings, said), stock, more = checked
    _check_sharing(sharing, stock)
    if _is_for_members(settings, stock):
        fewer = {"steps": TEMPERED_STEPS} if steps is None and "steps" in training else {}
        training |= {"members": MEMBERS} | fewer
        if learner is None and METHODS.load(method).trainings:
            more += (f"{TAKEN}: allot learners {quote(folder)}",)
    settings = parse_settings(write(training))
    if learner == AUTO:
        found = choose_learner(settings, stock)
        more += (str(found),)
        trained = {"members": MEMBERS, **recipe} if is_stepless(found.best) else training
        settings = parse_settings(write({"learner": found.best} | trained))
    # while all of the table is in memory, so that no later command has to read it for that
    keep = partial(keep_rows, settings=settings, stock=stock)
    return Started(Campaign.create(folder, settings.text, keep), notes + more, (settings, said))


def _is_for_members(settings: Settings, stock: Stock) -> bool:
    """Whether trainings are to have members: on tables, unless a method looks into trainings, which
    would take as many times as long."""
    network = settings.training.get("network", USUAL_NETWORK)
    is_ours = is_own(settings.learner) and not tell_unfit(stock.data, network)
    return is_ours and not looks_ahead(METHODS.load(settings.method))


def _choose_pictures(
    source: Source, folder: Path, given: Mapping[str, Any], network: str, weights: str | None
) -> dict[str, Any]:
    """What the options for networks say of pictures, where a source can see these in several ways:
    a network that is named is trained on them, and weights without one are for seeing them."""
    if "pictures" not in {key.name for key in source.keys} or given.get("pictures") == BY_PIXELS:
        return {}
    if network != USUAL_NETWORK:
        return {"pictures": BY_PIXELS}
    return {} if weights is None else {"weights": _relative(weights, folder)}


def _find_setup(network: str) -> Setup | None:
    """The set-up of that name; None for the usual network, and for one that there is not, which is
    said when the settings are read."""
    if network == USUAL_NETWORK:
        return None
    try:
        from allotment.learners.setups import SETUPS
    except ImportError:
        what = f"{network} needs torch: pip install 'allotment[train]'"
        raise InputError([Mistake("--network", what)]) from None
    return SETUPS.get(network)


def _check_weights(network: str, weights: str | None, from_scratch: bool) -> None:
    """That a network which begins with trained layers is given them, before anything is made."""
    if _find_setup(network) is not None:
        from allotment.learners.setups import check_weights

        file = None if weights is None else Path(weights).expanduser()
        check_weights(network, file, from_scratch)
    elif from_scratch:
        what = "is for networks that begin with trained layers; the usual one never does"
        raise InputError([Mistake("--from-scratch", f"{what}: leave it out")])


def _check_sharing(sharing: str, stock: Stock) -> None:
    """That there are images, where tasks are to share something else than usual."""
    if sharing != SHARED_TRUNK and stock.data.size and stock.data.picture_size(0) is None:
        what = f"{sharing!r} is for images, and these are tables; leave it out"
        raise InputError([Mistake("--sharing", what)])


def _begin_training(
    source: Source, network: str, weights: str | None, from_scratch: bool, steps: int | None
) -> dict[str, Any]:
    """What is written of the training: a set-up shows its whole recipe, the usual network the steps
    alone."""
    training: dict[str, Any] = {"network": network}
    if (edition := newest_edition(network)) != FIRST:
        training["edition"] = edition
    if weights is not None:
        training["weights"] = weights
    if from_scratch:
        training["from_scratch"] = True
    setup = _find_setup(network)
    if setup is None:
        usual = source.recipe.get("steps", STEPS)
        return training | {"steps": usual if steps is None else steps}
    recipe = setup.recipe if steps is None else replace(setup.recipe, steps=steps)
    return training | recipe.describe()


def _read_recipe(source: Source, texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What texts say of how to train, and those that are left for the data's source, whose own keys
    go first."""
    own, wrong = {key.name for key in source.keys}, Collected()
    mine = [name for name in texts if name in RECIPE_KEYS and name not in own]
    found = {name: wrong.attempt(Key(name, TRAINING[name], "").read, texts[name]) for name in mine}
    wrong.raise_all()
    return found, {name: text for name, text in texts.items() if name not in mine}


def _settle_recipe(
    training: Mapping[str, Any], recipe: Mapping[str, Any], steps: int | None
) -> dict[str, Any]:
    """The training with what was said of it; epochs take the place of steps that nobody said."""
    is_by_epochs = "epochs" in recipe and steps is None
    left = {key: value for key, value in training.items() if not (is_by_epochs and key == "steps")}
    return {**left, **recipe}


def _begin_options(method: str, network: str) -> dict[str, Any]:
    """What is written of a method's options, where the paper has another number than usual."""
    found, runs = METHODS.load(method), RUNS_BY_NETWORK.get(network)
    is_averaged = isinstance(found, ToTheLetter) and RUNS_OPTION in found.options
    return {RUNS_OPTION: runs} if runs is not None and is_averaged else {}


def tell_metrics(state: CampaignState) -> str:
    """By what each task is scored, and how to have it otherwise."""
    found: dict[tuple[str, ...], list[str]] = {}
    for target in state.stock.data.targets:
        found.setdefault(state.settings.list_metrics(target), []).append(target.name)
    parts = [
        f"{', '.join(tasks)} by {' and '.join(map(title_metric, metrics))}"
        for metrics, tasks in found.items()
    ]
    hint = ""
    for target in state.stock.data.targets:
        other = EXAMPLE_METRIC[target.kind]
        if other not in state.settings.list_metrics(target):
            where = f"below [[task]] {target.name} in campaign.toml"
            hint = f' (for another, such as {title_metric(other)}: metric = "{other}" {where})'
            break
    return f"Scored: {'; '.join(parts)}{hint}."


def _read_columns(roles: Mapping[str, Any], said: Mapping[str, str]) -> dict[str, Any]:
    """What is said of columns, as keys of a table: `id`, `group`, `drop` and `columns`."""
    found = {key: value for key, value in roles.items() if value}
    wrong = Collected()
    for name, what in said.items():
        if what in ("id", "group"):
            if found.setdefault(what, name) != name:
                wrong.add(f"--column {name}={what}", f"{found[what]!r} is said to be that, too")
        elif what == IGNORE:
            found["drop"] = [*found.get("drop", ()), name]
        elif what in FORMS:
            found["columns"] = [*found.get("columns", ()), f"{name}={what}"]
        else:
            allowed = (*FORMS, IGNORE, "id", "group")
            wrong.add(f"--column {name}", f"can't be {what!r}; {suggest(what, allowed)}")
    wrong.raise_all()
    return found


def _find_lost_targets(source: Source, given: DataSettings) -> list[Mistake]:
    """What is to be said of targets that are no columns of a table: it comes before all that
    follows from a misspelt one."""
    if source.tasks or given.root is None or not given.root.is_file():
        return []
    with SOURCES.calling(source.name):
        settled, _ = given.once(source.settle)
        found = source.check(replace(given, options={**given.options, **settled}))
    targets = {f"target {name!r}" for name in given.tasks}
    return [each for _, each in found if each.where in targets]


def _begin_data(
    source: Source, folder: Path, root: str | None, given: DataSettings
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is written of the data, and what is to be said of keys that nobody gave."""
    with SOURCES.calling(source.name):
        settled, notes = given.once(source.settle)
    keys: dict[str, Any] = {"name": source.name}
    if root is not None:
        keys["root"] = _relative(root, folder)
    return keys | _in_order(source, {**given.options, **settled}), notes


def _begin_task(
    source: Source, name: str, named: Mapping[str, Mapping[str, str]], setup: Setup | None
) -> dict[str, Any]:
    """What is written of a task: what was given on the command line, or else the source's own."""
    usual = source.tasks.get(name, KnownTask("", 0))
    task: dict[str, Any] = {"cost": _number(named["cost"].get(name, str(usual.cost)))}
    if source.complete or named["have"]:
        have = usual.have if setup is None else setup.have or usual.have
        task["have"] = _number(named["have"].get(name, str(have)))
    if name in named["kind"]:
        task["kind"] = named["kind"][name]
    if name in named["classes"]:
        task["classes"] = named["classes"][name].split("|")
    return task


def _in_order(source: Source, given: Mapping[str, Any]) -> dict[str, Any]:
    """As the source lists its keys; those that it does not have come last, to be refused."""
    own = [key.name for key in source.keys if key.name in given]
    return {name: given[name] for name in dict.fromkeys([*own, *given])}


def _check(
    source: Source,
    root: str | None,
    names: Sequence[str],
    budget: str | None,
    named: Mapping[str, Mapping[str, Any]],
    misspelt: bool,
) -> None:
    """That all is said that must be; of prices only where the targets are spelt right."""
    mistakes = []
    preset, costs = source.tasks, named["cost"]
    begins = source.complete or bool(named["have"])
    if source.root and root is None:
        mistakes.append(Mistake("--root", f"is missing; give {source.root}"))
    if not names:
        mistakes.append(
            Mistake("--targets", "is missing; name the columns to predict: --targets price,style")
        )
    for name in names:
        if preset and name not in preset:
            mistakes.append(
                Mistake(
                    f"--targets {name}", f"is not a task of {source.name}; {suggest(name, preset)}"
                )
            )
        elif name not in costs and name not in preset and not misspelt:
            mistakes.append(Mistake(f"task {name!r}", f"has no price; add --cost {name}=20"))
        if not preset and begins and name not in named["have"] and not misspelt:
            others = ", as others do" if named["have"] else ""
            what = f"has no --have{others}; say how many labels it begins with: --have {name}=50"
            mistakes.append(Mistake(f"task {name!r}", what))
    if budget is None and source.budget is None:
        mistakes.append(
            Mistake("--budget", "is missing; all there is to spend on labels: --budget 500")
        )
    for option, given in named.items():
        for name in given:
            if name not in names and not misspelt:
                mistakes.append(
                    Mistake(f"--{option} {name}", f"no such target; {suggest(name, names)}")
                )
    if mistakes:
        raise InputError(mistakes)


def _check_data(
    text: str, folder: Path, settling: DataSettings
) -> tuple[Files, Stock, tuple[str, ...]] | None:
    """That settings and data fit: both, what they make, and what is to be said of them.

    Mistakes go without lines, since the file that these would be in is not there yet.
    """
    try:
        settings = parse_settings(text)
    except InputError as error:
        raise InputError(Mistake(each.where, each.what) for each in error.mistakes) from None
    if (folder / SETTINGS_FILE).exists():
        return None  # which is what is wrong
    said = find_data(settings, folder)
    said.known.update(settling.known)  # the file that was looked at is the one that is read
    stock = open_stock(settings, folder, said=said)
    _check_kinds(settings, stock)
    _check_metrics(settings, stock)
    _check_budget(settings)
    notes = stock.data.notes + tuple(filter(None, [tell_start(settings, stock)]))
    if METHODS.load(settings.method).trainings and max(stock.have.values()) < FOLDS:
        few = (
            f"too few labels to measure anything; until some task has {FOLDS}, plan with method ="
            ' "neutral"'
        )
        notes += (f"{few} in campaign.toml",)
    return (settings, said), stock, notes


def _check_kinds(settings: Settings, stock: Stock) -> None:
    """That the kind of every task is said or can be seen: a wrong guess would turn all its labels
    away later."""
    mistakes = []
    for name in stock.data.guessed:
        if not stock.data.known(name).any() and "classes" not in settings.targets.get(name, {}):
            classes = f"--kind {quote(f'{name}=classification')} --classes {quote(f'{name}=A|B')}"
            what = (
                f"has no label that shows its kind; say it: --kind {quote(f'{name}=regression')},"
                f" or {classes}"
            )
            mistakes.append(Mistake(f"task {name!r}", what))
    if mistakes:
        raise InputError(mistakes)
    few = {name: _list_few(settings, stock, name) for name in stock.data.guessed}
    if open_ := {name: values for name, values in few.items() if values}:
        raise Undecided(
            {
                name: Mistake(f"task {name!r}", _tell_undecided(name, values))
                for name, values in open_.items()
            }
        )


def _check_metrics(settings: Settings, stock: Stock) -> None:
    """That every task is scored as its kind can be, whether that was said or seen in the data."""
    mistakes = []
    for target in stock.data.targets:
        for metric in settings.list_metrics(target):
            if what := check_metric(metric, target.kind):
                mistakes.append(Mistake(f"--metric {quote(f'{target.name}={metric}')}", what))
    if mistakes:
        raise InputError(mistakes)


def _list_few(settings: Settings, stock: Stock, name: str) -> list[str]:
    """The values of a target that may as well be classes as amounts; none if it is clear."""
    target, known = stock.targets[name], np.flatnonzero(stock.data.known(name))
    if "classes" in settings.targets.get(name, {}):
        return []
    if target.kind == "classification" and all(map(_is_whole, target.classes)):
        return list(target.classes) if len(target.classes) > 2 else []
    if target.kind != "regression":
        return []
    values = np.unique(stock.data.values(name, known))
    if not 2 < len(values) <= FEW_VALUES or not np.array_equal(values, np.floor(values)):
        return []
    is_scale = values[0] >= 0 and values[-1] <= FEW_VALUES
    return [str(int(each)) for each in values] if is_scale else []


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _tell_undecided(name: str, values: Sequence[str]) -> str:
    """Why the kind of a task must be said, and both ways to say it."""
    shown = ", ".join(values[:5]) + (", ..." if len(values) > 5 else "")
    return (
        f"has {len(values)} different whole numbers ({shown}): amounts, where 4 is near 5, or names"
        f" of classes? Say which: --kind {quote(f'{name}=regression')} or"
        f" --kind {quote(f'{name}=classification')}"
    )


def _check_budget(settings: Settings) -> None:
    """That there is money for a label of any kind: a campaign that can buy nothing has no next
    step."""
    prices = {task.name: task.price(task.lot) for task in settings.tasks}
    cheapest = min(prices, key=lambda name: prices[name])
    if settings.budget < prices[cheapest]:
        what = (
            f"{show(settings.budget)} buys nothing; the cheapest is {cheapest!r}, for"
            f" {show(prices[cheapest])}"
        )
        raise InputError([Mistake("--budget", f"{what}. Give all there is to spend on labels")])


def settle_machine() -> dict[str, str]:
    """Device and precision of this machine, so that later trainings are done as the first ones
    were."""
    try:
        from allotment.learners.recipe import Recipe

        settled = Recipe().settled()
    except ImportError:  # planning and ordering do without torch
        return {"device": "cpu", "precision": "float32"}
    return {"device": settled.device, "precision": settled.precision}


def _relative(path: str, folder: Path) -> str:
    """From the campaign's folder where both lie side by side, so that they can be moved together;
    whole otherwise."""
    whole, home = Path(os.path.realpath(Path(path).expanduser())), Path(os.path.realpath(folder))
    return os.path.relpath(whole, home) if whole.is_relative_to(home.parent) else str(whole)


def _number(text: str) -> str:
    """A number as TOML takes it: as text if it is anything else, which reading it then explains."""
    plain = text.strip()
    bare = plain.replace(".", "", 1)
    fits = bare.isascii() and bare.isdigit() and plain[0] != "." and plain[-1] != "."
    return (
        plain
        if fits and (plain[0] != "0" or plain in ("0",) or plain[1] == ".")
        else f'"{_escape(plain)}"'
    )


def _escape(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable() and letter not in '"\\')
