"""Campaigns on folders of images: what set-ups bring along, and that all that trains sees the
same."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.campaigns import allot, fine, refused
from helpers.folders import TRAIN, by_building, make_taskonomy, make_voc, save_mask, write_list

from allotment.campaign.beginning import tell_unbegun
from allotment.campaign.campaign import Campaign
from allotment.campaign.evaluation import Trial
from allotment.campaign.jobs import list_evaluations
from allotment.campaign.work import set_up
from allotment.data.augment import FILL
from allotment.data.dataset import VOID
from allotment.data.labels import TaskLabels, draw
from allotment.data.voc import VOC_CLASSES
from allotment.errors import InputError
from allotment.job import Job
from allotment.learners.learner import labelled
from allotment.learners.networks import list_adapters
from allotment.learners.resnet import ResNet
from allotment.ledger.store import Store

DATA = Path(os.environ.get("ALLOT_TEST_DATA", "nowhere"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="ALLOT_TEST_DATA is not set")
FEW = ("--have", "classes=2", "--have", "segmentation=2", "--budget", 21)
PAPER = {
    "optimiser": "sgd",
    "trunk_rate": 0.001,
    "head_rate": 0.01,
    "final_rate": 0.0001,
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def init(data: str, *more: object, root: object = "data") -> dict[str, Any]:
    """What is in the file of a new campaign."""
    fine("init", "camp", "--data", data, "--root", root, *more)
    return tomllib.loads(Path("camp/campaign.toml").read_text())


def change(*pairs: tuple[str, str]) -> None:
    path = Path("camp/campaign.toml")
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


# --- the file shows what a set-up brings along ---


def test_the_file_of_the_papers_voc_has_the_papers_numbers() -> None:
    """P11 to P13; crop, batch size, momentum and weight decay are ours to choose."""
    make_voc(Path("data"))
    paper = ("--network", "voc-paper", "--from-scratch")
    told = refused(2, "init", "camp", "--data", "voc", "--root", "data", *paper)
    assert told.count("have: 300 labels wanted") == 2
    few = ("--have", "classes=2", "--have", "segmentation=2")
    file = init("voc", *paper, *few)
    assert (file["data"]["side"], file["budget"]) == (513, 6300)
    assert [task["cost"] for task in file["task"]] == [1, 20]
    training = file["training"]
    assert {key: training[key] for key in PAPER} == PAPER
    assert (training["network"], training["epochs"]) == ("voc-paper", 100)
    assert (training["crop"], training["batch_size"]) == (321, 8)
    assert (training["momentum"], training["weight_decay"]) == (0.9, 0.0001)
    assert not {"steps", "patience"} & training.keys()
    bench = set_up_now()
    assert bench.learner.recipe.describe().items() <= training.items()


def test_the_file_of_the_papers_taskonomy_has_the_papers_numbers() -> None:
    """P11, P12 and P14."""
    make_taskonomy(Path("data"), by_building)
    paper = ("--network", "taskonomy-paper", "--from-scratch")
    told = refused(2, "init", "camp", "--data", "taskonomy", "--root", "data", *paper)
    assert told.count("have: 10000 labels wanted") == 5
    names = ("segmentation", "normals", "depth", "keypoints", "edges")
    few = [part for name in names for part in ("--have", f"{name}=1")]
    file = init("taskonomy", *paper, *few)
    assert (file["data"]["side"], file["budget"]) == (256, 210_000)
    assert [(task["name"], task["cost"]) for task in file["task"]] == list(
        zip(names, (10, 3, 3, 2, 3), strict=True)
    )
    training = file["training"]
    assert {key: training[key] for key in PAPER} == PAPER
    assert (training["epochs"], training["patience"]) == (30, 5)
    assert not {"steps", "crop"} & training.keys()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (("--method", "taba"), {"runs": 5}),
        (("--method", "taba-tag", "--option", "ahead=5"), {"runs": 5, "ahead": 5}),
        (("--method", "taba", "--option", "runs=3"), {"runs": 3}),
        (("--method", "taba-alone"), None),  # which averages none
        ((), None),
    ],
)
def test_the_paper_averages_five_runs_on_taskonomy(
    method: tuple[str, ...], options: dict[str, int] | None
) -> None:
    """P16; ten on VOC are what methods take themselves."""
    make_taskonomy(Path("data"), by_building)
    names = ("segmentation", "normals", "depth", "keypoints", "edges")
    few = [part for name in names for part in ("--have", f"{name}=1")]
    file = init("taskonomy", "--network", "taskonomy-paper", "--from-scratch", *few, *method)
    assert file.get("estimates") == options


def test_options_go_before_what_a_set_up_brings() -> None:
    make_voc(Path("data"))
    paper = ("--network", "voc-paper", "--from-scratch", "--set", "side=48", "--steps", 7)
    file = init("voc", *paper, *FEW)
    assert file["data"]["side"] == 48
    assert file["training"]["steps"] == 7
    assert "epochs" not in file["training"]


def test_what_the_paper_leaves_open_of_training_is_set_where_the_data_are() -> None:
    make_voc(Path("data"))
    paper = ("--network", "voc-paper", "--from-scratch")
    training = init("voc", *paper, "--set", "batch_size=4", "--set", "trunk_rate=0.002", *FEW)[
        "training"
    ]
    assert (training["batch_size"], float(training["trunk_rate"])) == (4, 0.002)
    assert training["epochs"] == 100


def test_epochs_that_are_set_take_the_place_of_steps() -> None:
    make_voc(Path("data"))
    file = init("voc", "--set", "side=16", "--set", "epochs=3", *FEW)
    assert (file["data"]["side"], file["training"]["epochs"]) == (16, 3)
    assert "steps" not in file["training"]
    begin = ("init", "other", "--data", "voc", "--root", "data", *FEW)
    assert "--set batch_size: 'few' is not a whole number" in refused(
        2, *begin, "--set", "batch_size=few"
    )
    assert "batch_size: 0 is below 1" in refused(2, *begin, "--set", "batch_size=0")
    said = refused(2, *begin, "--set", "epochs=3", "--steps", 5)
    assert "does not count beside steps" in said
    assert "is not a key of voc" in refused(2, *begin, "--set", "batch=4")


def test_the_usual_network_is_written_as_before() -> None:
    make_voc(Path("data"))
    file = init("voc", *FEW)
    assert file["data"]["side"] == 64
    assert file["training"] | {"device": 0, "precision": 0} == {
        "network": "usual",
        "steps": 300,
        "device": 0,
        "precision": 0,
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("crop = -1", "training: crop: -1 is below 0"),
        ("patience = -2", "training: patience: -2 is below 0"),
        ("momentum = -0.5", "training: momentum: -0.5 is not a finite number of 0 or more"),
        ("final_rate = true", "training: final_rate: True is not a number"),
        ("steps = 5", "training: epochs: does not count beside steps"),
        ("patience = 3\nmembers = 2", "training: patience: is for one network"),
        ('weights = "w.pth"', "training: from_scratch: does not go with weights"),
    ],
)
def test_mistakes_in_a_recipe_are_named(line: str, words: str) -> None:
    make_voc(Path("data"))
    init("voc", "--network", "voc-paper", "--from-scratch", *FEW)
    key = line.partition(" ")[0]
    lines = Path("camp/campaign.toml").read_text().splitlines()
    kept = [each for each in lines if not each.startswith(f"{key} =")]
    place = kept.index("[training]") + 1
    Path("camp/campaign.toml").write_text("\n".join([*kept[:place], line, *kept[place:]]))
    assert words in refused(2, "status", "camp")


# --- trained weights, or none on purpose ---


def test_a_network_asks_for_its_weights_or_is_told_to_start_from_nothing() -> None:
    make_voc(Path("data"))
    command = ("init", "camp", "--data", "voc", "--root", "data", *FEW)
    told = refused(2, *command, "--network", "voc-paper")
    assert "--weights: is missing: voc-paper begins with a resnet50" in told
    assert "To have it start from nothing: --from-scratch" in told
    told = refused(2, *command, "--network", "voc-small", "--from-scratch")
    assert "--from-scratch: voc-small keeps the first layers of a mobilenet" in told
    assert "leave it out" in refused(2, *command, "--from-scratch")
    torch.save(ResNet(18).state_dict(), "resnet18.pth")
    given = ("--network", "voc-paper", "--weights", "resnet18.pth")
    assert "beside --weights" in refused(2, *command, *given, "--from-scratch")
    assert "is this another network's file?" in refused(2, *command, *given)
    assert not Path("camp").exists()
    file = init("voc", *FEW, "--network", "voc-paper", "--from-scratch")
    assert file["training"]["from_scratch"] is True


def begin_by_hand(network: str = "voc-paper") -> None:
    """A file in which somebody put a network, and nothing of what it begins with."""
    make_voc(Path("data"))
    enough = ("--have", "classes=4", "--have", "segmentation=4", "--budget", 21)
    init("voc", "--set", "side=16", "--steps", 2, *enough)
    change(('network = "usual"', f'network = "{network}"'))


@pytest.mark.parametrize(
    "command",
    [
        ("check", "camp"),
        ("estimate", "camp"),
        ("estimate", "camp", "--dry-run"),
        ("evaluate", "camp"),
        ("train", "camp", "-o", "model"),
        ("loss-weights", "camp"),
        ("backtest", "camp"),
    ],
)
def test_a_network_that_was_written_by_hand_asks_for_its_weights(command: tuple[str, ...]) -> None:
    """Before anything is trained, as `init` does."""
    begin_by_hand()
    result = allot(*command)
    assert result.exit_code == 2
    told = " ".join(result.output.split())
    line = Path("camp/campaign.toml").read_text().splitlines().index('network = "voc-paper"') + 1
    assert f"camp/campaign.toml:{line}: training: weights: is missing: voc-paper begins" in told
    assert 'Write weights = "FILE" below [training]' in told
    assert "To have it start from nothing: from_scratch = true" in told
    with Store.open(Path("camp"), write=False) as store:
        assert not store.list_kinds()
    assert not Path("model").exists()


def test_what_trains_nothing_does_not_ask_for_weights() -> None:
    begin_by_hand()
    assert "weights of the network: is missing: voc-paper begins" in fine("status", "camp")
    change(("[training]", "[training]\nfrom_scratch = true"))
    assert "weights of the network" not in fine("status", "camp")
    fine("check", "camp")
    assert set_up_now().learner.steps(Campaign("camp").look().stock.labels) == 2


def test_first_layers_that_are_kept_can_not_start_from_nothing() -> None:
    begin_by_hand("voc-small")
    told = allot("check", "camp").output
    assert "voc-small begins with layers that were trained" in told
    assert "from_scratch" not in told


def test_weights_that_are_named_by_hand_are_enough() -> None:
    begin_by_hand()
    torch.save(ResNet(50).state_dict(), "resnet50.pth")
    change(("[training]", '[training]\nweights = "../resnet50.pth"'))
    fine("check", "camp")
    set_up_now()


def test_campaigns_that_trained_without_weights_before_go_on() -> None:
    """Files of earlier versions did not have to say that there are none."""
    begin_by_hand()
    settings, recipe = Campaign("camp").look().settings, Campaign("camp").look().needs["recipe"]
    with Store.open(Path("camp"), write=True) as store:
        assert tell_unbegun(store, settings)
        other = {**recipe, "training": {**recipe["training"], "network": "usual"}}
        store.put_result(Job("training", {"recipe": other}), {})
        assert tell_unbegun(store, settings)
        trained = {**recipe, "training": {**recipe["training"], "weights": "../resnet50.pth"}}
        store.put_result(Job("training", {"recipe": trained}), {})
        assert tell_unbegun(store, settings)
        store.put_result(Job("evaluation", {"recipe": recipe}), {})
        assert not tell_unbegun(store, settings)


def test_a_learner_of_ones_own_is_not_asked_for_weights() -> None:
    begin_by_hand()
    campaign = Campaign("camp", learner="mine.py:make")
    campaign._check_begun(campaign.look())
    with pytest.raises(InputError, match="voc-paper begins"):
        Campaign("camp").set_up(campaign.look())


# --- what tasks share ---


def test_adapters_are_asked_for_at_the_start_or_in_the_file() -> None:
    file = begin_usual("--sharing", "adapters")
    assert file["training"]["sharing"] == "adapters"
    state = Campaign("camp").look()
    bench = set_up_now()
    network = bench.learner.start(bench.labels, 0).network
    assert [each.down["task classes"].shape[1] for each in list_adapters(network)] == [24, 48, 96]
    change(('sharing = "adapters"', 'sharing = "all"'))
    usual = Campaign("camp").look()
    assert not list_adapters(set_up_now().learner.new_network(1))
    assert usual.needs["recipe"] != state.needs["recipe"]
    assert "sharing" not in usual.needs["recipe"]["training"]


def test_a_file_that_does_not_say_what_tasks_share_means_all() -> None:
    """With the keys that trainings always had, whether the usual way is written out or not."""
    assert "sharing" not in begin_usual()["training"]
    plain = Campaign("camp").look().needs
    change(("[training]", '[training]\nsharing = "all"'))
    assert Campaign("camp").look().needs == plain


def test_a_model_with_adapters_is_asked_elsewhere() -> None:
    begin_usual("--sharing", "adapters")
    fine("train", "camp", "-o", "model")
    assert json.loads(Path("model/model.json").read_text())["training"]["sharing"] == "adapters"
    fine("predict", "model", "--root", "data/JPEGImages", "-o", "answers")
    assert list(Path("answers").rglob(f"*{TRAIN[0]}*"))


def test_what_tasks_can_not_share_is_refused() -> None:
    make_voc(Path("data"))
    command = ("init", "camp", "--data", "voc", "--root", "data", *FEW)
    told = refused(2, *command, "--sharing", "adaptors")
    assert "training: sharing: unknown 'adaptors'; did you mean 'adapters'?" in told
    Path("table.csv").write_text("a,b\n" + "".join(f"{at},{at * 2}.5\n" for at in range(30)))
    table = ("--root", "table.csv", "--targets", "b", "--cost", "b=1", "--budget", 9)
    told = refused(2, "init", "camp", *table, "--sharing", "adapters")
    assert "--sharing: 'adapters' is for images, and these are tables; leave it out" in told
    assert not Path("camp").exists()
    init("voc", "--set", "side=16", "--steps", 2, *FEW, "--sharing", "adapters")
    change(("[training]", "[training]\nmembers = 2"))
    assert "training: sharing: is for images, and members" in refused(2, "status", "camp")
    change(("members = 2", 'learner = "sklearn:Ridge"'))
    assert "training: sharing: is for the built-in learner" in refused(2, "status", "camp")


# --- measuring and retraining see the same ---


def set_up_now(test: bool = False) -> Any:
    """The learner of the campaign as `estimate` has it, or as `evaluate` has it."""
    state = Campaign("camp").look()
    return set_up(state.settings, state.stock, test=test)


def see(bench: Any, state: Any, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A mini-batch of masks."""
    state.done = number
    found: tuple[torch.Tensor, torch.Tensor] = bench.learner.mini_batch(state, "segmentation", 0)
    return found


