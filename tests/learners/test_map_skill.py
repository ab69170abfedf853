"""Skill of answers for pixels: planted answers of which it is known how much they see."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.learners import make_images
from scipy import stats

from allotment.data.dataset import PIXEL_KINDS, VOID, Target
from allotment.data.labels import Labels, draw, split
from allotment.data.source import SOURCES, DataSettings
from allotment.learners.learner import train
from allotment.learners.map_skill import (
    FEWEST_PICTURES,
    MOST_ACROSS,
    PLACES,
    MapSkill,
    correlate_maps,
)
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

DATA = Path(os.environ.get("ALLOT_TEST_DATA", "nowhere"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="ALLOT_TEST_DATA is not set")
TARGETS = {
    kind: Target(kind, kind, ("ground", "a", "b") if kind == "segmentation" else ())
    for kind in PIXEL_KINDS
}
SIDE = 8
PICTURES = 40
Maps = tuple[np.ndarray, np.ndarray]
"""answers and labels"""


def draw_fields(
    rng: np.random.Generator, pictures: int, parts: int, shared: np.ndarray
) -> np.ndarray:
    """Fields whose neighbours are alike, around a map that all pictures share."""
    coarse = rng.normal(size=(pictures, parts, 3, 3))
    across = np.linspace(0, 2, SIDE)
    low = np.minimum(across.astype(int), 1)
    share = (across - low)[:, None]
    blend = np.eye(3)[low] * (1 - share) + np.eye(3)[low + 1] * share
    fine = np.einsum("hk,npkl,wl->nphw", blend, coarse, blend)
    return fine + shared


def to_answers(kind: str, fields: np.ndarray) -> np.ndarray:
    if kind == "segmentation":
        chances = np.exp(fields)
        return chances / chances.sum(axis=1, keepdims=True)
    if kind == "normals":
        return fields / np.linalg.norm(fields, axis=1, keepdims=True)
    return np.exp(fields[:, 0])  # most are small, a few large


def to_labels(kind: str, fields: np.ndarray) -> np.ndarray:
    if kind == "segmentation":
        return fields.argmax(axis=1).astype(np.uint8)
    if kind == "keypoints":  # hardly any
        return np.maximum(fields[:, 0] - np.quantile(fields[:, 0], 0.95), 0.0)
    return to_answers(kind, fields)


def plant(kind: str, seed: int, sight: float, pictures: int = PICTURES) -> Maps:
    """Answers that see so much of what labels are made of; both know the map that is shared."""
    rng = np.random.default_rng([seed, 8])
    shared = draw_fields(rng, 1, 3, np.zeros(())) * np.array([1.5, 1.0, 1.0])[:, None, None]
    truth, other = (draw_fields(rng, pictures, 3, shared) for _ in range(2))
    return to_answers(kind, sight * truth + (1 - sight) * other), to_labels(kind, truth)


def tell_perfect(kind: str, values: np.ndarray) -> np.ndarray:
    """The labels as answers."""
    if kind == "segmentation":
        return np.moveaxis(np.eye(3)[values % 3], -1, 1)
    return np.nan_to_num(values)


def hide(kind: str, values: np.ndarray, seed: int) -> np.ndarray:
    """A third of the labels unknown, one picture altogether."""
    unknown = np.random.default_rng(seed).random(values.shape[:1] + values.shape[-2:]) < 1 / 3
    unknown[0] = True
    if kind == "segmentation":
        return np.where(unknown, VOID, values)
    return np.where(unknown[:, None] if kind == "normals" else unknown, np.nan, values)


def keep(kind: str, values: np.ndarray, seed: int) -> np.ndarray:
    return values


# --- answers by chance ---


@pytest.mark.parametrize("change", [keep, hide])
@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_answers_that_see_nothing_are_as_far_from_0_as_the_error_says(
    kind: str, change: Callable[[str, np.ndarray, int], np.ndarray]
) -> None:
    """Over 300 draws, of which the spread is known to within 4 %. They know the map that pictures
    share, which scores better than chance in any metric."""
    skills, errors = [], []
    for seed in range(300):
        answers, values = plant(kind, seed, sight=0.0)
        skill, error = correlate_maps(TARGETS[kind], answers, change(kind, values, seed))
        skills.append(skill)
        errors.append(error)
    stated = float(np.sqrt(np.mean(np.square(errors))))
    assert abs(np.mean(skills)) < 3 * stated / np.sqrt(300)
    assert 1 / 1.25 < np.std(skills) / stated < 1.25
    assert np.mean(np.abs(skills) <= 3 * np.array(errors)) >= 0.98


@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_the_error_is_that_of_all_ways_to_deal_answers_to_pictures(kind: str) -> None:
    answers, values = plant(kind, seed=3, sight=0.5, pictures=6)
    target = TARGETS[kind]
    found = [
        correlate_maps(target, answers[list(order)], values)
        for order in itertools.permutations(range(6))
    ]
    skills, errors = (np.array(each) for each in zip(*found, strict=True))
    assert skills.mean() == pytest.approx(0, abs=1e-12)
    assert errors == pytest.approx(skills.std(), rel=1e-9)


@pytest.mark.parametrize("pictures", [10, 200])
def test_the_error_does_not_depend_on_how_it_is_summed(pictures: int) -> None:
    """Over pictures or, where these are more than the numbers of each, over pairs of numbers."""
    answers, values = plant("normals", seed=1, sight=0.3, pictures=pictures)
    said, true = (maps.reshape(pictures, -1) for maps in (answers, values))
    said, true = said - said.mean(axis=0), true - true.mean(axis=0)
    wanted = np.sqrt(np.square(said @ true.T).sum() / (pictures - 1))
    wanted /= np.linalg.norm(said) * np.linalg.norm(true)
    assert correlate_maps(TARGETS["normals"], answers, values)[1] == pytest.approx(wanted, rel=1e-9)


def test_of_one_place_it_is_the_rank_correlation_of_whole_instances() -> None:
    answers, values = (maps[:, :1, :1] for maps in plant("depth", seed=2, sight=0.4))
    skill, error = correlate_maps(TARGETS["depth"], answers, values)
    wanted = stats.spearmanr(answers.ravel(), values.ravel()).statistic
    assert skill == pytest.approx(wanted, abs=1e-12)
    assert error == pytest.approx((PICTURES - 1) ** -0.5, rel=1e-12)


# --- answers that see something ---


@pytest.mark.parametrize("change", [keep, hide])
@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_the_more_answers_see_the_more_skill_they_have(
    kind: str, change: Callable[[str, np.ndarray, int], np.ndarray]
) -> None:
    found = {}
    for sight in (0.0, 0.3, 0.5, 0.7):
        answers, values = plant(kind, seed=4, sight=sight)
        found[sight] = correlate_maps(TARGETS[kind], answers, change(kind, values, 0))
    skills = [skill for skill, _ in found.values()]
    assert skills == sorted(skills)
    assert 3 * found[0.5][1] < found[0.5][0] < 0.9
    values = change(kind, values, 0)
    best, error = correlate_maps(TARGETS[kind], tell_perfect(kind, values), values)
    assert best == pytest.approx(1, abs=1e-9)
    assert 0 < error < 0.5


def test_answers_that_are_the_wrong_way_round_are_below_0() -> None:
    answers, values = plant("depth", seed=5, sight=0.6)
    skill, error = correlate_maps(TARGETS["depth"], answers, values)
    turned = correlate_maps(TARGETS["depth"], -answers, values)
    assert turned == (pytest.approx(-skill), pytest.approx(error))


def test_how_bold_answers_are_does_not_matter() -> None:
    """Few labels make timid networks, too many steps bold ones; neither tells what they see."""
    answers, values = plant("segmentation", seed=6, sight=0.6)
    timid = 0.001 * answers + 0.999 / 3
    found, wanted = (
        correlate_maps(TARGETS["segmentation"], each, values) for each in (timid, answers)
    )
    assert found == pytest.approx(wanted, rel=1e-6)
    answers, values = plant("depth", seed=6, sight=0.6)
    found, wanted = (
        correlate_maps(TARGETS["depth"], each, values) for each in (7 + 5 * answers, answers)
    )
    assert found == pytest.approx(wanted, rel=1e-12)


# --- where there is little to see ---


@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_the_same_answer_for_every_picture_has_no_skill(kind: str) -> None:
    """Not even if it is the best of them, the mean picture."""
    _, values = plant(kind, seed=7, sight=0.0)
    mean = tell_perfect(kind, values).mean(axis=0, keepdims=True)
    same = np.broadcast_to(mean, (PICTURES, *mean.shape[1:]))
    skill, error = correlate_maps(TARGETS[kind], same, values)
    assert skill == 0
    perfect = correlate_maps(TARGETS[kind], tell_perfect(kind, values), values)
    assert error == perfect[1] > 0.01


@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_labels_that_set_no_picture_apart_have_neither_skill_nor_error(kind: str) -> None:
    answers, values = plant(kind, seed=8, sight=0.5)
    target = TARGETS[kind]
    nothing = np.full_like(values, VOID if kind == "segmentation" else np.nan)
    for labels in (np.broadcast_to(values[:1], values.shape), nothing, values[:0]):
        said = answers[: len(labels)]
        assert np.isnan(correlate_maps(target, said, labels)).all()
    assert np.isnan(MapSkill(target, 0).result()).all()


@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_of_one_or_two_pictures_nothing_can_be_told(kind: str) -> None:
    answers, values = plant(kind, seed=9, sight=0.5, pictures=FEWEST_PICTURES)
    assert np.isfinite(correlate_maps(TARGETS[kind], answers, values)).all()
    for few in range(1, FEWEST_PICTURES):
        assert np.isnan(correlate_maps(TARGETS[kind], answers[:few], values[:few])).all()


@pytest.mark.parametrize("kind", PIXEL_KINDS)
def test_what_is_said_of_unknown_places_changes_no_skill(kind: str) -> None:
    answers, values = plant(kind, seed=10, sight=0.5)
    values = hide(kind, values, 1)
    unknown = values == VOID if kind == "segmentation" else np.isnan(values)
    odd = np.where(unknown[:, None] if kind == "segmentation" else unknown, 0.123, answers)
    found, wanted = (correlate_maps(TARGETS[kind], each, values)[0] for each in (odd, answers))
    assert found == pytest.approx(wanted, rel=1e-9)


# --- parts, grids, learners ---


@pytest.mark.parametrize(
    ("pictures", "height", "width"), [(3, 5, 40), (100, 64, 48), (5000, 32, 32)]
)
def test_few_places_of_many_pictures_are_looked_at(pictures: int, height: int, width: int) -> None:
    maps = np.arange(height * width).reshape(1, height, width)
    thinned = MapSkill(TARGETS["depth"], pictures).thin(maps)
    down, across = thinned.shape[1:]
    assert 2 <= down <= min(MOST_ACROSS, height)
    assert 2 <= across <= min(MOST_ACROSS, width)
    assert pictures * down * across <= max(PLACES, 4 * pictures)
    rows, columns = np.divmod(thinned[0], width)
    # the same distance to both ends, but for a pixel
    assert abs(rows[0, 0] - (height - 1 - rows[-1, 0])) <= 1
    assert abs(columns[0, 0] - (width - 1 - columns[0, -1])) <= 1


def test_parts_make_the_same_as_the_whole() -> None:
    answers, values = plant("segmentation", seed=11, sight=0.5)
    running = MapSkill(TARGETS["segmentation"], PICTURES)
    for part in (slice(0, 7), slice(7, 8), slice(8, PICTURES)):
        running.add(running.thin(answers[part]), running.thin(values[part]))
    assert running.result() == correlate_maps(TARGETS["segmentation"], answers, values)


def test_a_learner_tells_what_its_answers_are_worth() -> None:
    data = make_images(count=40, size=16, side=7)
    parts = split(data, 0, 0.5, 0.1)
    learner = TorchLearner(data, parts, Recipe(steps=25, batch_size=8, device="cpu"))
    state = train(learner, Labels(dict.fromkeys(learner.tasks, parts.train)), 0)
    for target in data.targets:
        if target.kind not in PIXEL_KINDS:
            continue
        found = learner.score(state, target.name)
        constant = learner.score_constant(state, target.name)
        said = learner.predict(state, target.name, parts.validation)
        wanted = correlate_maps(target, said, data.values(target.name, parts.validation))
        assert (found.skill, found.skill_error) == pytest.approx(wanted, abs=1e-5), target.name
        assert found.skill > 3 * found.skill_error, target.name
        assert constant.skill == 0
        assert constant.skill_error > 0


@real
@pytest.mark.parametrize(("source", "folder"), [("voc", "VOC2012"), ("taskonomy", "taskonomy")])
def test_every_task_of_real_pictures_has_a_skill(source: str, folder: str) -> None:
    data = SOURCES.load(source).open(DataSettings({"side": 48}, DATA / folder))
    parts = split(data, 0, 0.25, 0.1)
    learner = TorchLearner(data, parts, Recipe(steps=6, batch_size=4, device="cpu"))
    learner = learner.with_validation(parts.validation[:40])
    labels = draw(data, parts.train, dict.fromkeys(learner.tasks, 20), 0)
    state = train(learner, labels, 0)
    for target in data.targets:
        found = learner.score(state, target.name)
        assert -1 <= found.skill <= 1, target.name
        assert 0 < found.skill_error < 0.5, target.name
