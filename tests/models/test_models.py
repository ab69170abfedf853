"""Models as folders: what was trained is asked elsewhere, and nothing else is taken for it."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.campaigns import allot, begin, fine, refused, rows, write
from helpers.campaigns import sheet as read_sheet
from helpers.learners import make_images
from PIL import Image
from safetensors.torch import save_file

import allotment as al
from allotment.data.columns import Column
from allotment.data.csv_file import Layout
from allotment.data.encoders import read_encoder, write_encoder
from allotment.data.labels import Labels, split
from allotment.data.source import Rows
from allotment.data.table import read_table
from allotment.data.table_file import open_table_file
from allotment.errors import InputError
from allotment.learners.built_in import make_built_in
from allotment.learners.frozen import FROZEN_NETWORKS
from allotment.learners.learner import train
from allotment.learners.setups import BACKBONES
from allotment.learners.torch_learner import TorchLearner
from allotment.models.inputs import ModelTable, find_inputs, read_inputs
from allotment.models.model import TrainedModel

SHOW = """
import hashlib, sys
import allotment as al
found = al.load_model(sys.argv[1]).predict(sys.argv[2])
for task in found.targets:
    print(task, hashlib.sha256(found[task].tobytes()).hexdigest())
"""


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALLOT_LEARNER", raising=False)


def trained(*more: object) -> TrainedModel:
    return al.Campaign(begin("camp", *more)).train("model")


# Tables


def mixed(count: int = 120) -> list[dict[str, str]]:
    """A table of everything that a feature can be."""
    rng = np.random.default_rng(3)
    words = ["a house by the sea", "old flat in the town", "large garden, quiet street", "new"]
    made = []
    for number in range(count):
        made.append(
            {
                "big": f"{rng.normal() * 1e200:.6g}",
                "tiny": f"{rng.normal() * 1e-200:.6g}",
                "some": "" if number % 7 == 0 else str(number),
                "same": "4",
                "flag": ("true", "false")[number % 2],
                "kind": "" if number % 11 == 0 else f"k{number % 3}",
                "code": f"c{number % 70}",
                "about": f"{words[number % 4]} {number} {rng.integers(1000)}",
                "y": str(number % 5 + 0.5),
            }
        )
    return made


def test_encoders_give_what_the_learner_trained_on() -> None:
    path = write(Path("mixed.csv"), mixed())
    data = read_table(path, ["y"])
    assert {column.form for column in data.columns} == {"numeric", "categorical", "text"}
    found = find_inputs(data, Rows(path, lambda: open_table_file(path)))
    assert isinstance(found, ModelTable)
    again = read_inputs(json.loads(json.dumps(found.to_dict())))
    assert again == found
    everyone = np.arange(120)
    assert again.open(path).open(everyone).tobytes() == data.inputs(everyone).tobytes()
    # of a part of the rows, and of a frame, the same; means and categories are the first table's
    few = write(Path("few.csv"), mixed()[5:8])
    assert (again.open(few).open(np.arange(3)) == data.inputs(np.arange(5, 8))).all()
    frame = pd.DataFrame(mixed()[5:8]).astype({"big": float, "tiny": float, "same": int})
    frame["some"], frame["flag"] = pd.to_numeric(frame["some"]), frame["flag"] == "true"
    assert (again.open(frame).open(np.arange(3)) == data.inputs(np.arange(5, 8))).all()


def test_dates_and_decimal_commas_are_read_as_in_the_first_table() -> None:
    lines = ["when;at;area;y"]
    for number in range(60):
        when = f"{1 + number % 28:02d}.{1 + number % 12:02d}.202{number % 3}" if number % 9 else ""
        lines.append(f"{when};{number % 24:02d}:{number % 60:02d};{number},5;{number},25")
    path = Path("german.csv")
    path.write_text("\n".join(lines) + "\n")
    said = {"delimiter": ";", "decimal": ","}
    data = read_table(path, ["y"], kinds={"when": "date:dmy", "at": "date"}, **said)
    rows = Rows(path, lambda: open_table_file(path, Layout(**said)))
    again = read_inputs(json.loads(json.dumps(find_inputs(data, rows).to_dict())))
    everyone = np.arange(60)
    assert again.open(path).open(everyone).tobytes() == data.inputs(everyone).tobytes()
    few = Path("few.csv")  # in which no part of a date varies, and none is missing
    few.write_text("when,at,area\n05.06.2021,07:30,4.5\n")
    assert again.open(few).open(np.arange(1)).shape == (1, data.inputs(everyone).shape[1])
    assert again.open(few).notes == ()
    few.write_text("when,at,area\n05.06.2021,half past,4.5\n")
    with pytest.raises(InputError, match="'half past' is not a date or a time"):
        again.open(few)


def test_what_the_model_never_saw_is_said() -> None:
    path = write(Path("mixed.csv"), mixed())
    inputs = find_inputs(read_table(path, ["y"]), Rows(path, lambda: open_table_file(path)))
    table = mixed()[:4]
    table[0] |= {"big": "", "kind": "k9", "code": "never"}
    asked = inputs.open(write(Path("new.csv"), table))
    assert asked.notes == (
        "column 'big': 1 of 4 cells are empty, of which the model knows nothing",
        "column 'kind': 1 of 4 cells are empty or new, of which the model knows nothing",
    )  # the rarer codes have shared a feature, which is that of a new one too
    for change, told in (
        ({"big": "many"}, "'many' is not a number"),
        ({"same": "4e9", "tiny": "5"}, "5.0 is over a million spreads from what the model knows"),
    ):
        bad = write(Path("bad.csv"), [mixed()[0] | change])
        with pytest.raises(InputError, match=rf"bad\.csv:2: row 1, column .*: {told}"):
            inputs.open(bad)


def test_a_model_answers_the_same_in_another_process_and_without_its_campaign() -> None:
    model = trained("--metric", "look=f1")
    state = al.Campaign("camp").look()
    bench = al.Campaign("camp").set_up(state)
    expected = train(bench.learner, bench.labels, state.settings.seed)
    found = al.load_model("model").predict("table.csv")
    for task in ("size", "look"):
        wanted = bench.learner.predict(expected, task, np.arange(90))
        assert found[task].tobytes() == wanted.tobytes()
    shutil.rmtree("camp")
    told = subprocess.run(
        [sys.executable, "-c", SHOW, "model", "table.csv"],
        env=os.environ | {"OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    said = dict(line.split() for line in told.splitlines())
    for task in found.targets:
        assert said[task] == hashlib.sha256(found[task].tobytes()).hexdigest()
    assert (model.targets[1].classes, model.targets[1].metric) == (("new", "old"), "f1")
    # and the same whatever else is asked with it
    alone = model.predict(pd.DataFrame(rows()[3:5]).astype({"width": float, "age": float}))
    assert alone["size"] == pytest.approx(found["size"][3:5], rel=1e-6)


def test_predictions_are_columns_for_people() -> None:
    found = trained().predict("table.csv")
    columns = found.to_columns()
    assert list(columns) == ["row", "size", "look"]
    assert columns["row"][:2] == ["1", "2"]
    assert set(columns["look"]) <= {"old", "new"}
    shares = found.to_columns(probabilities=True)
    assert list(shares) == ["row", "size", "look", "look=new", "look=old"]
    assert np.add(shares["look=new"], shares["look=old"]) == pytest.approx(np.ones(90), abs=1e-5)
    assert found.to_frame().shape == (90, 3)
    found.write("p.jsonl")
    assert json.loads(Path("p.jsonl").read_text().splitlines()[0])["row"] == "1"
    with pytest.raises(InputError, match="is there already"):
        found.write("p.jsonl")


def test_commands_train_and_predict() -> None:
    table = rows(id_=True)
    folder = begin("camp", "--id", "name", table=table)
    shown = fine("train", folder, "-o", "model")
    assert "model is written; model/README.md says what it was trained on." in shown
    assert "was not measured yet: allot evaluate camp" in shown
    assert "Next: allot predict model --root TABLE" in shown
    card = Path("model/README.md").read_text()
    assert "| size | regression | - | 45 | 45 of the data |" in card
    assert "| look | classification | new, old | 30 | 30 of the data |" in card
    assert "Not measured (size by mae, look by accuracy)" in card
    assert "- steps: 3" in card
    new = [{key: row[key] for key in ("name", "age", "width")} for row in table[:4]]
    write(Path("new.csv"), new)
    shown = fine("predict", "model", "--root", "new.csv", "-o", "p.csv")
    assert shown == "p.csv is written: size, look of 4 names.\n"
    with open("p.csv", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["r000", "r001", "r002", "r003"]
    shown = fine("predict", "model", "--root", "new.csv", "--probabilities")
    assert shown.splitlines()[0] == "name,size,look,look=new,look=old"
    for args, told in (
        (("predict", "model", "--root", "new.csv", "-o", "p.csv"), "p.csv: is there already"),
        (("predict", "model", "--root", "new.csv", "-o", "p.txt"), "write to a .csv or .jsonl"),
        (("predict", "model", "--root", "nope.csv"), "there is no such file"),
        (("predict", "model", "--root", "."), "is a folder, and the model was trained on a table"),
        (("predict", "camp", "--root", "new.csv"), "give the folder that `allot train` wrote"),
    ):
        assert told in refused(2, *args), args
    write(Path("other.csv"), [{"name": "x", "ages": "1", "width": "2"}])
    told = refused(2, "predict", "model", "--root", "other.csv")
    assert "column 'age': is missing, and the model needs it; did you mean 'ages'?" in told
    assert "is there already" in allot("train", folder, "-o", "model").stderr


def test_the_card_has_the_scores_and_where_labels_came_from() -> None:
    folder = begin("camp", "--metric", "size=r2", "--method", "neutral")
    fine("order", folder)
    sheet = read_sheet(Path("camp/order-1.csv"))
    for row in sheet:
        row["label"] = "4" if row["task"] == "size" else "old"
    write(Path("back.csv"), sheet)
    fine("ingest", folder, "back.csv")
    board = al.Campaign(folder).evaluate(workers=0)
    result = allot("train", folder, "-o", "model")
    assert f"Cross-validated: {board['size']}." in result.stdout
    model = al.load_model("model")
    assert model.card.scores == board
    delivered = sum(row["task"] == "size" for row in sheet)
    assert model.card.labels["size"] == {"of the data": 45, "delivered": delivered}
    assert f"45 of the data, {delivered} delivered" in Path("model/README.md").read_text()
    assert "| size | r2 |" in Path("model/README.md").read_text()


# Learners


OWN = """
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