@pytest.mark.long
@pytest.mark.parametrize("crop", [33, 0])
def test_estimates_and_evaluations_see_the_same_inputs(crop: int) -> None:
    """Also where all masks are given as if they had been predicted, as `taba` has them."""
    make_voc(Path("data"))
    small = ("--set", "side=48", "--steps", 2)
    init("voc", "--network", "voc-paper", "--from-scratch", *small, *FEW)
    change(("crop = 321", f"crop = {crop}"))
    benches = [set_up_now(), set_up_now(test=True)]
    assert benches[0].labels.fingerprint == benches[1].labels.fingerprint
    labels = benches[0].labels
    masks = labels["segmentation"].instances
    values = benches[0].learner.data.values("segmentation", masks)
    # what a model would say of the parts of squares that are beside their pictures
    guessed = np.where(values == VOID, 3, values)
    predicted = labels.with_task("segmentation", TaskLabels(masks, guessed))
    begun = [bench.learner.start(labels, 0) for bench in benches]
    taught = benches[0].learner.start(predicted, 0)
    for number in range(6):
        inputs, targets = see(benches[0], begun[0], number)
        again, same = see(benches[1], begun[1], number)
        assert torch.equal(inputs, again)
        assert torch.equal(targets, same)
        pseudo, filled = see(benches[0], taught, number)
        assert torch.equal(inputs, pseudo)
        # nothing is labelled around a picture, and void borders are no longer void
        known, filled_in = targets != VOID, filled != VOID
        assert (filled_in >= known).all()
        assert torch.equal(targets[known], filled[known])
        outside = (inputs * 255).round() == torch.tensor(FILL)[:, None, None].float()
        assert not (filled_in & outside.all(dim=2)).any()
    shares = [
        np.mean([float((see(each, state, at)[1] != VOID).float().mean()) for at in range(6)])
        for each, state in zip(benches, begun, strict=True)
    ]
    assert shares[0] == shares[1] > 0.3


