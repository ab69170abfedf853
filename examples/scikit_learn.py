"""Two scikit-learn models behind the verbs of a learner: one for each task, trained a mini-batch at
a time.

The models share nothing, so labels of one task never help the other; a learner may be like that,
and its plan will show it. They learn classes, not probabilities, so of a soft pseudo-label they
take the likeliest class.
"""

import copy

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import log_loss, mean_squared_error

from allotment.data.labels import Labels
from allotment.learners.batches import mini_batches
from allotment.learners.learner import Measure

INPUTS = np.random.default_rng(11).normal(size=(400, 8))
TRUTH = {"species": INPUTS[:, :3].argmax(axis=1), "weight": INPUTS[:, 2:5].sum(axis=1)}
VALIDATION = np.arange(300, 400)


class ScikitLearn:
    tasks = ("species", "weight")
    fork = staticmethod(copy.deepcopy)

    def steps(self, labels):
        return 60

    def start(self, labels, seed):
        species, weight = (
            SGDClassifier(loss="log_loss", alpha=0.01, random_state=seed),
            SGDRegressor(random_state=seed),
        )
        # blank rows: an unfitted model can't answer
        species.partial_fit(0 * INPUTS[:3], [0, 1, 2], classes=[0, 1, 2])
        weight.partial_fit(0 * INPUTS[:3], [0, 0, 0])
        return {"species": species, "weight": weight}, labels, seed, 0

    def step(self, state, tasks):
        models, labels, seed, done = state
        for task, batch in mini_batches(labels, tasks, 16, done, seed):
            # the truth, or the pseudo-labels that stand for it
            wanted = batch.fill(TRUTH[task].take)
            models[task].partial_fit(
                INPUTS[batch.instances], wanted.argmax(axis=1) if wanted.ndim == 2 else wanted
            )
        return models, labels, seed, done + 1

    def predict(self, state, task, instances):
        return getattr(state[0][task], "predict_proba" if task == "species" else "predict")(
            INPUTS[instances]
        )

    def score(self, state, task):
        said, true = self.predict(state, task, VALIDATION), TRUTH[task][VALIDATION]
        if task == "species":
            return Measure(
                np.mean(said.argmax(axis=1) == true), log_loss(true, said), higher_is_better=True
            )
        return Measure(
            np.abs(said - true).mean(), mean_squared_error(true, said), higher_is_better=False
        )


def make():
    return ScikitLearn(), Labels({"species": range(0, 120), "weight": range(100, 200)})
