"""Trained networks that pictures are seen through: known by their weights, and never trained."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from allotment.errors import InputError
from allotment.learners.frozen import FROZEN_NETWORKS, FrozenNetwork, find_kind

PICTURES = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 32)).astype(np.uint8)


def draw(kind: str, path: Path) -> Path:
    torch.manual_seed(1)
    save_file(FROZEN_NETWORKS[kind]().state_dict(), path)
    return path


@pytest.mark.parametrize("kind", ["resnet18", "mobilenet", "squeezenet"])
def test_a_network_is_known_by_its_weights(tmp_path: Path, kind: str) -> None:
    network = FrozenNetwork.open(draw(kind, tmp_path / "w.safetensors"))
    assert (network.kind, network.width) == (kind, {"mobilenet": 1024}.get(kind, 512))
    found = network.embed(PICTURES)
    assert (found.shape, found.dtype) == ((3, network.width), np.float32)
    with torch.inference_mode():
        map_ = network.module(torch.from_numpy(PICTURES[1:2]).float() / 255)
    np.testing.assert_allclose(found[1], map_.mean(dim=(2, 3))[0].numpy(), atol=1e-4)
    assert (network.embed(PICTURES[1:2]) == found[1:2]).all()  # whatever stands beside it
    network.save(tmp_path / "again.safetensors")
    again = FrozenNetwork.open(tmp_path / "again.safetensors")
    assert (again.embed(PICTURES) == found).all()


@pytest.mark.parametrize("kind", FROZEN_NETWORKS)
def test_every_network_is_found_by_names_and_sizes(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with torch.device("meta"):
        held = FROZEN_NETWORKS[kind]().state_dict()
    held = {f"module.{name}": part for name, part in held.items()} | {"fc.bias": torch.zeros(3)}
    monkeypatch.setattr("allotment.learners.frozen.read_weights", lambda path: held)
    assert find_kind(Path("w.pth")) == kind


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="holds the weights of none of resnet18, resnet34"):
        FrozenNetwork.open(path)
    (tmp_path / "w.npz").write_text("hello")
    with pytest.raises(InputError, match=r"cannot be read as \.npz"):
        FrozenNetwork.open(tmp_path / "w.npz")
    held = FROZEN_NETWORKS["squeezenet"]().state_dict()
    held["conv1.bias"][0] = torch.nan
    save_file(held, path)
    with pytest.raises(InputError, match=r"conv1\.bias holds something that is no finite number"):
        FrozenNetwork.open(path)
    held["conv1.bias"][0] = 3e38
    held["fire9.expand1x1.bias"][:] = 3e38
    held["conv1.weight"] *= 1e38
    save_file(held, path)
    with pytest.raises(InputError, match="no finite numbers; is it damaged"):
        FrozenNetwork.open(path).embed(PICTURES)


def test_weights_of_others_see_what_is_in_a_picture() -> None:
    root = os.environ.get("ALLOT_TEST_DATA")
    if root is None:
        pytest.skip("the weights are not here (ALLOT_TEST_DATA)")
    weights = Path(root) / "weights" / "mobilenetv1_1.0_imagenet_no_pw13_fp16.npz"
    network = FrozenNetwork.open(weights)
    found = network.embed(PICTURES)
    assert (network.kind, found.shape) == ("mobilenet", (3, 1024))
    assert 0 < found.mean() < 6
    assert found.std(axis=0).max() > 0.01