# --- a mask tells the classes that are in it ---


def begin_usual(*more: object) -> dict[str, Any]:
    """A campaign on six images with a small network."""
    make_voc(Path("data"))
    return init("voc", "--set", "side=16", "--steps", 2, *FEW, *more)


def test_masks_train_classes_and_are_not_counted() -> None:
    """The paper's accounting (P13): in trainings of estimates, of evaluations and of the model."""
    file = begin_usual()
    assert file["task"][1]["implies"] == ["classes"]
    assert "implies" not in file["task"][0]
    state = Campaign("camp").look()
    both = sorted({*state.stock.labels["classes"].instances} | set(masks_of(state)))
    assert state.stock.have == {"classes": 2, "segmentation": 2}
    assert state.rest()["classes"].have == 2
    for test in (False, True):
        bench = set_up_now(test=test)
        assert bench.labels.counts == {"classes": 2, "segmentation": 2}
        begun = bench.learner.start(bench.labels, 0)
        assert begun.orders["classes"][0].tolist() == both
        assert begun.orders["segmentation"][0].tolist() == masks_of(state)
        # one that is scored on a part is the same learner
        twin = bench.learner.with_validation(np.array(both))
        assert twin.start(bench.labels, 0).orders["classes"][0].tolist() == both
        # nor does a training of masks alone become one of two tasks
        alone = bench.learner.start(bench.labels.only("segmentation"), 0)
        assert len(alone.orders["classes"][0]) == 0
        assert labelled(bench.learner, bench.labels.with_task("classes", [])) == (
            "classes",
            "segmentation",
        )
    # what a mask tells need not be bought
    assert not set(state.stock.candidates("classes")) & {
        state.stock.ids[each] for each in masks_of(state)
    }


