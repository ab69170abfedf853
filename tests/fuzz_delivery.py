"""A fuzzer for deliveries: `python tests/fuzz_delivery.py 100000 [SEED]` reads that many broken ones.

Each input is a good CSV, JSONL, folder of PNG or zip archive with a few structured mutations, by its number and the
seed alone. Checked for each: nothing is raised but InputError, no file is touched outside a scratch folder, every label
that is accepted can be filled in, every message is printable, and memory stays bounded.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from allotment.connect.delivery import Parts, read_delivery, write_rejected
from allotment.connect.masks import to_array
from allotment.data.dataset import Target
from allotment.errors import InputError

SIZE = (5, 7)
TASKS = {
    target.name: target
    for target in (
        Target("species", "classification", ("cat", "dog", "guinea pig")),
        Target("tags", "multilabel", ("big", "wild", "old")),
        Target("age", "regression"),
        Target("seg", "segmentation", ("ground", "animal")),
        Target("depth", "depth"),
        Target("normals", "normals"),
        Target("edges", "edges"),
        Target("points", "keypoints"),
    )
}
IDS = ("a", "b", "007", "=1+1", "deep/er", "Käse", "100", "x" * 50)
MOST_MEMORY = 400 << 20
"""bytes that the process may grow by while it reads a hundred thousand inputs"""
ODD_WORDS = [
    "", " ", "nan", "None", "null", "inf", "-inf", "1e999", "9" * 400, "1_0", "٣", "0x10", "-0", "1.5", "3,5", "TRUE",
    "=1+1", "'=1", "@x", "|", "||", "cat|", "[", "[]", "{}", "[[1,2]]", "[[1e308,-1e308]]", "[" * 2000, '{"big":1}',
    '{"big":null}', "\ud7ff", "\x00", "\x1b[2J", "<script>", "../../x.png", "/etc/passwd.png", "C:\\x.png", "a.png",
    "masks/a.png", "🐈", "e\u0301", "ＣＡＴ", "x" * 5000, '"', '""', "\r", "\n", ",", ";", "\t", "\ufeff", "\u2028",
]  # fmt: skip
ODD_NAMES = [
    "../a.png", "/a.png", "C:a.png", "seg\\a.png", "seg/../../a.png", "seg/./a.png", "seg//a.png", "seg/a.png/", ".png",
    "seg/.png", "seg/" + "x" * 200 + ".png", "seg/a\x00.png", "seg/\ud800.png", "CON.png", "seg/a.png.", "Seg/A.PNG",
    "seg/" * 40 + "a.png", "__MACOSX/a.png", "seg/a.txt", "a.png", "~/a.png", "seg/7.png", "file:///a.png",
]  # fmt: skip
ODD_BYTES = [b"\xff", b"\x00", b"\xc3", b"\xed\xa0\x80", b'"', b"\n", b"\r", b",", b"\xef\xbb\xbf", b"\\", b"{", b"]"]
NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)

Dice = random.Random


def word(dice: Dice) -> str:
    return dice.choice(ODD_WORDS)


def label_for(task: str, dice: Dice) -> object:
    """A good label, as JSON has it."""
    if task == "species":
        return dice.choice(["cat", "dog", "guinea pig", 1, "2"])
    if task == "tags":
        return dice.choice([["big"], [], ["old", "wild"], {"big": 1, "wild": 0}, "big|old", "|"])
    if task == "age":
        return dice.choice([1, -2.5, "3.5", 1e6])
    if task == "points":
        return [[dice.randrange(7), dice.randrange(5)] for _ in range(dice.randrange(4))]
    return f"masks/{dice.choice('ab')}.png"


def encode(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def quote(cell: str, between: str, dice: Dice) -> str:
    needs = any(sign in cell for sign in f'{between}"\r\n')
    return '"' + cell.replace('"', '""') + '"' if needs and dice.random() < 0.98 else cell


def make_csv(dice: Dice) -> bytes:
    between = dice.choice(",,,,;\t")
    rows: list[list[str]] = []
    if dice.random() < 0.5:
        rows.append(["order", "task", "instance", "label"])
        for _ in range(dice.randrange(1, 8)):
            task = dice.choice(list(TASKS))
            rows.append(["1", task, dice.choice(IDS), encode(label_for(task, dice))])
    else:
        tasks = dice.sample(list(TASKS), dice.randrange(1, 4))
        rows.append(["id", *tasks])
        for _ in range(dice.randrange(1, 8)):
            rows.append([dice.choice(IDS), *(encode(label_for(task, dice)) for task in tasks)])
    for _ in range(dice.choice((0, 1, 1, 2, 5))):
        mutate_rows(rows, dice)
    lines = [between.join(quote(cell, between, dice) for cell in row) for row in rows]
    return dice.choice(("\n", "\n", "\r\n", "\r")).join(lines).encode(errors="surrogatepass")


def mutate_rows(rows: list[list[str]], dice: Dice) -> None:
    at = dice.randrange(len(rows))
    row = rows[at]
    choice = dice.randrange(7)
    if choice == 0 and row:
        row[dice.randrange(len(row))] = word(dice)
    elif choice == 1:
        row.insert(dice.randrange(len(row) + 1), word(dice))
    elif choice == 2 and row:
        del row[dice.randrange(len(row))]
    elif choice == 3:
        rows.insert(dice.randrange(len(rows) + 1), list(row))
    elif choice == 4 and len(rows) > 1:
        del rows[at]
    elif choice == 5 and row:
        place = dice.randrange(len(row))
        row[place] = row[place][: dice.randrange(len(row[place]) + 1)] + word(dice)
    else:
        row.extend([word(dice)] * dice.choice((1, 3, 1000)))


def make_jsonl(dice: Dice) -> bytes:
    lines = []
    for _ in range(dice.randrange(1, 8)):
        task = dice.choice(list(TASKS))
        row: dict[str, object] = {"task": task, "instance": dice.choice(IDS), "label": label_for(task, dice)}
        if dice.random() < 0.4:
            row = {"id": row["instance"], task: row["label"]}
        for _ in range(dice.choice((0, 0, 0, 1, 2))):
            mutate_object(row, dice)
        try:
            lines.append(json.dumps(row, ensure_ascii=dice.random() < 0.5).encode(errors="surrogatepass"))
        except ValueError:
            continue
    if dice.random() < 0.2:
        lines.insert(
            dice.randrange(len(lines) + 1), dice.choice([b"", b"[]", b"7", b'{"id":1,"id":2}', b"[" * 5000, b"{"])
        )
    return b"\n".join(lines)


def mutate_object(row: dict[str, object], dice: Dice) -> None:
    odd: list[object] = [
        None, True, False, 0, -1, 1.5, 10**30, -(10**290), float("nan"), [], {}, [[]], [None], {"": None}, [[1, 2]] * 9,
        [[1, [2]]], {"big": 2}, {"nobig": 1}, ["cat", "cat"], {"a": {"b": {}}}, word(dice), word(dice), word(dice),
    ]  # fmt: skip
    key = dice.choice([*row, word(dice)])
    choice = dice.randrange(3)
    if choice == 0 and key in row:
        del row[key]
    elif choice == 1 and key in row:
        row[word(dice)] = row.pop(key)
    else:
        row[key] = dice.choice(odd)


def make_png(task: str, dice: Dice) -> bytes:
    """A good mask of the task, as a PNG written by hand: its checksums hold unless a mutation breaks them."""
    height, width = SIZE if dice.random() < 0.9 else (dice.choice(NUMBERS), dice.choice(NUMBERS))
    colour, bits = {"depth": (0, 16), "normals": (2, 8), "edges": (0, dice.choice((8, 16)))}.get(task, (0, 8))
    if dice.random() < 0.08:
        colour, bits = dice.choice((0, 2, 3, 4, 6, 9)), dice.choice((1, 2, 4, 8, 16, 99))
    wide = {0: 1, 2: 3, 4: 2, 6: 4}.get(colour, 1) * SIZE[1] * bits // 8
    pixels = {"seg": lambda: dice.choice(b"\0\1\1\xff"), "normals": lambda: dice.choice((128, 230))}
    pixel: Callable[[], int] = pixels.get(task, lambda: dice.randrange(256))
    rows = b"".join(b"\0" + bytes(pixel() for _ in range(min(wide, 200))) for _ in range(SIZE[0]))
    if task == "normals":
        rows = (b"\0" + bytes((128, 128, 255)) * SIZE[1]) * SIZE[0]
    head = struct.pack(">LLBBBBB", height, width, bits, colour, 0, 0, dice.choice((0, 0, 0, 0, 0, 1)))
    if dice.random() < 0.9:
        head = struct.pack(">LL", width, height) + head[8:]
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    if colour == 3:
        chunks.insert(1, (b"PLTE", bytes(range(256)) * 3))
    if dice.random() < 0.1:
        extra = dice.choice([b"zTXt", b"iCCP", b"tRNS", b"eXIf", b"acTL", b"IHDR", b"PLTE", b"gAMA", b"iTXt", b"fcTL"])
        body = dice.choice([b"", b"x\0\0" + zlib.compress(bytes(100_000)), bytes(4), b"x" * 300])
        chunks.insert(dice.randrange(len(chunks) + 1), (extra, body))
    if dice.random() < 0.05:
        dice.shuffle(chunks)
    made = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        length = len(body) if dice.random() < 0.98 else dice.choice(NUMBERS)
        check = zlib.crc32(name + body) if dice.random() < 0.98 else 0
        made += struct.pack(">L", length) + name + body + struct.pack(">L", check)
    return made


def make_files(dice: Dice) -> list[tuple[str, bytes]]:
    files = []
    for _ in range(dice.randrange(1, 4)):
        task = dice.choice(["seg", "seg", "depth", "normals", "edges", "points"])
        name = f"{task}/{dice.choice(IDS)}.png" if dice.random() < 0.85 else dice.choice(ODD_NAMES)
        content = make_png(task, dice)
        files.append((name, mutate_bytes(content, dice) if dice.random() < 0.15 else content))
    return files


def mutate_bytes(content: bytes, dice: Dice) -> bytes:
    """Some bytes changed, put in, taken out or doubled, or numbers of four bytes made extreme."""
    made = bytearray(content)
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(made) + 1)
        choice = dice.randrange(6)
        if choice == 0 and at < len(made):
            made[at] = dice.randrange(256)
        elif choice == 1:
            made[at:at] = dice.choice(ODD_BYTES) * dice.choice((1, 1, 50))
        elif choice == 2:
            del made[at : at + dice.choice((1, 2, 10, 1000))]
        elif choice == 3:
            made[at:at] = made[at : at + 40]
        elif choice == 4 and at + 4 <= len(made):
            struct.pack_into(dice.choice("<>") + "L", made, at, dice.choice(NUMBERS))
        else:
            del made[at:]
    return bytes(made)


def make_zip(dice: Dice) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings(action="ignore"):  # of names that are twice
        for name, content in make_files(dice):
            entry = zipfile.ZipInfo(name.encode(errors="replace").decode().replace("\0", "?"))
            entry.compress_type = dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED))
            entry.external_attr = dice.choice((0, 0, 0o100644 << 16, 0o120777 << 16, 0o040755 << 16))
            if dice.random() < 0.03:
                content = bytes(dice.choice((2 << 20, 3 << 20)))
            archive.writestr(entry, content)
    content = made.getvalue()
    for _ in range(dice.choice((0, 0, 1, 2))):
        content = mutate_directory(content, dice)
    return mutate_bytes(content, dice) if dice.random() < 0.15 else content


def mutate_directory(content: bytes, dice: Dice) -> bytes:
    """One field of the archive's list, of a file's own head or of the end made extreme."""
    sign, size = dice.choice([(b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22)])
    at = content.rfind(sign) if dice.random() < 0.5 else content.find(sign)
    if at < 0:
        return content
    made = bytearray(content)
    place = at + dice.randrange(4, size - 2)
    struct.pack_into("<H", made, place, dice.choice(NUMBERS) & 0xFFFF)
    return bytes(made)


def make_folder(folder: Path, dice: Dice) -> None:
    folder.mkdir()
    for name, content in make_files(dice):
        parts = [part for part in name.replace("\0", "?").encode(errors="replace").decode().split("/") if part]
        inside = [part for part in parts if part not in ("..", ".")][:12]
        if not inside:
            continue
        path = folder.joinpath(*inside)
        if os.path.lexists(path):
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            choice = dice.random()
            if choice < 0.9:
                path.write_bytes(content)
            elif choice < 0.96:
                path.symlink_to(dice.choice([folder.parents[2] / "outside" / "secret.png", folder, Path("/dev/zero")]))
            else:
                os.mkfifo(path)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue


def snapshot(folder: Path) -> list[tuple[str, int, int]]:
    """Every path below with its time and size; none of it may change."""
    found = []
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(place, name))
            found.append((os.path.join(place, name), status.st_mtime_ns, status.st_size))
    return sorted(found)


def picture(seed: int) -> bytes:
    made = io.BytesIO()
    Image.fromarray(np.full(SIZE, seed, dtype=np.uint8)).save(made, format="PNG")
    return made.getvalue()


FORMS: dict[str, Callable[[Dice], bytes] | None] = {
    "csv": make_csv,
    "jsonl": make_jsonl,
    "zip": make_zip,
    "folder": None,
}


def make_input(room: Path, form: str, dice: Dice) -> Path:
    """One delivery, in the place of the one before."""
    for old in room.glob("delivery*"):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    path = room / ("delivery" if form == "folder" else f"delivery.{form}")
    make = FORMS[form]
    if make is None:
        make_folder(path, dice)
    else:
        content = make(dice)
        path.write_bytes(mutate_bytes(content, dice) if form != "zip" and dice.random() < 0.25 else content)
    return path


def check(parts: Parts, keep: Path) -> None:
    """What was accepted are labels, and what is said can be shown to people."""
    for task, instance, value in parts.accepted:
        assert instance in IDS
        label = to_array(TASKS[task], json.loads(json.dumps(value)), folder=keep, size=SIZE)
        assert label.ndim == {"regression": 0, "classification": 0, "multilabel": 1, "normals": 3}.get(
            TASKS[task].kind, 2
        )
    for where, reason in parts.rejected:
        assert where.isprintable()
        assert reason.isprintable()
        assert 0 < len(reason) < 1000
    assert all(len(note) < 1000 and note.isprintable() for note in parts.notes)


def memory() -> int:
    """The most that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def fuzz(count: int, seed: int) -> Counter[str]:
    """Read so many inputs; raises AssertionError, or whatever escapes, with the number of the input."""
    tally: Counter[str] = Counter()
    memory_disk = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a real one takes longer than all else
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory_disk) as top:
        scratch = Path(top)
        (scratch / "outside").mkdir()
        (scratch / "outside" / "secret.png").write_bytes(picture(1))
        room, keep, temporary = scratch / "room" / "in", scratch / "keep", scratch / "temporary"
        temporary.mkdir()
        (room / "masks").mkdir(parents=True)
        for name, number in (("a", 1), ("b", 0)):
            (room / "masks" / f"{name}.png").write_bytes(picture(number))
        usual, tempfile.tempdir = tempfile.tempdir, str(temporary)
        begin = memory()
        waiting, os.fsync = os.fsync, lambda handle: None  # waiting for the disk would take most of the time
        try:
            for number in range(count):
                dice = Dice(f"{seed} {number}")
                form = dice.choice(list(FORMS))
                path = make_input(room, form, dice)
                before = snapshot(scratch / "outside") + snapshot(room)
                try:
                    tally += Counter(read_one(path, keep, number % 100 == 0))
                except Exception as error:
                    raise AssertionError(f"input {number} of seed {seed}, {form}: {error!r}") from error
                assert snapshot(scratch / "outside") + snapshot(room) == before, f"input {number} touched a file"
                assert not os.listdir(temporary), f"input {number} left something behind"
                tally += Counter({"inputs": 1, form: 1})
        finally:
            tempfile.tempdir, os.fsync = usual, waiting
        stray = set(os.listdir(scratch)) - {"outside", "room", "keep", "temporary", "rejected.csv"}
        assert not stray, f"{stray} was written"
    assert memory() - begin < MOST_MEMORY, f"memory grew by {memory() - begin >> 20} MB"
    return tally


def read_one(path: Path, keep: Path, listed: bool) -> dict[str, int]:
    said: list[str] = []
    try:
        parts: Parts | None = read_delivery(path, TASKS, IDS, size_of=lambda instance: SIZE, keep=keep)
    except InputError as error:
        said = [str(mistake) for mistake in error.mistakes]
        parts = None
    if parts is None:
        assert said
        assert all(each.isprintable() and len(each) < 1000 for each in said)
        return {"refused": 1}
    check(parts, keep)
    if listed:
        report = path.parent.parent / "rejected.csv"
        report.unlink(missing_ok=True)
        write_rejected(parts, report)
    return {"accepted": len(parts.accepted), "rejected": len(parts.rejected)}


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(dict(fuzz(wanted, int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
