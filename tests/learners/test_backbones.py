"""Backbones: what dilation keeps, what trained weights see, what is loaded, frozen and drawn;
torchvision's answers."""

from __future__ import annotations

import csv
import json
import math
import os
import struct
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from allotment.errors import InputError
from allotment.learners.backbones import (
    Backbone,
    Pixels,
    SafeNorm,
    Stages,
    draw_weights,
    is_untrained,
    mark_untrained,
    split_backbone,
)
from allotment.learners.mobilenet import MobileNet
from allotment.learners.resnet import ResNet
from allotment.learners.squeezenet import SqueezeNet
from allotment.learners.weights import load_weights, read_weights

ROOT = Path(__file__).parents[2]
TORCH, TORCHVISION = "2.13.0", "0.28.0"
DATA = os.environ.get("ALLOT_TEST_DATA")
with_data = pytest.mark.skipif(
    not DATA, reason="ALLOT_TEST_DATA does not name a folder with weights and VOC2012"
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def drawn(module: nn.Module, seed: int = 0) -> nn.Module:
    """With weights, and with batch norms that are not what they start as."""
    generator = torch.Generator().manual_seed(seed)
    draw_weights(module, generator)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-0.2, 0.2, generator=generator)
            layer.running_var.uniform_(0.5, 2.0, generator=generator)
    return module.eval()


def images(count: int = 1, height: int = 64, width: int = 80) -> Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(9))


def answer(module: nn.Module, batch: Tensor) -> Tensor:
    with torch.no_grad():
        return module(batch)


# --- shapes and dilation ---


@pytest.mark.parametrize("make", [lambda: ResNet(18), SqueezeNet, MobileNet])
def test_each_is_a_backbone_whose_answer_its_stages_give(make) -> None:
    backbone = drawn(make())
    assert isinstance(backbone, Backbone)
    batch = images()
    found = batch
    for stage in backbone.stages:
        found = answer(stage, found)
    assert torch.equal(answer(backbone, batch), found)
    assert found.shape[1] == backbone.channels
    inside = {id(weight) for stage in backbone.stages for weight in stage.parameters()}
    assert inside == {id(weight) for weight in backbone.parameters()}


def test_the_papers_strides_and_dilations() -> None:
    network = ResNet(50)
    strides, dilations = [], []
    for layer in (network.layer1, network.layer2, network.layer3, network.layer4):
        strides.append(max(block.conv2.stride[0] for block in layer))
        dilations.append(layer[-1].conv2.dilation[0])
    assert strides == [1, 2, 1, 1]
    assert dilations == [1, 1, 2, 4]
    assert answer(drawn(network), images(1, 65, 65)).shape == (1, 2048, 9, 9)


@pytest.mark.parametrize("side", [64, 65])
@pytest.mark.parametrize("depth", [18, 50])
@pytest.mark.parametrize("stride", [8, 16])
def test_a_dilated_resnet_knows_all_that_the_strided_one_does(
    depth: int, stride: int, side: int
) -> None:
    """Dilation fills in places between those of the strided map and changes none of those."""
    strided, dilated = drawn(ResNet(depth, 32)), drawn(ResNet(depth, stride))
    few, many = answer(strided, images(1, side, side)), answer(dilated, images(1, side, side))
    step = 32 // stride
    assert torch.allclose(many[:, :, ::step, ::step], few, atol=1e-5 * float(few.abs().max()))
    assert many.shape[-1] > few.shape[-1]


@pytest.mark.parametrize("side", [96, 97, 101, 128])
def test_a_dilated_squeezenet_knows_all_that_the_strided_one_does(side: int) -> None:
    few, many = (answer(drawn(SqueezeNet(stride)), images(1, side, side)) for stride in (16, 8))
    assert torch.allclose(many[:, :, ::2, ::2], few, atol=1e-5 * float(few.abs().max()))
    assert many.shape[-1] == 2 * few.shape[-1] - 1


