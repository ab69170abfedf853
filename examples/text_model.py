"""A text model in the style of Hugging Face as the trunk of the built-in learner, with two heads:
topic and mood.

The verbs and the mini-batches come from `TorchLearner`; the network is one's own, dropout included.
A tiny stand-in has the interface of a pretrained model, so that nothing needs fetching. For a real
one, import AutoModel and AutoTokenizer from transformers, change the line marked (*) to
`AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)`, and set both rates to about
2e-5.
"""

import copy
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from allotment.data.dataset import ArrayData, Target
from allotment.data.labels import draw, split
from allotment.learners.recipe import Recipe
from allotment.learners.torch_learner import TorchLearner

WORDS = ["", "goal", "match", "vote", "law", "moon", "orbit"]
WORDS += ["awful", "dull", "fine", "superb", "very"]
NOUN, MOOD, VERY = np.random.default_rng(3).integers([1, 7, 0], [7, 11, 2], size=(400, 3)).T
TEXTS = [
    f"{WORDS[noun]} {'very ' * very}{WORDS[mood]}"
    for noun, mood, very in zip(NOUN, MOOD, VERY, strict=True)
]


class Encoder(nn.Embedding):
    config = SimpleNamespace(hidden_size=16)

    def forward(self, input_ids, attention_mask):
        return SimpleNamespace(
            last_hidden_state=nn.functional.dropout(super().forward(input_ids), 0.1, self.training)
        )


def tokenize(texts, padding, return_tensors):
    input_ids = nn.utils.rnn.pad_sequence(
        [torch.tensor([*map(WORDS.index, text.split())]) for text in texts], True
    )
    return {"input_ids": input_ids, "attention_mask": (input_ids > 0).long()}


TOKENIZER, PRETRAINED = tokenize, Encoder.from_pretrained(torch.eye(12, 16), freeze=False)  # (*)


class TwoHeads(nn.Module):
    def __init__(self, shape, targets, runs):
        super().__init__()
        self.encoder, size = copy.deepcopy(PRETRAINED), PRETRAINED.config.hidden_size
        self.heads = nn.ModuleDict(
            {target.name: nn.Linear(size, len(target.classes) or 1) for target in targets}
        )

    def reset(self, generators):
        for weight in self.heads.parameters():
            weight.data.normal_(std=0.02, generator=generators[0])

    def forward(self, tokens, task):
        ids, mask = tokens.long().unbind(dim=1)
        hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.heads[task](
            (hidden * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        )


def make():
    tokens = TOKENIZER(TEXTS, padding=True, return_tensors="pt")
    inputs = torch.stack([tokens["input_ids"], tokens["attention_mask"]], dim=1).numpy()
    targets = (
        Target("topic", "classification", ("sport", "politics", "space")),
        Target("mood", "regression"),
    )
    data = ArrayData(
        "texts", targets, inputs, {"topic": (NOUN - 1) // 2, "mood": (MOOD - 8.5) * (1 + VERY)}
    )
    learner = TorchLearner(
        data, split(data, 0), Recipe(steps=60, optimiser="adam", trunk_rate=0.02), network=TwoHeads
    )
    return learner, draw(data, learner.split.train, {"topic": 80, "mood": 80}, seed=0)
