"""Folders of a campaign, on a disk that keeps its word, and what may be in them."""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from allotment.amounts import short
from allotment.errors import InputError, Mistake
from allotment.files import HALF, fill, plainly, remove_halves, sign
from allotment.job import parse
from allotment.machine import sync_folder

MOUNTS = Path("/proc/mounts")
NETWORK_FILE_SYSTEMS = {
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "cvmfs", "davfs", "gfs2", "gpfs",
    "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "panfs", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "wekafs",
    "fuse.beegfs-mount", "fuse.blobfuse2", "fuse.ceph", "fuse.davfs", "fuse.gcsfuse",
    "fuse.glusterfs", "fuse.goofys",
    "fuse.grpcfuse", "fuse.juicefs", "fuse.mountpoint-s3", "fuse.osxfs", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs",
    "fuse.vmhgfs-fuse",
}  # fmt: skip
"""kinds of file systems on which several machines, or a machine and its guest, may see different
files"""
MASK_FOLDER = "labels"
"""the folder of a campaign that delivered masks are kept in"""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
RESERVED_NAMES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
"""names that Windows keeps for devices"""
FORMATS = (".json", ".npy", ".png", ".safetensors")
LARGEST_HEADER = 10_000  # bytes
_HEADER = re.compile(  # as numpy writes it
    r"\{'descr': '([^']{1,40})', 'fortran_order': (?:True|False), "
    r"'shape': \(((?:SIDE,|SIDE(?:, ?SIDE){1,31},?)?)\), \} *\n?".replace(
        "SIDE", "(?:0|[1-9][0-9]{0,14})"
    )
)
LARGEST_JSON = 50_000_000
MOST_PNG_PIXELS = 10**9
"""pixels of a PNG among the files of a campaign, height times width"""


def check_local(folder: Path) -> None:
    """Refuse a network disk, where locks and the order of writes are promised by nobody; only Linux
    lists its disks."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    point, kind = _find_mount(Path(os.path.realpath(folder)), mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        what = (
            f"is on a network disk ({kind} at {point}), where a store can be damaged; put the"
            " campaign on a disk of this machine and carry it from place to place with `allot"
            " pack`"
        )
        raise InputError([Mistake(repr(str(folder)), what)])


def _find_mount(path: Path, mounts: str) -> tuple[str, str]:
    """Where the disk of a path is mounted, and its kind; of several at one place the last is the
    one to be seen."""
    found = ("/", "")
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[1])
        if len(point) >= len(found[0]) and path.is_relative_to(point):
            found = (point, fields[2])
    return found


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """A folder that is there with all of its files or not at all; takes the place of one that
    nobody counts on."""
    with plainly(path):
        half = Path(tempfile.mkdtemp(prefix=sign(), dir=path.parent))
        try:
            for name in sorted(files):
                fill(half / name, files[name])
            half.chmod(0o755)
            sync_folder(half)
            if path.exists():
                shutil.rmtree(path)
            half.rename(path)
            sync_folder(path.parent)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise


def sync_tree(folder: Path) -> None:
    """Names within a folder, and within all that it holds, stay when the power goes."""
    for place, _, _ in os.walk(folder):
        sync_folder(Path(place))


def clear_halves(folder: Path) -> None:
    """Remove what killed processes left half-written in a campaign; only for whoever holds the
    lock. A sheet is written when the lock is free again."""
    with plainly(folder):
        remove_halves([*folder.glob(f"{HALF}*"), *folder.glob(f"{MASK_FOLDER}/{HALF}*")])


def list_files(files: Mapping[str, bytes], where: str) -> dict[str, list[Any]]:
    """Size and digest of each file, if they are files that an archive will take."""
    wrong = [] if files else [Mistake(where, "has no files; give at least one")]
    for name, data in files.items():
        if what := judge_name(name) or judge_content(name, io.BytesIO(data), len(data)):
            wrong.append(Mistake(where, what if str(name) in what else f"{name} {what}"))
    folded = Counter(str(name).casefold() for name in files)
    wrong += [Mistake(where, f"two files are called {name}") for name in folded if folded[name] > 1]
    if wrong:
        raise InputError(wrong[:20])
    return {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()}


def judge_name(name: object) -> str:
    """What is wrong with the name of a file in an artifact; nothing is the empty text."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"{short(name)} is not a plain file name; use letters, digits, - and _, at most 100"
    if RESERVED_NAMES.fullmatch(name):
        return f"{short(name)} is a reserved name on Windows; choose another"
    if not name.endswith(FORMATS):
        return f"{short(name)} is no {', '.join(FORMATS)}; write arrays as .npy and values as .json"
    return ""