@pytest.mark.parametrize(("stride", "step"), [(16, 2), (8, 4)])
def test_a_dilated_mobilenet_knows_all_that_the_strided_one_does(stride: int, step: int) -> None:
    few, many = (answer(drawn(MobileNet(each)), images(1, 128, 128)) for each in (32, stride))
    # Where sides are even, zeros at their end alone put the strided step on the later of each two
    # places.
    assert torch.allclose(
        many[:, :, step - 1 :: step, step - 1 :: step], few, atol=1e-5 * float(few.abs().max())
    )
    assert float(few.abs().max()) > 0


@pytest.mark.parametrize("make", [SqueezeNet, MobileNet, lambda stride: ResNet(18, stride)])
def test_unknown_strides_are_refused(make) -> None:
    with pytest.raises(InputError, match="output_stride: 12"):
        make(12)


def test_every_mistake_about_a_resnet_is_named() -> None:
    with pytest.raises(InputError) as caught:
        ResNet(19, 7)
    assert len(caught.value.mistakes) == 2


def test_pixels_become_what_weights_were_trained_on() -> None:
    """By hand: a pixel of (255, 51, 0) in each of the three conventions."""
    batch = torch.tensor([1.0, 0.2, 0.0]).view(1, 3, 1, 1)
    seen = SqueezeNet().pixels(batch).flatten()
    assert seen.tolist() == pytest.approx([0 - 104, 51 - 117, 255 - 123], abs=1e-4)
    assert MobileNet().pixels(batch).flatten().tolist() == pytest.approx(
        [1.0, -0.6, -1.0], abs=1e-6
    )
    wanted = [(1 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, (0 - 0.406) / 0.225]
    assert ResNet(18).pixels(batch).flatten().tolist() == pytest.approx(wanted, abs=1e-5)


def test_a_norm_of_one_value_goes_by_its_statistics() -> None:
    norm, usual = SafeNorm(4), nn.BatchNorm2d(4)
    for each in (norm, usual):
        each.running_mean.copy_(torch.arange(4.0))
    one, several = torch.randn(1, 4, 1, 1), torch.randn(2, 4, 3, 3)
    before = norm.running_mean.clone()
    found = norm(one)
    assert torch.equal(norm.running_mean, before)
    assert torch.allclose(found, usual.eval()(one))
    assert torch.allclose(norm(several), usual.train()(several))
    assert torch.equal(norm.running_mean, usual.running_mean)


# --- first weights ---


def test_drawn_weights_depend_on_the_seed_alone() -> None:
    def weights(seed: int) -> Tensor:
        backbone = MobileNet()
        draw_weights(backbone, torch.Generator().manual_seed(seed))
        return torch.cat([weight.flatten() for weight in backbone.parameters()])

    torch.manual_seed(5)
    first = weights(1)
    state = torch.get_rng_state()
    assert torch.equal(first, weights(1))
    assert not torch.equal(first, weights(2))
    draw_weights(mark_untrained(nn.Embedding(3, 3)), torch.Generator().manual_seed(1))
    torch.manual_seed(5)
    weights(1)
    assert torch.equal(state, torch.get_rng_state())


def test_only_layers_marked_as_untrained_are_drawn() -> None:
    kept = nn.Conv2d(3, 3, 1)
    fresh = mark_untrained(nn.Sequential(nn.Conv2d(3, 3, 1), nn.Embedding(2, 3)))
    both = nn.Sequential(kept, fresh)
    before = [weight.detach().clone() for weight in both.parameters()]
    draw_weights(both, torch.Generator().manual_seed(0))
    same = [torch.equal(one, other) for one, other in zip(before, both.parameters(), strict=True)]
    assert same == [True, True, False, False, False]


# --- weights from files ---


def resnet_file(path: Path, **extra: Tensor) -> dict[str, Tensor]:
    """What torchvision's files hold: a ResNet-18, its classifier and its counters."""
    found = {name: part.clone() for name, part in drawn(ResNet(18), seed=3).state_dict().items()}
    found |= {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)} | extra
    save_file(found, path)
    return found


