"""How long the page's charts take to be drawn again in a browser, as when a window changes its
width.

python benchmarks/charts.py

Six charts: four learning curves with bands and trainings, what money brings, what tasks gain. Told
are the median and the worst of twenty times, layout included; a median of more than 50 ms is
beyond the limit. Without a browser it says so and measures nothing.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from allotment.reports import render

ROOT = Path(__file__).resolve().parents[1]
MOST_MILLISECONDS = 50.0
TIMES = 20
CHARTS = 6
REDRAW = """(times) => {
  const {charts} = JSON.parse(document.getElementById("values").textContent);
  const places = [...document.querySelectorAll("[data-chart]")];
  const taken = [];
  for (let time = 0; time < times; time++) {
    const width = 360 + time; // another one each time, as it is when a window is drawn wider
    const begun = performance.now();
    for (const place of places) {
      const given = charts[place.dataset.chart][Number(place.dataset.at ?? 0)];
      place.replaceChildren(Charts[place.dataset.chart]({sayMoney: String, ...given}, width));
    }
    document.body.getBoundingClientRect();
    taken.push(performance.now() - begun);
  }
  return {count: places.length, taken};
}"""


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.browser import NoBrowser, launch, visit

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(render(make_values()), encoding="utf-8")
        try:
            with launch() as browser, visit(browser, file) as tab:
                tab.ask(REDRAW, 3)  # until the machine has compiled it
                found = tab.ask(REDRAW, TIMES)
        except NoBrowser as missing:
            print(f"charts: not measured, {missing}")
            return
    assert found["count"] == CHARTS, found["count"]
    middle, worst = statistics.median(found["taken"]), max(found["taken"])
    print("| charts | times | median ms | worst ms |\n|---|---:|---:|---:|")
    print(f"| {CHARTS} drawn again | {TIMES} | {middle:.1f} | {worst:.1f} |")
    if middle > MOST_MILLISECONDS:
        sys.exit(f"beyond the limit: {middle:.1f} ms in the median, not {MOST_MILLISECONDS:.0f}")


def make_values() -> dict[str, Any]:
    names = ("cls", "seg", "depth", "pose")
    sizes = [round(20 * 1.12**step) for step in range(40)]
    curves = [
        {
            "task": name,
            "unit": "accuracy",
            "points": [[at, *_spread(0.9 - at**-0.4, 0.3 * at**-0.4)] for at in sizes],
            "seen": [[20 + 13 * n, 0.7 + 0.1 * math.sin(n)] for n in range(60)],
        }
        for name in names
    ]
    frontier = [[250 * step, *_spread(math.log1p(step), 0.1 * step)] for step in range(25)]
    tasks = [{"name": name, "count": 100, "have": 50} for name in names]
    return {
        "plan": {"tasks": tasks, "budget": "3000"},
        "curves": curves,
        "frontier": {"points": frontier, "budget": "3000", "knee": 1500},
        "worths": [{"task": name, "own": 3.0, "others": -0.5} for name in names],
    }


def _spread(mean: float, width: float) -> tuple[float, float, float]:
    return mean, mean - width, mean + width


if __name__ == "__main__":
    main()
