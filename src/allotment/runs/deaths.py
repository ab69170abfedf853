"""How processes die of their jobs, in words, with what to try."""

from __future__ import annotations

import signal

CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")
SMALLER_JOBS = "smaller batches (batch_size under [training])"
LESS_MEMORY = f"try fewer workers (--workers 1) or {SMALLER_JOBS}"
OTHER_CODE = (
    "try ONEDNN_MAX_CPU_ISA=SSE41 in the environment, by which torch does without what is new in"
    " this CPU"
)


def explain_death(code: int | None) -> str:
    """What an exit code of a worker says of its end, and what to try.

    >>> explain_death(3)
    'with exit code 3: something in it left Python; try --workers 0 to see it in one process'
    """
    if code is None or code >= 0:
        return (
            f"with exit code {code}: something in it left Python; try --workers 0 to see it in one"
            " process"
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return f"killed from outside ({name}), mostly for want of memory: {LESS_MEMORY}"
    if name in CRASHES:
        return (
            f"of a crash in native code ({name}): {OTHER_CODE}; where memory is short,"
            f" {LESS_MEMORY}"
        )
    return f"ended from outside ({name}): type the command again"