def test_weights_load_by_torchvisions_names(tmp_path: Path) -> None:
    saved = resnet_file(tmp_path / "a.safetensors")
    network = ResNet(18)
    said = load_weights(network, tmp_path / "a.safetensors")
    assert all(
        torch.equal(part, saved[name])
        for name, part in network.state_dict().items()
        if "tracked" not in name
    )
    assert said.left == ("fc.bias", "fc.weight")
    assert str(said) == "100 weights loaded; not used: fc.bias, fc.weight"
    assert not any(map(is_untrained, network.modules()))


def list_resnet50() -> dict[str, tuple[int, ...]]:
    """Names and sizes of torchvision's ResNet-50, written down from its layout."""
    found: dict[str, tuple[int, ...]] = {}

    def norm(name: str, width: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            found[f"{name}.{part}"] = (width,)
        found[f"{name}.num_batches_tracked"] = ()

    found["conv1.weight"] = (64, 3, 7, 7)
    norm("bn1", 64)
    inputs = 64
    for layer, blocks in enumerate((3, 4, 6, 3), start=1):
        width = 32 * 2**layer
        for block in range(blocks):
            at = f"layer{layer}.{block}"
            sizes = ((width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1))
            for number, size in enumerate(sizes, start=1):
                found[f"{at}.conv{number}.weight"] = size
                norm(f"{at}.bn{number}", size[0])
            if block == 0:
                found[f"{at}.downsample.0.weight"] = (4 * width, inputs, 1, 1)
                norm(f"{at}.downsample.1", 4 * width)
            inputs = 4 * width
    return found | {"fc.weight": (1000, 2048), "fc.bias": (1000,)}


def test_torchvisions_resnet50_loads_by_its_names(tmp_path: Path) -> None:
    names = list_resnet50()
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    weights = [size for name, size in names.items() if not name.endswith(statistics)]
    # as torchvision says of it
    assert (len(names), sum(map(math.prod, weights))) == (320, 25_557_032)
    generator = torch.Generator().manual_seed(0)
    saved = {name: torch.rand(size, generator=generator) for name, size in names.items()}
    torch.save(saved, tmp_path / "resnet50.pth")
    network = ResNet(50)
    said = load_weights(network, tmp_path / "resnet50.pth")
    assert said.left == ("fc.weight", "fc.bias")
    assert not any(map(is_untrained, network.modules()))
    for name, part in network.state_dict().items():
        assert name.endswith("tracked") or torch.equal(part, saved[name])


@pytest.mark.parametrize("wrap", [dict, lambda found: {"state_dict": found, "epoch": 3}])
@pytest.mark.parametrize("prefix", ["", "module.", "backbone."])
def test_a_checkpoint_of_torch_loads_under_its_usual_prefixes(
    tmp_path: Path, prefix: str, wrap
) -> None:
    saved = {
        name: part
        for name, part in resnet_file(tmp_path / "a.safetensors").items()
        if "tracked" not in name
    }
    torch.save(wrap({prefix + name: part for name, part in saved.items()}), tmp_path / "a.pth")
    network = ResNet(18)
    load_weights(network, tmp_path / "a.pth")
    assert torch.equal(network.layer4[1].conv2.weight, saved["layer4.1.conv2.weight"])


def test_all_that_does_not_fit_is_said_at_once(tmp_path: Path) -> None:
    saved = resnet_file(tmp_path / "a.safetensors", **{"layer9.weight": torch.zeros(2)})
    del saved["layer1.0.bn1.bias"]
    saved["conv1.weight"] = torch.zeros(64, 4, 7, 7)
    save_file(saved, tmp_path / "b.safetensors")
    network = drawn(ResNet(18))
    before = {name: part.clone() for name, part in network.state_dict().items()}
    with pytest.raises(InputError) as caught:
        load_weights(network, tmp_path / "b.safetensors")
    missing, unexpected, sizes = map(str, caught.value.mistakes)
    assert "missing: layer1.0.bn1.bias" in missing
    assert "unexpected: layer9.weight" in unexpected
    assert "conv1.weight (64, 4, 7, 7) for (64, 3, 7, 7)" in sizes
    assert all(torch.equal(part, before[name]) for name, part in network.state_dict().items())
    with pytest.raises(InputError, match="other sizes"):  # not a matter of classes
        load_weights(network, tmp_path / "b.safetensors", skip_other_classes=True)


def test_a_file_for_another_depth_is_refused(tmp_path: Path) -> None:
    resnet_file(tmp_path / "a.safetensors")
    with pytest.raises(InputError, match=r"missing: .* and \d+ more"):
        load_weights(ResNet(50), tmp_path / "a.safetensors")


def test_layers_for_other_classes_are_skipped_on_request_and_drawn(tmp_path: Path) -> None:
    theirs = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 21, 1))
    save_file(theirs.state_dict(), tmp_path / "a.safetensors")
    ours = mark_untrained(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 1)))
    with pytest.raises(InputError, match="skip_other_classes=True"):
        load_weights(ours, tmp_path / "a.safetensors")
    said = load_weights(ours, tmp_path / "a.safetensors", skip_other_classes=True)
    assert said.skipped == ("1.bias", "1.weight")
    assert "skipped for their size: 1.bias, 1.weight" in str(said)
    last = ours[1].weight.detach().clone()
    draw_weights(ours, torch.Generator().manual_seed(0))
    assert torch.equal(ours[0].weight, theirs[0].weight)
    assert not torch.equal(ours[1].weight, last)


