"""Images of strangers: read right, or refused with a reason, and nothing else opened on the way."""

from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from allotment.data import pixels
from allotment.data.pixels import list_folder, read_palette, read_rgb, read_size, read_uint16
from allotment.errors import InputError

Read = Callable[[Path, str], Any]
READS = (read_rgb, read_palette, read_uint16)
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6


def png(
    width: int, height: int, bits: int, colour: int, rows: bytes | None, palette: int = 0
) -> bytes:
    """A PNG written by hand: `rows` are all bytes of all rows, None for a header that promises
    pixels and ends."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    made = b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    )
    if palette:
        made += chunk(b"PLTE", bytes(range(palette)) * 3)
    if rows is None:
        made += b"\0\0\xff\xffIDAT"
    else:
        each = len(rows) // height
        lines = b"".join(b"\0" + rows[at : at + each] for at in range(0, len(rows), each))
        made += chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return made


def jpeg(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> bytes:
    rng = np.random.default_rng(0)
    shape = (size[1], size[0], {"L": 1, "RGB": 3, "CMYK": 4}[mode])
    pixels = rng.integers(0, 256, shape, dtype=np.uint8)
    held = io.BytesIO()
    Image.fromarray(pixels.squeeze(), mode=None if mode != "CMYK" else mode).save(
        held, "JPEG", quality=95
    )
    return held.getvalue()


def refused(read: Read, root: Path, path: str) -> str:
    """What is said, after a check that the file is named."""
    with pytest.raises(InputError) as caught:
        read(root, path)
    (mistake,) = caught.value.mistakes
    assert path in mistake.where
    return mistake.what


def save(root: Path, content: bytes, name: str = "a.png") -> str:
    (root / name).write_bytes(content)
    return name


# --- what is read ---


def test_rgb_of_a_png(tmp_path: Path) -> None:
    rows = bytes(range(2 * 3 * 3))
    found = read_rgb(tmp_path, save(tmp_path, png(3, 2, 8, RGB, rows)))
    assert found.dtype == np.uint8
    assert found.tolist() == [
        [[0, 3, 6], [9, 12, 15]],
        [[1, 4, 7], [10, 13, 16]],
        [[2, 5, 8], [11, 14, 17]],
    ]


def test_rgb_of_a_jpeg_has_the_colours_it_was_made_of(tmp_path: Path) -> None:
    Image.new("RGB", (40, 24), (200, 60, 20)).save(tmp_path / "a.jpg", quality=95)
    found = read_rgb(tmp_path, "a.jpg")
    assert found.shape == (3, 24, 40)
    assert np.abs(found.reshape(3, -1).T.astype(int) - (200, 60, 20)).max() <= 3


def test_a_turned_photograph_is_read_as_it_is_stored(tmp_path: Path) -> None:
    """Masks belong to the pixels as they lie in the file, whatever its notes on the camera say."""
    notes = Image.Exif()
    notes[0x0112] = 6
    Image.new("RGB", (40, 24)).save(tmp_path / "a.jpg", exif=notes)
    assert read_rgb(tmp_path, "a.jpg").shape == (3, 24, 40)


def test_palette_gives_numbers_and_not_colours(tmp_path: Path) -> None:
    rows = bytes([0, 7, 20, 255, 1, 2])
    assert read_palette(tmp_path, save(tmp_path, png(3, 2, 8, PALETTE, rows, 256))).tolist() == [
        [0, 7, 20],
        [255, 1, 2],
    ]
    assert read_palette(tmp_path, save(tmp_path, png(3, 2, 8, GREY, rows))).tolist() == [
        [0, 7, 20],
        [255, 1, 2],
    ]


@pytest.mark.parametrize(
    ("bits", "row", "numbers"), [(4, b"\x1f\x20", [1, 15, 2]), (2, b"\x6c", [1, 2, 3, 0])]
)
def test_palettes_of_few_bits(tmp_path: Path, bits: int, row: bytes, numbers: list[int]) -> None:
    name = save(tmp_path, png(len(numbers), 1, bits, PALETTE, row, 2**bits))
    assert read_palette(tmp_path, name).tolist() == [numbers]


def test_all_16_bits(tmp_path: Path) -> None:
    numbers = [0, 1, 255, 256, 32768, 65535]
    found = read_uint16(tmp_path, save(tmp_path, png(3, 2, 16, GREY, struct.pack(">6H", *numbers))))
    assert found.dtype == np.uint16
    assert found.ravel().tolist() == numbers


def test_size_needs_the_header_only(tmp_path: Path) -> None:
    assert read_size(tmp_path, save(tmp_path, png(700, 300, 8, RGB, None))) == (300, 700)


# --- what is not what it should be ---


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("size", [(8000, 8000), (60_000, 60_000), (2_000_000_000, 2_000_000_000)])
def test_a_bomb_is_refused_by_its_header(tmp_path: Path, read: Read, size: tuple[int, int]) -> None:
    """There are no pixels in the file, so that an attempt to decode them would be another error."""
    assert "million pixels" in refused(read, tmp_path, save(tmp_path, png(*size, 8, RGB, None)))


def test_a_bomb_of_a_jpeg(tmp_path: Path) -> None:
    content = bytearray(jpeg())
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = struct.pack(">HH", 60_000, 60_000)
    assert "million pixels" in refused(read_rgb, tmp_path, save(tmp_path, bytes(content), "a.jpg"))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9])
def test_files_that_are_cut_short(tmp_path: Path, share: float) -> None:
    whole = {
        read_rgb: jpeg(size=(200, 200)),
        read_palette: png(64, 64, 8, PALETTE, os.urandom(64 * 64), 256),
        read_uint16: png(64, 64, 16, GREY, os.urandom(64 * 64 * 2)),
    }
    for read, content in whole.items():
        name = save(tmp_path, content)
        read(tmp_path, name)
        cut = refused(read, tmp_path, save(tmp_path, content[: int(share * len(content))]))
        assert "cut short or damaged" in cut
        assert "copy it again" in cut


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "content", [b"", b"not an image", b"PK\x03\x04" + bytes(100), b"GIF89a" + bytes(50), b"\x89PNG"]
)
def test_files_that_are_no_image(tmp_path: Path, read: Read, content: bytes) -> None:
    assert "is not a " in refused(read, tmp_path, save(tmp_path, content))


def test_other_formats_are_not_even_tried(tmp_path: Path) -> None:
    for ending in ("gif", "bmp", "tiff"):
        Image.new("RGB", (4, 4)).save(tmp_path / f"a.{ending}")
        assert "is not a JPEG or PNG image" in refused(read_rgb, tmp_path, f"a.{ending}")
    assert "is not a PNG image" in refused(read_palette, tmp_path, save(tmp_path, jpeg("L")))


@pytest.mark.parametrize(
    ("read", "content", "said"),
    [
        (read_rgb, png(2, 1, 8, RGBA, bytes(8)), "RGB colours with transparency with 8 bits"),
        (read_rgb, png(2, 1, 8, GREY, bytes(2)), "shades of grey with 8 bits"),
        (read_rgb, png(2, 1, 8, PALETTE, bytes(2), 4), "palette colours"),
        (read_rgb, png(2, 1, 16, RGB, bytes(12)), "RGB colours with 16 bits"),
        (read_rgb, png(2, 1, 16, GREY, bytes(4)), "shades of grey with 16 bits"),
        (read_rgb, jpeg("L"), "shades of grey"),
        (read_rgb, jpeg("CMYK"), "CMYK"),
        (read_palette, png(2, 1, 8, RGB, bytes(6)), "RGB colours with 8 bits"),
        (read_palette, png(2, 1, 8, GREY_ALPHA, bytes(4)), "grey with transparency"),
        (read_palette, png(2, 1, 16, GREY, bytes(4)), "shades of grey with 16 bits"),
        (read_palette, png(2, 1, 4, GREY, b"\x12"), "shades of grey with 4 bits"),
        (read_palette, png(2, 1, 1, GREY, b"\x80"), "black and white only"),
        (read_uint16, png(2, 1, 8, GREY, bytes(2)), "shades of grey with 8 bits"),
        (read_uint16, png(2, 1, 8, RGB, bytes(6)), "RGB colours"),
        (read_uint16, png(2, 1, 8, PALETTE, bytes(2), 4), "palette colours"),
    ],
)
def test_other_colours_than_expected(tmp_path: Path, read: Read, content: bytes, said: str) -> None:
    what = refused(read, tmp_path, save(tmp_path, content))
    assert said in what
    assert "; save " in what


def test_a_palette_of_16_bits_does_not_exist(tmp_path: Path) -> None:
    assert "damaged (header)" in refused(
        read_palette, tmp_path, save(tmp_path, png(2, 1, 16, PALETTE, bytes(4), 4))
    )


def test_a_palette_without_colours_is_refused_or_read_as_it_is(tmp_path: Path) -> None:
    name = save(tmp_path, png(2, 1, 8, PALETTE, bytes([3, 200])))
    try:
        found = read_palette(tmp_path, name).tolist()
    except InputError as error:
        found = str(error)
    assert found == [[3, 200]] or "a.png" in found


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damage_gives_an_array_or_a_reason(tmp_path: Path, data: st.DataObject) -> None:
    read, content = data.draw(
        st.sampled_from(
            [
                (read_rgb, jpeg()),
                (read_rgb, png(6, 5, 8, RGB, bytes(90))),
                (read_palette, png(6, 5, 8, PALETTE, bytes(30), 256)),
                (read_uint16, png(6, 5, 16, GREY, bytes(60))),
            ]
        )
    )
    broken = bytearray(content)
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(broken) - 1), st.integers(0, 255)), max_size=6)
    ):
        broken[place] = byte
    name = save(tmp_path, bytes(broken))
    try:
        found = read(tmp_path, name)
    except InputError as error:
        found = error
    if isinstance(found, InputError):
        assert [mistake.where for mistake in found.mistakes] == ["a.png"]
    else:
        assert found.size <= 3 * pixels.MOST_PIXELS


# --- nothing outside the folder ---


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that is opened from now on."""
    opened: list[str] = []
    plain = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda path, *rest, **more: (opened.append(str(path)), plain(path, *rest, **more))[1],
    )
    return opened


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the one that is read from, with an image in it."""
    (tmp_path / "outside").mkdir()
    save(tmp_path / "outside", png(2, 1, 8, RGB, bytes(6)))
    (tmp_path / "data").mkdir()
    return tmp_path / "outside"


@pytest.mark.parametrize(
    "path",
    ["../outside/a.png", "x/../../outside/a.png", "..\\outside\\a.png", "C:a.png", "a\0.png"],
)
def test_dots_and_drives(outside: Path, touched: list[str], path: str) -> None:
    root = outside.parent / "data"
    with pytest.raises(InputError, match="is not a path below"):
        read_rgb(root, path)
    assert touched == []


def test_absolute_paths(outside: Path, touched: list[str]) -> None:
    assert "is not a path below" in refused(
        read_rgb, outside.parent / "data", str(outside / "a.png")
    )
    assert touched == []


def test_links(outside: Path, touched: list[str]) -> None:
    root = outside.parent / "data"
    save(root, png(2, 1, 8, RGB, bytes(range(6))), "own.png")
    (root / "file.png").symlink_to(outside / "a.png")
    (root / "folder").symlink_to(outside)
    (root / "near.png").symlink_to(root / "own.png")
    (root / "round.png").symlink_to(root / "round.png")
    assert "is a link that leads out of" in refused(read_rgb, root, "file.png")
    assert "is a link that leads out of" in refused(read_rgb, root, "folder/a.png")
    assert "is not there" in refused(read_rgb, root, "round.png")
    with pytest.raises(InputError, match="leads out of"):
        list_folder(root, "folder")
    assert touched == []
    assert read_rgb(root, "near.png").ravel().tolist() == [0, 3, 1, 4, 2, 5]
    assert touched == [str(root / "own.png")]


def test_a_root_that_is_itself_a_link_is_fine(outside: Path) -> None:
    (outside.parent / "short").symlink_to(outside)
    assert read_rgb(outside.parent / "short", "a.png").shape == (3, 1, 2)


def test_things_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")  # which would never end
    (tmp_path / "folder.png").mkdir()
    for name in ("pipe.png", "folder.png"):
        assert "is not a plain file" in refused(read_rgb, tmp_path, name)
    assert "is not there" in refused(read_rgb, tmp_path, "none.png")
    assert "is not there" in refused(read_rgb, tmp_path, "x" * 150 + "/" + "y" * 40)
    with pytest.raises(InputError, match=r"is not there|can't be opened"):
        read_rgb(tmp_path, "x" * 5000)


def test_files_that_are_too_large_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(pixels.MOST_BYTES + 1)  # sparse: it takes no room
    assert "bytes, more than" in refused(read_rgb, tmp_path, "a.png")


def test_names_can_not_command_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_rgb(tmp_path, "\x1b[2Ja.png")
    assert str(caught.value).isprintable()


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'allotment\[train\]'"):
        read_rgb(tmp_path, save(tmp_path, b""))
