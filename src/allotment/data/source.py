"""What a campaign can be about: kinds of data, built in or offered by installed packages.

Nothing here loads numpy: names, keys and presets are wanted before any data are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from allotment.errors import InputError, Mistake, cut, suggest
from allotment.mistakes import Collected, Place
from allotment.plugins import Registry, find_modules

if TYPE_CHECKING:
    from allotment.data.dataset import Dataset
    from allotment.data.embedding import OpenNetwork, SeenPictures
    from allotment.data.table_file import TableFile

RESERVED_KEYS = ("name", "root")
"""keys of [data] that every source has, or that are asked for by `root`"""
STEPS = 300
"""of a training, unless a source or the settings say otherwise"""
PICTURE_RECIPE: Mapping[str, Any] = {
    "steps": STEPS,
    "batch_size": 8,
    "optimiser": "adam",
    "trunk_rate": 0.01,
    "head_rate": 0.01,
}
"""the usual recipe of small networks on pictures"""
KEY_TYPES: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "texts with commas between",
}
"""types that a key can have, and how a value is written on the command line"""

ReadOnce = TypeVar("ReadOnce")

_BOOLS = {"true": True, "false": False}


@dataclass(frozen=True)
class Key:
    """A key under [data] in campaign.toml: checking, the template and `--set` read it here."""

    name: str
    kind: type
    """str, int, float, bool, or list for a list of texts"""
    comment: str
    """what it says, above it in campaign.toml"""
    initial: Any = None
    """what `allot init` writes; None: nothing, unless it is asked for"""
    is_path: bool = False
    """whether it names a file: then one that is not absolute begins at the campaign's folder, and
    the source is given it whole"""

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name in RESERVED_KEYS:
            raise InputError([Mistake("key", f"{self.name!r} can't be the name of a key")])
        if self.kind not in KEY_TYPES:
            allowed = ", ".join(each.__name__ for each in KEY_TYPES)
            what = f"{self.kind!r} is not a type of a key; allowed: {allowed}"
            raise InputError([Mistake(f"key {self.name!r}", what)])

    def read(self, text: str) -> Any:
        """The value that a text on the command line stands for; raises InputError if it is
        none."""
        if self.kind is list:
            return [part.strip() for part in text.split(",") if part.strip()]
        try:
            return _BOOLS[text.strip()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            what = f"{cut(repr(text), 60)} is not {KEY_TYPES[self.kind]}"
            raise InputError([Mistake(f"--set {self.name}", what)]) from None


@dataclass(frozen=True)
class KnownTask:
    """A task that a source has whatever the data hold: its kind, and what `allot init` writes."""

    kind: str
    cost: int
    """of one label"""
    have: int = 0
    """labels to begin with, where the source has them all"""
    implies: tuple[str, ...] = ()
    """other tasks of which a label comes along with one of this"""


@dataclass(frozen=True)
class DataSettings:
    """What campaign.toml says of its data, as a source is given it."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """the source's own keys, as far as they are written; their types are checked"""
    root: Path | None = None
    """where the data lie; None for a source without a root"""
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """the tasks that are wanted, as the data call them, and what each says of its labels: `kind`,
    `classes`"""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """of other names of tasks, what the data call these"""
    open_network: OpenNetwork | None = field(default=None, repr=False, compare=False)
    """makes an embedding of pictures of a file of weights; None where nothing can"""
    keep: Path | None = field(default=None, repr=False, compare=False)
    """a folder for what takes long to compute and may be removed at any time"""
    known: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False, compare=False)
    """what was read with them so far, by what reads it"""

    @property
    def path(self) -> Path:
        """The root of a source that has one."""
        assert self.root is not None
        return self.root

    def call(self, name: str) -> str:
        """What the data call a task."""
        return self.aliases.get(name, name)

    def once(self, read: Callable[[DataSettings], ReadOnce]) -> ReadOnce:
        """What `read` makes of these settings, which it is asked for once: a command gives all
        verbs of a source the same ones."""
        if read not in self.known:
            self.known[read] = read(self)
        found: ReadOnce = self.known[read]
        return found

    def said(self, key: str) -> dict[str, Any]:
        """What the tasks say under one key."""
        return {name: keys[key] for name, keys in self.tasks.items() if key in keys}


@dataclass(frozen=True)
class Rows:
    """A table below the data: order sheets show its columns, and rows that go by their numbers are
    watched, so that none takes the place of another unseen."""

    path: Path
    open: Callable[[], TableFile]
    id: str | None = None
    """the column that names the rows; None where they go by their numbers"""
    left_out: tuple[str, ...] = ()
    """columns that are neither learned from nor shown"""
    vouched: str = ""
    """how the digest of a file begins of which the user says that its rows stand where they
    stood"""
    seen: SeenPictures | None = None
    """how pictures that it names are seen; None where they are seen as they are"""


