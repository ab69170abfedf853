"""Files that travel to other machines: known by their hash, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allotment.errors import InputError
from allotment.runs import trees
from allotment.runs.execution import write_common
from allotment.runs.trees import Listing, Tree, place_here, relocate, take_all


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(trees, "PACK", 5)  # so that files begin and end within packs
    folder = tmp_path / "data"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "table.csv").write_text("a,b\n1,2\n")
    (folder / "deep" / "er" / "big").write_bytes(bytes(range(256)) * 3)
    (folder / "deep" / "empty").touch()
    return folder


def send(tree: Tree, cache: Path) -> Path:
    """As it goes from machine to machine: the listing as text, and bytes in packs."""
    listing = Listing.from_plain(json.loads(json.dumps(tree.listing.to_plain())))
    assert listing.digest == tree.listing.digest
    return Path(listing.put(cache, [tree.read(start, 5) for start in listing.packs]))


def test_a_folder_arrives_as_it_was(folder: Path, tmp_path: Path) -> None:
    placed = send(take_all(folder), tmp_path / "cache")
    assert placed.parent == tmp_path / "cache" / "placed"
    for path in ("table.csv", "deep/er/big", "deep/empty"):
        assert (placed / path).read_bytes() == (folder / path).read_bytes()


def test_a_file_arrives_without_its_neighbours(folder: Path, tmp_path: Path) -> None:
    placed = send(take_all(folder / "table.csv"), tmp_path / "cache")
    assert placed.read_text() == "a,b\n1,2\n"
    assert [each.name for each in placed.parent.iterdir()] == ["table.csv"]


def test_only_parts_that_are_wanted_and_there_belong_to_it(folder: Path) -> None:
    tree = Tree(str(folder), str(folder), ("deep", "labels"))
    assert [path for path, _, _ in tree.listing.files] == ["deep/empty", "deep/er/big"]


def test_links_are_followed_but_not_in_circles(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("x")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "deep" / "up").symlink_to(folder)
    paths = [path for path, _, _ in take_all(folder).listing.files]
    assert paths == ["deep/empty", "deep/er/big", "link/file", "table.csv"]


def test_what_a_machine_has_is_not_put_together_again(folder: Path, tmp_path: Path) -> None:
    listing, cache = take_all(folder).listing, tmp_path / "cache"
    assert listing.find(cache) is None
    send(take_all(folder), cache)
    assert listing.find(cache) is not None
    listing.put(cache, iter(()))  # nothing is asked for
    (folder / "table.csv").write_text("a,b\n1,3\n")
    assert take_all(folder).listing.find(cache) is None


def test_a_file_that_changes_on_the_way_is_refused_and_nothing_is_left(
    folder: Path, tmp_path: Path
) -> None:
    tree, cache = take_all(folder), tmp_path / "cache"
    listing = tree.listing
    (folder / "table.csv").write_text("a,b\n9,9\n")
    with pytest.raises(InputError, match=r"table.csv: has changed since this began"):
        listing.put(cache, map(tree.read, listing.packs))
    assert listing.find(cache) is None
    with pytest.raises(InputError, match="leads out of its folder"):
        Listing.from_plain([".", [["../x", 1, "0" * 64]]])


def test_the_context_names_where_files_lie_there(folder: Path, tmp_path: Path) -> None:
    context = {"data": "/a/t.csv", "options": {"weights": "/a/w"}, "given": {"x": "/a/t.csv"}}
    there = {"data": "/cache/t.csv", "options.weights": "/cache/w"}
    told = json.loads(relocate(write_common("a:b", context), there))["context"]
    assert told == {
        "data": "/cache/t.csv",
        "options": {"weights": "/cache/w"},
        "given": {"x": "/a/t.csv"},
    }
    both = {"data": take_all(folder / "table.csv"), "folder": take_all(folder)}
    found = place_here(both, tmp_path / "shared")
    assert Path(found["data"]).read_text() == "a,b\n1,2\n"
    assert place_here(both, tmp_path / "shared") == found
