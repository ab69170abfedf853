"""Pictures of exhibits, with matplotlib: dark on white, so that they can be read on light and dark
pages and on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from allotment.arrays import Array
from allotment.errors import InputError, Mistake
from allotment.experiment.exhibit import Shown
from allotment.experiment.outcomes import Mean

INK, FAINT = "#1f2933", "#c3ccd5"
COLOURS = ("#0b6e8f", "#c2571a", "#4c7a34", "#7a4c93", "#8f6b0b", "#5b6b7b")
"""told apart in print, too, since lines differ in their dashes and bars have names"""
DASHES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))


def save_picture(shown: Shown, path: Path) -> None:
    """Draw an exhibit into a file; raises InputError where there is no matplotlib."""
    assert shown.draw is not None
    try:
        import matplotlib
    except ImportError:
        what = "pictures need matplotlib: pip install 'allotment[paper]', or give --no-pictures"
        raise InputError([Mistake("pictures", what)]) from None
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "svg.hashsalt": "allotment", "font.size": 10, "axes.edgecolor": INK, "text.color": INK,
        "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
        "axes.spines.right": False, "axes.axisbelow": True,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        figure = Figure(figsize=shown.size, layout="constrained")
        figure.patch.set_facecolor("white")
        shown.draw(figure)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw_lines(
    axes: Any, at: Sequence[float], lines: Mapping[str, Sequence[Mean]], *, faint: int = 0
) -> None:
    """A line for each name with its band; the last `faint` ones are thinner."""
    for place, (name, means) in enumerate(lines.items()):
        values = np.array([each.value for each in means])
        reach = np.array([min(each.reach, 1e9) for each in means])
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
        width = 1.2 if place >= len(lines) - faint else 2.0
        axes.plot(at, values, color=colour, linestyle=dash, linewidth=width, marker="o",
                  markersize=3, label=name)  # fmt: skip
        known = np.isfinite(values) & (reach < 1e8)
        if known.any():
            axes.fill_between(
                np.array(at)[known], (values - reach)[known], (values + reach)[known],
                color=colour, alpha=0.12, linewidth=0,
            )  # fmt: skip
    axes.grid(color=FAINT, linewidth=0.5)
    axes.legend(frameon=False, fontsize=8)


def draw_bars(axes: Any, bars: Mapping[str, Mean], marked: Mapping[str, int]) -> None:
    """A lying bar for each name, the first on top, with its interval; `marked` ones have a colour
    of COLOURS."""
    names = list(bars)
    places = np.arange(len(names))[::-1]
    values = np.array([bars[name].value for name in names])
    reach = [bars[name].reach if np.isfinite(bars[name].reach) else 0.0 for name in names]
    colours = [COLOURS[marked[name]] if name in marked else "#9aa8b5" for name in names]
    axes.barh(places, values, xerr=reach, color=colours, height=0.7,
              error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2})  # fmt: skip
    axes.set_yticks(places, names)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.grid(axis="x", color=FAINT, linewidth=0.5)
    axes.tick_params(axis="y", length=0)


def draw_matrix(axes: Any, values: Array, names: Sequence[str]) -> None:
    """Green helps, red harms, as in the paper's appendix; every cell has its number."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("transfer", ["#b3261e", "#ffffff", "#1a7f4b"])
    axes.imshow(np.clip(values, -1, 1), cmap=colours, vmin=-1, vmax=1)
    for (row, column), value in np.ndenumerate(values):
        dark = abs(value) > 0.7
        axes.text(column, row, f"{value:.2f}", ha="center", va="center",
                  color="white" if dark else INK, fontsize=9)  # fmt: skip
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("what it does for ...")
    axes.set_ylabel("a label of ...")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