class Trap:
    """What must never be brought to life by opening a file."""

    def __reduce__(self):
        return print, ("opened",)


def test_files_that_are_not_plain_weights_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"conv1.weight": Trap()}, tmp_path / "a.pth")
    torch.save(torch.zeros(3), tmp_path / "b.pt")
    (tmp_path / "c.safetensors").write_bytes(b"\xff" * 40)
    np.savez(tmp_path / "d.npz", conv=np.array([Trap()], dtype=object))
    (tmp_path / "e.bin").write_bytes(b"")
    for name, what in (
        ("a.pth", "cannot be read"),
        ("b.pt", "holds a Tensor"),
        ("c.safetensors", "cannot be read"),
        ("d.npz", "cannot be read"),
        ("e.bin", "unknown kind"),
        ("f.pth", "no such file"),
    ):
        with pytest.raises(InputError, match=what):
            read_weights(tmp_path / name)
    assert "opened" not in capsys.readouterr().out


def lie(shape: list[int], length: int | None = None, name: str = "F32") -> bytes:
    """A .safetensors of 12 bytes whose header says otherwise."""
    header = json.dumps(
        {"a": {"dtype": name, "shape": shape, "data_offsets": [0, 4 * math.prod(shape)]}}
    ).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(12)


DAMAGED = {
    **{f"empty{suffix}": b"" for suffix in (".pth", ".pt", ".safetensors", ".npz")},
    **{f"text{suffix}": b"hello\nworld" for suffix in (".pth", ".pt", ".safetensors", ".npz")},
    **{f"garbage{suffix}": bytes(range(256)) * 4 for suffix in (".pth", ".safetensors", ".npz")},
    **{f"zip{suffix}": b"PK\x03\x04" + bytes(500) for suffix in (".pth", ".safetensors", ".npz")},
    "large.safetensors": lie([10**12]),
    "long.safetensors": lie([3], 2**60),
    "short.safetensors": lie([3], 9),
    "negative.safetensors": lie([-3]),
    "codes.safetensors": lie([3], name="\x1b[31m"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_weights_are_refused_in_words(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(InputError, match=r"cannot be read|holds no tensors") as caught:
        read_weights(tmp_path / name)
    assert str(caught.value).isprintable()
    assert "trust" not in str(caught.value)  # as numpy and torch advise


@pytest.mark.parametrize("suffix", [".pth", ".safetensors", ".npz"])
def test_weights_are_a_whole_file_with_tensors(tmp_path: Path, suffix: str) -> None:
    save = {
        ".pth": torch.save,
        ".safetensors": save_file,
        ".npz": lambda given, path: np.savez(path, **given),
    }[suffix]
    path, half, empty = (tmp_path / f"{name}{suffix}" for name in ("whole", "half", "none"))
    save({"a": torch.zeros(50)}, path)
    half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    save({}, empty)
    assert list(read_weights(path)) == ["a"]
    for each, what in ((half, "cannot be read"), (empty, "holds no tensors by name")):
        with pytest.raises(InputError, match=what):
            read_weights(each)
    for name, make in (
        ("folder", os.mkdir),
        ("pipe", os.mkfifo),
        ("zero", lambda at: os.symlink("/dev/zero", at)),
    ):
        make(tmp_path / f"{name}{suffix}")
        with pytest.raises(InputError, match="is no file, but a folder, a pipe or a device"):
            read_weights(tmp_path / f"{name}{suffix}")
    os.symlink(f"loop{suffix}", tmp_path / f"loop{suffix}")
    with pytest.raises(InputError, match="no such file"):
        read_weights(tmp_path / f"loop{suffix}")


def test_kernels_of_keras_are_turned_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    plain, deep, full = (
        rng.normal(size=(3, 3, 5, 7)),
        rng.normal(size=(3, 3, 5, 1)),
        rng.normal(size=(4, 6)),
    )
    np.savez(
        tmp_path / "a.npz",
        **{"a.kernel": plain, "b.depthwise_kernel": deep, "c.kernel": full, "d.gamma": full[0]},
    )
    found = read_weights(tmp_path / "a.npz")
    assert float(found["a.weight"][6, 4, 0, 2]) == plain[0, 2, 4, 6]
    assert float(found["b.weight"][4, 0, 1, 2]) == deep[1, 2, 4, 0]
    assert float(found["c.weight"][5, 3]) == full[3, 5]
    assert set(found) == {"a.weight", "b.weight", "c.weight", "d.weight"}


# --- frozen stages ---


def own_backbone() -> Stages:
    torch.manual_seed(0)
    first = nn.Sequential(
        Pixels([0.5] * 3, [0.25] * 3), nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()
    )
    return Stages([first, nn.Conv2d(8, 12, 3, 2, 1), nn.ReLU()], channels=12)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_split_backbone_is_the_whole_one(count: int) -> None:
    backbone = own_backbone().eval()
    frozen, rest = split_backbone(backbone, count)
    batch = images()
    assert torch.equal(answer(rest, answer(frozen, batch)), answer(backbone, batch))
    assert rest.channels == 12
    assert not any(weight.requires_grad for weight in frozen.parameters())
    assert rest.takes_images == (count == 0)
    assert len(rest.stages) == 3 - count
    held = {id(weight) for weight in (*frozen.parameters(), *rest.parameters())}
    assert not held & {id(weight) for weight in backbone.parameters()}


def test_untrained_stages_are_not_frozen() -> None:
    with pytest.raises(InputError, match=r"stages \[0, 1\] hold weights that nobody has trained"):
        split_backbone(ResNet(18), 2)


def test_a_split_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="4 of 3 stages"):
        split_backbone(own_backbone(), 4)
    with pytest.raises(InputError) as caught:
        split_backbone(nn.Conv2d(3, 3, 1), 1)
    assert [mistake.where for mistake in caught.value.mistakes] == [
        "backbone: channels",
        "backbone: stages",
    ]


# --- weights that are trained, on real images ---


def voc(part: str, count: int) -> tuple[list[Tensor], dict[str, list[int]]]:
    """Images of one list, picked at random, and which classes each shows."""
    root = Path(str(DATA)) / "VOC2012"
    with (root / "class_labels_from_masks.csv").open() as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    names = (root / "ImageSets" / "Segmentation" / f"{part}.txt").read_text().split()
    picked = np.random.default_rng(0).permutation([name for name in names if name in rows])[:count]
    from PIL import Image

    found = []
    for name in picked:
        with Image.open(root / "JPEGImages" / f"{name}.jpg") as image:
            array = np.asarray(image.convert("RGB")).copy()
        found.append(torch.from_numpy(array).permute(2, 0, 1)[None].float() / 255)
    return found, {
        kind: [int(rows[name][kind]) for name in picked] for kind in ("dog", "cat", "person")
    }


@with_data
def test_squeezenet_and_its_own_classifier_tell_dogs_and_cats() -> None:
    """Nothing is trained here: ImageNet's classes 151 to 268 are dogs, 281 to 285 cats."""
    path = Path(str(DATA)) / "weights" / "squeezenet1_0_imagenet_fp16.npz"
    network = SqueezeNet().eval()
    assert load_weights(network, path).left == ("conv10.weight", "conv10.bias")
    last = nn.Conv2d(512, 1000, 1)
    given = read_weights(path)
    last.load_state_dict({"weight": given["conv10.weight"], "bias": given["conv10.bias"]})
    pictures, shown = voc("val", 160)
    chances = [
        torch.softmax(answer(last, answer(network, each)).relu().mean(dim=(2, 3)), 1)[0]
        for each in pictures
    ]
    said = torch.stack(chances).numpy()
    assert roc_auc_score(shown["dog"], said[:, 151:269].sum(axis=1)) > 0.8
    assert roc_auc_score(shown["cat"], said[:, 281:286].sum(axis=1)) > 0.8


@with_data
@pytest.mark.long
def test_mobilenets_features_tell_what_an_image_shows() -> None:
    network = MobileNet().eval()
    load_weights(network, Path(str(DATA)) / "weights" / "mobilenetv1_1.0_imagenet_no_pw13_fp16.npz")
    train, taught = voc("train_aug", 300)
    test, asked = voc("val", 160)
    features = [
        np.stack([answer(network, each).mean(dim=(2, 3))[0].numpy() for each in part])
        for part in (train, test)
    ]
    for kind, least in (("dog", 0.75), ("cat", 0.8), ("person", 0.8)):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.001, max_iter=300))
        model.fit(features[0], taught[kind])
        assert roc_auc_score(asked[kind], model.decision_function(features[1])) > least