def masks_of(state: Any) -> list[int]:
    found: list[int] = sorted(state.stock.labels["segmentation"].instances.tolist())
    return found


def test_trainings_on_implied_labels_have_keys_of_their_own() -> None:
    """Without them keys are what they were: nothing is said of them."""
    begin_usual()
    campaign = Campaign("camp")
    implied = campaign.look().needs
    assert implied["recipe"]["implies"] == {"segmentation": ["classes"]}
    change(('implies = ["classes"]', ""))
    state = campaign.look()
    assert state.needs["recipe"].keys() == {"training", "targets"}
    assert state.settings.unscored_recipe.keys() == {"training", "targets"}
    assert {key for task in state.rest().to_dict()["tasks"] for key in task} <= {
        *("name", "cost", "have", "pool", "weight"),
    }
    change(("seed = 0", "seed = 0\ncount_implied = true"))
    assert campaign.look().needs == state.needs


def test_implied_labels_count_on_request() -> None:
    begin_usual()
    change(("seed = 0", "seed = 0\ncount_implied = true"))
    state = Campaign("camp").look()
    both = len({*state.stock.labels["classes"].instances} | set(masks_of(state)))
    assert state.stock.have == {"classes": 2, "segmentation": 2}
    assert state.have == {"classes": both, "segmentation": 2}
    assert state.rest()["classes"].have == both
    assert state.rest().count_implied
    assert set_up_now().labels.counts == {"classes": both, "segmentation": 2}
    assert set_up_now(test=True).labels.counts == {"classes": 2, "segmentation": 2}


