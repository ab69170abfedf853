"""Other machines: instruction sets and threads, the convolution that ends a process, and what kind
a CPU is."""

from __future__ import annotations

import functools
import itertools
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment import machine

TESTS = Path(__file__).parents[1]
X86 = platform.machine().lower() in ("x86_64", "amd64")
on_x86 = pytest.mark.skipif(not X86, reason=f"instruction sets of x86 on {platform.machine()}")
CLOSE = 1e-4
"""as docs/learner.md promises for other kinds of CPU: relative to the largest value of its kind"""
AVX512 = [
    name
    for name in np._core._multiarray_umath.__cpu_dispatch__
    if name == "X86_V4" or name.startswith("AVX512")
]
ISAS: dict[str, dict[str, str]] = {
    "AVX2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(AVX512),
    },
    "SSE41": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "plain": {"ATEN_CPU_CAPABILITY": "default"},
}


@functools.cache
def trained(threads: int = 1, **environment: str) -> Any:
    """What tests/helpers/trainings.py prints on such a machine."""
    inherited = {
        key: value for key, value in os.environ.items() if key not in machine.CPU_VARIABLES
    }
    inherited |= {"OMP_NUM_THREADS": str(threads), "TRAINING_THREADS": str(threads), **environment}
    inherited["OPENBLAS_NUM_THREADS"] = str(threads)  # numpy's own
    done = subprocess.run(
        [sys.executable, str(TESTS / "helpers" / "trainings.py")],
        env=inherited,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


def check_close(found: Any, wanted: Any) -> None:
    for kind, values in wanted["values"].items():
        one, other = np.array(found["values"][kind]), np.array(values)
        assert np.abs(one - other).max() <= CLOSE * np.abs(other).max(), kind


@pytest.mark.long
def test_threads_change_no_byte() -> None:
    alone, together = trained(1), trained(2)
    # outside of trainings they are as they were
    assert (alone["threads"], together["threads"]) == (1, 2)
    assert alone["digests"] == together["digests"]


@on_x86
@pytest.mark.long
@pytest.mark.parametrize("isa", ISAS)
def test_everything_trains_on_older_instruction_sets(isa: str) -> None:
    check_close(trained(1, **ISAS[isa]), trained(1))


@on_x86
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("onednn", "aten"), [("SSE41", "default"), ("AVX", "avx2"), ("AVX2", "default")]
)
def test_the_matrix_of_instruction_sets(onednn: str, aten: str) -> None:
    """Each of either, in pairs; with any number of threads the same bytes."""
    environment = ISAS["AVX2"] | {"ONEDNN_MAX_CPU_ISA": onednn, "ATEN_CPU_CAPABILITY": aten}
    alone, together = trained(1, **environment), trained(2, **environment)
    assert alone["digests"] == together["digests"]
    check_close(alone, trained(1))


# The convolution

CONVOLVE = """
import contextlib, sys
sys.path.insert(0, {tests!r})
import torch
from helpers.trainings import risky
from allotment.data.labels import draw, split
from allotment.data.scenes import make_scenes
from allotment.learners import torch_learner
from allotment.learners.learner import train
from allotment.learners.recipe import Recipe

if not {guarded}:
    torch_learner.SafeConvolutions = contextlib.nullcontext
data = make_scenes(60, 24, 0)
parts = split(data, 0, 0.1, 0.1)
learner = torch_learner.TorchLearner(data, parts, Recipe(steps={steps}, batch_size=8), risky)
train(learner, draw(data, parts.train, dict.fromkeys(learner.tasks, 20), 0), 0)
print("alive")
"""


def convolve(guarded: bool, steps: int) -> subprocess.CompletedProcess[str]:
    script = CONVOLVE.format(tests=str(TESTS), guarded=guarded, steps=steps)
    environment = dict(os.environ) | ISAS["AVX2"]
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=90
    )


@on_x86
def test_a_network_of_a_user_with_strided_point_convolutions_trains() -> None:
    done = convolve(guarded=True, steps=40)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@on_x86
def test_without_the_guard_it_dies() -> None:
    """Should this fail, torch has mended it and the guard can go. A destroyed heap may hang, or
    hold out a while."""
    for _ in range(3):
        try:
            if convolve(guarded=False, steps=200).returncode < 0:
                return
        except subprocess.TimeoutExpired:
            return
    raise AssertionError("it trained three times")


