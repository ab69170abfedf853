"""Pictures of a campaign with their labels, and with what is on record of what models said."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from allotment.campaign import gallery
from allotment.campaign.campaign import Campaign
from allotment.campaign.starting import settle_machine
from allotment.reports import render
from allotment.settings.template import write_template

TASKS: dict[str, dict[str, Any]] = {
    "classes": {"cost": 1, "have": 8},
    "segmentation": {"cost": 20, "have": 8},
    "depth": {"cost": 6, "have": 8},
    "normals": {"cost": 6, "have": 8},
}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    data = {"name": "scenes", "count": 40, "size": 16, "seed": 0, "by_colour": True}
    training = {"network": "usual", "steps": 1, **settle_machine()}
    text = write_template(data, TASKS, "40", "neutral", training, 4, 0)
    return Campaign.create(tmp_path_factory.mktemp("scenes") / "camp", text)


def list_tiles(pictures: dict[str, Any], task: str) -> list[list[str]]:
    found = next(each for each in pictures["tasks"] if each["task"] == task)
    return [[tile["what"] for tile in each["tiles"]] for each in found["examples"]]


def read_image(link: str) -> Any:
    kind, _, text = link.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))


def test_labels_alone_then_what_models_say(scenes: Campaign) -> None:
    """One campaign on its way: nothing is trained for a report."""
    first = scenes.show_pictures()
    assert first["who"] == "nobody"
    assert [each["task"] for each in first["tasks"]] == list(TASKS)
    assert list_tiles(first, "depth") == [["picture", "label"]] * 4
    example = first["tasks"][1]["examples"][0]
    stock = scenes.look().stock
    place = stock.place[example["name"]]
    assert place in stock.labels["segmentation"].instances
    shown = read_image(example["tiles"][0]["image"])
    assert (np.moveaxis(shown, -1, 0) == stock.whole().image(place)).all()

    scenes.try_plans(repeats=1, workers=0, beside=())
    tried = scenes.show_pictures()
    assert tried["who"] == "test"
    assert list_tiles(tried, "normals") == [["picture", "label", "before", "after"]] * 4
    names = {each["name"] for task in tried["tasks"] for each in task["examples"]}
    assert {stock.place[name] for name in names} <= set(stock.parts.test.tolist())

    scenes.evaluate(workers=0)
    asked = scenes.show_pictures()
    assert asked["who"] == "parts"
    assert list_tiles(asked, "classes") == [["picture", "label", "now"]] * 4
    assert [each["asked"] for each in asked["tasks"]] == [8, 8, 8, 8]
    right = [int(each["tiles"][2]["text"].split()[0]) for each in asked["tasks"][1]["examples"]]
    assert right == sorted(right)  # from the worst to the best
    text = render({"pictures": asked})
    assert "of pixels right" in text
    assert not scenes.verify().faults


def test_pictures_take_no_more_than_their_share(
    scenes: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "MOST_LETTERS", 4 * 6000)
    pictures = scenes.show_pictures()
    for task in pictures["tasks"]:
        letters = sum(len(t.get("image", "")) for e in task["examples"] for t in e["tiles"])
        assert letters <= 6000
    assert 0 < len(pictures["tasks"][2]["examples"]) < 4


def test_a_table_that_names_pictures_shows_them(tmp_path: Path) -> None:
    """In their own form, however a learner sees them."""
    rows = ["path,colour,width"]
    for number in range(12):
        colour = (250, 0, 0) if number % 2 else (0, 0, 250)
        Image.new("RGB", (40, 20), colour).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{('blue', 'red')[number % 2]},{number}")
    (tmp_path / "table.csv").write_text("\n".join(rows))
    tasks = {"colour": {"cost": 1}, "width": {"cost": 2}}
    data = {"name": "table", "root": str(tmp_path / "table.csv"), "pictures": "features"}
    training = {"network": "usual", "steps": 1, **settle_machine()}
    text = write_template(data, tasks, "10", "neutral", training, 4, 0)
    camp = Campaign.create(tmp_path / "camp", text)
    camp.evaluate(workers=0)
    pictures = camp.show_pictures()
    colours, widths = (each["examples"] for each in pictures["tasks"])
    assert read_image(colours[0]["tiles"][0]["image"]).shape == (20, 40, 3)
    assert {each["tiles"][1]["text"] for each in colours} <= {"blue", "red"}
    assert all(type(each["tiles"][2]["is_right"]) is bool for each in colours)
    assert all(float(each["tiles"][2]["text"]) < 1000 for each in widths)


def test_what_has_no_pictures_shows_none(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(f"{n},{n % 2}\n" for n in range(12)))
    data = {"name": "table", "root": str(tmp_path / "table.csv")}
    text = write_template(data, {"b": {"cost": 1}}, "10", "neutral", {"steps": 1}, 4, 0)
    assert "pictures" not in Campaign.create(tmp_path / "camp", text).report()
