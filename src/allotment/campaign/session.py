"""A session: what a command has read and opened of a campaign, which all of its verbs share."""

from __future__ import annotations

from pathlib import Path

from allotment.campaign import audit
from allotment.campaign.state import CampaignState, Files, look
from allotment.ledger.store import Store


class Session:
    """Reads settings and data once, and has one store open at a time."""

    def __init__(self, folder: Path, why: str = "", files: Files | None = None):
        self._folder, self._why, self._files = folder, why, files
        self._store: Store | None = None
        self._state: CampaignState | None = None

    def open(self, why: str = "") -> Store:
        """The store, for writing if somebody says why; that one serves those who read, too."""
        why = why or self._why
        if why and self._store is not None and not self._store.is_writable:
            self.close()
        if self._store is None:
            said = f"allot {why} {self._folder}" if why else ""
            self._store = _check(Store.open(self._folder, write=bool(why), why=said))
        return self._store

    def look(self) -> CampaignState:
        """Where the campaign stands now."""
        store = self.open()
        if self._state is None or self._state.position != store.position:
            self._state = look(self._folder, store, self._files)
            self._files = self._state.files
        return self._state

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _check(store: Store) -> Store:
    """The store, if its books agree and everything in it can be read."""
    try:
        audit.check(store)
    except BaseException:
        store.close()
        raise
    return store
