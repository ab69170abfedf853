"""What slopes over the labels at hand say of slopes to come: `python experiments/slopes.py`.

Of every campaign that the corpus keeps and every task: the slope that trainings on parts of the
labels at hand show, and what its labels really brought, fitted to the plans of the setting that
were trained out. Both are held against what the neutral plan takes them to be, so that what tasks
of one campaign differ by is all that counts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from allotment.arrays import Array
from allotment.corpus.surface import KeptSurface, open_surfaces
from allotment.estimates.beliefs import Beliefs
from allotment.estimates.levels import read_signs

CORPUS = Path(__file__).parent / "corpus"
RIDGE = 0.02
"""of what labels brought, so that plans which hardly differ tell nothing"""


def fit_worths(surface: KeptSurface, exponent: float) -> Array:
    """[task]: what an e-fold of its labels brought in D_T, in points."""
    more = np.array(surface.plans, dtype=float) / np.array(surface.setting.have)
    rows = np.concatenate(
        [np.ones((len(more), 1)), (1 - (1 + more) ** -exponent) / exponent], axis=1
    )
    size = RIDGE * len(rows) * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(rows.T @ rows + size, rows.T @ surface.means)[1:])


def differ(values: Array, sizes: Array) -> Array:
    """From what they would be if tasks differed by their labels at hand alone."""
    return np.asarray(values - values.sum() * sizes / sizes.sum())


def main() -> None:
    beliefs = Beliefs()
    pairs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for surface in open_surfaces(CORPUS):
        have = np.array(surface.setting.have, dtype=float)
        sizes = (have / np.exp(np.log(have).mean())) ** -beliefs.exponent
        came = differ(fit_worths(surface, beliefs.exponent), sizes)
        for number in surface.campaigns:
            known = surface.know(number)
            assert known is not None  # open_surfaces leaves out what is not whole
            seen = differ(read_signs(known.response, sizes, 1.0, beliefs).slope, sizes)
            pairs[surface.setting.higher_is_better] += zip(seen, came, strict=True)
    for is_area, each in pairs.items():
        what = "areas under the curve" if is_area else "absolute errors"
        found = np.corrcoef(np.array(each).T)[0, 1]
        print(f"{what}: correlation {found:.2f} over {len(each)} tasks of campaigns")


if __name__ == "__main__":
    main()