class Source:
    """A kind of data that campaigns can be about. `[data] name = "..."` in campaign.toml names it.

    To add one: a class that inherits this one, says what its attributes say here, and opens the
    data. Whatever is left as it is here means "no" or "nothing". An instance of it is offered by
    an installed package under the entry point `allotment.sources`, or is called SOURCE in a
    module of `allotment.data.sources`; the name of either is the source's name.

    What it says of itself must need no data, and no package that takes long to load: `allot init`
    asks for it to write a template, and every command to check campaign.toml. Import what reads
    data inside `open`.

    Opening the same data twice must give the same fingerprint and the same values, in every
    process: trainings open the data again, and results are kept under the fingerprint. A data set
    answers what `Dataset` says (`BaseData` has the usual answers; `ArrayData` is one in memory),
    and raises InputError, with all mistakes at once, where files do not hold what they should.
    """

    name: str
    """as in campaign.toml"""
    about: str
    """one sentence, for `allot data`"""
    keys: Sequence[Key] = ()
    """under [data] in campaign.toml, beside `name` and `root`"""
    root: str = ""
    """what `root` must name, as in "the folder of the images"; nothing where there is no root"""
    complete: bool = False
    """whether the data come with all labels: then a campaign begins with some of them, buys the
    others from the data and can be judged by them. Otherwise the labels that are there are at
    hand, and the others come from outside"""
    tasks: Mapping[str, KnownTask] = {}
    """tasks that are known beforehand, in the order in which they are written; none if they are
    found in the data, or in what the settings say of them"""
    kinds: Sequence[str] = ()
    """what tasks that are found can be; any kind if there is none"""
    budget: int | None = None
    """that `allot init` writes unless it is told one"""
    instances: str = "any"
    """likewise: whether labels of several tasks are to be on "different" instances, on the "same",
    or on "any" """
    recipe: Mapping[str, Any] = {"steps": STEPS}
    """how the usual network is trained, as keys of a Recipe that settings may overrule"""
    networks: Sequence[str] = ()
    """set-ups by name (`allotment.learners.setups`) that are made for such data"""

    def open(self, given: DataSettings) -> Dataset:
        """The data, with at least the tasks that are wanted; raises InputError where they can't
        be had."""
        raise NotImplementedError

    def list_names(self, given: DataSettings) -> Collection[str]:
        """What tasks could be called in these data, as far as that can be told at a glance."""
        return tuple(self.tasks)

    def check(self, given: DataSettings) -> Sequence[tuple[Place, Mistake]]:
        """What is wrong as far as can be told at a glance, with the key that it is wrong with:
        every command asks for it. `open` refuses the same."""
        return ()

    def guess_kind(self, given: DataSettings, task: str) -> str | None:
        """What a task that is found in the data is, if that can be told without opening them."""
        return None

    def settle(self, given: DataSettings) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Keys that `allot init` adds to those given, after a look at the data, and a word on
        each."""
        return {}, ()

    def list_files(self, given: DataSettings) -> Sequence[Path]:
        """The files and folders that the data are read from, the root first and the others in the
        same folder: machines that do not see them get copies."""
        return () if given.root is None else (given.root,)

    def rows(self, given: DataSettings) -> Rows | None:
        """The table that the data are read from, if they are."""
        return None


ATTRIBUTES = (
    *("name", "about", "keys", "root", "complete", "tasks", "kinds", "budget", "recipe"),
    "networks",
)
SOURCE_VERBS = ("open", "list_names", "list_files", "check", "guess_kind", "settle", "rows")
"""what a source must do"""
SOURCES: Registry[Source] = Registry(
    "sources",
    "source",
    (*ATTRIBUTES, *SOURCE_VERBS),
    find_modules("allotment.data.sources", "SOURCE"),
)
"""every kind of data, by name"""


def read_options(source: Source, texts: Mapping[str, str]) -> dict[str, Any]:
    """The keys that `allot init` writes, with what texts on the command line say in their place;
    raises InputError with every text that says nothing."""
    keys = {key.name: key for key in source.keys}
    found = {name: key.initial for name, key in keys.items() if key.initial is not None}
    wrong = Collected()
    for name, text in texts.items():
        if name in keys:
            found[name] = wrong.attempt(keys[name].read, text)
        else:
            wrong.add(f"--set {name}", f"is not a key of {source.name}; {suggest(name, keys)}")
    wrong.raise_all()
    return found


def find_networks() -> dict[str, str]:
    """Networks that are made for some data, and the name of these."""
    found: dict[str, str] = {}
    for source in _load_all():
        for network in source.networks:
            found.setdefault(network, source.name)
    return found


def list_complete() -> list[str]:
    """Names of the data that come with all labels."""
    return [source.name for source in _load_all() if source.complete]


def _load_all() -> Iterator[Source]:
    """Every source but for those of packages that are broken, which are not asked for here."""
    for name in SOURCES:
        with suppress(InputError):
            yield SOURCES.load(name)
