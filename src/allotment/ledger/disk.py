"""Folders of a campaign, on a disk that keeps its word, and what may be in them."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import BinaryIO

from allotment.amounts import short
from allotment.errors import InputError, Mistake
from allotment.files import HALF, plainly, remove_halves
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
RESERVED_NAMES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
"""names that Windows keeps for devices"""
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


def sync_tree(folder: Path) -> None:
    """Names within a folder, and within all that it holds, stay when the power goes."""
    for place, _, _ in os.walk(folder):
        sync_folder(Path(place))


def clear_halves(folder: Path) -> None:
    """Remove what killed processes left half-written in a campaign; only for whoever holds the
    lock. A sheet is written when the lock is free again."""
    with plainly(folder):
        remove_halves([*folder.glob(f"{HALF}*"), *folder.glob(f"{MASK_FOLDER}/{HALF}*")])


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
    """What is wrong with a mask or with settings; nothing is the empty text."""
    return _judge_png(file) if name.endswith(".png") else _judge_text(file, size)


def _judge_png(file: BinaryIO) -> str:
    start = file.read(33)
    if len(start) < 33 or start[:8] != b"\x89PNG\r\n\x1a\n" or start[12:16] != b"IHDR":
        return "is not a PNG image; save it as one"
    width, height = struct.unpack(">II", start[16:24])
    if not 0 < width * height <= MOST_PNG_PIXELS:
        return f"is {width} x {height} pixels, the limit is {MOST_PNG_PIXELS}; make it smaller"
    return ""


def _judge_text(file: BinaryIO, size: int) -> str:
    try:
        file.read(size).decode()
    except ValueError as error:
        return f"is damaged ({short(str(error))}); write it again"
    return ""
