"""PASCAL VOC: what its folders hold is what comes out, and everything that is wrong with them is
said at once."""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.folders import (
    SIZES,
    TEST,
    TRAIN,
    make_voc,
    make_voc_and_sbd,
    mask_of,
    save_mask,
    write_list,
)
from PIL import Image
from scipy.io import savemat

from allotment.data import folder, voc
from allotment.data.augment import FILL
from allotment.data.dataset import VOID, Dataset
from allotment.data.folder import montage
from allotment.data.labels import draw
from allotment.data.sbd import read_sbd_mask
from allotment.data.voc import VOC_CLASSES, VocData, read_voc
from allotment.errors import InputError

DATA = os.environ.get("ALLOT_TEST_DATA")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A VOC of six images of six sizes; each image shows its own mask, in white on black."""
    return make_voc(tmp_path / "VOC2012")


def mistakes_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return list(map(str, caught.value.mistakes))


def everything(data: VocData) -> np.ndarray:
    return np.arange(data.size, dtype=np.int64)


# --- what comes out ---


def test_it_is_a_data_set(root: Path) -> None:
    data = read_voc(root, side=32)
    assert isinstance(data, Dataset)
    assert (data.size, data.trained, data.ids) == (6, 4, (*TRAIN, *TEST))
    assert [(target.kind, target.metric, len(target.classes)) for target in data.targets] == [
        ("multilabel", "jaccard", 20),
        ("segmentation", "miou", 21),
    ]
    assert data.inputs(everything(data)).shape == (6, 3, 32, 32)
    assert data.inputs(everything(data)).dtype == np.uint8
    assert data.values("segmentation", everything(data)).shape == (6, 32, 32)
    assert data.known("classes").all()
    assert draw(
        data, data.split(0, 0.25).train, {"classes": 2, "segmentation": 1}, seed=0
    ).counts == {
        "classes": 2,
        "segmentation": 1,
    }


def test_classes_come_from_masks_and_not_from_void(root: Path) -> None:
    data = read_voc(root, side=16)
    found = data.values("classes", everything(data))
    assert found.dtype == np.float32
    for row, name in zip(found, data.ids, strict=True):
        assert [VOC_CLASSES[at] for at in np.flatnonzero(row)] == [
            VOC_CLASSES[int(name[-1]) - 1],
            "person",
        ]
    # at 16 pixels a side the person's single pixel is gone from the mask, but not from the classes
    assert (data.values("segmentation", everything(data)) == 15).sum() < 6


def test_native_size(root: Path) -> None:
    data = read_voc(root, side=16)
    for instance, name in enumerate(data.ids):
        width, height = SIZES[name]
        assert data.image(instance).shape == (3, height, width)
        np.testing.assert_array_equal(data.label("segmentation", instance), mask_of(name))
        assert data.label("classes", instance).shape == (20,)


@pytest.mark.parametrize("side", [32, 64, 150])
def test_pictures_and_masks_lie_on_each_other(root: Path, side: int) -> None:
    data = read_voc(root, side=side)
    images, masks = data.inputs(everything(data)), data.values("segmentation", everything(data))
    for image, mask, name in zip(images, masks, data.ids, strict=True):
        shows = image[0] > 127
        says = mask == int(name[-1])
        assert (shows & says).sum() > 0.85 * (shows | says).sum()
        width, height = SIZES[name]
        frame = abs(height - width) * side // max(height, width) // 2 - 1
        strip = (
            (slice(None), slice(0, max(frame, 0)))
            if height > width
            else (slice(0, max(frame, 0)), slice(None))
        )
        assert (mask[strip] == VOID).all()
        assert (image[:, *strip].reshape(3, -1).T == FILL).all()


def test_nothing_is_decoded_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    for module, name in ((folder, "read_rgb"), (voc, "read_palette")):
        plain = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda root, path, plain=plain: (opened.append(path), plain(root, path))[1],
        )
    data = read_voc(root, side=24)
    assert opened == []
    some = np.array([4, 1, 4])
    first = data.inputs(some)
    assert sorted(opened) == [f"JPEGImages/{name}.jpg" for name in (TRAIN[1], TEST[0])]
    np.testing.assert_array_equal(data.inputs(some), first)
    np.testing.assert_array_equal(first[0], first[2])
    assert len(opened) == 2
    data.inputs(everything(data))
    data.values("segmentation", everything(data))
    assert len(opened) == 12
    data.check()  # classes are all that is left
    data.check()
    assert len(opened) == 18


def test_what_comes_out_can_be_changed_without_harm(root: Path) -> None:
    data = read_voc(root, side=24)
    before = data.inputs(np.array([0])).copy()
    data.inputs(np.array([0]))[:] = 7
    np.testing.assert_array_equal(data.inputs(np.array([0])), before)


def test_masks_of_plain_grey_are_masks_as_well(root: Path) -> None:
    colours = read_voc(root).values("segmentation", np.arange(6))
    for name in (*TRAIN, *TEST):
        Image.fromarray(mask_of(name)).save(root / f"SegmentationClassAug/{name}.png")
    np.testing.assert_array_equal(read_voc(root).values("segmentation", np.arange(6)), colours)


def test_without_the_masks_of_sbd(root: Path) -> None:
    (root / "SegmentationClassAug").rename(root / "SegmentationClass")
    assert read_voc(root, thorough=True).size == 6


def test_lists_of_ones_own(root: Path) -> None:
    write_list(root, "mine", "", f"  {TRAIN[2]}  ", TRAIN[0], "")
    data = read_voc(root, train="mine")
    assert data.ids == (TRAIN[2], TRAIN[0], *TEST)


# --- splits and fingerprints ---


def test_the_test_list_is_the_test_part(root: Path) -> None:
    data = read_voc(root)
    drawn = [data.split(seed, validation=0.5) for seed in range(20)]
    for split in drawn:
        assert split.test.tolist() == [4, 5]
        assert sorted([*split.train, *split.validation]) == [0, 1, 2, 3]
        assert len(split.validation) == 2
    assert len({tuple(split.validation) for split in drawn}) > 2
    assert data.split(3, 0.5).validation.tolist() == drawn[3].validation.tolist()
    for share in (-0.1, 1, float("nan")):
        with pytest.raises(InputError, match="validation"):
            data.split(0, share)


def test_a_fingerprint_is_of_what_is_there(root: Path, tmp_path: Path) -> None:
    first = read_voc(root).fingerprint
    assert read_voc(shutil.copytree(root, tmp_path / "elsewhere")).fingerprint == first
    assert read_voc(root, side=64).fingerprint != first
    mask = mask_of(TEST[1])
    mask[0, 0] = 3
    save_mask(root / f"SegmentationClassAug/{TEST[1]}.png", mask)
    second = read_voc(root).fingerprint
    assert second != first
    write_list(root, "train_aug", *TRAIN, TEST[0])
    write_list(root, "val", TEST[1])
    assert read_voc(root).fingerprint not in (first, second)


# --- mistakes ---


def test_all_mistakes_at_once(root: Path) -> None:
    (root / f"JPEGImages/{TRAIN[0]}.jpg").unlink()
    (root / f"SegmentationClassAug/{TRAIN[1]}.png").unlink()
    write_list(root, "val", *TEST, TRAIN[2], TEST[0], "../../etc/passwd", "no name")
    said = mistakes_of(lambda: read_voc(root))
    assert len(said) == 6
    for part in (
        f"JPEGImages/{TRAIN[0]}.jpg: is not there, but the train list names it",
        f"SegmentationClassAug/{TRAIN[1]}.png: is not there",
        f"line 4: ImageSets/Segmentation/val.txt: {TEST[0]} is in line 1 already",
        "line 5: ImageSets/Segmentation/val.txt: '../../etc/passwd' is not the name of an image",
        "line 6: ImageSets/Segmentation/val.txt: 'no name' is not",
        f"{TRAIN[2]}: is in both lists",
    ):
        assert any(part in each for each in said), part


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda root: shutil.rmtree(root), "is not a folder; give the one that holds JPEGImages"),
        (lambda root: shutil.rmtree(root / "JPEGImages"), "has no folder JPEGImages"),
        (
            lambda root: shutil.rmtree(root / "SegmentationClassAug"),
            "SegmentationClassAug: is not there",
        ),
        (lambda root: shutil.rmtree(root / "ImageSets"), "ImageSets/Segmentation: is not there"),
        (
            lambda root: (root / "ImageSets/Segmentation/val.txt").rename(
                root / "ImageSets/Segmentation/va.txt"
            ),
            "'va'?",
        ),
        (lambda root: write_list(root, "val"), "val.txt: names no image"),
        (lambda root: write_list(root, "val", "", "  "), "val.txt: names no image"),
    ],
)
def test_folders_and_lists_that_are_not_there(
    root: Path, spoil: Callable[[Path], object], said: str
) -> None:
    spoil(root)
    assert any(said in each for each in mistakes_of(lambda: read_voc(root)))


def test_one_folder_too_high(root: Path) -> None:
    assert f"did you mean {root}?" in mistakes_of(lambda: read_voc(root.parent))[0]


@pytest.mark.parametrize("name", ["../val", "/etc/passwd", "", "a b"])
def test_lists_elsewhere(root: Path, name: str) -> None:
    assert "is not a name" in mistakes_of(lambda: read_voc(root, test=name))[0]


@pytest.mark.parametrize("side", [0, -1, 5000, 3.5, "large"])
def test_sides_that_are_none(root: Path, side: int) -> None:
    assert "side: " in mistakes_of(lambda: read_voc(root, side=side))[0]


def test_sides_that_no_memory_holds(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LARGEST_ARRAY", 6 * 3 * 99 * 99)
    everyone = np.arange(6)
    assert read_voc(root, side=99).inputs(everyone).shape == (6, 3, 99, 99)
    large = read_voc(root, side=100)
    assert "choose a smaller one" in mistakes_of(lambda: large.inputs(everyone))[0]
    assert large.inputs(everyone[:5]).shape == (5, 3, 100, 100)


def test_tasks_that_are_none(root: Path) -> None:
    assert (
        "did you mean 'segmentation'?"
        in mistakes_of(lambda: read_voc(root).known("segmentatoin"))[0]
    )


def test_bad_images_are_met_when_needed_and_found_by_a_thorough_look(root: Path) -> None:
    first = root / f"JPEGImages/{TRAIN[0]}.jpg"
    first.write_bytes(first.read_bytes()[:-100])
    other = np.zeros((50, 50), dtype=np.uint8)
    save_mask(root / f"SegmentationClassAug/{TRAIN[1]}.png", other)
    strange = mask_of(TRAIN[2])
    strange[3, 3] = 21
    save_mask(root / f"SegmentationClassAug/{TRAIN[2]}.png", strange)
    Image.new("RGB", SIZES[TRAIN[3]]).save(root / f"SegmentationClassAug/{TRAIN[3]}.png")
    data = read_voc(root)
    assert data.inputs(np.array([1, 2, 3])).shape == (3, 3, 128, 128)
    expected = (
        f"JPEGImages/{TRAIN[0]}.jpg: is cut short or damaged",
        f"SegmentationClassAug/{TRAIN[1]}.png: has 50 x 50 pixels, and its image 70 x 55",
        f"SegmentationClassAug/{TRAIN[2]}.png: has class 21; VOC has 0 to 20, and 255 for void",
        (
            f"SegmentationClassAug/{TRAIN[3]}.png: holds RGB colours with 8 bits each; save the"
            " class numbers"
        ),
    )
    for said in (mistakes_of(data.check), mistakes_of(lambda: read_voc(root, thorough=True))):
        assert len(said) == 4
        for part in expected:
            assert any(each.startswith(part) for each in said), part
    assert mistakes_of(lambda: data.inputs(np.array([0, 1])))[0].startswith(expected[0])
    assert len(mistakes_of(lambda: data.values("segmentation", np.arange(6)))) == 3


def test_many_mistakes_are_counted(root: Path) -> None:
    names = [f"2011_{number:06}" for number in range(500)]
    for name in names[:40]:
        (root / f"JPEGImages/{name}.jpg").write_bytes(b"nothing")
        shutil.copy(
            root / f"SegmentationClassAug/{TRAIN[0]}.png", root / f"SegmentationClassAug/{name}.png"
        )
    write_list(root, "train_aug", *TRAIN, *names)
    said = mistakes_of(lambda: read_voc(root))
    assert len(said) == 22
    assert said.count("and 450 more like the last") == 2
    write_list(root, "train_aug", *TRAIN, *names[:40])
    said = mistakes_of(lambda: read_voc(root, thorough=True))
    assert said[10] == "and 30 more like the last"
    assert sum("is not a JPEG or PNG image" in each for each in said) == 10


def test_a_million_lines_of_junk(root: Path) -> None:
    path = root / "ImageSets/Segmentation/train_aug.txt"
    path.write_bytes(
        b"".join(b"/../\x00\xff%d junk\x1b[31m\n" % number for number in range(1_000_000))
    )
    said = mistakes_of(lambda: read_voc(root))
    assert len(said) == 11
    assert said[10] == "and 999990 more like the last"
    assert "".join(said).isprintable()


def test_a_list_without_end(root: Path) -> None:
    with (root / "ImageSets/Segmentation/val.txt").open("wb") as file:
        file.truncate(voc.LARGEST_LIST + 1)
    assert "bytes, more than" in mistakes_of(lambda: read_voc(root))[0]


def test_links_that_lead_out(root: Path, tmp_path: Path) -> None:
    shutil.move(root / f"JPEGImages/{TRAIN[0]}.jpg", tmp_path / "secret.jpg")
    (root / f"JPEGImages/{TRAIN[0]}.jpg").symlink_to(tmp_path / "secret.jpg")
    shutil.move(root / "ImageSets/Segmentation/val.txt", tmp_path / "val.txt")
    (root / "ImageSets/Segmentation/val.txt").symlink_to(tmp_path / "val.txt")
    said = mistakes_of(lambda: read_voc(root))
    assert len(said) == 2
    assert all("is a link that leads out of" in each for each in said)
    assert any(each.startswith(f"JPEGImages/{TRAIN[0]}.jpg") for each in said)


def test_a_folder_that_lies_elsewhere(root: Path, tmp_path: Path) -> None:
    shutil.move(root / "SegmentationClassAug", tmp_path / "masks")
    (root / "SegmentationClassAug").symlink_to(tmp_path / "masks")
    assert (
        "SegmentationClassAug: is a link that leads out of"
        in mistakes_of(lambda: read_voc(root))[0]
    )


# --- for the eye ---


def test_a_montage_shows_what_is_there(root: Path) -> None:
    data = read_voc(root, side=32)
    shown = montage(data, [0, 3])
    assert shown.shape == (2 * 34, 3 * 34, 3)
    np.testing.assert_array_equal(
        shown[1:33, 1:33], data.inputs(np.array([0]))[0].transpose(1, 2, 0)
    )
    masks = data.values("segmentation", np.array([3]))
    np.testing.assert_array_equal(shown[35:67, 69:101], folder.palette()[masks[0]])
    fields = {tuple(colour) for colour in shown[1:33, 35:67].reshape(-1, 3).tolist()}
    assert fields == {(32, 32, 32), (128, 0, 0), (192, 128, 128)}  # neither, aeroplane, person


def test_colours_are_those_of_the_development_kit() -> None:
    """As its documentation lists them."""
    kit = {
        0: (0, 0, 0),
        1: (128, 0, 0),
        2: (0, 128, 0),
        8: (64, 0, 0),
        15: (192, 128, 128),
        20: (0, 64, 128),
    }
    for number, colour in (kit | {255: (224, 224, 192)}).items():
        assert tuple(folder.palette()[number]) == colour


# --- the real thing ---


@pytest.mark.long
@pytest.mark.skipif(not DATA, reason="ALLOT_TEST_DATA does not name a folder with VOC2012/")
def test_real_voc() -> None:
    where = Path(str(DATA)) / "VOC2012"
    data = read_voc(where)
    assert (data.trained, data.size - data.trained) == (3357, 669)
    with (where / "class_labels_from_masks.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0][1:]) == VOC_CLASSES
    listed = {row[0]: list(map(float, row[1:])) for row in rows[1:]}
    found = data.values("classes", everything(data))
    assert {name: row.tolist() for name, row in zip(data.ids, found, strict=True)} == listed
    split = data.split(0)
    assert (len(split.train), len(split.validation), len(split.test)) == (2853, 504, 669)
    some = np.arange(0, data.size, 97)
    masks, images = data.values("segmentation", some), data.inputs(some)
    assert set(np.unique(masks)) <= {*range(21), VOID}
    assert (images[:, 0][masks != VOID] != FILL[0]).mean() > 0.95


# --- as downloaded, with SBD ---


def test_voc_and_sbd_are_read_as_downloaded(tmp_path: Path) -> None:
    """VOC's own masks first; of SBD all that is not tested on."""
    data = read_voc(make_voc_and_sbd(tmp_path), side=32, thorough=True)
    assert data.ids == (*TRAIN[:2], TRAIN[3], TRAIN[2], *TEST)
    assert data.trained == 4
    for place, name in enumerate(data.ids):
        mask = mask_of(name)
        if name in TRAIN[2:]:  # whose masks are those of SBD
            mask[mask == VOID] = 0
        np.testing.assert_array_equal(data.label("segmentation", place), mask)
    assert data.files[0] == f"VOCdevkit/VOC2012/JPEGImages/{TRAIN[0]}.jpg"
    endings = [path[-4:] for path in data.label_files["segmentation"]]
    assert endings == [".png", ".png", ".mat", ".mat", ".png", ".png"]
    np.testing.assert_array_equal(
        data.values("classes", np.array([2])).nonzero()[1], [int(TRAIN[3][-1]) - 1, 14]
    )


