"""A few of a campaign's pictures, each with its label and with what a model said of it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allotment.arrays import AnyArray
from allotment.campaign.state import CampaignState
from allotment.data.dataset import PIXEL_KINDS, VOID, Target
from allotment.data.overlays import Overlay, find_overlay
from allotment.formatting import number
from allotment.job import JSON
from allotment.learners.shown_answers import read_answers, resize, spread
from allotment.stock.stock import Stock

MOST_PICTURED = 4
"""pictures of a task"""
MOST_TASKS_PICTURED = 12
"""tasks that are shown"""
THUMBNAIL_SIDE = 96
"""pixels along the longer side of a picture"""
SMALL_SIDE = 48
"""up to which pictures are kept to the pixel"""
MOST_LETTERS = 360_000
"""of all pictures together, so that a page with its script stays well below 1 MB"""
MOST_CLASSES_SAID = 3
"""classes of one label that are named"""
WHEN = ("before", "after")
"""a purchase, in the order in which answers are shown"""
ASKED_NOBODY, ASKED_PARTS, ASKED_TEST = "nobody", "parts", "test"
"""who was asked: nobody, models that did not see the part of the labels, models before and after a
purchase about pictures of the test part"""


@dataclass(frozen=True)
class Pictured:
    """One picture, its label, and answers by when they were given."""

    place: int
    label: AnyArray
    said: Mapping[str, AnyArray] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptAnswers:
    """What is on record of what models said."""

    parts: Sequence[Mapping[str, JSON]] = ()
    """of the cross-validation of the labels at hand, if it was done: by task"""
    shown: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict)
    """of the plans that were tried: `before` and `after`, by task"""


def collect_pictures(state: CampaignState, kept: KeptAnswers) -> JSON:
    """What a report shows of them; None where the instances have no pictures."""
    stock = state.stock
    if not _has_pictures(stock):
        return None
    tasks, wanted = [], state.settings.names[:MOST_TASKS_PICTURED]
    who = ASKED_PARTS if kept.parts else ASKED_TEST if kept.shown else ASKED_NOBODY
    for task in wanted:
        asked = _find_asked(state, task, who, kept)
        if asked:
            chosen = _choose(stock.targets[task], asked)
            found = _show_task(stock, stock.targets[task], chosen, MOST_LETTERS // len(wanted))
            tasks.append(found | {"asked": len(asked)})
    return {"who": who, "tasks": tasks} if tasks else None


def _has_pictures(stock: Stock) -> bool:
    """By the first instance: all of a data set's are alike in this."""
    try:
        import PIL  # noqa: F401
    except ImportError:  # then there is nothing to write them with
        return False
    return stock.data.size > 0 and stock.data.picture(0) is not None


def _find_asked(state: CampaignState, task: str, who: str, kept: KeptAnswers) -> list[Pictured]:
    """All pictures of a task that could be shown."""
    stock, target = state.stock, state.stock.targets[task]
    if who == ASKED_NOBODY:
        places = spread(stock.labels[task].instances, MOST_PICTURED)
        return [Pictured(place, stock.read_label(task, place)) for place in places.tolist()]
    if who == ASKED_TEST:
        return _find_tried(stock, target, kept.shown)
    found, held = [], set(stock.labels[task].instances.tolist())
    for part in kept.parts:
        answers = part.get(task)
        if answers is None:
            continue
        shown = answers.get("shown") if target.kind in PIXEL_KINDS else answers
        if shown is None:  # it was kept before pictures were
            continue
        pairs = zip(shown["instances"], read_answers(target, shown["said"]), strict=True)
        found += [
            Pictured(at, stock.read_label(task, at), {"now": said})
            for at, said in pairs
            if at in held
        ]
    return found


def _find_tried(
    stock: Stock, target: Target, shown: Mapping[str, Mapping[str, JSON]]
) -> list[Pictured]:
    """Pictures of the test part, with what models said before and after the purchase."""
    sides = {when: _list_answers(target, shown[when].get(target.name)) for when in WHEN}
    found = []
    for name in sides["before"]:
        if name in sides["after"] and name in stock.place:
            place = stock.place[name]
            label = np.asarray(stock.data.label(target.name, place))
            found.append(Pictured(place, label, {when: each[name] for when, each in sides.items()}))
    return found


def _list_answers(target: Target, kept: JSON) -> dict[str, AnyArray]:
    if kept is None:
        return {}
    return dict(zip(kept["instances"], read_answers(target, kept["said"]), strict=True))


def _choose(target: Target, asked: Sequence[Pictured]) -> list[Pictured]:
    """From the worst answer to the best, evenly: neither the prettiest nor mistakes alone."""
    if not asked[0].said:
        return list(asked[:MOST_PICTURED])
    ranked = sorted(asked, key=lambda each: -_measure(target, each.label, _last(each)))
    places = np.linspace(0, len(ranked) - 1, min(MOST_PICTURED, len(ranked))).round()
    return [ranked[place] for place in places.astype(np.int64).tolist()]


def _last(asked: Pictured) -> AnyArray:
    return list(asked.said.values())[-1]


def _measure(target: Target, label: AnyArray, said: AnyArray) -> float:
    """How far an answer is off: a share that is wrong, a mean distance or, of normals, degrees."""
    if target.kind in PIXEL_KINDS:
        return _measure_pixels(target, label, resize(said, _size_of(label)))
    if target.kind == "classification":
        return 1.0 - float(said[int(label)])
    return float(np.nanmean(np.abs(said - label)))