class Plain:
    def __init__(self, data, split):
        inner = TorchLearner(data, split, Recipe(steps=2))
        for verb in ("tasks", "steps", "start", "step", "fork", "score", "predict"):
            setattr(self, verb, getattr(inner, verb))

class Careless(TorchLearner):
    def save(self, state, folder):
        (folder / "state.pkl").write_bytes(b"code")

def plain(data, split):
    return Plain(data, split)

def whole(data, split):
    return TorchLearner(data, split, Recipe(steps=2))

def careless(data, split):
    return Careless(data, split, Recipe(steps=2))
"""


def test_learners_take_part_by_two_verbs() -> None:
    Path("mine.py").write_text(OWN)
    begin("camp")
    with pytest.raises(InputError, match="code of your own has no `save` and no `load`"):
        al.Campaign("camp", "mine.py:plain").train("model")
    with pytest.raises(InputError, match=r"state\.pkl: is not one of the plain files"):
        al.Campaign("camp", "mine.py:careless").train("model")
    assert not Path("model").exists()
    assert not list(Path().glob(".half-*"))
    model = al.Campaign("camp", "mine.py:whole").train("model")
    assert "mine.py" not in Path("model/model.json").read_text().partition('"card"')[0]
    with pytest.raises(InputError, match="which no file may name; add --learner"):
        model.predict("table.csv")
    assert len(model.predict("table.csv", learner="mine.py:whole")) == 90


# Pictures


def picture_folder(count: int = 12) -> Path:
    folder = Path("pictures")
    folder.mkdir()
    lines = ["path,colour,shade"]
    for number in range(count):
        shade = 100 + 9 * number
        colour = (shade, 0, 0) if number % 2 else (0, 0, shade)
        Image.new("RGB", (9, 7), colour).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{('blue', 'red')[number % 2]},{shade if number % 3 else ''}")
    (folder / "list.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("way", ["features", "pixels"])
def test_pictures_are_asked_by_folder_or_by_table(way: str) -> None:
    folder = picture_folder()
    costs = ["--targets", "colour,shade", "--cost", "colour=1", "--cost", "shade=5", "--budget", 9]
    about = ["--root", folder / "list.csv", "--set", "image_size=8", "--steps", 2]
    about += ["--set", f"pictures={way}"]
    fine("init", "camp", *about, *costs)
    model = al.Campaign("camp").train("model")
    by_table = model.predict(folder / "list.csv")
    by_folder = model.predict(folder)
    assert (by_table.head, by_folder.head) == ("path", "picture")
    order = [by_table.names.index(name) for name in by_folder.names]
    assert (by_table["shade"][order] == by_folder["shade"]).all()
    Path("empty").mkdir()
    with pytest.raises(InputError, match="holds no picture"):
        model.predict("empty")
    with pytest.raises(InputError, match="column 'path': is missing"):
        model.predict(write(Path("t.csv"), rows()))


def test_pictures_beside_other_columns_are_asked_by_a_table(tmp_path: Path) -> None:
    """Own features are made anew; a trained network goes into the folder of the model."""
    folder = picture_folder()
    table = pd.read_csv(folder / "list.csv").assign(age=np.arange(12) ** 2)
    table.to_csv(folder / "list.csv", index=False)
    torch.manual_seed(0)
    weights = tmp_path / "w.safetensors"
    save_file(FROZEN_NETWORKS["squeezenet"]().state_dict(), weights)
    costs = ["--targets", "colour,shade", "--cost", "colour=1", "--cost", "shade=5", "--budget", 9]
    about = ["--root", folder / "list.csv", "--steps", 2, *costs]
    fine("init", "own", *about)
    fine("init", "network", *about, "--weights", weights)
    own, network = (al.Campaign(name).train(f"{name}-model") for name in ("own", "network"))
    assert isinstance(own.inputs, ModelTable)
    assert read_inputs(json.loads(json.dumps(own.inputs.to_dict()))) == own.inputs
    first = [model.predict(folder / "list.csv") for model in (own, network)]
    assert first[0].head == "row"
    weights.unlink()
    shutil.rmtree("network")
    again = al.load_model("network-model").predict(folder / "list.csv")
    assert (again["shade"] == first[1]["shade"]).all()
    one = table.head(1)
    one.to_csv(folder / "one.csv", index=False)
    alone = al.load_model("network-model").predict(folder / "one.csv")
    assert alone["shade"] == pytest.approx(first[1]["shade"][:1], rel=1e-5)
    assert (
        "the network squeezenet beside 1 other column"
        in Path("network-model/README.md").read_text()
    )
    assert "features of our own" in Path("own-model/README.md").read_text()
    with pytest.raises(InputError, match="is a folder, and the model was trained on a table"):
        own.predict(folder)
    (folder / "7.png").write_text("hello")
    with pytest.raises(InputError, match=r"list.csv:9: row 8, column 'path': '7.png' is not"):
        own.predict(folder / "list.csv")
    save_file(FROZEN_NETWORKS["mobilenet"]().state_dict(), "network-model/pictures.safetensors")
    with pytest.raises(InputError, match="holds a mobilenet, and the model sees pictures through"):
        al.load_model("network-model").predict(folder / "one.csv")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("side", 0),
        ("side", 10**6),
        ("side", 8.0),
        ("network", None),
        ("scales", []),
        ("scales", [[0, 0.0]]),
        ("scales", [[0, 0.0, -1.0]]),
        ("scales", [["0", 0.0, 1.0]]),
        ("more", 1),
    ],
)
def test_encoders_of_pictures_are_checked(key: str, value: Any) -> None:
    plain = {"form": "image", "side": 8, "network": "", "scales": [[0, 0.5, 0.1]]}
    with pytest.raises(InputError):
        read_encoder(plain | {key: value})
    encoder = read_encoder(plain)
    assert write_encoder(encoder) == plain
    with pytest.raises(InputError, match="makes other numbers of pictures; train it again"):
        encoder.encode(Column("path", words=["x.png"]))


def test_answers_in_pixels_go_into_a_folder() -> None:
    names = ("classes", "segmentation", "depth")
    have = [part for name in names for part in ("--have", f"{name}=6")]
    about = ["--set", "count=40", "--set", "size=16", "--steps", 1, "--targets", ",".join(names)]
    fine("init", "camp", "--data", "scenes", *about, *have)
    fine("train", "camp")
    folder = picture_folder(3)
    assert "-o: is missing" in refused(2, "predict", "camp/model", "--root", folder)
    told = refused(2, "predict", "camp/model", "--root", folder, "-o", "x.csv")
    assert "must be a new folder" in told
    fine("predict", "camp/model", "--root", folder, "-o", "out")
    assert sorted(each.name for each in Path("out/segmentation").iterdir()) == [
        "0.png",
        "1.png",
        "2.png",
    ]
    classes = len(al.load_model("camp/model").targets[1].classes)
    mask = np.asarray(Image.open("out/segmentation/1.png"))
    assert mask.shape[0] == mask.shape[1]
    assert mask.max() < classes
    assert np.load("out/depth/2.npy", allow_pickle=False).dtype == np.float32
    assert Path("out/predictions.csv").read_text().splitlines()[0] == "picture,classes"


@pytest.mark.parametrize("edition", [None, 1, 2])
@pytest.mark.parametrize("network", ["voc-small", "taskonomy-small"])
def test_frozen_layers_are_a_part_of_the_model(
    network: str, edition: int | None, tmp_path: Path
) -> None:
    """A set-up's backbone is saved whole: the file that it came from need not be there again."""
    torch.manual_seed(0)
    save_file(BACKBONES["mobilenet"]().state_dict(), tmp_path / "backbone.safetensors")
    images = make_images(6)
    target = next(each for each in images.targets if each.name == "kind")
    data = replace(images, targets=(target,), labels={"kind": images.labels["kind"]})
    parts = split(data, 0, 0.0, 0.0)
    training = {"network": network, "steps": 1, "batch_size": 2, "device": "cpu"}
    if edition is not None:
        training["edition"] = edition
    learner = make_built_in(training, data, parts, tmp_path / "backbone.safetensors")
    assert isinstance(learner, TorchLearner)
    state = train(learner, Labels({"kind": range(6)}), 0)
    learner.save(state, tmp_path)
    blank = make_built_in(training, data, parts, is_blank=True)
    assert isinstance(blank, TorchLearner)
    again = blank.load(tmp_path)
    wanted = learner.predict(state, "kind", np.arange(6))
    assert blank.predict(again, "kind", np.arange(6)) == pytest.approx(wanted, abs=1e-6)


