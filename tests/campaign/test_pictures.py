"""Campaigns about pictures that a table names: what is seen of them, said and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.campaigns import fine, refused
from PIL import Image
from safetensors.torch import save_file

import allotment as al
from allotment.campaign.jobs import TRAININGS_PER_JOB
from allotment.data.embedded import EMBEDDED_FOLDER
from allotment.data.embedding import OwnFeatures
from allotment.data.table import read_table
from allotment.learners.frozen import FROZEN_NETWORKS
from allotment.settings.settings import find_data, read_settings
from allotment.stock.stock import open_stock

COSTS = ("--targets", "colour,side", "--cost", "colour=1", "--cost", "side=3", "--budget", 60)


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALLOT_LEARNER", raising=False)
    write_squares(Path("squares"))


def write_squares(folder: Path, count: int = 40, size: int = 32) -> None:
    """Pictures of a coloured square, and a table of their names, colours and sizes with some cells
    empty."""
    rng = np.random.default_rng(8)
    folder.mkdir()
    rows = ["path,colour,side"]
    for number in range(count):
        colour, side = number % 3, int(rng.integers(8, 24))
        y, x = rng.integers(0, size - side, size=2)
        pixels = rng.integers(0, 60, size=(size, size, 3)).astype(np.uint8)
        pixels[y : y + side, x : x + side, colour] += 190
        Image.fromarray(pixels).save(folder / f"{number}.png")
        name = "" if number % 5 == 4 else ("red", "green", "blue")[colour]
        rows.append(f"{number}.png,{name},{side + 0.5 if number % 4 else ''}")
    (folder / "list.csv").write_text("\n".join(rows))


def begin(name: str, *more: object) -> str:
    return fine("init", name, "--root", "squares/list.csv", *COSTS, *more)


def test_pictures_are_seen_through_features_unless_said() -> None:
    told = begin("camp", "--steps", 2)
    assert "40 pictures of 32 x 32, seen through small features of our own" in " ".join(
        told.split()
    )
    assert f"path ({OwnFeatures.width} numbers)" in told
    text = Path("camp/campaign.toml").read_text()
    assert 'pictures = "features"' in text
    assert "image_size = 32" in text


def test_trainings_on_pictures_stack_and_see_each_once() -> None:
    begin("camp", "--steps", 2)
    settings = Path("camp/campaign.toml")
    settings.write_text(settings.read_text().replace("seed = 0", "seed = 0\ntrainings = 16"))
    fine("estimate", "camp", "--workers", 0)
    kept = list(Path("camp", EMBEDDED_FOLDER).iterdir())
    assert len(kept) == 1
    before = kept[0].stat().st_mtime_ns
    fine("plan", "camp")
    fine("status", "camp")
    assert [each.stat().st_mtime_ns for each in kept] == [before]
    # what is kept may go at any time
    kept[0].unlink()
    assert fine("plan", "camp") == fine("plan", "camp")


def test_many_trainings_are_one_job() -> None:
    begin("camp", "--steps", 2)
    campaign = al.Campaign("camp")
    jobs = campaign.list_jobs(campaign.look())
    trainings = jobs[0].needs["trainings"]
    assert len(jobs) <= -(-trainings // TRAININGS_PER_JOB) + 1


def test_campaigns_that_do_not_say_it_train_on_pixels_as_before() -> None:
    begin("camp", "--set", "pictures=pixels", "--set", "image_size=16")
    settings = Path("camp/campaign.toml")
    lines = settings.read_text().splitlines()
    settings.write_text("\n".join(each for each in lines if not each.startswith("pictures")))
    read, _ = read_settings(Path("camp"))
    stock = open_stock(read, Path("camp"))
    plain = read_table("squares/list.csv", ["colour", "side"], image_size=16)
    assert stock.data.fingerprint == plain.fingerprint
    assert stock.data.inputs(np.arange(2)).shape == (2, 3, 16, 16)
    assert not Path("camp", EMBEDDED_FOLDER).exists()


def test_weights_lie_where_the_settings_say() -> None:
    torch.manual_seed(0)
    Path("files").mkdir()
    save_file(FROZEN_NETWORKS["squeezenet"]().state_dict(), "files/w.safetensors")
    told = begin("camp", "--weights", "files/w.safetensors", "--steps", 2)
    assert "seen through the trained network of --weights" in " ".join(told.split())
    text = Path("camp/campaign.toml").read_text()
    assert 'pictures = "network"' in text
    assert 'weights = "../files/w.safetensors"' in text
    assert "weights" not in text.partition("[training]")[2]
    read, _ = read_settings(Path("camp"))
    assert find_data(read, Path("camp")).options["weights"] == "files/w.safetensors"
    assert open_stock(read, Path("camp")).data.inputs(np.arange(2)).shape == (2, 512)
    Path("files/w.safetensors").unlink()
    told = refused(2, "status", "camp")
    assert "data: weights: 'files/w.safetensors': there is no such file" in told


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--weights", "none.npz"), "weights: 'none.npz': there is no such file"),
        (("--weights", "squares/list.csv"), "is of an unknown kind; give one of .safetensors"),
        (("--set", "pictures=sketch"), "pictures: unknown 'sketch'; known: pixels, features"),
        (("--set", "pictures=network"), "a trained network is in a file: name it (weights"),
        (("--set", "pictures=features", "--set", "weights=w"), 'is for pictures = "network" alone'),
        (("--set", "image_size=0"), "image_size: 0 is not 1 or more pixels"),
        (("--set", "image_size=9999"), "image_size: 9999 is more than the 2048 pixels"),
    ],
)
def test_what_can_not_be_seen_is_refused(more: tuple[str, ...], words: str) -> None:
    told = refused(2, "init", "camp", "--root", "squares/list.csv", *COSTS, *more)
    assert words in told
    assert not Path("camp").exists()