def _measure_pixels(target: Target, label: AnyArray, said: AnyArray) -> float:
    if target.kind == "segmentation":
        known = label != VOID
        return float(np.mean(said[known] != label[known])) if known.any() else 0.0
    known = ~np.isnan(label if target.kind != "normals" else label.sum(axis=0))
    if not known.any():
        return 0.0
    if target.kind == "normals":
        cosines = (said * label).sum(axis=0)[known] / _length(said)[known] / _length(label)[known]
        return float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean())
    return float(np.abs(said - label)[known].mean())


def _length(vectors: AnyArray) -> AnyArray:
    return np.asarray(np.maximum(np.linalg.norm(vectors, axis=0), 1e-12))


def _size_of(array: AnyArray) -> tuple[int, int]:
    return int(array.shape[-2]), int(array.shape[-1])


# What is shown of each


def _show_task(
    stock: Stock, target: Target, chosen: Sequence[Pictured], most_letters: int
) -> dict[str, Any]:
    is_map = target.kind in PIXEL_KINDS
    overlay = find_overlay(target, [each.label for each in chosen]) if is_map else None
    examples, letters = [], 0
    for each in chosen:
        example = _show_example(stock, target, each, overlay)
        letters += sum(len(tile.get("image") or "") for tile in example["tiles"])
        if letters > most_letters:
            break
        examples.append(example)
    seen = [value for each in chosen for value in (each.label, *each.said.values())]
    legend = [] if overlay is None else overlay.list_colours(seen)
    plain = [{"name": words, "colour": colour} for words, colour in legend]
    return {"task": target.name, "kind": target.kind, "examples": examples, "legend": plain}


def _show_example(
    stock: Stock, target: Target, asked: Pictured, overlay: Overlay | None
) -> dict[str, Any]:
    picture = stock.data.picture(asked.place)
    assert picture is not None
    small = _shrink_picture(np.asarray(picture))
    tiles: list[dict[str, Any]] = [{"what": "picture", "image": _write_image(small)}]
    label = {"what": "label", "text": _say_label(target, asked.label)}
    tiles.append(label | _draw(overlay, asked.label, small))
    for when, said in asked.said.items():
        tile: dict[str, Any] = {"what": when, "text": _say_answer(target, asked.label, said)}
        if target.kind == "classification":
            tile["is_right"] = bool(said.argmax() == int(asked.label))
        tiles.append(tile | _draw(overlay, said, small))
    return {"name": stock.ids[asked.place], "tiles": tiles}


def _draw(overlay: Overlay | None, value: AnyArray, picture: AnyArray) -> dict[str, str]:
    if overlay is None:
        return {}
    laid = overlay.lay(resize(value, _size_of(picture)), picture)
    return {"image": _write_image(np.moveaxis(laid, -1, 0))}


def _shrink_picture(picture: AnyArray) -> AnyArray:
    from PIL import Image

    image = Image.fromarray(np.moveaxis(picture, 0, -1).astype(np.uint8))
    image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    return np.moveaxis(np.asarray(image), -1, 0)


def _write_image(picture: AnyArray) -> str:
    """A picture (3, height, width) as a link that holds it: to the pixel where it is small."""
    from PIL import Image

    made, is_small = io.BytesIO(), max(_size_of(picture)) <= SMALL_SIDE
    image = Image.fromarray(np.ascontiguousarray(np.moveaxis(picture, 0, -1)))
    if is_small:
        image.save(made, format="PNG", optimize=True)
    else:
        image.save(made, format="JPEG", quality=82, optimize=True)
    kind = "png" if is_small else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(made.getvalue()).decode()}"


def _say_label(target: Target, label: AnyArray) -> str:
    """A label in words; of one in pixels, what a reader who does not see it should know."""
    if target.kind == "classification":
        return target.classes[int(label)]
    if target.kind == "multilabel":
        return _list_classes(target, label == 1)
    if target.kind == "regression":
        return number(float(f"{float(label):.4g}"))
    if target.kind == "segmentation":
        return _say_shares(target, label)
    known = label[~np.isnan(label)]
    if target.kind == "normals" or not len(known):
        return ""
    low, high = (number(float(f"{each:.2g}")) for each in (known.min(), known.max()))
    return f"{low} to {high}"


def _say_shares(target: Target, mask: AnyArray) -> str:
    counts = np.bincount(mask[mask != VOID].ravel(), minlength=len(target.classes))
    order = [place for place in np.argsort(-counts, kind="stable").tolist() if counts[place]]
    total = max(int(counts.sum()), 1)
    return ", ".join(
        f"{target.classes[place]} {_percent(counts[place] / total)}"
        for place in order[:MOST_CLASSES_SAID]
    )


def _say_answer(target: Target, label: AnyArray, said: AnyArray) -> str:
    """What a model said or, of an answer in pixels, how good it is."""
    if target.kind == "classification":
        place = int(said.argmax())
        return f"{target.classes[place]} ({_percent(float(said[place]))} sure)"
    if target.kind == "multilabel":
        return _list_classes(target, said > 0.5)
    if target.kind == "regression":
        return number(float(f"{float(said):.4g}"))
    off = _measure(target, label, said)
    if target.kind == "segmentation":
        return f"{_percent(1 - off)} of pixels right"
    unit = "°" if target.kind == "normals" else ""
    return f"off by {number(float(f'{off:.2g}'))}{unit}"


def _percent(share: float) -> str:
    """Whole ones: a picture is no place for decimals."""
    return f"{100 * share:.0f} %"


def _list_classes(target: Target, marks: AnyArray) -> str:
    names = [name for name, mark in zip(target.classes, marks.tolist(), strict=True) if mark]
    return ", ".join(names) or "none"