def test_delivered_masks_tell_their_own_classes() -> None:
    """Not those that the data would have: somebody else drew the mask."""
    make_voc(Path("data"))
    one = ("--have", "classes=1", "--have", "segmentation=1", "--budget", 21)
    init("voc", "--set", "side=16", "--steps", 2, *one)
    campaign = Campaign("camp")
    stock = campaign.look().stock
    name = next(
        each
        for each in stock.candidates("segmentation")
        if stock.place[each] not in stock.labels["classes"].instances
    )
    height, width = stock.size_of(name) or (0, 0)
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[2:9, 2:9] = 8
    Path("masks/segmentation").mkdir(parents=True)
    save_mask(Path(f"masks/segmentation/{name}.png"), mask)
    fine("ingest", "camp", "masks", "--confirm")
    stock = campaign.look().stock
    place = stock.place[name]
    assert place in stock.labels["segmentation"].instances
    (found,) = stock.open().values("classes", np.array([place]))
    assert [VOC_CLASSES[at] for at in np.flatnonzero(found)] == ["cat"]
    assert stock.open().known("classes")[place]


@pytest.mark.parametrize(
    ("task", "line", "words"),
    [
        ("classes", 'implies = ["segmentation"]', "a label of classes (multilabel) does not tell"),
        ("segmentation", 'implies = ["depth"]', "no task 'depth'"),
        ("segmentation", 'implies = ["segmentation"]', "'segmentation' implies itself"),
    ],
)
def test_what_can_not_be_implied_is_refused(task: str, line: str, words: str) -> None:
    begin_usual()
    change(('implies = ["classes"]', ""))
    change((f'name = "{task}"', f'name = "{task}"\n{line}'))
    told = refused(2, "status", "camp")
    assert words in told
    assert "campaign.toml:" in told