# What nobody trusts


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home, folder = Path.cwd(), tmp_path_factory.mktemp("sound")
    os.chdir(folder)
    try:
        trained()
    finally:
        os.chdir(home)
    return folder


Change = Callable[[dict[str, Any]], object]
BAD: list[tuple[str, Change]] = [
    ("format: is not 1", lambda plain: plain.update(format=2)),
    ("format: is not 1", lambda plain: plain.update(format=True)),
    ("card: is missing, or has no place", lambda plain: plain.pop("card")),
    ("more: is missing, or has no place", lambda plain: plain.update(more=1)),
    ("learner: is not a name; no file may name code", lambda p: p.update(learner="x.py:f")),
    ("learner: is not a name", lambda plain: plain.update(learner=["built-in"])),
    ("unknown 'nobody'", lambda plain: plain.update(learner="nobody")),
    ("training: steps: ", lambda plain: plain["training"].update(steps="9")),
    ("training: shell: ", lambda plain: plain["training"].update(shell="rm")),
    ("targets: are not a list", lambda plain: plain.update(targets={})),
    ("targets: 1: kind: is none", lambda p: p["targets"][0].update(kind="code")),
    ("targets: 1: classes: is not of type", lambda p: p["targets"][0].update(classes=None)),
    ("targets: 2: classes: are too many, or", lambda p: p["targets"][1]["classes"].append("new")),
    ("targets: 2: has the name of another", lambda p: p["targets"][1].update(name="size")),
    ("targets: 1: loss_weight", lambda p: p["targets"][0].update(loss_weight="1")),
    ("inputs: are neither", lambda plain: plain["inputs"].update(form="code")),
    ("inputs: has no list of columns", lambda plain: plain["inputs"].update(columns=3)),
    ("column 1: has no name", lambda p: p["inputs"]["columns"][0].update(name=None)),
    ("column 1: encoder: is not", lambda p: p["inputs"]["columns"][0].update(encoder=1)),
    ("spread: is not of type", lambda p: encoder_of(p).update(spread="1")),
    ("scale: is not a finite mean", lambda p: encoder_of(p).update(spread=-1.0)),
    ("scale: is not a finite mean", lambda p: encoder_of(p).update(exponent=10**6)),
    ("form: is none that", lambda p: encoder_of(p).update(form="eval")),
    ("card: does not say", lambda plain: plain.update(card=[])),
    ("card: made: is not of the form", lambda p: p["card"].update(made=3)),
    ("card: labels: is not of the form", lambda p: p["card"]["labels"].update(size={"a": "b"})),
    ("card: recipe: is not of the form", lambda p: p["card"]["recipe"].update(steps=[1])),
    ("the scores: is not in the form", lambda p: p["card"].update(scores={"scores": 1})),
]


