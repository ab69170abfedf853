"""A torch loop of somebody's own behind the verbs of a learner: a shared trunk, two heads, their
own optimiser.

A state is whatever the loop needs to go on; nobody but the learner looks into it. Mini-batches come
from a helper that knows them by seed, task and number alone, so there is no random stream to keep
and none that a fork could forget.
"""

import copy

import numpy as np
import torch

from allotment.data.labels import Labels
from allotment.learners.batches import mini_batches
from allotment.learners.learner import Measure

INPUTS = torch.from_numpy(np.random.default_rng(7).normal(size=(400, 8)).astype(np.float32))
TRUTH = {
    "species": INPUTS[:, :3].argmax(dim=1).numpy(),
    "age": INPUTS[:, 2:5].argmax(dim=1).numpy(),
}
VALIDATION = np.arange(300, 400)


class OwnLoop:
    tasks = ("species", "age")
    fork = staticmethod(copy.deepcopy)

    def steps(self, labels):
        return 100

    def start(self, labels, seed):
        # layers draw their first weights from the global stream: leave it as it was
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            trunk = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU())
            nets = {task: torch.nn.Sequential(trunk, torch.nn.Linear(32, 3)) for task in self.tasks}
        adam = torch.optim.Adam(torch.nn.ModuleDict(nets).parameters(), lr=0.01)
        return nets, adam, labels, seed, 0

    def step(self, state, tasks):
        nets, adam, labels, seed, done = state
        adam.zero_grad()
        for task, batch in mini_batches(labels, tasks, 16, done, seed):  # gradients add up
            # classes; pseudo-labels may be probabilities
            wanted = torch.from_numpy(batch.fill(TRUTH[task].take))
            wanted = wanted.float() if wanted.ndim == 2 else wanted.long()
            torch.nn.functional.cross_entropy(
                nets[task](INPUTS[batch.instances]), wanted
            ).backward()
        adam.step()
        return nets, adam, labels, seed, done + 1

    def predict(self, state, task, instances):
        return state[0][task](INPUTS[instances]).softmax(dim=1).detach().numpy()

    def score(self, state, task):
        said, true = self.predict(state, task, VALIDATION), TRUTH[task][VALIDATION]
        loss = -np.log(said[np.arange(len(true)), true]).mean()
        return Measure((said.argmax(axis=1) == true).mean(), loss, higher_is_better=True)


def make():
    return OwnLoop(), Labels({"species": range(0, 120), "age": range(100, 200)})
