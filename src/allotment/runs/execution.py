"""One job, done in whichever process on whichever machine: two texts go in, one comes out.

Nothing else is shared with whoever wants it done. A job is done on a settled machine and with
random numbers that begin at its key, so that nothing it gives depends on which process did it, or
on what that process did before.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from allotment.amounts import short
from allotment.errors import InputError, Mistake
from allotment.job import JSON, Job, canonical, installed
from allotment.machine import settled
from allotment.runs.deaths import LESS_MEMORY

PerformJob: TypeAlias = Callable[[JSON, str, JSON], JSON]


def write_common(work: str, context: JSON) -> str:
    """What all jobs of a run share, as text: the function ("module:function") that does them, and
    what it gets beside them."""
    module, _, function = work.partition(":")
    if not function.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        what = f"{short(work)} is not 'module:function'; write 'mine.jobs:perform'"
        raise InputError([Mistake("work", what)])
    return canonical({"work": work, "context": context})


def write_job(job: Job) -> str:
    """A job as text."""
    plain = {"kind": job.kind, "needs": job.needs, "versions": job.versions, "key": job.key}
    return canonical(plain)


def execute(common: str, job: str) -> str:
    """Do a job; the reply is its result, or what went wrong, and for the runner to hand on as it
    is."""
    try:
        plain = json.loads(job)
        _check_versions(plain["versions"])
        work, context = _read_common(common)
        with settled(), _own_randomness():
            function = _load(work)
            _seed(int(plain["key"][:8], 16))
            body = function(context, plain["kind"], plain["needs"])
        return f'{{"body":{_write_body(body, plain["kind"])}}}'
    except InputError as error:
        mistakes = [[each.where, each.what, each.line] for each in error.mistakes]
        return json.dumps({"mistakes": mistakes})
    except Exception as error:
        return json.dumps({"failure": _tell(error), "trace": traceback.format_exc()})


@functools.lru_cache(maxsize=1)  # labels are in it, and a worker does many jobs
def _read_common(text: str) -> tuple[str, JSON]:
    plain = json.loads(text)
    return plain["work"], plain["context"]


def _check_versions(wanted: JSON) -> None:
    """On another machine there may be others, and a result would not be what its key says."""
    if wanted != (here := installed()):
        what = f"the job is for {canonical(wanted)}, and here are {canonical(here)}"
        raise InputError([Mistake("versions", f"{what}; install the same ones everywhere")])


def _write_body(body: JSON, kind: str) -> str:
    try:
        return canonical(body)
    except InputError as error:
        where = f"result of job {kind!r}"
        raise InputError(mistake.under(where) for mistake in error.mistakes) from None


def _tell(error: Exception) -> str:
    """What went wrong, and on which line."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    message = str(error).strip()
    if (
        isinstance(error, MemoryError)
        or "allocate memory" in message
        or "out of memory" in message.lower()
    ):
        first = message.partition("\n")[0]
        message = f"{first}; there is not memory enough: {LESS_MEMORY}".lstrip("; ")
    told = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{told} ({Path(at.filename).name}, line {at.lineno})"


@functools.cache
def _load(work: str) -> PerformJob:
    module, _, name = work.partition(":")
    try:
        loaded: PerformJob = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise InputError(
            [Mistake("work", f"{module} cannot be loaded: {error}; is it installed?")]
        ) from error
    except AttributeError as error:
        raise InputError([Mistake("work", f"{error}; check the name after the colon")]) from error
    return loaded


def _seed(seed: int) -> None:
    """Global random numbers too begin at the job's key: a user's own code may draw from them."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@contextlib.contextmanager
def _own_randomness() -> Iterator[None]:
    """Give the caller's random numbers back as they were."""
    import numpy as np

    torch: Any = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state(), torch.get_rng_state() if torch else None
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch:
            torch.set_rng_state(before[2])
