"""Appendix C: the losses behind the gains of Table 2."""

from __future__ import annotations

from allotment.experiment.exhibits.metrics import AppendixScores
from allotment.experiment.exhibits.table_2 import EXHIBIT as TABLE_2


class MetricsTaskonomy(AppendixScores):
    about = "the scores behind table 2: the loss of each task"
    data = "taskonomy"
    behind = TABLE_2
    title = "Appendix: scores on Taskonomy"


EXHIBIT = MetricsTaskonomy()
