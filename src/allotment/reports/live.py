"""What is shown of a campaign while others work on it: its page, made anew when something was
decided or came in, and how far the run is that is under way. It reads, and never writes."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allotment.campaign.campaign import Campaign
from allotment.errors import AllotmentError, visible
from allotment.ledger.lock import find_writer, tell_run
from allotment.ledger.schema import STORE_FILE, list_row_tables
from allotment.ledger.store import Store
from allotment.reports.markup import load_templates
from allotment.reports.page import render
from allotment.settings.settings import SETTINGS_FILE, find_root, parse_settings

UNSHOWN_TABLE = "results"
"""rows of which come with every training and change nothing on the page before their run is over"""
FileStamp = tuple[int, int, int] | None
"""by which it is seen that a file is another; None where there is none"""


@dataclass(frozen=True)
class ShownPage:
    """A page, what it was made of, and whether that could be read."""

    text: str
    mark: str
    is_sound: bool = True


class LiveCampaign:
    """A campaign as it is now, for several who look at the same time."""

    def __init__(self, folder: str | Path):
        self._campaign = Campaign(folder)
        self._folder = Path(folder)
        self._making, self._marking = threading.Lock(), threading.Lock()
        self._page: ShownPage | None = None
        self._marked: tuple[Any, str] = (None, "")
        self._root: tuple[FileStamp, Path | None] = (None, None)

    @property
    def name(self) -> str:
        return self._folder.resolve().name

    def make_page(self) -> ShownPage:
        """The page of now; raises InputError where it cannot be made."""
        with self._making:
            mark = self.find_mark()
            if self._page is None or self._page.mark != mark or not self._page.is_sound:
                self._page = ShownPage(render(self._campaign.report()), mark)
            return self._page

    def show_page(self) -> ShownPage:
        """The same, or one that says why there is none: settings may be wrong while somebody edits
        them."""
        try:
            return self.make_page()
        except AllotmentError as error:
            trouble = load_templates().get_template("trouble.html")
            text = trouble.render(name=self.name, lines=str(error).split("\n"))
            return ShownPage(text, self.find_mark(), False)

    def find_mark(self) -> str:
        """A text that is another whenever the page would be: the store is asked only when its file
        has changed, and rows of trainings do not count."""
        with self._marking:
            stamps = [_stamp(self._folder / name) for name in _FILES]
            stamps.append(_stamp(self._find_root(stamps[-1])))
            run = find_writer(self._folder)
            seen = (stamps, None if run is None else (run.pid, run.since))
            if self._marked[0] != seen:
                parts = (stamps[-2:], seen[1], self._count_rows())
                mark = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
                self._marked = (seen, mark)
            return self._marked[1]

    def _find_root(self, settings: FileStamp) -> Path | None:
        """The file or folder of the data, as far as settings say one that can be read."""
        if self._root[0] != settings:
            try:
                text = (self._folder / SETTINGS_FILE).read_text(encoding="utf-8")
                self._root = (settings, find_root(parse_settings(text), self._folder))
            except (AllotmentError, OSError, ValueError):
                self._root = (settings, None)
        return self._root[1]

    def _count_rows(self) -> Any:
        try:
            with Store.open(self._folder, write=False, check=False) as store:
                return {
                    table: store.count(table)
                    for table in list_row_tables()
                    if table != UNSHOWN_TABLE
                }
        except AllotmentError as error:
            return str(error)

    def find_progress(self) -> dict[str, Any]:
        """What is under way, how far it is, the seconds that are left, and all of it in a
        sentence; `page` is the mark of the page of now."""
        run = find_writer(self._folder)
        headway = None if run is None else run.headway
        return {
            "running": run is not None,
            "command": None if run is None else visible(run.command),
            "since": None if run is None else visible(run.since),
            "done": None if headway is None else headway.done,
            "total": None if headway is None else headway.total,
            "left": None if headway is None else headway.find_left(),
            "said": "" if run is None else tell_run(run),
            "page": self.find_mark(),
        }


_FILES = (STORE_FILE, f"{STORE_FILE}-wal", SETTINGS_FILE)
"""of which one changes when a campaign does"""


def _stamp(path: Path | None) -> FileStamp:
    if path is None:
        return None
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns
