"""What a network begins with: trained weights, or nothing where that is meant."""

from __future__ import annotations

from pathlib import Path

from allotment.errors import InputError, Mistake
from allotment.learners.built_in import USUAL_NETWORK
from allotment.learners.editions import KEEPING_FIRST
from allotment.ledger.store import Store
from allotment.settings.settings import SETTINGS_FILE, Settings
from allotment.toml import find_lines


def tell_unbegun(store: Store, settings: Settings) -> str:
    """What the settings do not say of a network's first weights; "" if they do, or if trainings
    that began without any are on record: these go on as they began."""
    training = settings.training
    network = training.get("network", USUAL_NETWORK)
    if network == USUAL_NETWORK or "weights" in training or training.get("from_scratch"):
        return ""
    if _has_trained(store, network):
        return ""
    begins = f"{network} begins with layers that were trained on ImageNet"
    file = 'Write weights = "FILE" below [training], a file of them (.safetensors, .npz or .pth)'
    what = f"is missing: {begins}. {file}; docs/vision.md says what is in it"
    if network in KEEPING_FIRST:
        return what
    return f"{what}. To have it start from nothing: from_scratch = true"


def check_begun(unbegun: str, settings: Settings, folder: Path) -> None:
    """Raises InputError where something is not said that a training has to know."""
    if not unbegun:
        return
    line = find_lines(settings.text).get(("training", "network"))
    file = folder / SETTINGS_FILE
    where = f"{file}: training: weights" if line is None else f"{file}:{line}: training: weights"
    raise InputError([Mistake(where, unbegun)])


def _has_trained(store: Store, network: str) -> bool:
    """Whether such a network was trained here before, from nothing."""
    for kind in store.list_kinds():
        for needs in store.list_needs(kind):
            recipe = needs.get("recipe", {}).get("training", {})
            if recipe.get("network") == network and "weights" not in recipe:
                return True
    return False
