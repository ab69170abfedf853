"""The machine: one place that settles how trainings run on it, what kind it is, and what its
systems do differently.

The same bytes are promised on one kind of CPU, whatever the number of its cores, threads and
workers. Another kind rounds differently, and trainings make more of that: docs/learner.md says how
much.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

THREADS = 1
"""of torch in one training: sums of several threads round differently, and two trainings at once
are faster than one with two threads"""
CPU_VARIABLES = (
    *(
        "ONEDNN_MAX_CPU_ISA",
        "ONEDNN_DEFAULT_FPMATH_MODE",
        "ATEN_CPU_CAPABILITY",
        "MKL_ENABLE_INSTRUCTIONS",
        "MKL_CBWR",
    ),
    *("NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"),
)
"""variables of the environment by which a CPU is told to compute as another one does"""
TROUBLES = {
    getattr(errno, name, None)
    for name in (
        "EIO",
        "ENOMEM",
        "EMFILE",
        "ENFILE",
        "ENODEV",
        "ENXIO",
        "EREMOTEIO",
        "ESTALE",
        "ETIMEDOUT",
        "ENOLCK",
    )
} - {None}
"""errors of a disk, a network or memory that say nothing of the file that was asked for"""
_CPUS = Path("/proc/cpuinfo")
_LEVELS = {
    "AVX-512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "AVX2": {"avx2", "fma"},
    "SVE": {"sve"},
}

_depth = 0


@contextlib.contextmanager
def settled(load: bool = True) -> Iterator[None]:
    """Trainings in here give the same bytes in every process; outside of it everything is as it
    was.

    Without `load` nothing is done unless torch is there already: whoever trains with something else
    need not wait for it.
    """
    global _depth
    if _depth or not ((load and importlib.util.find_spec("torch")) or "torch" in sys.modules):
        yield
        return
    import torch

    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(THREADS)
        if torch.cuda.is_available():
            _settle_cuda(torch, stack)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1


def _settle_cuda(torch: Any, stack: contextlib.ExitStack) -> None:
    """No choosing among kernels by their speed, and none whose sums depend on the moment, where
    there is another."""
    cudnn = torch.backends.cudnn
    stack.callback(setattr, cudnn, "benchmark", cudnn.benchmark)
    stack.callback(
        torch.use_deterministic_algorithms,
        torch.are_deterministic_algorithms_enabled(),
        warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    if "CUBLAS_WORKSPACE_CONFIG" not in os.environ:  # without it cuBLAS has no such kernels
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        stack.callback(os.environ.pop, "CUBLAS_WORKSPACE_CONFIG", None)
    cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine lives; where that can't be asked without harm, it is taken
    to."""
    if os.name != "posix":  # on Windows the question can end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def is_trouble(error: BaseException) -> bool:
    """Whether the machine failed and not the file, which may be sound and be read another time."""
    return isinstance(error, OSError) and error.errno in TROUBLES


def sync_file(handle: int) -> None:
    """Return once a file is on the disk itself; on macOS fsync alone leaves it in the disk's own
    memory."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
        return
    os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Names too are on the disk only once their folder is; Windows has no way to ask for that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            sync_file(handle)
        finally:
            os.close(handle)


def make_folder(path: Path) -> None:
    """A folder, and those around it, with names that stay when the power goes."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in reversed(missing):
        sync_folder(each.parent)


def describe_cpu() -> str:
    """The kind of CPU, in words; the same words are the same kind."""
    limits = [f"{name}={value}" for name in CPU_VARIABLES if (value := os.environ.get(name))]
    return ", ".join([_name_cpu(), *limits])


@cache
def _name_cpu() -> str:
    machine = platform.machine() or "unknown"
    if sys.platform == "linux":
        try:
            return _read_cpu(_CPUS.read_text(encoding="utf-8", errors="replace"), machine)
        except OSError:
            return machine
    if sys.platform == "darwin":
        import subprocess

        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            said = subprocess.run(
                command, capture_output=True, text=True, timeout=5, check=True
            ).stdout
            return f"{said.strip()}, {machine}"
    return f"{platform.processor()}, {machine}"


def _read_cpu(text: str, machine: str) -> str:
    """The first processor of Linux's list; on arm it has numbers in place of a name."""
    found = dict(re.findall(r"^([^:\n]*?)\s*: *(.*)$", text.partition("\n\n")[0], re.MULTILINE))
    name = found.get("model name") or found.get("Processor") or machine
    numbers = [
        found.get(key, "")
        for key in ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")
    ]
    flags = set((found.get("flags") or found.get("Features") or "").split())
    level = next((name for name, needed in _LEVELS.items() if needed <= flags), "")
    about = " ".join(filter(None, numbers))
    return ", ".join(filter(None, [f"{name} ({about})" if about else name, machine, level]))
