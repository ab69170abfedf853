"""A metric: the median of the absolute error, which a few wild answers do not move."""

import numpy as np

from allotment.learners.metrics import Metric


def median_error(predictions, values):
    return float(np.median(np.abs(predictions - values)))


METRIC = Metric("median_error", higher_is_better=False, kinds=("regression",), compute=median_error)
