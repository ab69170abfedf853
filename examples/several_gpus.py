"""One training on several GPUs, by Accelerate, behind the verbs of a learner.

Its only step is a whole training. This file is then run once for each GPU that the job has (on CPUs
as often as PROCESSES says): each process computes the gradients of its share of every mini-batch,
and Accelerate averages them. Arrays come and go through a folder. `Network` is where a network of
your own goes, and `train` is what you would write for `accelerate launch` or `torchrun`.
"""

import copy
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from allotment.data.labels import Labels
from allotment.learners.batches import batch_places
from allotment.learners.learner import Measure

STEPS, BATCH, RATE = 100, 16, 0.01


class Network(nn.Module):
    """A shared trunk and a head for each task; a task with one output is a number."""

    def __init__(self, width, outputs, seed):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.trunk = nn.Sequential(nn.Linear(width, 32), nn.ReLU())
            self.heads = nn.ModuleList(nn.Linear(32, each) for each in outputs)

    def forward(self, batches):
        """All tasks at once, by their numbers, so that gradients are averaged once."""
        return {task: self.heads[task](self.trunk(inputs)) for task, inputs in batches.items()}


class OnSeveralGPUs:
    trains_whole = True
    fork = staticmethod(copy.deepcopy)

    def __init__(self, data, split):
        self.data, self.validation = data, split.validation
        self.tasks = tuple(target.name for target in data.targets)
        self.outputs = [len(target.classes) or 1 for target in data.targets]

    def with_validation(self, instances):
        other = copy.copy(self)
        other.validation = instances
        return other

    def steps(self, labels):
        return 1

    def start(self, labels, seed):
        network = Network(self._open([0]).shape[1], self.outputs, seed)
        return {"labels": labels, "seed": seed, "network": network, "scales": {}, "processes": 0}

    def step(self, state, tasks):
        state, given = copy.copy(state), {"seed": state["seed"], "outputs": self.outputs}
        for task in sorted({self.tasks.index(name) for name in tasks}):
            mine = state["labels"][self.tasks[task]]
            order = np.argsort(mine.instances)
            values = mine.fill(lambda at, task=task: self._look(task, at))[order]
            values, scale = self._shape(task, values)
            state["scales"] = state["scales"] | {task: scale}
            given[f"inputs {task}"] = self._open(mine.instances[order])
            given[f"values {task}"] = values
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder, "given.npz"), **given)
            run_processes(folder)
            with np.load(Path(folder, "done.npz")) as done:
                weights = {name: torch.from_numpy(done[name]) for name in done.files}
        state["processes"] = int(weights.pop("processes"))
        state["network"] = Network(self._open([0]).shape[1], self.outputs, state["seed"])
        state["network"].load_state_dict(weights)
        return state

    def predict(self, state, task, instances):
        number = self.tasks.index(task)
        if not len(instances):
            return np.zeros((0, self.outputs[number])[: 1 + (self.outputs[number] > 1)])
        with torch.no_grad():
            said = state["network"]({number: torch.from_numpy(self._open(instances))})[number]
        if self.outputs[number] > 1:
            return said.softmax(dim=1).numpy()
        mean, spread = state["scales"].get(number, (0.0, 1.0))
        return said[:, 0].numpy() * spread + mean

    def score(self, state, task):
        seen = self.validation
        seen = seen[task].instances if isinstance(seen, Labels) else seen
        seen = seen[self.data.known(task)[seen]]
        said, true = self.predict(state, task, seen), self._look(task, seen)
        if not len(seen):
            return Measure(float("nan"), float("nan"), False)
        if said.ndim == 1:
            return Measure(np.abs(said - true).mean(), np.square(said - true).mean(), False)
        loss = -np.log(said[np.arange(len(true)), true] + 1e-9).mean()
        return Measure((said.argmax(axis=1) == true).mean(), loss, higher_is_better=True)

    def _open(self, instances):
        rows = np.asarray(self.data.inputs(np.asarray(instances)), dtype=np.float32)
        return rows.reshape(len(rows), -1)

    def _look(self, task, instances):
        name = task if isinstance(task, str) else self.tasks[task]
        return np.asarray(self.data.values(name, instances))

    def _shape(self, task, values):
        """Probabilities of classes, or numbers of about one, with their scale."""
        if self.outputs[task] > 1:
            sure = np.eye(self.outputs[task], dtype=np.float32)
            return (values if values.ndim == 2 else sure[values]).astype(np.float32), (0.0, 1.0)
        scale = float(values.mean()), float(values.std() or 1.0)
        return ((values - scale[0]) / scale[1]).astype(np.float32)[:, None], scale


