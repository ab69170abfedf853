"""Taskonomy in its own folders: five tasks on views of buildings, as in Standley et al.

Normals come in the axes of the built-in scenes: x to the right, y up, z towards the viewer. In the
files red points right, green down and blue away from the viewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import NORMAL_SLACK, VOID, Target
from allotment.data.folder import FolderData, LabelReader, MistakeTally, check_side
from allotment.data.labels import Split, split
from allotment.data.pixels import (
    find_inside,
    list_folder,
    read_palette,
    read_rgb,
    read_uint16,
    shown,
)
from allotment.errors import InputError, Mistake, suggest

TASKONOMY_CLASSES = (
    *(
        "background",
        "bottle",
        "chair",
        "couch",
        "potted plant",
        "bed",
        "dining table",
        "toilet",
        "tv",
    ),
    *("microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase"),
)
"""of a segmentation, in the order of the numbers in its files"""
TASKONOMY_TARGETS = (
    Target("segmentation", "segmentation", TASKONOMY_CLASSES, metric="loss"),
    Target("normals", "normals", metric="loss", loss="l1"),
    Target("depth", "depth", metric="loss", loss="l1"),
    Target("keypoints", "keypoints", metric="loss", loss="l1"),
    Target("edges", "edges", metric="loss", loss="l1"),
)
DOMAINS = {
    "rgb": ("rgb",),
    "segmentation": ("segmentsemantic", "segment_semantic"),
    "normals": ("normal",),
    "depth": ("depth", "depth_zbuffer"),
    "keypoints": ("keypoint2d", "keypoints2d"),
    "edges": ("edge2d", "edge_texture"),
}
"""what the images and each task's labels are called in folders and files: in the sample, in the
full set"""
UNIT = 512
"""of depth, in a metre"""
NO_DEPTH = 65535
STRONG = {"keypoints": 1000, "edges": 10700}
"""the strength that counts as 1: ten times the spread by which Standley et al. divide, so that a
loss is a tenth of theirs. What is stronger, one keypoint's pixel in 10,000 of the sample, is 1 as
well"""
_FILE = re.compile(r"point_([0-9]{1,9})_view_([0-9]{1,9})_domain_([A-Za-z0-9_]+)\.png")

View = tuple[str, int, int]
"""building, point, view"""
BY_BUILDING, BY_POINT = "building", "point"
GROUPINGS = (BY_BUILDING, BY_POINT)
"""what views share that never fall into two parts"""


@dataclass(frozen=True, eq=False)
class TaskonomyData(FolderData):
    """Taskonomy's views; whole buildings or single points stay in one part."""

    is_by_building: bool = False

    def split(self, seed: int, validation: float = 0.15, test: float = 0.15) -> Split:
        """The parts, by seed. Of few buildings one at least is for each part that is wanted."""
        if self.is_by_building and self.groups is not None:
            one = 1 / len(np.unique(self.groups))
            test = max(test, one) if test else test
            validation = max(validation, one) if validation and 2 * one < 1 else validation
        return split(self, seed, validation, test)


def read_taskonomy(
    root: str | Path,
    side: int = 128,
    tasks: Sequence[str] | None = None,
    groups: str | None = None,
    *,
    thorough: bool = False,
) -> TaskonomyData:
    """Taskonomy from a folder with a folder for each domain: `root/DOMAIN`, `root/DOMAIN/BUILDING`,
    `root/BUILDING/DOMAIN` or `root/BUILDING_DOMAIN/DOMAIN`, where files are called
    `point_P_view_V_domain_DOMAIN.png`.

    `tasks` are all five if left out. Views of one building are a group and stay in one part, or
    where there is a single one those of a point, which overlap; `groups` says "building" or
    "point" instead. Only names are checked, and images decoded when they are needed; `thorough`
    decodes all, and says all that is wrong.
    """
    check_side(side)
    if groups not in (None, *GROUPINGS):
        what = f"{groups!r} is none of {', '.join(GROUPINGS)}"
        raise InputError([Mistake("data: groups", what)])
    targets = _choose(tasks)
    root = Path(root)
    wrong = MistakeTally()
    places = _find_places(root)
    for target in targets:
        if not any(target.name == domain for _, domain, _ in places):
            names = " or ".join(DOMAINS[target.name])
            what = f"there is no folder {names}; add it, or leave {target.name} out (tasks=...)"
            wrong.add("no domain", shown(str(root)), what)
    wanted = {"rgb", *(target.name for target in targets)}
    files: dict[str, dict[View, str]] = {domain: {} for domain in wanted}
    for building, domain, folder in places:
        if domain in wanted:
            _list_views(root, building, domain, folder, files[domain], wrong)
    if not files["rgb"]:
        what = "holds no image; they should be called point_0_view_0_domain_rgb.png"
        wrong.add("nothing", shown(str(root / "rgb")), what)
    wrong.raise_all()
    data = _gather(root, side, targets, files, groups)
    if thorough:
        data.check()
    return data