# --- torchvision, in an environment of its own ---


def parity_python() -> Path:
    """An interpreter with our torch and, beside it, the torchvision that would break it here; kept
    for next time."""
    if torch.__version__.split("+")[0] != TORCH:
        pytest.skip(f"torchvision {TORCHVISION} goes with torch {TORCH}, not {torch.__version__}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "allotment-parity"
    home = cache / f"python{sys.version_info[0]}.{sys.version_info[1]}-torchvision{TORCHVISION}"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            f"torchvision=={TORCHVISION}",
        ]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(
                f"pip cannot install torchvision {TORCHVISION}:"
                f" {done.stderr.strip().splitlines()[-1]}"
            )
        (home / "ready").touch()
    ours = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
    paths = [
        *dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]),
        str(ROOT / "src"),
    ]
    (Path(ours) / "allotment-parity.pth").write_text("\n".join(paths) + "\n")
    return python


@pytest.mark.long
def test_answers_are_torchvisions() -> None:
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV"))
    }
    script = Path(__file__).parent / "parity" / "torchvision_parity.py"
    done = subprocess.run([parity_python(), str(script)], capture_output=True, text=True, env=clean)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert f"torchvision {TORCHVISION}" in found.pop("versions")
    assert len(found) == 7
    for name, numbers in found.items():
        assert numbers["largest"] > 0.1, name
        assert numbers["difference"] < 1e-5, (name, numbers)
