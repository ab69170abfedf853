"""One name for one thing: no constant, type or class of one module is called as one of another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import allotment

SOURCE = Path(allotment.__file__).parent
# Under these names a seam finds what a module offers (plugins.find_modules).
OFFERED = {"METHOD", "SOURCE", "STRATEGY", "CONNECTOR", "RUNNER", "EXHIBIT"}
ITSELF = {"__all__"}  # of Python's own


def list_names(tree: ast.Module) -> Iterator[str]:
    """The constants, types and classes that a module defines itself."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (part.id for part in parts if isinstance(part, ast.Name))


def test_no_name_is_that_of_two_things() -> None:
    homes = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        for name in list_names(ast.parse(path.read_text())):
            homes[name].add(path.relative_to(SOURCE).as_posix())
    twice = {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1}
    assert set(twice) <= OFFERED | ITSELF, twice