def _choose(tasks: Sequence[str] | None) -> tuple[Target, ...]:
    known = [target.name for target in TASKONOMY_TARGETS]
    if isinstance(tasks, str):
        tasks = [tasks]
    chosen = known if tasks is None else list(tasks)
    wrong = [
        Mistake("tasks", f"there is no {each!r}; {suggest(each, known)}")
        for each in chosen
        if each not in known
    ]
    if not chosen:
        wrong.append(Mistake("tasks", f"none is named; known: {', '.join(known)}"))
    if wrong:
        raise InputError(wrong)
    return tuple(target for target in TASKONOMY_TARGETS if target.name in chosen)


def _gather(
    root: Path,
    side: int,
    targets: tuple[Target, ...],
    files: dict[str, dict[View, str]],
    groups: str | None,
) -> TaskonomyData:
    views = sorted(files["rgb"])
    several = len({building for building, _, _ in views}) > 1
    is_by_building = several if groups is None else groups == BY_BUILDING
    notes = []
    for target in targets:
        found = files[target.name]
        if alone := len(found.keys() - files["rgb"].keys()):
            notes.append(
                f"{alone} labels of {target.name} are left out: their images are not there"
            )
        if lacking := len(files["rgb"].keys() - found.keys()):
            notes.append(f"{lacking} views have no label of {target.name}")
    return TaskonomyData(
        name="taskonomy",
        root=root,
        side=side,
        targets=targets,
        image_files=tuple(files["rgb"][view] for view in views),
        label_files={
            target.name: tuple(files[target.name].get(view, "") for view in views)
            for target in targets
        },
        readers=READERS,
        ids=tuple(f"{_point(view)}_view_{view[2]}" for view in views),
        groups=np.array([view[0] if is_by_building else _point(view) for view in views]),
        is_by_building=is_by_building,
        notes=tuple(notes),
    )


def _point(view: View) -> str:
    building, point, _ = view
    return f"{building}/point_{point}" if building else f"point_{point}"


# Where things lie


def _find_places(root: Path) -> list[tuple[str, str, str]]:
    """Every folder with files of a domain: its building, the domain and the path."""
    if not root.is_dir():
        raise InputError(
            [
                Mistake(
                    shown(str(root)),
                    "is not a folder; give the one with rgb in it, or with buildings",
                )
            ]
        )
    outer = list_folder(root, "")[1]
    if "rgb" in outer:
        return [
            (building, domain, folder)
            for top, domain in _domains(root, "", outer)
            for building, folder in _buildings(root, top)
        ]
    places = [
        (building, domain, folder)
        for building in outer
        for folder, domain in _domains(root, building, list_folder(root, building)[1])
        if not _names_archive(building)
    ]
    places += _find_archives(root, outer)
    if not any(domain == "rgb" for _, domain, _ in places):
        there = f"it has {', '.join(map(shown, outer[:5]))}" if outer else "it has no folders"
        what = (
            f"has no folder rgb, nor a building that has one; {there}. Give the folder that"
            " holds rgb"
        )
        raise InputError([Mistake(shown(str(root)), what)])
    return places


def list_buildings(root: Path) -> set[str]:
    """The buildings that have images."""
    return {
        building
        for building, domain, folder in _find_places(root)
        if domain == "rgb" and any(map(_FILE.fullmatch, list_folder(root, folder)[0]))
    }


def _names_archive(folder: str) -> tuple[str, str, str] | None:
    """The building, the domain and its name of a folder that is called after both of them."""
    for domain, names in DOMAINS.items():
        for name in names:
            if folder.endswith(f"_{name}") and folder != f"_{name}":
                return folder.removesuffix(f"_{name}"), domain, name
    return None


