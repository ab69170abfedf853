"""Pictures as numbers: what is seen of them, what is kept of it, and what stands beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from allotment.data import embedded
from allotment.data.columns import Column
from allotment.data.embedded import MOST_EMBEDDED_FILES, embed_column
from allotment.data.embedding import COLOUR_LEVELS, PICTURE_GRID, OwnFeatures
from allotment.data.inspection import inspect_table
from allotment.data.table import read_table
from allotment.errors import InputError

FIELDS = PICTURE_GRID * PICTURE_GRID


class CountingFeatures(OwnFeatures):
    """Tells how many pictures it was asked about."""

    def __init__(self) -> None:
        self.seen = 0

    def embed(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.seen += len(pictures)
        return super().embed(pictures)


def write_pictures(folder: Path, count: int = 5, side: int = 12) -> Column:
    rng = np.random.default_rng(3)
    names = [f"{place}.png" for place in range(count)]
    for name in names:
        pixels = rng.integers(0, 256, (side, side, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name)
    return Column("path", words=names)


def paint(side: int = 16) -> NDArray[np.uint8]:
    return np.zeros((1, 3, side, side), dtype=np.uint8)


def test_colours_are_those_of_the_fields() -> None:
    picture = paint()
    picture[0, 0, :4, :4] = 255  # red in the first field of sixteen
    found = OwnFeatures().embed(picture)[0]
    assert found[:FIELDS].tolist() == [1.0] + [0.0] * (FIELDS - 1)
    assert not found[FIELDS : 3 * FIELDS].any()
    colours = found[4 * FIELDS : 4 * FIELDS + COLOUR_LEVELS**3]
    red = (COLOUR_LEVELS - 1) * COLOUR_LEVELS**2
    assert colours[[0, red]] ** 2 == pytest.approx([15 / 16, 1 / 16], abs=1e-4)


def test_edges_are_told_apart_by_their_direction() -> None:
    upright, level, slanted = paint(), paint(), paint()
    upright[..., 8:] = 200
    level[:, :, 8:] = 200
    slanted[:] = np.where(np.add.outer(np.arange(16), np.arange(16)) > 15, 200, 0)
    sorts = [OwnFeatures().embed(each)[0, -8:] for each in (upright, level, slanted)]
    assert [int(each.argmax()) for each in sorts] == [0, 4, 2]
    darker = OwnFeatures().embed(200 - upright)[0, -8:]
    assert darker.tolist() == sorts[0].tolist()


@pytest.mark.parametrize("side", [1, 2, 3, 5, 64])
def test_pictures_of_any_size_have_the_same_numbers(side: int) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (3, 3, side, side)).astype(np.uint8)
    found = OwnFeatures().embed(pictures)
    assert (found.shape, found.dtype) == ((3, OwnFeatures.width), np.float32)
    assert 0 <= found.min() <= found.max() <= 1
    assert (OwnFeatures().embed(pictures[1:2]) == found[1:2]).all()


def test_numbers_are_computed_once(tmp_path: Path) -> None:
    column, keep = write_pictures(tmp_path), tmp_path / "keep"
    seeing = CountingFeatures()
    first = embed_column(column, tmp_path, 12, seeing, keep)
    again = embed_column(column, tmp_path, 12, seeing, keep)
    assert seeing.seen == 5
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, embed_column(column, tmp_path, 12, OwnFeatures()))
    Image.new("RGB", (12, 12)).save(tmp_path / "3.png")  # of the same name
    changed = embed_column(column, tmp_path, 12, seeing, keep)
    assert (changed != first).any(axis=1).tolist() == [False, False, False, True, False]
    embed_column(column, tmp_path, 6, seeing, keep)
    assert (seeing.seen, len(list(keep.iterdir()))) == (15, 3)


@pytest.mark.parametrize("harm", ["flipped", "short", "none", "infinite", "link"])
def test_a_file_that_is_not_what_was_kept_is_not_used(tmp_path: Path, harm: str) -> None:
    column, keep = write_pictures(tmp_path), tmp_path / "keep"
    first = embed_column(column, tmp_path, 12, OwnFeatures(), keep)
    (path,) = keep.iterdir()
    content = path.read_bytes()
    if harm == "flipped":
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif harm == "short":
        path.write_bytes(content[:-1])
    elif harm == "none":
        path.unlink()
    elif harm == "infinite":
        embedded._keep(path, np.full_like(first, np.nan))
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    np.testing.assert_array_equal(first, embed_column(column, tmp_path, 12, OwnFeatures(), keep))
    assert path.read_bytes() == content


def test_few_files_are_kept_and_none_where_that_cannot_be(tmp_path: Path) -> None:
    column, keep = write_pictures(tmp_path, 1), tmp_path / "keep"
    for side in range(1, MOST_EMBEDDED_FILES + 4):
        embed_column(column, tmp_path, side, OwnFeatures(), keep)
    assert len(list(keep.iterdir())) == MOST_EMBEDDED_FILES
    embed_column(column, tmp_path, 4, OwnFeatures(), tmp_path / "not" / "there")
    assert not (tmp_path / "not").exists()


def test_a_picture_that_will_not_do_is_named_with_its_row(tmp_path: Path) -> None:
    column = write_pictures(tmp_path)
    (tmp_path / "2.png").write_text("hello")
    for keep in (None, tmp_path / "keep"):
        with pytest.raises(InputError, match=r"row 3, column 'path': '2.png' is not an image"):
            embed_column(column, tmp_path, 12, OwnFeatures(), keep)
    assert not (tmp_path / "keep").exists()


def test_other_columns_stand_beside_pictures(tmp_path: Path) -> None:
    write_pictures(tmp_path, 4)
    lines = ["path,back,age,kind,y", "0.png,1.png,3,a,0", "1.png,2.png,4,b,1"]
    lines += ["2.png,3.png,,a,0", "3.png,0.png,6,b,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = read_table(tmp_path / "t.csv", "y", pictures="features", image_size=12)
    width = OwnFeatures.width
    assert [(each.name, each.form, each.width) for each in data.columns] == [
        ("path", "image", width),
        ("back", "image", width),
        ("age", "numeric", 2),
        ("kind", "categorical", 2),
    ]
    assert (data.features.shape, data.features.dtype) == ((4, 2 * width + 4), np.float32)
    assert np.abs(data.features[:, :width].mean(axis=0)).max() < 1e-6
    np.testing.assert_allclose(data.features[1, :width], data.features[0, width : 2 * width])
    assert data.picture_size(0) is None
    with pytest.raises(InputError, match="'sketch' is neither an embedding nor"):
        read_table(tmp_path / "t.csv", "y", pictures="sketch")


def test_the_size_of_pictures_is_their_own_within_limits(tmp_path: Path) -> None:
    write_pictures(tmp_path, 3, side=20)
    (tmp_path / "t.csv").write_text("path,y\n0.png,1.5\n1.png,2.5\n2.png,3.5\n")
    found = inspect_table(tmp_path / "t.csv", {}, ["y"])
    assert (found.options["pictures"], found.options["image_size"]) == ("features", 20)
    (note,) = (each for each in found.notes if "picture" in each)
    assert note.startswith("3 pictures of 20 x 20, seen through small features of our own")
    for name in ("0.png", "1.png"):
        Image.new("RGB", (300, 200)).save(tmp_path / name)
    found = inspect_table(tmp_path / "t.csv", {"pictures": "pixels"}, ["y"])
    assert (found.options.get("pictures"), found.options["image_size"]) == (None, 128)
    assert any("3 pictures, brought to 128 x 128, on which a network" in e for e in found.notes)
    found = inspect_table(tmp_path / "t.csv", {"weights": "w", "image_size": 50}, ["y"])
    assert (found.options["pictures"], "image_size" in found.options) == ("network", False)