def judge_path(name: str) -> str:
    """Why a name from elsewhere leads out of a folder, or is none on some system; nothing is the
    empty text."""
    parts = re.split(r"[/\\]", name)
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        return "is an absolute path; names in an archive begin within it"
    if ".." in parts or "." in parts:
        return "leads out of the folder; names in an archive have no dots for folders"
    if "\\" in name or ":" in name or not name.isprintable():
        return "has a character that no name in an archive has"
    if any(part != part.rstrip(". ") or RESERVED_NAMES.fullmatch(part) for part in parts):
        return "is no name on Windows; pack the campaign again"
    return ""


def judge_content(name: str, file: BinaryIO, size: int) -> str:
    """What is wrong with a file's content, by the ending of its name; nothing is the empty text."""
    judges = {
        ".npy": _judge_npy, ".png": _judge_png, ".json": _judge_json,
        ".safetensors": _judge_safetensors,
        ".toml": _judge_text,
    }  # fmt: skip
    try:
        return judges[Path(name).suffix](file, size)
    except (ValueError, TypeError, struct.error, RecursionError) as error:
        return f"is damaged ({short(str(error))}); write it again"


def _judge_npy(file: BinaryIO, size: int) -> str:
    """An array of numbers, all of it there; never one of Python objects, which only pickle could
    read."""
    start = file.read(8)
    if start[:6] != b"\x93NUMPY" or start[6:] not in (b"\1\0", b"\2\0", b"\3\0"):
        return "is not a .npy file; write it with numpy.save"
    length = (
        struct.unpack("<H", file.read(2))[0]
        if start[6] == 1
        else struct.unpack("<I", file.read(4))[0]
    )
    if length > LARGEST_HEADER:
        return "has a header too large for a plain array; write it with numpy.save"
    text = file.read(length)
    if len(text) < length:
        return "ends within its header; write it again"
    header = _HEADER.fullmatch(text.decode("latin-1"))
    if header is None:
        return "is not an array of plain numbers; write it with numpy.save"
    if not re.fullmatch(r"[<>|=]?(?:b1|[iu][1248]|f[248]|c8|c16)", header[1]):
        return (
            f"holds {short(header[1])}, not plain numbers; convert it first (objects are never"
            " unpickled)"
        )
    shape = [int(side) for side in re.findall(r"[0-9]+", header[2])]
    if math.prod(shape) * int(header[1].lstrip("<>|=biufc")) != size - file.tell():
        return "has another size than its header says; write it again"
    return ""


def _judge_png(file: BinaryIO, size: int) -> str:
    start = file.read(33)
    if len(start) < 33 or start[:8] != b"\x89PNG\r\n\x1a\n" or start[12:16] != b"IHDR":
        return "is not a PNG image; save it as one"
    width, height = struct.unpack(">II", start[16:24])
    if not 0 < width * height <= MOST_PNG_PIXELS:
        return f"is {width} x {height} pixels, the limit is {MOST_PNG_PIXELS}; make it smaller"
    return ""


def _judge_json(file: BinaryIO, size: int) -> str:
    if size > LARGEST_JSON:
        return (
            f"has {size / 10**6:.0f} MB, the limit is {LARGEST_JSON // 10**6} MB; write arrays as"
            " .npy"
        )
    parse(file.read(size))
    return ""


def _judge_text(file: BinaryIO, size: int) -> str:
    file.read(size).decode()
    return ""


def _judge_safetensors(file: BinaryIO, size: int) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(size - 8, LARGEST_HEADER * 1000) or not isinstance(
        parse(file.read(length)), dict
    ):
        return "is not a .safetensors file; write it again"
    return ""
