"""The package as a whole: which way its rooms lean, what its front door shows, what it loads and
when."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import allotment
from allotment import errors

SOURCE = Path(allotment.__file__).parent
ROOT = SOURCE.parent.parent
TESTS = Path(__file__).parent

# From left to right: a room imports only from rooms to its left (docs/method.md, README).
ROOMS = (
    "arrays", "quantiles", "progress", "meter", "renames",
    "errors", "mistakes", "plugins", "amounts", "formatting", "cells", "machine", "files",
    "standing", "problem", "toml", "notation", "gains", "problem_file", "limits", "solver", "plan",
    "worth", "overview", "frontiers", "curve_conformance", "data",
    "learners", "estimates", "advice", "orders", "job", "runs", "models", "connect", "ledger",
    "settings", "stock", "campaign", "corpus", "experiment", "reports", "terminal", "cli",
)  # fmt: skip
# Within some rooms the modules lean one way too.
INSIDE = {
    "solver": ("bank", "soundness", "model", "dual", "greedy", "listing", "search", "sweep",
    "baselines", "sensitivity"),
    "runs": (
        "deaths", "portion", "trees", "execution", "remote", "runner", "flights", "conformance",
    ),
    "data.scenes": (
        "arrays", "scene", "drawing", "stage", "solids", "rays", "shading", "pictures", "labels",
        "album", "unrendered",
    ),
    "estimates": (
        "probes", "posterior", "transfer", "curves", "verdict", "reduction",
        "estimates", "design", "response", "forecast", "sampling", "beliefs",
        "levels", "stopping", "triples", "taba",
        "outline", "request", "scoring", "options", "method", "chunks", "paper", "letter",
        "estimating", "conformance",
    ),
    "estimates.methods": (
        "response", "neutral", "slopes", "taba", "taba_alone", "taba_b099", "taba_b0999",
        "taba_b1", "taba_mended", "taba_pooled", "taba_tag",
    ),
    "advice": ("price", "doctor", "backtest", "loss_weights", "plain_problem", "questions"),
    "orders": ("strategy", "order", "sheet", "conformance"),
    "models": ("inputs", "predictions", "card", "model"),
    "connect": (
        "guard", "names", "decimals", "rows", "masks", "connector", "delivery", "conformance",
    ),
    "ledger": (
        "disk", "lock", "journal", "copies", "schema", "recovery", "store", "books", "archive",
    ),
    "settings": ("settings", "template"),
    "stock": ("stock", "fingerprints", "conformance"),
    "campaign": (
        "renaming", "beginning", "rounds", "tranche", "prospect", "departure", "state", "goals",
        "evaluation", "audit", "session", "sheets", "doubts", "intake", "corrections", "origins",
        "export", "sharing", "placing", "work", "jobs", "choosing", "gallery", "summary",
        "campaign", "starting",
    ),
    "experiment": (
        "case", "ground", "record", "work", "outcomes", "casebook", "entrants", "surfaces",
        "exhibit", "drawings", "comparison", "claim", "running", "repetition", "outlay",
    ),
    "corpus": (
        "setting", "kept", "plans", "ways", "surface", "judge", "replay", "report",
    ),
    "terminal": ("page", "plans", "datasets", "contests", "campaigns", "labels", "loss_weights"),
    "cli": ("group", "inputs", "output", "planning", "files", "sources", "learners",
    "campaign", "labels", "demo", "datasets", "model", "loss_weights", "experiment"),
}  # fmt: skip


def imports_of(path: Path) -> set[str]:
    """The dotted names that a module imports from this package, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "allotment"
        ):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "allotment"}
    return found


def test_every_module_has_its_room() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} | folders == set(ROOMS)
    for folder, modules in INSIDE.items():
        paths = SOURCE.joinpath(*folder.split(".")).glob("*.py")
        assert {path.stem for path in paths} - {"__init__", "__main__"} == set(modules), folder


def test_tests_lie_in_folders_that_are_named_after_rooms() -> None:
    paths = [path.relative_to(TESTS) for path in TESTS.rglob("*.py")]
    folders = {path.parts[0] for path in paths if len(path.parts) > 1}
    assert folders - {"experiments", "fuzzing", "helpers", "plugin"} <= set(ROOMS)
    tests = [path for path in paths if path.name.startswith("test_")]
    named = {path.parts[0] for path in tests if len(path.parts) > 1}
    assert named - {"experiments"} <= set(ROOMS)
    assert len({path.name for path in tests}) == len(tests)  # pytest finds them by these names


def test_no_test_is_imported() -> None:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            parts = {part for name in names for part in name.split(".")}
            tests = {part for part in parts if part.startswith("test_")}
            assert not tests, f"{path.name} imports {tests}; what tests share goes to tests/helpers"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_from_their_left(room: str) -> None:
    paths = (
        list((SOURCE / room).rglob("*.py")) if (SOURCE / room).is_dir() else [SOURCE / f"{room}.py"]
    )
    for path in paths:
        for name in imports_of(path):
            other = [*name.split("."), ""][1]
            if other in (room, "__version__") or (
                room == "cli" and (not other or other in allotment.__all__)
            ):
                continue  # the command line goes through the front door
            assert other in ROOMS[: ROOMS.index(room)], f"{path.name} imports {name}"


