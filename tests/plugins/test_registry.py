"""What others add: found by name, refused in words where it is broken, and used from the command
line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.packages import offer

from allotment import plugins
from allotment.errors import InputError
from allotment.plugins import Registry, find_modules


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Registry[Any]:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "others.py").write_text("class Good:\n    run = 1\n\n\nclass Bare:\n    pass\n")
    offer(tmp_path, "things", "first", good="others:Good", bare="others:Bare", twice="others:Good")
    offer(tmp_path, "things", "second", twice="others:Good", gone="nowhere:Good", own="others:Good")
    return Registry("things", "thing", ("run",), {"own": lambda: "built in"})


def test_what_is_built_in_comes_first_and_cannot_be_taken_over(registry: Registry[Any]) -> None:
    first, *others = registry
    assert first == "own"
    assert sorted(others) == ["bare", "gone", "good", "twice"]
    assert registry.load("own") == "built in"
    assert registry.version_of("own") is None


def test_what_a_package_offers_is_found_by_name(registry: Registry[Any]) -> None:
    assert "good" in registry
    assert registry.load("good").run == 1
    assert registry.version_of("good") == "first 1.0"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("god", "thing: unknown 'god'; did you mean 'good'?"),
        (["x"], "thing: unknown"),
        ("bare", "thing 'bare': first 1.0 offers one without run; docs/extending.md"),
        ("twice", "thing: 'twice' is offered by first 1.0 and second 1.0; uninstall all but one"),
        ("gone", "thing 'gone': cannot be loaded from second 1.0 (ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_had_is_told_with_its_package(
    registry: Registry[Any], name: Any, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        registry.load(name)
    assert str(caught.value).startswith(said)


def test_a_new_module_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "several"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "two_words.py").write_text("THING = 2\n")
    (package / "_shared.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_modules("several", "THING")
    assert {name: load() for name, load in found.items()} == {"two-words": 2}


def test_asking_for_a_built_in_one_looks_at_no_package(
    registry: Registry[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**given: object) -> None:
        raise AssertionError

    monkeypatch.setattr(plugins, "entry_points", fail)
    assert registry.load("own") == "built in"


def test_the_package_of_the_tests_installs(plugin: Path) -> None:
    assert (plugin / "allotment_plugin" / "__init__.py").is_file()