@pytest.mark.parametrize("stride", [2, (3,), (1, 2), (2, 1)])
@pytest.mark.parametrize(("channels", "groups"), [(3, 1), (12, 1), (12, 3), (16, 1)])
@pytest.mark.parametrize("padding", [0, 1, (1, 2), "valid"])
def test_the_guard_computes_the_same(stride: Any, channels: int, groups: int, padding: Any) -> None:
    torch = pytest.importorskip("torch")
    from allotment.learners.layers import SafeConvolutions

    generator = torch.Generator().manual_seed(0)
    batch = torch.rand(
        (2, channels, 9, 11), generator=generator, dtype=torch.float64, requires_grad=True
    )
    layer = torch.nn.Conv2d(channels, 24, 1, stride, padding, groups=groups).double()
    results = []
    for guard in (False, True):
        if guard:
            with SafeConvolutions():
                out = layer(batch)
        else:
            out = layer(batch)
        results.append(
            (out, *torch.autograd.grad(out.square().sum(), [batch, *layer.parameters()]))
        )
    for plain, safe in zip(*results, strict=True):
        torch.testing.assert_close(plain, safe)


def test_no_built_in_network_has_such_a_layer_unguarded() -> None:
    """The usual one trains without the guard, since it needs none."""
    torch = pytest.importorskip("torch")
    from allotment.data.scenes.labels import SCENE_TARGETS
    from allotment.learners.layers import PointConv
    from allotment.learners.torch_learner import _usual_network

    for layer in _usual_network((3, 24, 24), SCENE_TARGETS, 1).modules():
        if isinstance(layer, torch.nn.Conv2d) and not isinstance(layer, PointConv):
            assert layer.kernel_size != (1, 1) or layer.stride == (1, 1)


# Settling


def test_trainings_have_one_thread_and_give_it_back() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with machine.settled(), machine.settled(load=False):
            assert torch.get_num_threads() == machine.THREADS == 1
        with pytest.raises(ZeroDivisionError), machine.settled():
            _ = 1 / 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_nobody_waits_for_torch_who_does_not_use_it() -> None:
    script = (
        "import sys, allotment.machine as m\nwith m.settled(load=False): print('torch' in"
        " sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
        == "False\n"
    )


# Kinds of CPU

INTEL = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) CPU @ 2.70GHz
flags\t\t: fpu sse4_2 avx avx2 fma avx512f avx512dq avx512bw avx512vl

processor\t: 1
model name\t: another
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd sve bf16
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""
ROSETTA = (
    "processor\t: 0\nvendor_id\t: VirtualApple\ncpu family\t: 6\nmodel\t\t: 44\nmodel name\t:"
    " VirtualApple @ 2.50GHz\n"
)


@pytest.mark.parametrize(
    ("text", "system", "kind"),
    [
        (INTEL, "x86_64", "Intel(R) Xeon(R) CPU @ 2.70GHz (GenuineIntel 6 143), x86_64, AVX-512"),
        (INTEL.replace(" avx512bw", ""), "x86_64",
        "Intel(R) Xeon(R) CPU @ 2.70GHz (GenuineIntel 6 143), x86_64, AVX2"),
        (ARM, "aarch64", "aarch64 (0x41 0xd40), aarch64, SVE"),
        (ROSETTA, "x86_64", "VirtualApple @ 2.50GHz (VirtualApple 6 44), x86_64"),
        ("", "riscv64", "riscv64, riscv64"),
    ],
)  # fmt: skip
def test_kinds_of_cpu(text: str, system: str, kind: str) -> None:
    assert machine._read_cpu(text, system) == kind


def test_a_cpu_that_is_told_to_be_an_older_one_is_another_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in machine.CPU_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    kinds = {machine.describe_cpu()}
    for name, value in itertools.product(machine.CPU_VARIABLES[:3], ("AVX2", "default")):
        monkeypatch.setenv(name, value)
        kinds.add(machine.describe_cpu())
        monkeypatch.delenv(name)
    assert len(kinds) == 7


# Devices that are not here


@pytest.mark.parametrize("device", ["cuda", "mps", "xpu"])
def test_training_on_a_device(device: str) -> None:
    torch = pytest.importorskip("torch")
    available = getattr(torch, device) if device != "mps" else torch.backends.mps
    if not available.is_available():
        hidden = " (or it is hidden: set ALLOT_TEST_GPU=1)" if device == "cuda" else ""
        pytest.skip(
            f"there is no {device} device here{hidden}: this run says NOTHING about trainings"
            " on one"
        )
    from helpers.trainings import table

    from allotment.learners.learner import measure, train
    from allotment.learners.recipe import Recipe
    from allotment.learners.torch_learner import TorchLearner

    learner, labels = table()
    there = TorchLearner(
        learner.data, learner.split, Recipe(steps=40, device=device, precision="float32")
    )
    scores, again = (
        [each.loss for each in measure(there, train(there, labels, 0)).values()] for _ in range(2)
    )
    assert scores == again
    here = measure(learner, train(learner, labels, 0))
    assert scores == pytest.approx([each.loss for each in here.values()], rel=0.02)
