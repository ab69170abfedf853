"""Mutations inside of containers: what changes is a member, a chunk or a value, and the container
around it holds."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import sqlite3
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from allotment.job import canonical
from allotment.ledger import journal, schema
from fuzzing.target import Mutator

PNG = b"\x89PNG\r\n\x1a\n"
MOST_UNPACKED = 1 << 20
"""bytes that a mutator looks at; larger members stay as they are"""
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324, 10**15, 10**30, -(10**290), 2**53 + 1,
    float("nan"),
    float("inf"), "", " ", "x", "0", "1/3", "1e5", "nan", "\ud800", "\0", "\x1b[2J", "é", "x" * 300,
    [], {}, [[]],
    [None], [0], {"": None}, {"x": 1}, [[1, 2]], [1, 2, 3], "a", "b",
)  # fmt: skip


def _change_some(data: bytes, most: int, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return (data[:at] + dice.randbytes(dice.randrange(4)) + data[at + dice.randrange(4) :])[:most]


_plainly = [_change_some]


def guide(mutate: Callable[[bytes, int], bytes]) -> None:
    """From here on bytes are changed by libFuzzer, which knows what has been compared with what."""
    _plainly[0] = lambda data, most, dice: bytes(mutate(data, most)) if data else dice.randbytes(4)


def mutate_plain(data: bytes, most: int, dice: random.Random) -> bytes:
    """Some bytes changed."""
    return _plainly[0](data, most, dice)


def within(change: Callable[[bytes, int, random.Random], bytes], share: float = 0.85) -> Mutator:
    """A mutator that mostly changes what is inside, and otherwise the bytes themselves."""

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        dice = random.Random(seed)
        if dice.random() < share:
            try:
                changed = change(data, most, dice)
            except Exception:  # it is no such container, or no longer
                pass
            else:
                if 0 < len(changed) <= most:
                    return changed
        return mutate_plain(data, most, dice)

    return mutate


# JSON


def change_value(value: Any, dice: random.Random) -> Any:
    """Another value in the place of some part of this one."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        choice = dice.random()
        if choice < 0.06:
            return {other: part for other, part in value.items() if other != key}
        if choice < 0.12:
            return {
                **value,
                dice.choice(("x", f"{key}x", "", dice.choice(list(value)))): dice.choice(ODD),
            }
        if choice < 0.18:
            return {**value, key: value[dice.choice(list(value))]}
        return {**value, key: change_value(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        choice = dice.random()
        if choice < 0.08:
            return value[:at] + value[at + 1 :]
        if choice < 0.16:
            return [*value[:at], value[at], *value[at:]]
        return [*value[:at], change_value(value[at], dice), *value[at + 1 :]]
    if isinstance(value, int | float) and not isinstance(value, bool) and dice.random() < 0.5:
        return dice.choice(
            (
                value + 1,
                value - 1,
                -value,
                value * 1000,
                value / 7 if abs(value) < 1e300 else 0,
                str(value),
            )
        )
    if isinstance(value, str) and value and dice.random() < 0.5:
        at = dice.randrange(len(value) + 1)
        return dice.choice(
            (
                value[:at],
                value[:at] + "x" + value[at:],
                value.upper(),
                value * 2,
                f"{value}\n",
                f"'{value}",
            )
        )
    return dice.choice(ODD)


def _change_json(data: bytes, most: int, dice: random.Random) -> bytes:
    value = json.loads(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        value = change_value(value, dice)
    return json.dumps(value).encode()


def _change_jsonl(data: bytes, most: int, dice: random.Random) -> bytes:
    lines = data.splitlines() or [b"{}"]
    at = dice.randrange(len(lines))
    choice = dice.random()
    if choice < 0.1:
        lines.insert(at, dice.choice(lines))
    elif choice < 0.2 and len(lines) > 1:
        del lines[at]
    else:
        lines[at] = _change_json(lines[at], most, dice)
    return b"\n".join(lines) + b"\n"


# Text


def _change_lines(data: bytes, most: int, dice: random.Random) -> bytes:
    """Lines and what stands behind an equals sign, moved, doubled and replaced."""
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    choice = dice.randrange(6)
    if choice == 0:
        del lines[at]
    elif choice == 1:
        lines.insert(at, dice.choice(lines))
    elif choice == 2:
        other = dice.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif choice < 5 and b"=" in lines[at]:
        odd = (
            json.dumps(dice.choice(ODD))
            if dice.random() < 0.6
            else dice.choice(lines).rpartition(b"=")[2].decode()
        )
        lines[at] = lines[at].partition(b"=")[0] + b"= " + odd.encode()
    else:
        lines[at] = mutate_plain(lines[at], max(1, len(lines[at]) + 20), dice)
    return b"\n".join(lines)


# Containers


def _change_gzip(data: bytes, most: int, dice: random.Random) -> bytes:
    with gzip.open(io.BytesIO(data)) as file:
        inner = file.read(MOST_UNPACKED)
    return gzip.compress(mutate_plain(inner, MOST_UNPACKED, dice), 6, mtime=0)


def read_zip(data: bytes) -> list[tuple[zipfile.ZipInfo, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [
            (info, archive.read(info) if info.file_size <= MOST_UNPACKED else b"")
            for info in archive.infolist()
        ]


def write_zip(members: list[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    made = io.BytesIO()
    # of names that are twice
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings(action="ignore"):
        for info, content in members:
            fresh = zipfile.ZipInfo(
                info.filename.encode(errors="replace").decode().replace("\0", "?")
            )
            fresh.external_attr, fresh.create_system = info.external_attr, 3
            usual = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            fresh.compress_type = (
                info.compress_type if info.compress_type in usual else zipfile.ZIP_STORED
            )
            archive.writestr(fresh, content)
    return made.getvalue()


def _change_zip(data: bytes, most: int, dice: random.Random) -> bytes:
    if dice.random() < 0.15:
        return _change_directory(data, dice)
    members = read_zip(data)
    at = dice.randrange(len(members))
    info, content = members[at]
    choice = dice.random()
    if choice < 0.08 and len(members) > 1:
        del members[at]
    elif choice < 0.16:
        info.filename = dice.choice((f"../{info.filename}", f"{info.filename}/", "x",
        dice.choice(members)[0].filename,
                                     info.filename.upper(), info.filename.replace("/",
                                     "\\")))  # fmt: skip
    elif choice < 0.22:
        mode = dice.choice((0o120777, 0o040755, 0o010644, 0o100644))
        info.external_attr = mode << 16
        members[at] = info, content if mode != 0o120777 else b"/etc/hostname"
    elif choice < 0.28:
        info.compress_type = dice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    elif choice < 0.34:
        other = zipfile.ZipInfo(
            mutate_plain(info.filename.encode(), 60, dice).decode(errors="replace") or "x"
        )
        members.append((other, content))
    else:
        members[at] = info, _change_member(info.filename, content, most, dice)
    return write_zip(members)


def _change_directory(data: bytes, dice: random.Random) -> bytes:
    """One field of the archive's list, of a file's own head or of the end made extreme."""
    sign, size = dice.choice([(b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22)])
    at = data.rfind(sign) if dice.random() < 0.5 else data.find(sign)
    made = bytearray(data)
    number = dice.choice((0, 1, 2, 7, 8, 255, 2**15, 2**16 - 1))
    struct.pack_into("<H", made, max(0, at) + dice.randrange(4, size - 2), number)
    return bytes(made)


def _change_member(name: str, content: bytes, most: int, dice: random.Random) -> bytes:
    """The content of a file, changed as its ending suggests."""
    changes = {"json": _change_json, "jsonl": _change_jsonl, "png": _change_png, "npy": _change_npy,
               "toml": _change_lines, "safetensors": _change_safetensors}  # fmt: skip
    change = changes.get(name.rpartition(".")[2].lower())
    return (
        within(change)(content, most, dice.randrange(2**32))
        if change
        else mutate_plain(content, most, dice)
    )


def _change_png(data: bytes, most: int, dice: random.Random) -> bytes:
    """A chunk changed, doubled, moved or dropped; checksums hold."""
    chunks, at = [], len(PNG)
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">L4s", data, at)
        chunks.append((name, data[at + 8 : at + 8 + size]))
        at += 12 + size
    at = dice.randrange(len(chunks))
    name, content = chunks[at]
    choice = dice.random()
    if choice < 0.08:
        del chunks[at]
    elif choice < 0.16:
        chunks.insert(dice.randrange(len(chunks) + 1), chunks[at])
    elif choice < 0.3:
        extra = dice.choice(
            (
                b"zTXt",
                b"iCCP",
                b"tRNS",
                b"eXIf",
                b"acTL",
                b"PLTE",
                b"gAMA",
                b"iTXt",
                b"fcTL",
                b"tEXt",
            )
        )
        body = dice.choice(
            (b"", b"x\0\0" + zlib.compress(bytes(100_000)), bytes(6), bytes(26), b"x" * 300)
        )
        chunks.insert(dice.randrange(len(chunks) + 1), (extra, body))
    elif name == b"IHDR" and len(content) == 13 and choice < 0.9:
        width, height, *rest = struct.unpack(">LLBBBBB", content)
        sides = (0, 1, 3, 5, 7, 255, 4000, 65536, 2**31 - 1)
        if dice.random() < 0.5:
            width, height = (
                dice.choice((width, dice.choice(sides))),
                dice.choice((height, dice.choice(sides))),
            )
        else:
            at_rest = dice.randrange(5)
            rest[at_rest] = dice.choice((0, 1, 2, 3, 4, 6, 8, 16, 255))
        chunks[at] = name, struct.pack(">LLBBBBB", width, height, *rest)
    elif name == b"IDAT" and choice < 0.8:
        rows = zlib.decompressobj().decompress(content, MOST_UNPACKED)
        chunks[at] = name, zlib.compress(mutate_plain(rows, MOST_UNPACKED, dice))
    else:
        chunks[at] = name, mutate_plain(content, most, dice)
    return PNG + b"".join(
        struct.pack(">L", len(body)) + name + body + struct.pack(">L", zlib.crc32(name + body))
        for name, body in chunks
    )


def _change_npy(data: bytes, most: int, dice: random.Random) -> bytes:
    """The header of an array, with its length mended, or its content."""
    wide = 2 if data[6] == 1 else 4
    size = int.from_bytes(data[8 : 8 + wide], "little")
    head, rest = data[8 + wide : 8 + wide + size], data[8 + wide + size :]
    if dice.random() < 0.4:
        return data[: 8 + wide] + head + mutate_plain(rest, most, dice)
    pairs = [
        (b"'<f8'", dice.choice((b"'<f4'", b"'>f8'", b"'|u1'", b"'<U3'", b"'|S3'", b"'|O'",
        b"'<M8[s]'", b"'<c16'",
                                b"'|b1'", b"'<i8'", b"'<f2'", b"'|V8'", b"[('a', '<f8')]"))),
        (b"False", b"True"), (b"(", b"(1, "), (b"(", b"(0, "), (b"(", b"(1000000, "), (b"(",
        b"(-1, "),
        (b", )", b", 2)"), (b"4", b"3"), (b"4", b"99999999999999"), (b"'|u1'", b"'<f8'"), (b"'<U",
        b"'<f"),
    ]  # fmt: skip
    old, new = dice.choice(pairs)
    head = (
        head.replace(old, new, 1)
        if old in head and dice.random() < 0.8
        else mutate_plain(head, len(head) + 20, dice)
    )
    head = head[: 2 ** (8 * wide) - 1]
    return data[:8] + len(head).to_bytes(wide, "little") + head + rest


def _change_safetensors(data: bytes, most: int, dice: random.Random) -> bytes:
    size = int.from_bytes(data[:8], "little")
    head = _change_json(data[8 : 8 + size], most, dice)
    return len(head).to_bytes(8, "little") + head + data[8 + size :]


# Campaigns


def _change_archive(data: bytes, most: int, dice: random.Random) -> bytes:
    """As in any zip archive; mostly with a list of members and keys that are right again."""
    changed = _change_zip(data, most, dice)
    if dice.random() < 0.25:
        return changed
    members = {info.filename: (info, content) for info, content in read_zip(changed)}
    texts = {name: content for name, (_, content) in members.items()}
    if "results.jsonl" in members:
        lines = map(_mend_row, texts["results.jsonl"].splitlines())
        texts["results.jsonl"] = b"".join(line + b"\n" for line in lines)
        members["results.jsonl"] = members["results.jsonl"][0], texts["results.jsonl"]
    if "journal.jsonl" in members:
        members["journal.jsonl"] = members["journal.jsonl"][0], signed(texts)["journal.jsonl"]
    if "campaign.json" in members:
        head = json.loads(texts["campaign.json"])
        head["members"] = sorted(set(members) - {"campaign.json"})
        members["campaign.json"] = members["campaign.json"][0], json.dumps(head).encode()
    return write_zip(list(members.values()))


def signed(members: dict[str, bytes]) -> dict[str, bytes]:
    """Members of an archive with a journal that fits the rows, if these can have one."""
    lines: list[dict[str, Any]] = []
    before = ""
    try:
        for table, columns in schema.list_row_tables().items():
            if f"{table}.jsonl" not in members:  # of an older version
                continue
            for number, text in enumerate(members[f"{table}.jsonl"].splitlines(), 1):
                row = json.loads(text)
                place = (
                    number
                    if table == "items"
                    else row["id"]
                    if "id" in columns
                    else row[next(iter(columns))]
                )
                plain = columns.items()
                cells = [
                    canonical(row[name]) if kind in schema.JSON_KINDS else row[name]
                    for name, kind in plain
                ]
                before = journal.sign(before, table, place, cells)
                lines.append(
                    {"number": len(lines) + 1, "part": table, "place": place, "hash": before}
                )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return members
    return members | {
        "journal.jsonl": b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    }


def _sign_again(held: sqlite3.Connection) -> None:
    """Write the journal of a store anew, if it can have one."""
    with suppress(sqlite3.Error, TypeError, UnicodeError):
        held.execute(f"DELETE FROM {journal.TABLE}")
        journal.enter_all(held, schema.list_row_tables(schema.find_version(held)))


def _mend_row(line: bytes) -> bytes:
    """A row with the key of its job."""
    try:
        row = json.loads(line)
        named = {key: row[key] for key in ("kind", "needs", "versions")}
        text = json.dumps(named, sort_keys=True, separators=(",", ":"), allow_nan=False)
        row["key"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(row).encode()
    except (ValueError, TypeError, LookupError, AttributeError):
        return line


def _change_store(data: bytes, most: int, dice: random.Random) -> bytes:
    """A cell, a row, a table or a pragma of a SQLite file changed."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as held:
        # without a log beside it, which memory has no place for
        held.deserialize(data[:18] + b"\1\1" + data[20:])
        for pragma in (
            "ignore_check_constraints = ON",
            "writable_schema = ON",
            "foreign_keys = OFF",
        ):
            held.execute(f"PRAGMA {pragma}")
        tables = [
            name for (name,) in held.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        guards = held.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in guards:  # which let nobody change a row
            held.execute(f"DROP TRIGGER {name}")
        for _ in range(dice.choice((1, 1, 2, 3))):
            _change_table(held, dice.choice(tables), tables, dice)
        if dice.random() < 0.7:
            _sign_again(held)
        for _, sql in guards:
            with suppress(sqlite3.Error):  # of a table that is gone
                held.execute(sql)
        return held.serialize()


def _change_table(
    held: sqlite3.Connection, table: str, tables: list[str], dice: random.Random
) -> None:
    choice = dice.random()
    columns = [row[1] for row in held.execute(f"PRAGMA table_info({table})")]
    if choice < 0.05:
        held.execute(f"PRAGMA user_version = {dice.choice((-1, 0, 1, 2, 3, 99))}")
    elif choice < 0.1:
        held.execute(f"DROP TABLE {table}")
    elif choice < 0.13:
        held.execute(f"ALTER TABLE {table} RENAME COLUMN {dice.choice(columns)} TO renamed")
    elif choice < 0.18:
        body = dice.choice(
            ("SELECT 1 / 0; ", "SELECT RAISE(ABORT, 'x');", f"DELETE FROM {dice.choice(tables)};")
        )
        held.execute(
            f"CREATE TRIGGER odd{dice.randrange(10**9)} BEFORE INSERT ON {table} BEGIN {body} END"
        )
    elif choice < 0.23:
        held.execute(f"ALTER TABLE {table} RENAME TO hidden")
        held.execute(f"CREATE VIEW {table} AS SELECT * FROM hidden")
    elif choice < 0.3:
        held.execute(f"DELETE FROM {table} WHERE rowid % 2 = {dice.randrange(2)}")
    else:
        rows = held.execute(f"SELECT rowid, * FROM {table}").fetchall()
        row, at = dice.choice(rows), dice.randrange(len(columns))
        held.execute(
            f"UPDATE {table} SET {columns[at]} = ? WHERE rowid = ?",
            (_change_cell(row[at + 1], dice), row[0]),
        )


def _change_cell(cell: Any, dice: random.Random) -> Any:
    if isinstance(cell, str) and cell[:1] in "{[" and dice.random() < 0.85:
        return json.dumps(change_value(json.loads(cell), dice))
    odd = (
        change_value(cell, dice)
        if dice.random() < 0.5
        else dice.choice((*ODD, b"\xff", b"x", 2**63 - 1))
    )
    if isinstance(odd, str):
        return odd.encode(errors="replace").decode()
    return (
        json.dumps(odd)
        if isinstance(odd, list | dict) or (isinstance(odd, int) and abs(odd) >= 2**63)
        else odd
    )


json_mutator = within(_change_json)
jsonl_mutator = within(_change_jsonl, 0.6)
lines_mutator = within(_change_lines, 0.6)
gzip_mutator = within(_change_gzip)
zip_mutator = within(_change_zip, 0.92)
png_mutator = within(_change_png, 0.8)
safetensors_mutator = within(_change_safetensors)
archive_mutator = within(_change_archive, 0.95)
store_mutator = within(_change_store, 0.92)
