"""Archives of campaigns: the same bytes out and in, and nothing but a clear error from those that
are not ours."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzzing.mutators import signed
from helpers.archives import Members, rows_of, zipped
from helpers.stores import FIXTURES, check_sample, fill, probe

from allotment.errors import InputError
from allotment.ledger import archive, copies, disk, schema, store
from allotment.ledger.archive import pack, unpack
from allotment.ledger.store import Store

AT = "2026-07-01T12:00:00+00:00"
HASH = "5" * 64


def png(width: int = 3, height: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (width + 1) * min(height, 100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "_now", lambda: AT)
    folder = tmp_path / "campaign"
    with Store.create(folder) as held:
        fill(held)
        (folder / "labels").mkdir()
        (folder / "labels" / f"{HASH}.png").write_bytes(png())
        held.add_delivery("masks.zip", "digest 3", [("seg", "2", {"png": HASH})])
    (folder / "campaign.toml").write_text("budget = 10\n")
    return folder


@pytest.fixture
def packed(campaign: Path, tmp_path: Path) -> Path:
    return pack(campaign, tmp_path / "campaign.zip")


@pytest.fixture
def members(packed: Path) -> Members:
    with zipfile.ZipFile(packed) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def relisted(members: Members) -> Members:
    """With a head that lists what is there."""
    head = json.loads(members["campaign.json"])
    head["members"] = sorted(set(members) - {"campaign.json"})
    return {**members, "campaign.json": json.dumps(head).encode()}


@pytest.fixture
def refuse(tmp_path: Path) -> Callable[[Path, str], str]:
    """Unpacking fails with an InputError, and not a file has come or gone anywhere near."""
    cage = tmp_path / "cage" / "inner"
    cage.mkdir(parents=True)

    def check(path: Path, said: str) -> str:
        before = snapshot(tmp_path)
        with pytest.raises(InputError) as caught:
            unpack(path, cage / "new")
        assert snapshot(tmp_path) == before
        assert said in str(caught.value), str(caught.value)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return check


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder where waiting for the disk takes no time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def snapshot(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_size) for path in folder.rglob("*")}


def tables_of(folder: Path) -> dict[str, list[Any]]:
    with Store.open(folder, write=False) as held:
        return {table: list(held.table(table)) for table in schema.list_row_tables()}


# There and back


def test_what_is_packed_comes_back_the_same(campaign: Path, packed: Path, tmp_path: Path) -> None:
    other = unpack(packed, tmp_path / "other")
    assert tables_of(other) == tables_of(campaign)
    files = [path.relative_to(campaign) for path in campaign.rglob("*") if path.is_file()]
    for path in files:
        if (
            not path.name.startswith(("campaign.sqlite", "campaign.lock"))
            and path.parts[0] != copies.FOLDER
        ):
            assert (other / path).read_bytes() == (campaign / path).read_bytes()
    with Store.open(other, write=True) as held:
        held.check()
        held.put_result(probe(50), 1)
        assert held.add_value("plan", {}, "next").number == 2


def test_the_same_campaign_gives_the_same_bytes(
    campaign: Path, packed: Path, tmp_path: Path
) -> None:
    again = pack(campaign, tmp_path / "again.zip")
    assert again.read_bytes() == packed.read_bytes()
    other = pack(unpack(packed, tmp_path / "other"), tmp_path / "other.zip")
    assert other.read_bytes() == packed.read_bytes()


def test_an_archive_is_plain_files_that_anyone_can_read(members: Members) -> None:
    assert json.loads(members["campaign.json"])["format"] == "allotment campaign"
    rows = [json.loads(line) for line in members["results.jsonl"].splitlines()]
    assert [row["body"] for row in rows] == [{"score": 0.5}, {"score": 0.75}]
    assert members["campaign.toml"] == b"budget = 10\n"
    assert members[f"labels/{HASH}.png"] == png()
    assert not any(b"pickle" in data or b"\x80\x04" in data for data in members.values())


def test_an_empty_campaign_too(tmp_path: Path) -> None:
    Store.create(tmp_path / "empty").close()
    other = unpack(pack(tmp_path / "empty", tmp_path / "empty.zip"), tmp_path / "other")
    assert not any(tables_of(other).values())


def test_an_archive_of_the_first_format_opens_for_ever(tmp_path: Path) -> None:
    other = unpack(FIXTURES / "campaign-v1.zip", tmp_path / "other")
    with Store.open(other, write=False) as held:
        check_sample(held)
    assert (other / "campaign.toml").read_text() == "budget = 10\n"


def test_an_older_archive_is_brought_up_to_date(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE notes (text TEXT);")
    )
    monkeypatch.setattr(archive, "MIGRATIONS", schema.MIGRATIONS)
    with Store.open(unpack(packed, tmp_path / "other"), write=False) as held:
        assert held._rows("SELECT * FROM notes") == []
        check_sample_partly(held)


def check_sample_partly(held: Store) -> None:
    assert held.settings() == "budget = 10\n"
    assert len(held.results("probe")) == 2


def test_monotonous_results_are_no_bomb(campaign: Path, tmp_path: Path) -> None:
    with Store.open(campaign, write=True) as held:
        for size in range(100, 103):
            held.put_result(probe(size), "0" * 1_000_000)
    (campaign / "labels" / f"{HASH}.png").write_bytes(png() + bytes(24_000_000))
    other = unpack(pack(campaign, tmp_path / "large.zip"), tmp_path / "other")
    with Store.open(other, write=False) as held:
        assert held.result(probe(102).key) == "0" * 1_000_000
    assert (other / "labels" / f"{HASH}.png").stat().st_size > 24_000_000


def test_packing_while_someone_writes_shows_one_moment(
    campaign: Path, packed: Path, tmp_path: Path
) -> None:
    with Store.open(campaign, write=True) as held:
        assert pack(campaign, tmp_path / "1.zip").read_bytes() == packed.read_bytes()
        held.put_result(probe(60), 1)
    other = unpack(pack(campaign, tmp_path / "2.zip"), tmp_path / "other")
    assert len(tables_of(other)["results"]) == 3


def test_nothing_is_overwritten(campaign: Path, packed: Path, tmp_path: Path) -> None:
    before = packed.read_bytes()
    with pytest.raises(InputError, match="is there already"):
        pack(campaign, packed)
    assert packed.read_bytes() == before
    for there in (campaign, packed):
        with pytest.raises(InputError, match="is there already"):
            unpack(packed, there)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is there already"):
        unpack(packed, tmp_path / "link")
    with pytest.raises(InputError, match="no such folder"):
        unpack(packed, tmp_path / "missing" / "new")
    with pytest.raises(InputError, match="no such folder"):
        pack(campaign, tmp_path / "missing" / "new.zip")


def deliver_two_more(campaign: Path) -> None:
    with Store.open(campaign, write=True) as held:
        for digit in "67":
            (campaign / "labels" / f"{digit * 64}.png").write_bytes(png())
            held.add_delivery("more.zip", digit, [("seg", digit, {"png": digit * 64})])


def test_files_that_are_missing_are_named(campaign: Path, tmp_path: Path) -> None:
    deliver_two_more(campaign)
    shutil.rmtree(campaign / "labels")
    with pytest.raises(InputError) as caught:
        pack(campaign, tmp_path / "x.zip")
    assert len(caught.value.mistakes) == 3
    assert f"{HASH}.png" in str(caught.value)
    assert not list(tmp_path.glob("*.zip"))
    assert not list(tmp_path.glob(disk.HALF + "*"))


def test_packing_reads_no_file_that_a_label_points_at(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    with Store.open(campaign, write=True) as held:
        held.add_delivery(
            "x", "x", [("seg", "7", {"png": "../../secret"}), ("seg", "8", {"png": 5})]
        )
    with zipfile.ZipFile(pack(campaign, tmp_path / "x.zip")) as opened:
        assert [name for name in opened.namelist() if name.endswith(".png")] == [
            f"labels/{HASH}.png"
        ]


def test_a_network_disk_is_refused(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(f"server:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr(disk, "MOUNTS", tmp_path / "mounts")
    with pytest.raises(InputError, match="network disk"):
        unpack(packed, tmp_path / "other")


# Archives that are not ours


Refuse = Callable[[Path, str], str]


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"no archive at all" * 100, b"PK\5\6" + b"\0" * 18]
)
def test_what_is_no_archive(tmp_path: Path, refuse: Refuse, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    refuse(tmp_path / "x.zip", "allot pack" if len(content) == 22 else "not a whole archive")


def test_what_is_no_file(tmp_path: Path, refuse: Refuse) -> None:
    os.mkfifo(tmp_path / "pipe")
    refuse(tmp_path / "pipe", "is not a file")
    refuse(tmp_path, "is not a file")
    refuse(tmp_path / "missing.zip", "cannot be read")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/etc/passwd", "absolute"),
        ("//server/share/x", "absolute"),
        ("\\\\server\\share\\x", "absolute"),
        ("C:\\x", "absolute"),
        ("c:x", "absolute"),
        ("../x", "leads out"),
        ("labels/../../x", "leads out"),
        ("labels\\..\\..\\x", "leads out"),
        ("./x", "leads out"),
        ("labels/./x", "leads out"),
        (f"labels/{HASH}.png/..", "leads out"),
        ("labels\\x", "character"),
        ("campaign.toml:b", "character"),
        ("labels/x\nb.png", "character"),
        ("labels/x\u202egnp.exe", "character"),
        ("labels/nul.png", "Windows"),
        ("labels/COM1.png", "Windows"),
        ("con", "Windows"),
        ("campaign.toml.", "Windows"),
        ("campaign.toml ", "Windows"),
        (f"labels/{HASH}.png.", "Windows"),
        (f"labels/.{HASH}.png", "unknown"),
        (f"labels/{HASH}.pkl", "unknown"),
        (f"labels/{'é' * 64}.png", "unknown"),
        (f"labels/{HASH}/{HASH}.png", "unknown"),
        (f"labels/{HASH}/", "unknown"),
        ("labels/", "unknown"),
        (f"labels/{'A' * 64}.png", "unknown"),
        (f"artifacts/{HASH}/a.npy", "unknown"),
        (f"artifacts/{HASH}/a.json", "unknown"),
        ("artifacts/", "unknown"),
        (f"labels/{HASH}.exe", "unknown"),
        ("campaign.sqlite", "unknown"),
        ("campaign.lock", "unknown"),
        ("mine.py", "unknown"),
        ("", "unknown"),
    ],
)
def test_names_that_lead_elsewhere(
    members: Members, tmp_path: Path, refuse: Refuse, name: str, said: str
) -> None:
    path = zipped(relisted({**members, name: b"x"}), tmp_path / "x.zip")
    told = refuse(path, said)
    assert len(told) < 1000


def test_a_name_cut_at_a_nul(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    """zipfile reads such a name up to the NUL; others might not."""
    name = "campaign.tomlX../../x"
    rest = {other: data for other, data in members.items() if other != "campaign.toml"}
    path = zipped(relisted({**rest, name: b"x"}), tmp_path / "x.zip")
    path.write_bytes(path.read_bytes().replace(name.encode(), name.replace("X", "\0").encode()))
    refuse(path, "out of the folder")


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK]
)
def test_links_and_devices(members: Members, tmp_path: Path, refuse: Refuse, kind: int) -> None:
    def edit(info: zipfile.ZipInfo) -> None:
        if info.filename == f"labels/{HASH}.png":
            info.external_attr = (kind | 0o777) << 16

    refuse(
        zipped({**members, f"labels/{HASH}.png": b"/etc/passwd"}, tmp_path / "x.zip", edit),
        "is a link",
    )


def test_the_same_name_twice(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    path = zipped(members, tmp_path / "x.zip")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as opened:
        opened.writestr("campaign.toml", b"budget = 11")
    refuse(path, "is there twice")


def test_the_same_name_in_another_case(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    for name in ("Campaign.toml", "RESULTS.jsonl", f"LABELS/{HASH}.png", f"labels/{HASH}.PNG"):
        refuse(zipped(relisted({**members, name: png()}), tmp_path / "x.zip"), "is unknown")


def test_members_that_are_missing_or_too_many(
    members: Members, tmp_path: Path, refuse: Refuse
) -> None:
    for number, name in enumerate(members):
        rest = {other: data for other, data in members.items() if other != name}
        refuse(
            zipped(rest, tmp_path / f"{number}.zip"), "pack" if name == "campaign.json" else name
        )
        if name not in ("campaign.json", "campaign.toml"):
            refuse(zipped(relisted(rest), tmp_path / f"{number}-relisted.zip"), name)
    extra = f"labels/{'6' * 64}.png"
    more = {**members, extra: png()}
    refuse(zipped(more, tmp_path / "x.zip"), extra)
    refuse(zipped(relisted(more), tmp_path / "x.zip"), "belongs to nothing")


# Sizes


def test_a_member_that_would_explode(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    def edit(info: zipfile.ZipInfo) -> None:
        info.compress_type = zipfile.ZIP_DEFLATED

    bomb = {**members, "settings.jsonl": b" " * 50_000_000}
    refuse(zipped(bomb, tmp_path / "x.zip", edit), "fill disks")


def test_a_member_that_hides_its_size(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    """It claims to be small, in both places, and goes on when it is read."""
    size = 30_000_000
    path = tmp_path / "x.zip"
    zipped(
        {**members, "campaign.toml": b"#" * size},
        path,
        lambda info: setattr(info, "compress_type", 8),
    )
    content = path.read_bytes()
    assert content.count(struct.pack("<I", size)) == 2
    path.write_bytes(content.replace(struct.pack("<I", size), struct.pack("<I", 100)))
    refuse(path, "campaign.toml")


def test_a_member_that_claims_more_than_it_has(
    members: Members, tmp_path: Path, refuse: Refuse
) -> None:
    path = zipped({**members, "campaign.toml": b"#" * 12345}, tmp_path / "x.zip")
    content = path.read_bytes()
    assert content.count(struct.pack("<I", 12345)) == 4
    path.write_bytes(content.replace(struct.pack("<I", 12345), struct.pack("<I", 12999)))
    refuse(path, "")


def test_members_that_share_their_bytes(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    """A hundred names for one large block, each of a modest ratio."""
    path = zipped(members, tmp_path / "x.zip")
    with zipfile.ZipFile(path, "a") as opened:
        first = opened.getinfo("results.jsonl")
        for number in range(100):
            info = zipfile.ZipInfo(f"labels/{number:064x}.png")
            info.header_offset, info.CRC = first.header_offset, first.CRC
            info.compress_size, info.file_size = first.compress_size, first.file_size
            opened.filelist.append(info)
        opened._didModify = True  # type: ignore[attr-defined]
    refuse(path, "overlaps")


def test_too_many_members(
    members: Members, tmp_path: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_ARCHIVED_FILES", 50)
    many = {**members, **{f"labels/{number:064x}.png": png() for number in range(200)}}
    path = zipped(relisted(many), tmp_path / "x.zip")
    refuse(path, "the limit is 50")
    monkeypatch.setattr(archive, "LARGEST_MEMBER_LIST", 5000)
    monkeypatch.setattr(zipfile, "ZipFile", None)  # it must not get as far as reading the list
    refuse(path, "lists more than 50 files")


def test_packing_keeps_to_the_limits(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver_two_more(campaign)
    monkeypatch.setattr(archive, "MOST_ARCHIVED_FILES", 2)
    with pytest.raises(InputError, match="an archive holds 2"):
        pack(campaign, tmp_path / "x.zip")


def test_a_disk_too_small(packed: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100))
    refuse(packed, "make room")


def test_lines_without_end(
    members: Members, tmp_path: Path, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LONGEST_ARCHIVE_LINE", 1000)
    long = {**members, "settings.jsonl": b'{"text": "' + b"x" * 10_000}
    refuse(zipped(long, tmp_path / "x.zip"), "settings.jsonl: is not JSON")


def test_encrypted_and_unusual_members(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    path = zipped(
        members, tmp_path / "x.zip", lambda info: setattr(info, "compress_type", zipfile.ZIP_BZIP2)
    )
    refuse(path, "unusual way")
    path = zipped(members, tmp_path / "y.zip")
    content = bytearray(path.read_bytes())
    for sign, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        content[content.index(sign) + place] |= 1
    path.write_bytes(content)
    refuse(path, "encrypted")


# Contents


def with_rows(members: Members, table: str, rows: list[Any]) -> Members:
    """With other rows in a table, as a forger would put them there."""
    return signed(
        {**members, f"{table}.jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in rows)}
    )


@pytest.mark.parametrize(
    "text",
    [
        b"{", b"[]\n", b"\xff\xfe\n", b'{"a": 1}\n', b"null\n", b"\n", b"NaN\n",
        b"[" * 100_000 + b"\n", b"1" * 5000,
        b'{"number": 1, "number": 1, "text": "", "at": ""}\n',
        b'{"number": 1, "text": "\\ud800", "at": "x"}\n',
    ],
)  # fmt: skip
@pytest.mark.parametrize("member", ["settings.jsonl", "labels.jsonl", "campaign.json"])
def test_lines_that_are_no_rows(
    members: Members, tmp_path: Path, refuse: Refuse, member: str, text: bytes
) -> None:
    refuse(zipped({**members, member: text}, tmp_path / "x.zip"), member)


UNUSED_ROW = {
    "number": 1,
    "key": probe(3, "weights").key,
    "kind": "weights",
    "needs": dict(probe(3).needs),
    "versions": dict(probe(3).versions),
    "files": {"a.npy": [160, HASH]},
    "at": AT,
}
"""of a table to which no version writes, as it would have to be"""
NEVER_WRITTEN = "1 row of artifacts was never written by allotment"
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    2**60,
    10**400,
    "",
    "\0",
    "\ud800",
    "x" * 2000,
    [],
    {},
    [1],
    {"a": 1},
]


@pytest.mark.long
def test_wrong_types_everywhere(members: Members, quick: Path) -> None:
    """Whatever stands in a cell, it is refused or it is a value that the store holds as it is."""
    cage = quick / "cage"
    cage.mkdir()
    taken = refused = 0
    for table, columns in schema.list_row_tables().items():
        rows = rows_of(members, table) or [UNUSED_ROW]
        for column, kind in columns.items():
            for odd in ODD:
                changed = json.loads(json.dumps(rows))
                changed[0][column] = odd
                path = zipped(with_rows(members, table, changed), quick / "x.zip")
                try:
                    unpack(path, cage / "new")
                except InputError:
                    refused += 1
                else:
                    taken += 1
                    assert tables_of(cage / "new")[table][0][column] == odd, (table, column, odd)
                    assert kind in ("text", "value", "count", "name"), (table, column, odd)
                    shutil.rmtree(cage / "new")
                assert list(cage.iterdir()) == []
    assert refused > 500
    assert taken > 20


def test_head_of_the_wrong_kind(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    head = json.loads(members["campaign.json"])
    for key in head:
        for odd in ODD:
            changed = {**members, "campaign.json": json.dumps({**head, key: odd}).encode()}
            if (key, odd) != ("allotment", "") and not (
                key == "allotment" and isinstance(odd, str)
            ):
                refuse(zipped(changed, tmp_path / "x.zip"), "")
        less = {other: value for other, value in head.items() if other != key}
        refuse(
            zipped({**members, "campaign.json": json.dumps(less).encode()}, tmp_path / "x.zip"),
            "not the head",
        )
    newer = {**members, "campaign.json": json.dumps({**head, "version": 4}).encode()}
    refuse(zipped(newer, tmp_path / "x.zip"), "upgrade allotment")


def test_rows_that_contradict_each_other(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    def check(table: str, change: Callable[[list[Any]], None], said: str) -> None:
        rows = rows_of(members, table)
        change(rows)
        refuse(zipped(with_rows(members, table, rows), tmp_path / "x.zip"), said)

    check("results", lambda rows: rows[0].update(key=HASH), "the key is not that of the job")
    check("results", lambda rows: rows[0]["needs"].update(size=7), "the key is not that of the job")
    check("results", lambda rows: rows.append(dict(rows[0], number=3)), "contradicts")
    check("results", lambda rows: rows[0].update(number=2), "contradicts")
    check("results", lambda rows: rows.pop(0), "gaps")
    check("settings", lambda rows: rows[0].update(number=5), "gaps")
    check("records", lambda rows: rows.append(dict(rows[0], id=77, number=9, key="z")), "gaps")
    check("records", lambda rows: rows[0].update(kind="nonsense"), "contradicts")
    check("items", lambda rows: rows[0].update(order_id=1), "contradicts")
    check("items", lambda rows: rows[0].update(order_id=99), "contradicts")
    check("items", lambda rows: rows.append(dict(rows[0], position=3)), "contradicts")
    check(
        "items",
        lambda rows: rows.append(
            dict(rows[0], position=3, instance="new", task="t") | {"position": 7}
        ),
        "gaps",
    )
    check("cancellations", lambda rows: rows[0].update(order_id=1), "contradicts")
    check("labels", lambda rows: rows[0].update(delivery=9), "contradicts")
    check("labels", lambda rows: rows[2].update(value={"png": "7" * 64}), "is missing")
    check("labels", lambda rows: rows.pop(), "belongs to nothing")
    check("artifacts", lambda rows: rows.append(UNUSED_ROW), NEVER_WRITTEN)


def test_an_order_again_after_its_cancellation_is_fine(members: Members, tmp_path: Path) -> None:
    with Store.create(tmp_path / "a") as held:
        held.add_order({}, [("seg", "1")], "a")
        held.cancel(1)
        held.add_order({}, [("seg", "1")], "b")
        held.cancel(2)
        held.add_order({}, [("seg", "1")], "c")
    other = unpack(pack(tmp_path / "a", tmp_path / "a.zip"), tmp_path / "b")
    with Store.open(other, write=False) as held:
        assert held.open_items() == [(3, "seg", "1")]


def test_settings_and_masks_are_looked_at(members: Members, tmp_path: Path, refuse: Refuse) -> None:
    refuse(zipped({**members, "campaign.toml": b"\xff\xfe"}, tmp_path / "x.zip"), "campaign.toml")
    refuse(
        zipped({**members, "campaign.toml": b"#" * 10_000_001}, tmp_path / "x.zip"),
        "too large for settings",
    )
    for mask, said in (
        (b"x" * 100, "not a PNG"),
        (b"", "not a PNG"),
        (b"GIF89a" + b"\0" * 40, "not a PNG"),
        (png()[:32], "not a PNG"),
        (png(60_000, 60_000), "pixels"),
        (png(0, 5), "pixels"),
    ):
        refuse(zipped({**members, f"labels/{HASH}.png": mask}, tmp_path / "x.zip"), said)
    good = zipped({**members, f"labels/{HASH}.png": png(5, 4)}, tmp_path / "good.zip")
    other = unpack(good, tmp_path / "good")
    assert (other / "labels" / f"{HASH}.png").read_bytes() == png(5, 4)


def test_many_mistakes_are_told_at_once_but_not_all(
    members: Members, tmp_path: Path, refuse: Refuse
) -> None:
    rows = [dict(row, at="yesterday") for row in rows_of(members, "results") * 100]
    told = refuse(zipped(with_rows(members, "results", rows), tmp_path / "x.zip"), "line 1: ")
    assert len(told.splitlines()) == 20
    bad = {f"../{number}": b"" for number in range(100)}
    assert (
        len(refuse(zipped({**members, **bad}, tmp_path / "x.zip"), "leads out").splitlines()) == 20
    )
