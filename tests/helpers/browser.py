"""A real browser for the page: Debian's Chromium, driven by playwright. Where one of them is
missing, a sentence says how it is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""as systems call it; ALLOT_BROWSER names another one"""
ARGUMENTS = (
    # within a container no other sandbox can be made, and only our own files are opened
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
PATIENCE = 60_000
"""milliseconds before a missing answer is a failure; a busy machine is slow to begin"""


class NoBrowser(Exception):
    """What is missing, and how it is installed."""


def find_browser() -> str:
    """Where the browser is; raises NoBrowser if there is none, or nothing to drive it."""
    found = os.environ.get("ALLOT_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NoBrowser(
            "there is no browser: apt-get install chromium, or name one by ALLOT_BROWSER"
        )
    if importlib.util.find_spec("playwright") is None:
        raise NoBrowser("there is no playwright to drive a browser: pip install 'allotment[dev]'")
    return found


@contextmanager
def launch() -> Iterator[Any]:
    """The browser, for as long as it is needed.

    While it runs, its thread has an event loop of playwright's: whoever wants one of their own
    comes after it.
    """
    path = find_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """One page that is open, and all that it said or asked for that it should not."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda asked: self.requests.append(asked.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, link: str = "") -> None:
        """Load it anew, with the state of a link."""
        self.page.goto("about:blank")
        self.page.goto(self.address + link)

    def ask(self, script: str, given: Any = None) -> Any:
        return self.page.evaluate(script, given)

    def check(self) -> None:
        """It asked for itself and nothing else, and nothing went wrong."""
        outside = [each for each in self.requests if each.partition("#")[0] != self.address]
        assert [each for each in outside if each != "about:blank"] == []
        assert self.complaints == []


@contextmanager
def visit(browser: Any, file: Path, link: str = "", **looks: Any) -> Iterator[Tab]:
    """A page in a window of its own, which must have been silent when it is left; `looks` are those
    of a browser's context, such as its width or `color_scheme`."""
    wide = {"viewport": {"width": 1280, "height": 900}}
    context = browser.new_context(**(wide | looks))
    context.set_default_timeout(PATIENCE)
    try:
        tab = Tab(context.new_page(), file.as_uri())
        tab.watch()
        tab.page.goto(tab.address + link)
        yield tab
        tab.check()
    finally:
        context.close()