@pytest.mark.parametrize(
    ("folder", "module"), [(folder, each) for folder in INSIDE for each in INSIDE[folder]]
)
def test_modules_inside_a_room_lean_one_way_too(folder: str, module: str) -> None:
    modules = INSIDE[folder]
    for name in imports_of(SOURCE.joinpath(*folder.split("."), f"{module}.py")):
        if name.startswith(f"allotment.{folder}."):
            other = name.removeprefix(f"allotment.{folder}.").split(".")[0]
            assert other in modules[: modules.index(module)], f"{module} imports {name}"


def test_the_front_door() -> None:
    assert set(allotment.__all__) == {
        "AllotmentError", "Campaign", "Cap", "Comparison", "Coupled", "Curve", "Estimates",
        "Evidence", "Frontier", "Geometric",
        "Infeasible", "InputError", "Logarithmic", "Outlook", "Plan", "Power", "Problem", "Score",
        "SklearnLearner",
        "Standing", "Stop", "Tabulated", "Task", "Tranche",
        "__version__", "allocate", "baselines", "cheapest", "diagnose", "estimate", "find_stop",
        "frontier",
        "load_model", "neutral_gains", "propose_tranche",
        "read_problem", "score",
    }  # fmt: skip
    for name in allotment.__all__:
        assert getattr(allotment, name) is not None
    assert set(allotment.__all__) <= set(dir(allotment))
    with pytest.raises(AttributeError, match="no attribute 'alocate'"):
        allotment.alocate  # noqa: B018


def drawn_errors() -> dict[str, str]:
    """Of each error in the drawing of errors.py, the one that it is a kind of."""
    above: list[str] = []
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"((?:[│ ]   )*)(?:[├└]── )(\w+)|(?=AllotmentError)", line):
            depth = 0 if match[2] is None else len(match[1]) // 4 + 1
            above = [*above[:depth], match[2] or line]
            if depth:
                found[above[-1]] = above[-2]
    return found


def list_errors(root: type) -> dict[str, str]:
    """Of each error of the package, the one that it is a kind of."""
    found = {}
    for each in root.__subclasses__():
        if each.__module__.split(".")[0] == "allotment":
            found |= {each.__name__: root.__name__} | list_errors(each)
    return found


def test_the_drawing_of_errors_is_complete() -> None:
    for module in pkgutil.walk_packages(allotment.__path__, "allotment."):
        importlib.import_module(module.name)
    assert drawn_errors() == list_errors(errors.AllotmentError)


def test_no_module_hides_a_name_of_the_front_door() -> None:
    """`import allotment.x` sets allotment.x to the module: it must not be a function's name."""
    assert not set(allotment.__all__) & set(ROOMS)


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_after("import allotment") & {"numpy", "rich", "torch", "matplotlib", "click"}


def test_planning_needs_neither_torch_nor_plots() -> None:
    heavy = {"torch", "matplotlib", "rich", "click", "scipy", "pandas"}
    assert not loaded_after("import allotment\nallotment.allocate, allotment.frontier") & heavy


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {allotment.__version__}" in citation
    assert f"[{allotment.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_says_what_it_is_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    listed = [line for line in lines if line.startswith('  "') and ">=" in line]
    assert len(listed) >= 10
    assert [line for line in listed if "#" not in line] == []


def test_everything_installed_is_pinned() -> None:
    pins = (ROOT / "constraints.txt").read_text().split()
    assert "torch==2.13.0" in pins
    named = {pin.split("==")[0].lower() for pin in pins if "==" in pin}
    assert {
        "numpy",
        "click",
        "rich",
        "pytest",
        "ruff",
        "mypy",
        "hatchling",
        "highspy",
        "ortools",
    } <= named


def check_wheel(wheel: Path, home: Path) -> None:
    """That the index would take it, and show its description."""
    venv.create(home, with_pip=True)
    install = [
        home / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "-c",
        ROOT / "constraints.txt",
        "twine",
    ]
    subprocess.run(install, check=True)
    done = subprocess.run(
        [home / "bin" / "twine", "check", "--strict", wheel], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "PASSED" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_wheel_runs_in_an_empty_environment(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    check_wheel(wheel, tmp_path / "release")
    home = tmp_path / "empty"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel]
    subprocess.run(install, check=True, cwd=tmp_path)
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV"))
    }
    command = [home / "bin" / "allot", "demo", "--paper"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=clean)
    assert done.returncode == 0, done.stderr
    assert "2920" in done.stdout
    assert "42319" in done.stdout
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    assert "torch" not in listed.stdout


def test_scripts_import_what_is_there() -> None:
    """Nobody runs all of them with every change."""
    missing = []
    folders = ("experiments", "benchmarks", "examples", "docs")
    for path in sorted(each for name in folders for each in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("allotment"):
                try:
                    module = importlib.import_module(str(node.module))
                    gone = [each.name for each in node.names if not hasattr(module, each.name)]
                    for name in gone:  # a submodule, or nothing
                        importlib.import_module(f"{node.module}.{name}")
                except ModuleNotFoundError as error:
                    missing.append(f"{path.name}: {error}")
    assert not missing
