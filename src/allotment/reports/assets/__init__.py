"""What the page carries with it: its script, and the library that draws.

plot.js is Observable Plot 0.6.17 with what it needs of D3, cut down to what the page uses;
docs/page.md says how it is made, its licences stand in plot.LICENSE. The others are ours. A page
holds them in one script, so that it is one file; its policy knows that script by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

PLANNER = (
    *("curves.js", "model.js", "prices.js", "greedy.js", "lists.js", "search.js", "planner.js"),
)
"""the planner, in the order of src/allotment/solver: a file for each of its modules"""
SCRIPTS = ("plot.js", *PLANNER, "charts.js", "page.js")
"""in the order in which each uses those before it"""
MODULE_WORDS = re.compile(r'^export |^import .* from "\./\w+\.js";\n', flags=re.MULTILINE)
PLOT_HASH = "9364c92971d788ab445f5c1025a5e5e6ffb73568ce29c0ceb8431e9ce22253bc"
"""SHA-256 of plot.js"""


def read_asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _join_scripts() -> str:
    """All of them, as one that runs as it is; modules give up their `export` and `import`, since
    they share one place."""
    return "\n".join(MODULE_WORDS.sub("", read_asset(name)) for name in SCRIPTS)


def hash_inline(text: str) -> str:
    """By which a content-security policy knows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


SCRIPT = _join_scripts()
