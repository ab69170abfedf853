"""PASCAL VOC 2012 with the masks of SBD, in its own folders: which classes an image shows, and
where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allotment.data.dataset import VOID, Instances, Target
from allotment.data.folder import FolderData, MistakeTally, check_side
from allotment.data.labels import Split, shuffle
from allotment.data.pixels import find_inside, list_folder, open_inside, read_palette, shown
from allotment.data.sbd import SBD_LISTS, SBD_MASKS, find_sbd, read_sbd_mask
from allotment.errors import InputError, Mistake, suggest

VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *(
        "diningtable",
        "dog",
        "horse",
        "motorbike",
        "person",
        "pottedplant",
        "sheep",
        "sofa",
        "train",
        "tvmonitor",
    ),
)
"""in the order of the numbers in masks, where 0 is the background"""
VOC_TARGETS = (
    Target("classes", "multilabel", VOC_CLASSES, metric="jaccard"),
    Target("segmentation", "segmentation", ("background", *VOC_CLASSES), metric="miou"),
)
IMAGES = "JPEGImages"
DEVKIT = "VOCdevkit/VOC2012"
"""where VOC's archive puts it"""
MASK_FOLDERS = ("SegmentationClassAug", "SegmentationClass")
"""folders of masks, of which the first that is there is taken"""
LISTS = "ImageSets/Segmentation"
LARGEST_LIST = 1 << 26
"""bytes of a file that lists the images of a part"""
_IMAGE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, eq=False)
class VocData(FolderData):
    """VOC's images: those of the training list first, then those of the test list."""

    trained: int = 0
    """how many images the training list has"""

    def split(self, seed: int, validation: float = 0.15, test: float = 0.0) -> Split:
        """The test list as the test part, whatever its share; a share of the training list, drawn
        by seed, as the validation part."""
        if not 0 <= validation < 1:
            raise InputError([Mistake("validation", f"{validation} leaves nothing to train on")])
        order: Instances = shuffle(np.arange(self.trained, dtype=np.int64), "split", seed)
        cut = round(validation * self.trained)
        return Split(
            train=np.sort(order[cut:]),
            validation=np.sort(order[:cut]),
            test=np.arange(self.trained, self.size, dtype=np.int64),
        )

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity, self.trained)


def read_voc(
    root: str | Path,
    side: int = 128,
    train: str = "train_aug",
    test: str = "val",
    *,
    thorough: bool = False,
) -> VocData:
    """VOC from its folder, the one with `JPEGImages` in it; lists are names in
    `ImageSets/Segmentation`.

    A folder with `VOCdevkit/VOC2012` and SBD's `benchmark_RELEASE` side by side, as downloaded, is
    VOC with the masks of SBD: `train_aug`, unless there is such a list, is VOC's `train` and all of
    SBD but for the images of the test list. VOC's own masks go before those of SBD.

    Only names are checked, and images decoded when they are needed; `thorough` decodes all, and
    says all that is wrong.
    """
    check_side(side)
    root = Path(root)
    sbd = "" if (root / IMAGES).is_dir() else find_sbd(root)
    above = f"{DEVKIT}/" if sbd and (root / DEVKIT / IMAGES).is_dir() else ""
    home = root / above
    _check_root(home)
    wrong = MistakeTally()
    masks = next((each for each in MASK_FOLDERS if (home / each).is_dir()), MASK_FOLDERS[0])
    is_made = bool(above) and train == "train_aug" and not (home / f"{LISTS}/{train}.txt").exists()
    listed = {"train": [] if is_made else _read_list(home, train, wrong)}
    listed["test"] = _read_list(home, test, wrong)
    if is_made:
        listed["train"] = _list_augmented(root, home, sbd, set(listed["test"]), wrong)
    _check_files(home, IMAGES, ".jpg", listed, wrong)
    if above:
        found = _find_masks(root, f"{above}{masks}", sbd, listed, wrong)
    else:
        _check_files(home, masks, ".png", listed, wrong)
        found = {name: f"{masks}/{name}.png" for part in listed.values() for name in part}
    for name in sorted(set(listed["train"]) & set(listed["test"])):
        wrong.add("both", name, f"is in both lists, {train} and {test}; the test would not be one")
    wrong.raise_all()
    names = (*listed["train"], *listed["test"])
    data = VocData(
        name="voc",
        root=root,
        side=side,
        targets=VOC_TARGETS,
        image_files=tuple(f"{above}{IMAGES}/{name}.jpg" for name in names),
        label_files={target.name: tuple(found[name] for name in names) for target in VOC_TARGETS},
        readers={"classes": read_classes, "segmentation": read_mask},
        ids=names,
        trained=len(listed["train"]),
    )
    if thorough:
        data.check()
    return data


def read_mask(root: Path, path: str) -> NDArray[np.uint8]:
    """The class of each pixel: 0 background, 1 to 20 the classes, VOID on borders."""
    mask = read_sbd_mask(root, path) if path.endswith(".mat") else read_palette(root, path)
    strange = np.unique(mask[(mask > len(VOC_CLASSES)) & (mask != VOID)])
    if len(strange):
        what = f"has class {strange[0]}; VOC has 0 to {len(VOC_CLASSES)}, and {VOID} for void"
        raise InputError(
            [Mistake(shown(path), f"{what}. Is it a mask of instances, or with another palette?")]
        )
    return mask


def read_classes(root: Path, path: str) -> NDArray[np.float32]:
    """1 for each class that any pixel of the mask has."""
    seen = np.bincount(read_mask(root, path).ravel(), minlength=VOID + 1)
    return (seen[1 : len(VOC_CLASSES) + 1] > 0).astype(np.float32)


def _check_root(root: Path) -> None:
    if not root.is_dir():
        what = "is not a folder; give the one that holds JPEGImages, often VOCdevkit/VOC2012"
        raise InputError([Mistake(shown(str(root)), what)])
    if not (root / IMAGES).is_dir():
        deeper = [
            each for each in ("VOC2012", "VOCdevkit/VOC2012") if (root / each / IMAGES).is_dir()
        ]
        hint = (
            f"did you mean {shown(str(root / deeper[0]))}?"
            if deeper
            else "give the folder that holds it"
        )
        raise InputError([Mistake(shown(str(root)), f"has no folder {IMAGES}; {hint}")])


def _list_augmented(
    root: Path, home: Path, sbd: str, tested: set[str], wrong: MistakeTally
) -> list[str]:
    """The images of VOC's own training list, and then those of SBD that are not tested on."""
    names = dict.fromkeys(_read_list(home, "train", wrong))
    for part in SBD_LISTS:
        names |= dict.fromkeys(_read_names(root, f"{sbd}/{part}.txt", wrong))
    return [name for name in names if name not in tested]


def _find_masks(
    root: Path, masks: str, sbd: str, listed: dict[str, list[str]], wrong: MistakeTally
) -> dict[str, str]:
    """Of each image the file of its mask: VOC's own, or SBD's."""
    found = {}
    places = ((masks, ".png"), (f"{sbd}/{SBD_MASKS}", ".mat"))
    there: list[dict[str, bool]] = [
        (wrong.attempt(list_folder, root, folder) or ({},))[0] for folder, _ in places
    ]
    for name in (name for part in listed.values() for name in part):
        for (folder, ending), files in zip(places, there, strict=True):
            if f"{name}{ending}" in files:
                found[name] = f"{folder}/{name}{ending}"
                if files[f"{name}{ending}"]:
                    wrong.attempt(find_inside, root, found[name])
                break
        else:
            what = f"has no mask, neither in {masks} nor in SBD's {SBD_MASKS}; take the name out"
            wrong.add("no mask", shown(name), what)
    return found


def _read_list(root: Path, name: str, wrong: MistakeTally) -> list[str]:
    """The images that a list names, in its order, each once."""
    path = f"{LISTS}/{name}.txt"
    if not _IMAGE_NAME.fullmatch(name):
        wrong.add(
            "list name",
            f"list {shown(name)}",
            f"is not a name; lists are files in {LISTS}, without '.txt'",
        )
        return []
    if not (root / path).exists():
        there = wrong.attempt(list_folder, root, LISTS)
        if there is not None:
            lists = sorted(each.removesuffix(".txt") for each in there[0] if each.endswith(".txt"))
            wrong.add("no list", shown(path), f"is not there; {suggest(name, lists)}")
        return []
    return _read_names(root, path, wrong)


def _read_names(root: Path, path: str, wrong: MistakeTally) -> list[str]:
    """The names in the lines of a file, each once."""
    text = wrong.attempt(_read_text, root, path)
    if text is None:
        return []
    names: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        each = line.strip()
        if not each:
            continue
        if not _IMAGE_NAME.fullmatch(each):
            what = (
                f"{each[:40]!r} is not the name of an image; one without folder and ending is"
                " wanted"
            )
            wrong.add(f"junk {path}", path, what, number)
        elif each in names:
            what = f"{each} is in line {names[each]} already; take one of them out"
            wrong.add(f"twice {path}", path, what, number)
        else:
            names[each] = number
    if not text.strip():
        wrong.add("empty list", path, "names no image; it should have one name in each line")
    return list(names)


def _read_text(root: Path, path: str) -> str:
    with open_inside(root, path, LARGEST_LIST) as file:
        return file.read().decode("utf-8-sig", errors="replace")


def _check_files(
    root: Path, folder: str, ending: str, listed: dict[str, list[str]], wrong: MistakeTally
) -> None:
    """That the folder has a file for each name, and no link in its place that leads elsewhere."""
    there = wrong.attempt(list_folder, root, folder)
    if there is None:
        return
    for part, names in listed.items():
        for name in names:
            path = f"{folder}/{name}{ending}"
            if f"{name}{ending}" not in there[0]:
                what = (
                    f"is not there, but the {part} list names it; add the file or take the name out"
                )
                wrong.add(f"missing {folder}", path, what)
            elif there[0][f"{name}{ending}"]:
                wrong.attempt(find_inside, root, path)
