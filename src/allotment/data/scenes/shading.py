"""Colours of what rays meet: patterns, light, shadow and gloss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from allotment.arrays import AnyArray
from allotment.data.scenes.arrays import apply, column, dot, each, put
from allotment.data.scenes.rays import Hits, meet
from allotment.data.scenes.scene import PATTERNS
from allotment.data.scenes.stage import Stage


def shade(stage: Stage, hits: Hits, size: int) -> AnyArray:
    """Linear colours by Lambert's and Blinn's laws; the lights are points, so shadows are hard."""
    counts, gloss = hits.counts, stage.gloss[hits.paint]
    shiny = np.flatnonzero(gloss)
    gloss = gloss[shiny]
    around = (
        each(stage.ambient, counts) * (1 + np.float32(0.3) * hits.normal[2]) * _open(stage, hits)
    )
    total, shine = np.stack([around] * 3), np.zeros((3, len(shiny)), dtype=np.float32)
    for which, (places, tints) in enumerate(zip(stage.places, stage.tints, strict=True)):
        away, tint = hits.point - each(places, counts), each(tints, counts)
        length = np.sqrt(dot(away, away))
        light = np.maximum(-dot(hits.normal, away), 0) / (
            length * (1 + length * length * np.float32(0.125))
        )
        if which == 0:  # the other is too weak for its shadows to be worth the time
            ray, _, when, _ = meet(
                stage, places, away, counts, np.where(light > 0, length, np.float32(np.inf))
            )
            light[ray[when < 0.997]] = 0
        total += light * tint
        glint = _reflect(hits, shiny, away.take(shiny, axis=1) / length[shiny])
        shine += gloss * glint * (light[shiny] > 0) * tint.take(shiny, axis=1)
    colour = _find_colours(stage, hits, size) * total
    put(colour, shiny, colour.take(shiny, axis=1) + shine)
    return np.asarray(colour)


def _reflect(hits: Hits, shiny: AnyArray, light: AnyArray) -> AnyArray:
    """How much of a light, which comes in that direction, is mirrored towards the eye."""
    half = light + hits.rays.take(shiny, axis=1)
    glint = np.minimum(dot(half, hits.normal.take(shiny, axis=1)), 0) ** 2 / dot(half, half)
    for _ in range(4):
        glint = glint * glint
    return np.asarray(glint)


def _open(stage: Stage, hits: Hits) -> AnyArray:
    """How much of the light from all around arrives: less in corners and beside solids."""
    wall = np.minimum(hits.point, each(stage.room, hits.counts) - hits.point)
    shut = (1 - np.abs(hits.normal)) * np.float32(0.08) / (wall + np.float32(0.25))
    light = 1 - shut[0] - shut[1] - shut[2]
    for solid, (part, radius) in enumerate(
        zip(stage.parts(hits.counts), stage.radius, strict=True)
    ):
        gap = stage.centre[:, solid, None] - hits.point[:, part]
        square = dot(gap, gap)
        near = np.flatnonzero(square < 9 * radius * radius)
        square = square[near]
        facing = np.maximum(dot(gap.take(near, axis=1), hits.normal[:, part].take(near, axis=1)), 0)
        hidden = facing * (np.float32(0.5) * radius * radius) / (square * np.sqrt(square))
        light[part][near] *= 1 - np.minimum(hidden, np.float32(0.7))
    return np.asarray(light)


def _find_colours(stage: Stage, hits: Hits, size: int) -> AnyArray:
    """Colours of the paints; a pattern finer than a pixel fades to its mean, which avoids moire."""
    facing = np.maximum(-dot(hits.normal, hits.rays), np.float32(0.05))
    footprint = hits.distance * each(stage.spread * np.float32(2 / size), hits.counts) / facing
    paint, place = _lay_decals(stage, hits), _find_places(stage, hits)
    mix, pattern = np.zeros(len(paint), dtype=np.float32), stage.pattern[paint]
    for index, name in enumerate(PATTERNS[1:], 1):
        mine = np.flatnonzero(pattern == index)
        which = paint[mine]
        cell = stage.cell[which]
        raw = _MIX[name](place.take(mine, axis=1) / cell + stage.origin.take(which, axis=1))
        sharp = np.clip(np.float32(0.8) * cell / footprint[mine] - np.float32(0.6), 0, 1)
        mix[mine] = (raw - np.float32(0.5)) * sharp + np.float32(0.5)
    return np.asarray(
        stage.base.take(paint, axis=1) + (stage.other - stage.base).take(paint, axis=1) * mix
    )


def _lay_decals(stage: Stage, hits: Hits) -> AnyArray:
    """The paint of each hit, where rugs and posters cover the room's."""
    paint, ends = hits.paint.copy(), np.cumsum(hits.counts)
    for index, (scene, decal) in enumerate(stage.decals, stage.first_decal):
        part = slice(ends[scene] - hits.counts[scene], ends[scene])
        offset = (hits.point[:, part] - column(decal.middle)) / column(decal.half)
        inside = dot(offset, offset) if decal.round else np.abs(offset).max(0)
        paint[part][(inside < 1) & (hits.surface[part] < 3)] = index
    return paint


def _find_places(stage: Stage, hits: Hits) -> AnyArray:
    """Where in its pattern each hit is: in the room, or along the axes of its solid, with which the
    pattern turns."""
    place = hits.point.copy()
    mine = np.flatnonzero(hits.paint >= stage.first_solid)
    solid = hits.paint[mine] - stage.first_solid
    local = hits.point.take(mine, axis=1) - stage.centre.take(solid, axis=1)
    put(place, mine, apply(stage.turn.swapaxes(0, 1).take(solid, axis=2), local))
    return place


def _wave(x: AnyArray) -> AnyArray:
    """Nearly a sine of period 1."""
    x = 2 * (x - np.floor(x)) - 1
    return np.asarray(4 * x * (1 - np.abs(x)))


def _clouds(q: AnyArray) -> AnyArray:
    x, y, z = q * np.float32(0.6)
    bent = _wave(0.9 * x + 0.4 * y + 0.3 * z) * 0.35
    return np.asarray(
        0.5 + 0.25 * (_wave(y - 0.5 * z + bent) + _wave(0.7 * z + 0.8 * x - 0.6 * y + 1.7 * bent))
    )


def _planks(q: AnyArray) -> AnyArray:
    row = np.floor(2 * q[0])
    tone = row * 0.618 + np.floor(0.5 * q[1] + row * 0.37) * 0.414 + np.floor(0.5 * q[2]) * 0.27
    line = np.abs(2 * q[0] - row - 0.5) > 0.45
    return np.where(line, np.float32(1), 0.7 * (tone - np.floor(tone)))


_MIX: dict[str, Callable[[AnyArray], AnyArray]] = {
    "stripes": lambda q: q[0] - np.floor(q[0]) < 0.5,
    "checker": lambda q: (np.floor(q[0]) + np.floor(q[1]) + np.floor(q[2])) % 2,
    "dots": lambda q: dot(*[q - np.floor(q) - np.float32(0.5)] * 2) < 0.15,
    "tiles": (
        lambda q: (
            np.abs(q * np.float32(0.6) - np.floor(q * np.float32(0.6)) - np.float32(0.5)).max(0)
            > 0.44
        )
    ),
    "clouds": _clouds,
    "planks": _planks,
}
