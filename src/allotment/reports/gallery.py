"""The user's own pictures with their labels, and with what models said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from allotment.reports import words
from allotment.reports.blocks import Gallery, GalleryRow, Note, PageBlock, Tile
from allotment.reports.markup import name


def show_gallery(pictures: Mapping[str, Any]) -> list[PageBlock]:
    """For each task a small table: a column for each instance, rows for its picture, its label and
    what was said of it."""
    shown = [_view_task(each) for each in pictures["tasks"] if each["examples"]]
    if not shown:
        return []
    return [Note(words.GALLERY_NOTES[pictures["who"]]), *shown]


def _view_task(task: Mapping[str, Any]) -> Gallery:
    examples = task["examples"]
    legend = [(each["colour"], name(each["name"], 40)) for each in task.get("legend") or ()]
    return Gallery(
        title=name(task["task"], 60),
        label=words.GALLERY_TABLE.format(task=task["task"]),
        kind=words.KIND_WORDS.get(task["kind"], ""),
        heads=[name(each["name"], 24) for each in examples],
        rows=[_view_row(examples, place) for place in range(len(examples[0]["tiles"]))],
        legend=legend,
    )


def _view_row(examples: Sequence[Mapping[str, Any]], place: int) -> GalleryRow:
    tiles = [each["tiles"][place] for each in examples]
    what = words.TILE_WORDS[tiles[0]["what"]]
    pairs = zip(examples, tiles, strict=True)
    return GalleryRow(what, [_view_tile(what, each["name"], tile) for each, tile in pairs])


def _view_tile(what: str, instance: str, tile: Mapping[str, Any]) -> Tile:
    said = words.mark_all(tile.get("text") or "")
    if (is_right := tile.get("is_right")) is not None:
        said = f"{words.RIGHT_SIGNS[is_right]} {said}"
    # below a label in pixels its words would be noise; those who don't see it hear them
    shown = "" if tile["what"] == "label" and tile.get("image") else said
    alt = ": ".join(part for part in (f"{what}, {instance}", said) if part)
    return Tile(tile.get("image") or "", alt, said, shown)
