"""Does a connector keep the contract? Inherit, say how yours is made and how people fill in what it
has written, and let pytest run it:

class TestMine(ConnectorTests):
    def make(self):
        return MyConnector()

    def fill(self, place, labels):
        ...  # write each of `labels`, by (task, instance), where the label of that row belongs
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from allotment.connect.connector import CONNECTORS, Connector
from allotment.connect.delivery import Parts, read_delivery
from allotment.data.dataset import Target
from allotment.errors import InputError
from allotment.orders.order import Order
from allotment.orders.sheet import Sheet

UNDER_TEST = "under-test"
"""what a connector goes by while it is tested"""


class ConnectorTests:
    """Every test that a connector must pass. `make` gives one; `fill` does what people do."""

    tasks: Mapping[str, Target] = {
        "species": Target("species", "classification", ("cat", "guinea pig", "Käse")),
        "tags": Target("tags", "multilabel", ("big", "wild")),
        "age": Target("age", "regression"),
    }
    names = (
        *("a", "007", "=1+1", "it's", 'say "x"', "a,b;c|d", "two\nlines", "tab\there", " blank "),
        *("Käse", "-3", "\\", "<b>", "# x", "[y]", "{z}", "x" * 300),
    )
    """that instances may have, which come back as they went out"""
    written: Mapping[str, str] = {"species": "guinea pig", "tags": "big|wild", "age": "-1.5"}
    """labels, as people write them"""
    kept: Mapping[str, object] = {"species": "guinea pig", "tags": ["big", "wild"], "age": -1.5}
    """and as they are kept"""
    number = "1-3f8076-80cc29"
    """what rows call their order"""
    writes = True
    """False for a connector that only ever reads"""

    def make(self) -> Connector:
        raise NotImplementedError("say how your connector is made")

    def place(self, folder: Path) -> str:
        """Where an order may go, and its labels come from; each folder has a place of its own."""
        return str(folder / f"order{self.make().suffix}")

    def fill(self, place: str, labels: Mapping[tuple[str, str], str]) -> None:
        """Write labels into what the connector has written, as people would."""
        raise NotImplementedError("say how labels are filled in")

    # --- helpers ---

    def sheet(self) -> Sheet:
        order = Order(tuple((task, name) for task in self.tasks for name in self.names), seed=0)
        show = {"file": {name: f"pictures/{at}.png" for at, name in enumerate(self.names)}}
        return Sheet(order, self.number, show, self.tasks)

    def read(self, place: str) -> Parts:
        with self._registered():
            return read_delivery(place, self.tasks, self.names, connector=UNDER_TEST)

    @contextmanager
    def _registered(self) -> Iterator[None]:
        with patch.dict(CONNECTORS.own, {UNDER_TEST: self.make}):
            yield

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    # --- the contract ---

    def test_it_has_its_verbs(self) -> None:
        assert isinstance(self.make(), Connector), "a verb of the protocol, or suffix, is missing"

    def test_it_recognises_its_place_and_no_other(self) -> None:
        with self._folder() as folder:
            connector = self.make()
            assert connector.recognises(self.place(folder)), "it does not know its own place"
            assert not connector.recognises(str(folder / "order.none")), "it takes any name"
            assert not connector.recognises("a\0b"), "it takes what is no name at all"

    def test_an_order_that_was_written_has_no_labels_yet(self) -> None:
        if not self.writes:
            return
        with self._folder() as folder:
            place, sheet = self.place(folder), self.sheet()
            self.make().check(place)
            self.make().write(sheet, place)
            parts = self.read(place)
            assert not parts.accepted, "an empty sheet has labels"
            assert not parts.rejected, f"a row of its own is refused: {parts.rejected[:3]}"
            asked = {(self.number, task, name) for task, name in sheet.order.items}
            assert set(parts.asked) == asked, "rows lose their order, task or instance on the way"

    def test_labels_that_are_filled_in_come_back(self) -> None:
        if not self.writes:
            return
        with self._folder() as folder:
            place, sheet = self.place(folder), self.sheet()
            self.make().write(sheet, place)
            some = sheet.order.items[::2]
            self.fill(place, {(task, name): self.written[task] for task, name in some})
            parts = self.read(place)
            assert not parts.rejected, f"a label is refused: {parts.rejected[:3]}"
            found = {(task, name): value for task, name, value in parts.accepted}
            assert found == {(task, name): self.kept[task] for task, name in some}, "labels change"
            assert self.read(place) == parts, "the same place read again is something else"

    def test_what_may_hold_labels_is_never_written_over(self) -> None:
        if not self.writes:
            return
        with self._folder() as folder:
            place, sheet = self.place(folder), self.sheet()
            self.make().write(sheet, place)
            self.make().write(sheet, place)  # the same once more changes nothing
            self.fill(place, {sheet.order.items[0]: self.written[sheet.order.items[0][0]]})
            assert self._refuses(lambda: self.make().write(sheet, place)), (
                "an order takes the place of labels"
            )
            assert self._refuses(lambda: self.make().check(place)), (
                "check does not see that the place is taken"
            )
            assert len(self.read(place).accepted) == 1, "a refused order changes what is there"

    def test_what_is_not_there_is_refused_in_words(self) -> None:
        with self._folder() as folder:
            nowhere = self.place(folder / "no" / "such" / "folder")
            assert self._refuses(lambda: self.read(nowhere)), "nothing at all can be read"
            if self.writes:
                check, write = self.make().check, self.make().write
                assert self._refuses(lambda: check(nowhere)), "check lets an order be lost"
                assert self._refuses(lambda: write(self.sheet(), nowhere)), "an order is lost"

    def test_whatever_stands_there_is_taken_or_refused_in_words(self) -> None:
        for content in self.spoilt():
            with self._folder() as folder:
                place = self.place(folder)
                Path(place).write_bytes(content)
                with suppress(InputError):
                    for where, reason in self.read(place).rejected:
                        assert where.isprintable(), repr(where)
                        assert reason.isprintable(), repr(reason)
                assert os.listdir(folder) == [Path(place).name], "reading leaves something behind"

    def spoilt(self) -> Iterator[bytes]:
        """Contents of a file that nobody wrote on purpose; none, if places are no files."""
        yield from (b"", b"\n\n", b"\0" * 100, b"\xff\xfe\xfd", b"x" * (3 << 20), b'"' * 999)
        yield b"\x1b[31mred\x1b[0m,a\nb,c\n"
        if not self.writes:
            return
        with self._folder() as folder:
            place = self.place(folder)
            self.make().write(self.sheet(), place)
            whole = Path(place).read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 40)):
            yield whole[:at]
            yield whole[:at] + b"\x1b\xff\0" + whole[at + 1 :]

    def _refuses(self, step: object) -> bool:
        try:
            step()  # type: ignore[operator]
        except InputError:
            return True
        return False