def run_processes(folder):
    """As many as there are GPUs; where one dies, all end, and what it said is in the job's log.

    They stay until the weights are there and are ended then: how each would leave decides nothing.
    """
    count = torch.cuda.device_count() or int(os.environ.get("PROCESSES", "1"))
    if count == 1:
        return train(folder)
    # nobody beyond this machine can reach them
    shared = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    shared |= {"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    processes, done = [], Path(folder, "done.npz")
    try:
        for rank in range(count):
            mine = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            command = [sys.executable, "-P", __file__, folder]
            processes.append(subprocess.Popen(command, env=mine, stdin=subprocess.PIPE))
        while True:
            codes = [each.poll() for each in processes]
            if done.exists():
                break
            if any(codes) or None not in codes:
                raise RuntimeError("a process of this training died; its log says of what")
            time.sleep(0.05)
    finally:
        for each in processes:
            each.kill()
            each.communicate()


def train(folder):
    """In each process: train, on its share of every mini-batch."""
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

    rank, count = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    with np.load(Path(folder, "given.npz")) as arrays:
        given = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    tasks = sorted(int(name.split()[1]) for name in given if name.startswith("inputs"))
    # heads of tasks without labels have no gradient
    some = DistributedDataParallelKwargs(find_unused_parameters=len(tasks) < len(given["outputs"]))
    meet = InitProcessGroupKwargs(init_method=f"file://{folder}/meeting")  # no port for it
    here = Accelerator(cpu=not torch.cuda.is_available(), kwargs_handlers=[some, meet])
    width, seed = given[f"inputs {tasks[0]}"].shape[1], int(given["seed"])
    network = Network(width, given["outputs"].tolist(), seed)
    adam = torch.optim.Adam(network.parameters(), lr=RATE)
    network, adam = here.prepare(network, adam)
    for step in range(STEPS):
        places = {}
        for task in tasks:
            labels = len(given[f"inputs {task}"])
            places[task] = batch_places(labels, BATCH, step, seed, str(task))[rank::count]
        batches = {task: given[f"inputs {task}"][places[task]].to(here.device) for task in tasks}
        loss = 0.0
        for task, said in network(batches).items():
            values = given[f"values {task}"][places[task]].to(here.device)
            kind = nn.functional.mse_loss if values.shape[1] == 1 else nn.functional.cross_entropy
            # sums over shares of any size: averaged over processes they are the mean of the batch
            loss = loss + kind(said, values, reduction="sum") * count / BATCH
        adam.zero_grad()
        here.backward(loss)
        adam.step()
    if here.is_main_process:
        found = {name: each.cpu() for name, each in here.get_state_dict(network).items()}
        np.savez(Path(folder, "new.npz"), processes=here.num_processes, **found)
        Path(folder, "new.npz").replace(Path(folder, "done.npz"))


def make(data, split):
    return OnSeveralGPUs(data, split)


if __name__ == "__main__":
    # whoever started this holds the other end: without it, there is nobody to train for
    started = threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True)
    started.start()
    train(sys.argv[1])
    # it also ends this process: threads of torch that end with a process group or with the
    # interpreter have been seen to end it with "terminate called" before others were done
    started.join()
