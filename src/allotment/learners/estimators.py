"""Estimators of scikit-learn by name, with settings for as many labels as there are."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from allotment.errors import InputError, Mistake, cut, suggest

NAMED_ESTIMATORS: Mapping[str, tuple[str, str, str]] = {
    "HistGradientBoosting": (
        "sklearn.ensemble",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
    ),
    "GradientBoosting": (
        "sklearn.ensemble",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
    ),
    "RandomForest": ("sklearn.ensemble", "RandomForestClassifier", "RandomForestRegressor"),
    "ExtraTrees": ("sklearn.ensemble", "ExtraTreesClassifier", "ExtraTreesRegressor"),
    "Bagging": ("sklearn.ensemble", "BaggingClassifier", "BaggingRegressor"),
    "AdaBoost": ("sklearn.ensemble", "AdaBoostClassifier", "AdaBoostRegressor"),
    "DecisionTree": ("sklearn.tree", "DecisionTreeClassifier", "DecisionTreeRegressor"),
    "KNeighbors": ("sklearn.neighbors", "KNeighborsClassifier", "KNeighborsRegressor"),
    "MLP": ("sklearn.neural_network", "MLPClassifier", "MLPRegressor"),
    "Ridge": ("sklearn.linear_model", "LogisticRegression", "RidgeCV"),
}
"""what may be named: the module of scikit-learn, its class for classes and that for numbers. A file
can name nothing else, so that it never names code"""
BOOSTING = "HistGradientBoosting"
"""what is taken for gradient boosting"""
ROUNDS = 100
"""of boosting, for numbers and for two classes"""
MOST_TREES = 300
"""of boosting with more classes, each of which has a tree in every round"""
PENALTIES = tuple(10.0 ** (power / 2) for power in range(9))
"""of lines, among which each fit chooses by leaving one label out"""


def check_estimator(name: str) -> str:
    """What is wrong with the name of an estimator; "" if nothing is."""
    if name not in NAMED_ESTIMATORS:
        return f"there is no {cut(repr(name), 60)}; {suggest(name, NAMED_ESTIMATORS)}"
    if importlib.util.find_spec("sklearn") is None:
        return "scikit-learn is not installed: pip install 'allotment[sklearn]'"
    return ""


def make_estimator(name: str, kind: str, count: int, classes: int) -> Any:
    """A model of scikit-learn for so many labels; raises InputError where there is none."""
    if what := check_estimator(name):
        raise InputError([Mistake("learner", what)])
    module, for_classes, for_numbers = NAMED_ESTIMATORS[name]
    chosen = for_numbers if kind == "regression" else for_classes
    return getattr(importlib.import_module(module), chosen)(**_fit_size(chosen, count, classes))


def _fit_size(chosen: str, count: int, classes: int) -> dict[str, Any]:
    """Settings for few labels where those of scikit-learn are for many: with 20 labels to a leaf,
    30 grow no tree."""
    if chosen.startswith(BOOSTING):
        rounds = ROUNDS if classes <= 2 else max(30, min(ROUNDS, MOST_TREES // classes))
        return {
            "max_iter": rounds,
            "learning_rate": min(0.3, 0.1 * ROUNDS / rounds),
            "max_leaf_nodes": min(max(count // 30, 4), 31),
            "min_samples_leaf": min(max(count // 12, 2), 20),
            "max_bins": 63 if count < 1000 else 255,
            "l2_regularization": 1.0,
            "early_stopping": False,
        }
    if chosen == "RidgeCV":
        return {"alphas": PENALTIES}
    return {"C": 0.1, "max_iter": 300} if chosen == "LogisticRegression" else {}