def test_a_list_of_ones_own_goes_before_what_sbd_has(tmp_path: Path) -> None:
    make_voc_and_sbd(tmp_path)
    write_list(tmp_path / "VOCdevkit/VOC2012", "train_aug", TRAIN[2], TRAIN[0])
    assert read_voc(tmp_path).ids == (TRAIN[2], TRAIN[0], *TEST)
    # without SBD beside it the folder of VOC itself is wanted
    shutil.rmtree(tmp_path / "benchmark_RELEASE")
    (told,) = mistakes_of(lambda: read_voc(tmp_path))
    assert "VOCdevkit/VOC2012" in told


def test_what_sbd_lacks_is_named(tmp_path: Path) -> None:
    make_voc_and_sbd(tmp_path)
    (tmp_path / f"benchmark_RELEASE/dataset/cls/{TRAIN[3]}.mat").unlink()
    (told,) = mistakes_of(lambda: read_voc(tmp_path))
    assert f"{TRAIN[3]}" in told
    assert "has no mask, neither in VOCdevkit/VOC2012/SegmentationClass nor in SBD's cls" in told


@pytest.mark.parametrize("packed", [True, False])
def test_no_damaged_file_of_matlab_does_harm(tmp_path: Path, packed: bool) -> None:
    """Some of these bring scipy's reader down."""
    about = {"Boundaries": [0], "Segmentation": mask_of(TRAIN[0]), "CategoriesPresent": [1]}
    savemat(tmp_path / "a.mat", {"other": [1, 2], "GTcls": about}, do_compression=packed)
    np.testing.assert_array_equal(read_sbd_mask(tmp_path, "a.mat"), mask_of(TRAIN[0]))
    whole, rng = (tmp_path / "a.mat").read_bytes(), np.random.default_rng(0)
    for _ in range(1500):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), rng.integers(1, 6)):
            content[place] = rng.choice([0, 1, 2, 5, 9, 14, 15, 127, 128, 255])
        if rng.random() < 0.2:
            del content[rng.integers(0, len(content)) :]
        (tmp_path / "b.mat").write_bytes(content)
        with contextlib.suppress(InputError):
            assert read_sbd_mask(tmp_path, "b.mat").ndim == 2


@pytest.mark.parametrize("what", [{"GTcls": {"Segmentation": [0.5]}}, {"GTinst": 1}, {"GTcls": 3}])
def test_other_files_of_matlab_are_refused(tmp_path: Path, what: dict[str, object]) -> None:
    savemat(tmp_path / "a.mat", what)
    with pytest.raises(InputError, match="is it of SBD's folder cls"):
        read_sbd_mask(tmp_path, "a.mat")
    (tmp_path / "a.mat").write_bytes(b"MATLAB")
    with pytest.raises(InputError, match="is it of SBD's folder cls"):
        read_sbd_mask(tmp_path, "a.mat")
