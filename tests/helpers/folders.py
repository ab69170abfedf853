"""Folders of images like those of PASCAL VOC and of Taskonomy, but small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from allotment.data import folder
from allotment.data.dataset import VOID

TRAIN, TEST = (
    ("2007_000001", "2007_000002", "2008_000003", "2008_000004"),
    (
        "2009_000005",
        "2009_000006",
    ),
)
SIZES = {name: (60 + 10 * at, 40 + 15 * at) for at, name in enumerate((*TRAIN, *TEST))}

SIDE = 16
"""of Taskonomy's pictures"""
SAMPLE = {
    "rgb": "rgb",
    "segmentation": "segmentsemantic",
    "normals": "normal",
    "depth": "depth",
    "keypoints": "keypoint2d",
    "edges": "edge2d",
}
OFFICIAL = SAMPLE | {
    "segmentation": "segment_semantic",
    "depth": "depth_zbuffer",
    "keypoints": "keypoints2d",
    "edges": "edge_texture",
}
VIEWS = [
    ("Allen", 0, 0),
    ("Allen", 0, 1),
    ("Allen", 2, 0),
    ("Allen", 10, 3),
    ("Baker", 0, 0),
    ("Baker", 7, 1),
]


def mask_of(name: str) -> np.ndarray:
    """Background, a box of one class with a void border, and one pixel of the person class in a
    corner."""
    width, height = SIZES[name]
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[9:31, 9:31] = VOID
    mask[10:30, 10:30] = int(name[-1])
    mask[-1, -1] = 15
    return mask


def save_mask(path: Path, mask: np.ndarray) -> None:
    image = Image.fromarray(mask)
    image.putpalette(folder.palette().tobytes())  # which makes it mode P
    image.save(path)


def write_list(root: Path, name: str, *lines: str) -> None:
    (root / f"ImageSets/Segmentation/{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def make_voc(root: Path) -> Path:
    """A VOC of six images of six sizes; each image shows its own mask, in white on black."""
    for name in ("JPEGImages", "SegmentationClassAug", "ImageSets/Segmentation"):
        (root / name).mkdir(parents=True)
    for name in (*TRAIN, *TEST):
        mask = mask_of(name)
        shade = np.where(mask == int(name[-1]), 255, 0).astype(np.uint8)
        Image.fromarray(np.stack([shade] * 3, axis=-1)).save(
            root / f"JPEGImages/{name}.jpg", quality=95
        )
        save_mask(root / f"SegmentationClassAug/{name}.png", mask)
    write_list(root, "train_aug", *TRAIN)
    write_list(root, "val", *TEST)
    return root


def make_voc_and_sbd(root: Path) -> Path:
    """The same as downloaded: VOC with masks of some images, SBD with those of others, as MATLAB
    keeps them. One image of SBD is in VOC's test list."""
    from scipy.io import savemat

    home, sbd = root / "VOCdevkit/VOC2012", root / "benchmark_RELEASE/dataset"
    make_voc(home)
    (home / "SegmentationClassAug").rename(home / "SegmentationClass")
    (home / "ImageSets/Segmentation/train_aug.txt").unlink()
    write_list(home, "train", *TRAIN[:2])
    for part in ("cls", "img"):
        (sbd / part).mkdir(parents=True)
    for name in (TRAIN[1], *TRAIN[2:], TEST[0]):
        mask = mask_of(name)
        mask[mask == VOID] = 0  # SBD has no void
        about = {"Segmentation": mask, "CategoriesPresent": np.unique(mask), "Boundaries": [0]}
        savemat(sbd / f"cls/{name}.mat", {"GTcls": about}, do_compression=True)
    for name in TRAIN[2:]:
        (home / f"SegmentationClass/{name}.png").unlink()
    (sbd / "train.txt").write_text(f"{TRAIN[1]}\n{TRAIN[3]}\n")
    (sbd / "val.txt").write_text(f"{TEST[0]}\n{TRAIN[2]}\n")
    return root


def files_of(building: str, point: int, view: int) -> dict[str, NDArray[np.generic]]:
    """What the files of one view hold, different for each view."""
    rng = np.random.default_rng([len(building), building.encode()[0], point, view])
    return {
        "rgb": rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8),
        "segmentation": rng.integers(0, 18, (SIDE, SIDE), dtype=np.uint8),
        "normals": np.broadcast_to(np.array([128, 128, 0], dtype=np.uint8), (SIDE, SIDE, 3)).copy(),
        "depth": rng.integers(200, 5000, (SIDE, SIDE), dtype=np.uint16),
        "keypoints": rng.integers(0, 1001, (SIDE, SIDE), dtype=np.uint16),
        "edges": rng.integers(0, 10701, (SIDE, SIDE), dtype=np.uint16),
    }


def save(path: Path, array: NDArray[np.generic]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def flat(root: Path, building: str, folder: str) -> Path:
    return root / folder


def by_building(root: Path, building: str, folder: str) -> Path:
    return root / folder / building


def by_component(root: Path, building: str, folder: str) -> Path:
    return root / folder / "taskonomy" / building


def in_building(root: Path, building: str, folder: str) -> Path:
    return root / building / folder


def in_archive(root: Path, building: str, folder: str) -> Path:
    return root / f"{building}_{folder}" / folder


def in_flat_archive(root: Path, building: str, folder: str) -> Path:
    return root / f"{building}_{folder}"


def make_taskonomy(
    root: Path, place: Callable[[Path, str, str], Path] = flat, names: dict[str, str] = SAMPLE
) -> Path:
    views = [view for view in VIEWS if place is not flat or view[0] == "Allen"]
    for building, point, view in views:
        for domain, array in files_of(building, point, view).items():
            name = f"point_{point}_view_{view}_domain_{names[domain]}.png"
            save(place(root, building, names[domain]) / name, array)
    return root
