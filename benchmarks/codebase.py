"""How the code reads, in figures: statements, functions, lines, names. For comparing two states.

python benchmarks/codebase.py                  what is here
python benchmarks/codebase.py --at 64b443a     and what was there at a commit, beside it
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("src", "tests", "benchmarks", "experiments", "examples")
BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.Assert)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at", help="a commit to compare with")
    given = parser.parse_args()
    columns = {"here": measure(ROOT)}
    if given.at:
        with tempfile.TemporaryDirectory() as folder:
            columns = {given.at: measure(check_out(given.at, Path(folder)))} | columns
    print(f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in columns["here"]:
        print(f"| {name} | {' | '.join(column[name] for column in columns.values())} |")


def check_out(commit: str, folder: Path) -> Path:
    command = ["git", "-C", str(ROOT), "archive", commit]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def measure(root: Path) -> dict[str, str]:
    """The figures of a tree, as text, by what they are."""
    trees = {path: ast.parse(path.read_text()) for path in sorted((root / "src").rglob("*.py"))}
    lines = [line for path in trees for line in path.read_text().splitlines()]
    code = max(1, sum(bool(line.strip()) for line in lines))
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for node in functions)
    complexities = [1 + sum(isinstance(each, BRANCHES) for each in ast.walk(f)) for f in functions]
    hard = sum(each >= 10 for each in complexities) / len(complexities)

    def per_hundred(*kinds: type[ast.AST]) -> str:
        return f"{100 * sum(isinstance(node, kinds) for node in nodes) / code:.1f}"

    everything = [path for folder in CODE for path in (root / folder).rglob("*.py")]
    return {
        "files in src": f"{len(trees)}",
        "statements in src": f"{count_statements(trees.values()):,}",
        "statements in all": f"{count_statements(ast.parse(p.read_text()) for p in everything):,}",
        "length of functions: median, 90th percentile, longest": (
            f"{statistics.median(lengths):.0f}, {lengths[len(lengths) * 9 // 10]}, {lengths[-1]}"
        ),
        "functions of complexity 10 or more": f"{hard:.1%}",
        "lines of more than 100 characters": f"{sum(len(line) > 100 for line in lines) / code:.1%}",
        "comprehensions for 100 lines": per_hundred(*COMPREHENSIONS),
        "inline ifs for 100 lines": per_hundred(ast.IfExp),
        "comments for 100 lines": f"{100 * sum('# ' in line for line in lines) / code:.1f}",
        "names of constants in two modules": count_shared(trees, list_constants),
        "names of classes in two modules": count_shared(trees, list_classes),
    }


def count_statements(trees: Iterator[ast.Module] | object) -> int:
    return sum(isinstance(node, ast.stmt) for tree in trees for node in ast.walk(tree))  # type: ignore[attr-defined]


def count_shared(trees: dict[Path, ast.Module], find: Callable[[ast.Module], Iterator[str]]) -> str:
    homes = Counter(name for tree in trees.values() for name in set(find(tree)))
    shared = [name for name, count in homes.items() if count > 1]
    return f"{len(shared)}"


def list_constants(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        yield from (each.id for each in targets if isinstance(each, ast.Name) and each.id.isupper())


def list_classes(tree: ast.Module) -> Iterator[str]:
    yield from (node.name for node in tree.body if isinstance(node, ast.ClassDef))


if __name__ == "__main__":
    main()
