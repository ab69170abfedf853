"""A torch loop of somebody's own behind the verbs of a learner: a shared trunk, two heads, their own optimiser.

A state is whatever the loop needs to go on; nobody but the learner looks into it. Each task draws its mini-batches
from a random stream of its own, so number t is the same whatever else is trained on, and a fork copies the streams.
"""

import copy

import numpy as np
import torch

from allotment.data.labels import Labels
from allotment.learners.learner import Measure

INPUTS = torch.from_numpy(np.random.default_rng(7).normal(size=(400, 8)).astype(np.float32))
TRUTH = {"species": torch.eye(3)[INPUTS[:, :3].argmax(dim=1)], "age": torch.eye(3)[INPUTS[:, 2:5].argmax(dim=1)]}
VALIDATION = np.arange(300, 400)


class OwnLoop:
    tasks = ("species", "age")
    fork = staticmethod(copy.deepcopy)

    def steps(self, labels):
        return 100

    def start(self, labels, seed):
        torch.manual_seed(seed)
        trunk = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU())
        nets = torch.nn.ModuleDict({task: torch.nn.Sequential(trunk, torch.nn.Linear(32, 3)) for task in self.tasks})
        streams = {task: np.random.default_rng([seed, place]) for place, task in enumerate(self.tasks)}
        values = copy.deepcopy(TRUTH)
        for task, mine in labels.items():
            if mine.values is not None:  # pseudo-labels, which stand for the truth: classes or their probabilities
                given, where = mine.values[mine.is_pseudo], mine.instances[mine.is_pseudo]
                values[task][where] = torch.tensor(given if given.ndim == 2 else np.eye(3)[given]).float()
        return nets, streams, torch.optim.Adam(nets.parameters(), lr=0.01), labels, values

    def step(self, state, tasks):
        nets, streams, adam, labels, values = state
        adam.zero_grad()
        for task in tasks:  # gradients add up
            batch = streams[task].choice(np.sort(labels[task].instances), 16)
            torch.nn.functional.cross_entropy(nets[task](INPUTS[batch]), values[task][batch]).backward()
        adam.step()
        return state

    def predict(self, state, task, instances):
        return state[0][task](INPUTS[instances]).softmax(dim=1).detach().numpy()

    def score(self, state, task):
        said, true = torch.from_numpy(self.predict(state, task, VALIDATION)), TRUTH[task][VALIDATION]
        right = (said.argmax(dim=1) == true.argmax(dim=1)).float().mean().item()
        return Measure(right, torch.nn.functional.cross_entropy(said.log(), true).item(), higher_is_better=True)


def make():
    return OwnLoop(), Labels({"species": range(0, 120), "age": range(100, 200)})