# --- tasks on different instances ---


def make_many(count: int) -> None:
    """A VOC with so many images to learn from, each of which is a link to one of four."""
    make_voc(Path("data"))
    names = [f"2010_{number:06d}" for number in range(count)]
    for at, name in enumerate(names):
        for folder, ending in (("JPEGImages", ".jpg"), ("SegmentationClassAug", ".png")):
            one = Path("data", folder, f"{TRAIN[at % len(TRAIN)]}{ending}")
            os.link(one, one.with_name(f"{name}{ending}"))
    write_list(Path("data"), "train_aug", *names)


def begin_many(count: int, have: int, budget: int, *more: object) -> dict[str, Any]:
    make_many(count)
    start = ("--have", f"classes={have}", "--have", f"segmentation={have}", "--budget", budget)
    costs = ("--cost", "classes=1", "--cost", "segmentation=1", "--method", "neutral")
    return init("voc", "--set", "side=16", "--steps", 2, *start, *costs, *more)


def labels_now() -> dict[str, set[int]]:
    labels = Campaign("camp").look().stock.labels
    return {task: {*labels[task].instances.tolist()} for task in labels}


def test_tasks_stay_apart_over_seed_set_orders_and_rounds() -> None:
    file = begin_many(60, 10, 10)
    assert file["instances"] == "different"
    for spent in (10, 20, 30, 40):
        change(*[(f"budget = {spent - 10}", f"budget = {spent}")] if spent > 10 else [])
        assert "Note:" not in fine("order", "camp", "--all")
        fine("ingest", "camp", "--oracle")
        found = labels_now()
        assert not found["classes"] & found["segmentation"]
    assert sum(map(len, found.values())) == 60


def test_an_order_for_which_there_are_too_few_instances_says_so() -> None:
    begin_many(24, 10, 10)
    told = " ".join(fine("order", "camp", "--all").split())
    # four instances are free of labels, and what a mask tells is not bought
    assert "Order 1: 4 classes, 6 segmentation for 10. Note: 6 of its 6 instances will have" in told
    fine("ingest", "camp", "--oracle")
    found = labels_now()
    assert len(found["classes"] & found["segmentation"]) == 6


def test_an_order_for_all_tasks_together_is_meant() -> None:
    """As the paper's variant: new images, the same for all tasks."""
    begin_many(60, 10, 20)
    before = labels_now()
    assert "Note:" not in fine("order", "camp", "--all", "--together")
    fine("ingest", "camp", "--oracle")
    new = {task: found - before[task] for task, found in labels_now().items()}
    fewer, more = sorted(new.values(), key=len)
    assert fewer <= more
    assert not more & (before["classes"] | before["segmentation"])