def _find_archives(root: Path, folders: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The places in folders that archives of one building's domain were unpacked to."""
    for folder in folders:
        if (named := _names_archive(folder)) is not None:
            building, domain, name = named
            inner = name in list_folder(root, folder)[1]
            yield building, domain, f"{folder}/{name}" if inner else folder


def _domains(root: Path, above: str, folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Paths of the folders that are domains, and which."""
    for domain, names in DOMAINS.items():
        found = [name for name in names if name in folders]
        if len(found) > 1:
            what = (
                f"has both {found[0]} and {found[1]}, which are two names for one thing; keep one"
            )
            raise InputError([Mistake(shown(str(root / above)), what)])
        for name in found:
            yield (f"{above}/{name}" if above else name), domain


def _buildings(root: Path, top: str) -> Iterator[tuple[str, str]]:
    """Names and paths of a domain's buildings, one or two folders deep; its own files are those of
    a nameless one."""
    yield "", top
    for outer in list_folder(root, top)[1]:
        yield outer, f"{top}/{outer}"
        for inner in list_folder(root, f"{top}/{outer}")[1]:
            yield f"{outer}/{inner}", f"{top}/{outer}/{inner}"


def _list_views(
    root: Path, building: str, domain: str, folder: str, found: dict[View, str], wrong: MistakeTally
) -> None:
    """Add the files of a folder to those found; files with other names are none of ours."""
    for name, linked in sorted(list_folder(root, folder)[0].items()):
        match = _FILE.fullmatch(name)
        if match is None:
            continue
        path = f"{folder}/{name}"
        view = (building, int(match[1]), int(match[2]))
        if linked:
            wrong.attempt(find_inside, root, path)
        if match[3] not in DOMAINS[domain]:
            what = (
                f"calls itself {match[3]} in a folder of {domain}; move it, or give it the right"
                " name"
            )
            wrong.add(f"domain {domain}", shown(path), what)
        elif view in found:
            wrong.add("twice", shown(path), f"is the same view as {shown(found[view])}; keep one")
        else:
            found[view] = path


# What the files mean


def read_segmentation(root: Path, path: str) -> NDArray[np.uint8]:
    """0 in the file is uncertain, 1 background, and then come the classes."""
    raw = read_palette(root, path)
    if raw.max() > len(TASKONOMY_CLASSES):
        what = (
            f"has class {raw.max()}; Taskonomy has 0 to {len(TASKONOMY_CLASSES)}. Is it another"
            " domain?"
        )
        raise InputError([Mistake(shown(path), what)])
    return np.where(raw == 0, VOID, raw - 1).astype(np.uint8)


def read_normals(root: Path, path: str) -> NDArray[np.float32]:
    """Unit vectors (3, height, width) from colours around 127.5; NaN where the length is far from
    1."""
    vectors = (read_rgb(root, path).astype(np.float32) - 127.5) / 127.5
    vectors[1:] *= -1
    lengths = np.sqrt((vectors * vectors).sum(axis=0))
    return np.where(
        np.abs(lengths - 1) <= NORMAL_SLACK, vectors / np.maximum(lengths, 1e-6), np.float32(np.nan)
    )


def read_depth(root: Path, path: str) -> NDArray[np.float32]:
    """Metres, NaN where the mesh has a hole."""
    raw = read_uint16(root, path)
    return np.where(raw == NO_DEPTH, np.float32(np.nan), raw.astype(np.float32) / UNIT)


def read_keypoints(root: Path, path: str) -> NDArray[np.float32]:
    """Strengths from 0 to 1."""
    return np.minimum(read_uint16(root, path).astype(np.float32) / STRONG["keypoints"], 1)


def read_edges(root: Path, path: str) -> NDArray[np.float32]:
    """Strengths from 0 to 1."""
    return np.minimum(read_uint16(root, path).astype(np.float32) / STRONG["edges"], 1)


READERS: dict[str, LabelReader] = {
    "segmentation": read_segmentation,
    "normals": read_normals,
    "depth": read_depth,
    "keypoints": read_keypoints,
    "edges": read_edges,
}
