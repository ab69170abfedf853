"""Which learner trains: the built-in one, one that an installed package offers, or code of the
user's own, which only a command line or the environment can name."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from allotment.data.dataset import Dataset
from allotment.data.labels import Split
from allotment.errors import InputError, Mistake, suggest
from allotment.learners.estimators import check_estimator
from allotment.learners.learner import BUILT_IN, LEARNER_VERBS, LEARNERS, Learner, MakeLearner

VARIABLE = "ALLOT_LEARNER"
"""names a learner, as the option --learner does"""
AUTO = "auto"
"""in place of a learner's name: the best of those built in, by cross-validation on the labels at
hand, which is chosen once"""
SKLEARN = "sklearn:"
"""before the name of an estimator of scikit-learn"""


def find_learner(given: str | None) -> str | None:
    """The learner that the command line or the environment names, code with its whole path; None
    where neither does."""
    named = given or os.environ.get(VARIABLE) or None
    if named is None or named in LEARNERS:
        return named
    if named.startswith(SKLEARN) or named == AUTO:
        if what := check_learner(named):
            raise InputError([Mistake("learner", what)])
        return named
    path, colon, function = named.rpartition(":")
    if colon and function.isidentifier():
        return f"{os.path.realpath(Path(path).expanduser())}:{function}"
    what = f"{named!r} is not FILE.py:FUNCTION, such as mine.py:make"
    if not colon:
        what += f", and as a name it is {LEARNERS.tell_unknown(named)}"
    raise InputError([Mistake("learner", what)])


def is_code(name: str) -> bool:
    """Whether this names a function in a file, and not an installed learner."""
    return not name.startswith(SKLEARN) and (":" in name or name.endswith(".py"))


def is_own(name: str) -> bool:
    """Whether this is a learner of allotment's own, which is scored on any labels that it is
    told."""
    return name == BUILT_IN or name.startswith(SKLEARN)


def is_stepless(name: str) -> bool:
    """Whether a training of this learner is one step."""
    return name.startswith(SKLEARN)


def check_learner(name: str) -> str:
    """What is wrong with a learner that a file names; "" if nothing is."""
    if name in LEARNERS:
        return ""
    if name.startswith(SKLEARN):
        return check_estimator(name.removeprefix(SKLEARN))
    if name == AUTO:
        return "auto is settled once: allot init --learner auto, or allot learners for a campaign"
    if is_code(name):
        return "is code, which no file may name: give it with --learner or in ALLOT_LEARNER"
    return LEARNERS.tell_unknown(name)


def fingerprint_learner(name: str) -> str:
    """What tells one learner from another: the bytes of the user's file, the package with its
    version, or "built-in"."""
    if name == BUILT_IN:
        return BUILT_IN
    if name.startswith(SKLEARN):
        if what := check_estimator(name.removeprefix(SKLEARN)):
            raise InputError([Mistake("learner", what)])
        return f"{name} of scikit-learn {version('scikit-learn')}"
    if not is_code(name):
        if name not in LEARNERS:  # on another machine, say
            raise InputError([Mistake("learner", LEARNERS.tell_unknown(name))])
        return f"{name} of {LEARNERS.version_of(name)}"
    path, _, function = name.rpartition(":")
    try:
        return f"{function} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    except OSError as error:
        raise InputError(
            [Mistake("learner", f"{path} cannot be read ({error.strerror})")]
        ) from None


def build_learner(name: str, data: Dataset, split: Split, members: int | None = None) -> Learner:
    """A learner that is not the built-in one, on these data; raises InputError unless it can be
    used. Those of scikit-learn have so many members."""
    if name.startswith(SKLEARN):
        from allotment.learners.sklearn_learner import SklearnLearner
        from allotment.learners.tempering import MEMBERS

        count = MEMBERS if members is None or members < 2 else members
        return SklearnLearner(data, split, name.removeprefix(SKLEARN), count)
    if is_code(name):
        path, _, maker = name.rpartition(":")
        make = _load_code(path, maker)
        with _explained(path):
            learner = make(data, split)
    else:
        maker, make = LEARNERS.describe(name), LEARNERS.load(name)
        with LEARNERS.calling(name):
            learner = make(data, split)
    if lacking := [verb for verb in LEARNER_VERBS if not hasattr(learner, verb)]:
        what = f"{maker} made a {type(learner).__name__} without {', '.join(lacking)}"
        raise InputError([Mistake("learner", f"{what}; docs/learner.md shows how")])
    if missing := [target.name for target in data.targets if target.name not in learner.tasks]:
        what = f"{maker} made one that does not know {', '.join(missing)}"
        raise InputError([Mistake("learner", what)])
    return learner


def _load_code(path: str, function: str) -> MakeLearner:
    spec = importlib.util.spec_from_file_location("allotment_own_learner", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InputError([Mistake("learner", f"{path} is not a Python file that is there")])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    with _explained(path):
        spec.loader.exec_module(module)
    make: MakeLearner | None = getattr(module, function, None)
    if make is None or not callable(make):
        public = [name for name in vars(module) if not name.startswith("_")]
        known = [name for name in public if callable(getattr(module, name))]
        what = f"{path} has no function {function!r}; {suggest(function, known)}"
        raise InputError([Mistake("learner", what)])
    return make


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """What goes wrong in the user's own code is said with its line there."""
    try:
        yield
    except Exception as error:
        lines = [
            each.lineno
            for each in traceback.extract_tb(error.__traceback__)
            if each.filename == path
        ]
        at = f"{path}:{lines[-1]}" if lines else path
        what = " ".join(str(error).split())  # torch's have several lines
        raise InputError([Mistake("learner", f"{at}: {type(error).__name__}: {what}")]) from error