def test_the_seed_set_says_where_tasks_can_not_stay_apart() -> None:
    make_many(10)
    start = ("--have", "classes=8", "--have", "segmentation=5", "--budget", 21)
    command = ("init", "camp", "--data", "voc", "--root", "data", "--set", "side=16", *start)
    told = " ".join(fine(*command).split())
    assert "Note: 3 instances begin with labels of several tasks" in told
    found = labels_now()
    assert len(found["classes"] & found["segmentation"]) == 3


def test_tasks_share_instances_on_request() -> None:
    begin_many(60, 10, 20)
    change(('instances = "different"', 'instances = "same"'), ('implies = ["classes"]', ""))
    found = labels_now()
    assert found["classes"] == found["segmentation"]
    fine("order", "camp", "--all")
    fine("ingest", "camp", "--oracle")
    found = labels_now()
    assert found["classes"] == found["segmentation"]
    assert len(found["classes"]) == 20


def test_without_a_word_instances_are_drawn_as_ever() -> None:
    begin_many(30, 10, 10)
    apart = Campaign("camp")
    trials = [Trial("mine", {"classes": 3, "segmentation": 3})]
    needs = list_evaluations(apart.look(), "built-in", trials, 1)[0][0].needs
    assert needs["instances"] == "different"
    change(('instances = "different"\n', ""))
    needs = list_evaluations(apart.look(), "built-in", trials, 1)[0][0].needs
    assert needs.keys() == {
        *("data", "recipe", "learner", "labels", "counts", "same", "seeds"),
    }
    change(("seed = 0", 'seed = 0\ninstances = "diferent"'))
    assert "did you mean 'different'" in refused(2, "status", "camp")


def test_purchases_of_an_evaluation_stay_apart_from_the_seed_set() -> None:
    """All but the paper's baseline of the same images, whose tasks share all new ones."""
    begin_many(40, 10, 20)
    state = Campaign("camp").look()
    start, train = state.stock.start, state.stock.parts.train
    begun = {at for mine in start.values() for at in mine.instances.tolist()}
    for seed in range(5):
        given = {"taken": start, "apart": True}
        counts = {"classes": 8, "segmentation": 8}
        new = draw(state.stock.data, train, counts, seed, **given)
        bought = [*new["classes"].instances, *new["segmentation"].instances]
        assert len({*bought}) == 16
        assert not begun & {*bought}
        same = draw(state.stock.data, train, counts, seed, same=True, **given)
        assert {*same["classes"].instances} == {*same["segmentation"].instances}
        assert not begun & {*same["classes"].instances}
    told = Campaign("camp").judge_prices([{"classes": 18, "segmentation": 6}])
    assert told[0].startswith("yours costs 24, more than the budget of 20")
    assert told[1] == (
        "yours wants 24 labels on instances of their own, of which 20 are left: 4 share one with"
        " another task"
    )


# --- buildings ---


def test_new_campaigns_test_on_other_buildings_than_they_train_on() -> None:
    make_taskonomy(Path("data"), by_building)
    names = ("segmentation", "normals", "depth", "keypoints", "edges")
    few = [part for name in names for part in ("--have", f"{name}=1")]
    file = init("taskonomy", "--set", "side=16", *few)
    assert file["data"]["groups"] == "building"
    stock = Campaign("camp").look().stock
    trained, tested = (
        {stock.ids[at].partition("/")[0] for at in part}
        for part in (stock.parts.train, stock.parts.test)
    )
    assert (len(trained), len(tested)) == (1, 1)
    assert trained != tested
    # those of before are split as they were
    change(('groups = "building"', ""))
    points = Campaign("camp").look().stock.data.groups
    assert points is not None
    assert len(set(points)) == 5


# --- whole campaigns ---


