"""The paper's way on labels that score in turn, with a rate for tasks whose curve shows none."""

from __future__ import annotations

import numpy as np

from allotment.estimates.paper import OUTLINE, InPieces, Paper, descend, find_pool
from allotment.estimates.request import Request


class ByMendedTaba(InPieces):
    about = (
        "the paper's on folds that score in turn; a curve without signal borrows the others' rate"
    )
    options = (*OUTLINE, "ensemble", "mode", "pool", "draws", "probing")

    def follow(self, request: Request) -> Paper:
        taken = np.zeros(0, dtype=np.int64)
        if request.folds > 1:  # a fold is scored on: not even its inputs are learnt from
            taken = np.concatenate([labels.instances for labels in request.labels.values()])
        mode = request.options.get("mode") or "hard"
        return Paper(request, "paper", descend, {"letter": True}, find_pool(request, taken), mode)


METHOD = ByMendedTaba()
