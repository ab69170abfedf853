"""The card of a model: what it was trained on and how good it is, for whoever finds it later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allotment.data.dataset import Target
from allotment.errors import InputError, Mistake, visible
from allotment.learners.metrics import USUAL_METRICS
from allotment.learners.validation import Scoreboard, show_score

CARD_FILE = "README.md"
"""in the folder of a model"""
LONGEST_SAID = 1000
"""letters of a text on a card"""
MOST_CLASSES_TOLD = 20
"""classes of a task that a card lists"""
MOST_SAID = 1000
"""things that a card says of one kind"""


@dataclass(frozen=True)
class Card:
    """What is known of a model beside what it takes to ask it."""

    campaign: str
    """the name of its folder"""
    data: str
    """what it is about, in words"""
    labels: Mapping[str, Mapping[str, int]]
    """of each task, how many labels it was trained on, by where they came from"""
    recipe: Mapping[str, Any]
    seed: int
    learner: str
    """in words"""
    versions: Mapping[str, str | None]
    made: str
    """when"""
    scores: Scoreboard | None = None
    """how good models of these labels are, if that was measured"""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """of the data and the labels at hand"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        plain = {
            key: dict(each) if isinstance(each, Mapping) else each
            for key, each in vars(self).items()
        }
        plain["labels"] = {task: dict(counts) for task, counts in self.labels.items()}
        plain["scores"] = None if self.scores is None else self.scores.to_dict()
        return plain

    @classmethod
    def from_dict(cls, plain: Any) -> Card:
        """The card that `to_dict` wrote; raises InputError for anything else."""
        texts = ("campaign", "data", "learner", "made")
        tables = ("labels", "recipe", "versions", "fingerprints")
        if not isinstance(plain, Mapping) or plain.keys() != {*texts, *tables, "seed", "scores"}:
            raise InputError([Mistake("card", "does not say what a card says")])
        wrong = [key for key in texts if not _is_text(plain[key])]
        wrong += [key for key in tables if not _is_table(plain[key])]
        wrong += [] if type(plain["seed"]) is int else ["seed"]
        counts = plain["labels"].values() if "labels" not in wrong else ()
        if not all(
            _is_table(each) and all(type(n) is int for n in each.values()) for each in counts
        ):
            wrong.append("labels")
        for key in ("recipe", "versions", "fingerprints"):
            values = plain[key].values() if key not in wrong else ()
            if not all(each is None or _is_plain(each) for each in values):
                wrong.append(key)
        if wrong:
            what = "is not of the form that a card has"
            raise InputError(Mistake(f"card: {key}", what) for key in dict.fromkeys(wrong))
        scores = None if plain["scores"] is None else _read_scores(plain["scores"])
        return cls(**{**plain, "scores": scores})


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_SAID


def _is_plain(value: Any) -> bool:
    return _is_text(value) or type(value) in (int, float, bool)


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) <= MOST_SAID
        and all(_is_text(key) for key in value)
    )


def _is_count(value: Any) -> bool:
    return _is_table(value) and all(type(each) is int for each in value.values())


def _read_scores(plain: Any) -> Scoreboard:
    found = Scoreboard.from_dict(plain)
    kinds = {"task": str, "metric": str, "higher_is_better": bool, "labels": int}
    for row in found.scores[: MOST_SAID + 1]:
        if any(type(getattr(row, key)) is not kind for key, kind in kinds.items()):
            raise InputError([Mistake("card: scores", "are not of the form that scores have")])
    if len(found.scores) > MOST_SAID:
        raise InputError([Mistake("card: scores", f"are more than {MOST_SAID}")])
    return found


def write_card(card: Card, targets: Sequence[Target], inputs: str) -> str:
    """The card in Markdown."""
    lines = [
        f"# A model of the campaign {_cell(card.campaign)}",
        "",
        f"Trained on all labels at hand, {card.made}, by {_cell(card.learner)}, seed {card.seed}.",
        f"Data: {_cell(card.data)}; what it sees: {_cell(inputs)}.",
        "",
        "Ask it about other data of the same form:",
        "",
        "```sh",
        "allot predict . --root table.csv -o predictions.csv",
        "```",
        "",
        "## What it predicts",
        "",
        "| task | kind | classes | labels | where from |",
        "|---|---|---|---|---|",
    ]
    for target in targets:
        counts = card.labels.get(target.name, {})
        came = ", ".join(f"{count} {where}" for where, count in counts.items() if count)
        classes = ", ".join(map(_cell, target.classes[:20])) + (
            ", ..." if target.classes[20:] else ""
        )
        total = sum(counts.values())
        lines.append(
            f"| {_cell(target.name)} | {target.kind} | {classes or '-'} | {total} | {came or '-'} |"
        )
    lines += [
        "",
        "## How good it is",
        "",
        *_tell_scores(card, targets),
        "",
        "## How it was made",
        "",
    ]
    for key, value in {**card.recipe, **card.versions, **card.fingerprints}.items():
        if value is not None:
            lines.append(f"- {_cell(key)}: {_cell(value)}")
    lines += [
        "",
        "`model.json` says the same for programs. Nothing in this folder is ever run: weights are",
        "plain numbers, and loading them checks every one.",
    ]
    return "\n".join(lines) + "\n"


def _tell_scores(card: Card, targets: Sequence[Target]) -> list[str]:
    if card.scores is None:
        metrics = ", ".join(
            f"{_cell(each.name)} by {each.metric or USUAL_METRICS[each.kind]}" for each in targets
        )
        return [
            f"Not measured ({metrics}). `allot evaluate CAMPAIGN --now` cross-validates such",
            "models; where that was done before `allot train`, it stands here.",
        ]
    level = f"{card.scores.level * 100:.0f} %"
    lines = [
        f"Cross-validated on the labels at hand in {card.scores.parts} parts; this model saw all.",
        "",
        f"| task | metric | score | {level} interval | best constant answer |",
        "|---|---|---|---|---|",
    ]
    for row in card.scores.scores:
        span = f"{show_score(row.low)} to {show_score(row.high)}" if row.is_known else "-"
        cells = (_cell(row.task), _cell(row.metric), show_score(row.mean), span)
        lines.append(f"| {' | '.join(cells)} | {show_score(row.constant)} |")
    return lines


def _cell(value: Any) -> str:
    """Words of others, such that they end no cell and steer no terminal."""
    text = visible(str(value))[:LONGEST_SAID]
    return "".join(f"\\{each}" if each in "|`*_<>[]#\\" else each for each in text)