def test_a_whole_campaign_on_a_small_voc() -> None:
    """With the usual network: measure, plan, order, take back, try out plans, train the model."""
    make_many(24)
    start = ("--have", "classes=6", "--have", "segmentation=6", "--budget", 12)
    costs = ("--cost", "classes=1", "--cost", "segmentation=2")
    init("voc", "--set", "side=16", "--steps", 2, *start, *costs)
    change(("seed = 0", "seed = 0\ntrainings = 4"))
    go_round("camp")
    campaign = Campaign("camp")
    _, found = campaign.try_plans(repeats=1, workers=0, beside={"equal images"})
    assert [trial.name for trial in found.trials][-1] == "equal images*"
    assert np.isfinite(found.base).all()
    labels = campaign.look().stock.labels
    card = json.loads(fine("train", "camp", "-o", "model", "--json"))["card"]
    counts = {task: sum(card["labels"][task].values()) for task in labels}
    assert counts == labels.counts


def copy_voc(root: Path) -> Path:
    """Thirty images to learn from and ten to be tested on, in VOC's own layout."""
    names = {}
    for part, count in (("train_aug", 30), ("val", 10)):
        listed = (DATA / f"VOC2012/ImageSets/Segmentation/{part}.txt").read_text().split()
        names[part] = listed[:: len(listed) // count][:count]
    for folder, ending in (("JPEGImages", ".jpg"), ("SegmentationClassAug", ".png")):
        (root / folder).mkdir(parents=True)
        for name in (*names["train_aug"], *names["val"]):
            shutil.copy(DATA / "VOC2012" / folder / f"{name}{ending}", root / folder)
    (root / "ImageSets/Segmentation").mkdir(parents=True)
    for part, listed in names.items():
        write_list(root, part, *listed)
    return root


def copy_taskonomy(root: Path) -> Path:
    """Forty views at twenty points."""
    for folder in (DATA / "taskonomy").iterdir():
        found: dict[str, list[Path]] = {}
        for path in sorted(folder.glob("point_*.png")) if folder.is_dir() else ():
            found.setdefault(path.name.split("_")[1], []).append(path)
        for point in sorted(found, key=int)[:20]:
            (root / folder.name).mkdir(parents=True, exist_ok=True)
            for path in found[point][:2]:
                shutil.copy(path, root / folder.name)
    return root


def go_round(folder: str) -> None:
    """Measure, plan, order and take the labels that come back."""
    assert "Order now" in fine("estimate", folder, "--workers", 0)
    assert "Next: allot order" in fine("plan", folder, "--no-ranges")
    fine("order", folder)
    assert "new labels from the data set itself" in fine("ingest", folder, "--oracle")


@real
@pytest.mark.long
def test_a_whole_campaign_with_the_papers_network_on_voc() -> None:
    copy_voc(Path("data"))
    have = ("--have", "classes=8", "--have", "segmentation=8", "--budget", 100)
    small = ("--set", "side=65", "--steps", 1)
    init("voc", "--network", "voc-paper", "--from-scratch", *small, *have)
    change(("crop = 321", "crop = 33"), ("batch_size = 8", "batch_size = 2"))
    change(("seed = 0", "seed = 0\ntrainings = 2"))
    go_round("camp")
    told = fine("evaluate", "camp", "--repeats", 1, "--workers", 0)
    for words in ("this plan", "equal images*", "all on segmentation"):
        assert words in told
    backbone = set_up_now().learner.new_network(1).backbone
    shared = [part for name, part in backbone.named_parameters() if ".conv" in name]
    assert sum(map(torch.numel, shared)) > 20e6  # ResNet-50, and nothing smaller


@real
@pytest.mark.long
def test_a_whole_campaign_with_the_papers_network_on_taskonomy() -> None:
    copy_taskonomy(Path("data"))
    names = ("segmentation", "normals", "depth", "keypoints", "edges")
    have = [part for name in names for part in ("--have", f"{name}=4")]
    small = ("--set", "side=33", "--steps", 1, "--budget", 42)
    init("taskonomy", "--network", "taskonomy-paper", "--from-scratch", *small, *have)
    change(("batch_size = 8", "batch_size = 2"), ("seed = 0", "seed = 0\ntrainings = 2"))
    go_round("camp")
    _, found = Campaign("camp").try_plans(repeats=1, workers=0, beside=())
    assert found.scores.shape == (len(found.trials), 1, 5)
    assert np.isfinite(found.scores).all()