def encoder_of(plain: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain["inputs"]["columns"][0]["encoder"]
    return found


@pytest.mark.parametrize(("told", "change"), BAD, ids=[told for told, _ in BAD])
def test_every_field_of_a_model_is_checked(sound: Path, told: str, change: Change) -> None:
    shutil.copytree(sound / "model", "model")
    path = Path("model/model.json")
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    with pytest.raises(InputError) as caught:
        al.load_model("model")
    assert told in str(caught.value)
    assert str(caught.value).startswith("model/model.json")


def test_weights_that_do_not_fit_are_refused_before_anything_is_reserved(sound: Path) -> None:
    shutil.copytree(sound / "model", "model")
    path = Path("model/model.json")
    plain = json.loads(path.read_text())
    text = {"form": "text"}
    plain["inputs"]["columns"] += [{"name": f"t{n}", "encoder": text} for n in range(3000)]
    path.write_text(json.dumps(plain))
    model = al.load_model("model")
    with pytest.raises(InputError, match="does not fit the network"):
        model.check()  # 768,000 features, 400 MB of weights that the file does not have
    plain["inputs"]["columns"] += [{"name": f"u{n}", "encoder": text} for n in range(3000)]
    path.write_text(json.dumps(plain))
    with pytest.raises(InputError, match="1 to 1000000 are possible"):
        al.load_model("model")


def test_no_other_files_are_opened(sound: Path) -> None:
    shutil.copytree(sound / "model", "model")
    Path("model/learner/trusts.safetensors").unlink()
    weights = Path("model/learner/weights.safetensors")
    weights.rename("elsewhere.safetensors")
    with pytest.raises(InputError, match="holds 0 files"):
        al.load_model("model").check()
    weights.symlink_to(Path("elsewhere.safetensors").absolute())
    with pytest.raises(InputError, match="is not one of the plain files"):
        al.load_model("model").check()
    shutil.rmtree("model/learner")
    with pytest.raises(InputError, match="can't be opened"):
        al.load_model("model").check()
    Path("model/model.json").write_text('{"a": NaN')
    with pytest.raises(InputError, match="is not JSON"):
        al.load_model("model")
    Path("model/model.json").write_text("[]")
    with pytest.raises(InputError, match="is not an object"):
        al.load_model("model")


def test_encoders_read_back_nothing_else() -> None:
    categories = {
        "form": "categorical",
        "categories": ["a"],
        "has_others": True,
        "has_empty": False,
    }
    assert write_encoder(read_encoder(categories)) == categories
    for change in (
        {"categories": ["a", "a"]},
        {"categories": ["a", 3]},
        {"categories": []},
        {"categories": [str(n) for n in range(60)]},
        {"has_others": 1},
        {"more": 1},
    ):
        with pytest.raises(InputError):
            read_encoder(categories | change)
    since = {"exponent": 0, "mean": 0.0, "spread": 1.0, "is_marked": True}
    dates = {"form": "date", "order": "dmy", "since": since, "periods": ["year", "day"]}
    assert write_encoder(read_encoder(dates)) == dates
    for change in (
        {"order": "ydm"},
        {"since": {}},
        {"since": since | {"spread": -1.0}},
        {"since": since | {"form": "text"}},
        {"periods": ["moon"]},
        {"periods": ["year", "year"]},
        {"periods": [3]},
    ):
        with pytest.raises(InputError):
            read_encoder(dates | change)
