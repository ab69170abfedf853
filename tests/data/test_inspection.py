"""Tables as people have them: what is found out about a file before a campaign begins."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allotment.data import csv_file, dates, plain_csv
from allotment.data.columns import Column, read_numbers
from allotment.data.csv_file import Layout
from allotment.data.dates import guess_order, read_moments
from allotment.data.features import TableInputs
from allotment.data.inspection import inspect_table
from allotment.data.table import read_table
from allotment.data.table_file import open_table_file
from allotment.errors import InputError

HEAD = ("id", "gesehen", "uhr", "fläche", "ort", "einheit", "notiz", "preis", "preis_brutto")


def list_rows(comma: str) -> list[list[str]]:
    dice = random.Random(1)
    rows = []
    for number in range(120):
        area = dice.uniform(40, 200)
        day = datetime(2023, 1, 1) + timedelta(days=3 * number)
        price = 3 * area + dice.gauss(0, 30)
        cells = [f"H{number:03}", f"{day:%d.%m.%Y}", f"{dice.randint(6, 20):02}:30", f"{area:.1f}"]
        cells += [dice.choice(["Zürich", "Genève"]), "kg", "" if number else "alt"]
        cells += [f"{price:.2f}" if number % 2 else "", f"{1.08 * price:.2f}"]
        rows.append([cell.replace(".", comma) if at > 2 else cell for at, cell in enumerate(cells)])
    return rows


def write_csv(folder: Path, encoding: str, delimiter: str = ";", comma: str = ",") -> Path:
    lines = [delimiter.join(row) for row in [list(HEAD), *list_rows(comma)]]
    path = folder / "homes.csv"
    path.write_bytes("\r\n".join([*lines, ""]).encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
def test_what_european_spreadsheets_write_is_the_same_table(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = write_csv(tmp_path / "plain", "utf-8", ",", ".")
    found = inspect_table(write_csv(tmp_path, encoding), {}, ["preis"])
    kept = {key: found.options[key] for key in ("delimiter", "decimal", "id", "drop", "columns")}
    assert kept == {
        "delimiter": ";",
        "decimal": ",",
        "id": "id",
        "drop": ["einheit", "notiz"],
        "columns": ["gesehen=date:dmy", "uhr=date:ymd"],
    }
    assert found.options.get("encoding", "utf-8").startswith(encoding.removesuffix("-sig")[:6])
    told = "\n".join(found.notes)
    assert ("read as" in told) == ("encoding" in found.options)
    assert ("'fläche'" in told) == (encoding == "cp1252")
    assert "'einheit' (always 'kg'), 'notiz' (empty but for 1 row)" in told
    assert "'preis_brutto' may give 'preis' away: it orders the rows" in told
    layout = {key: value for key, value in found.options.items() if key in vars(Layout())}
    forms = {"gesehen": "date", "uhr": "date"}
    one = read_table(tmp_path / "homes.csv", "preis", id="id", kinds=forms, **layout)
    other = read_table(plain, "preis", id="id", kinds=forms)
    assert one.fingerprint == other.fingerprint


def test_a_workbook_is_the_same_table(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Daten"
    book.active.append(HEAD)
    for row in list_rows("."):
        numbers = [None if cell == "" else float(cell) for cell in (row[3], *row[7:])]
        day, hour = datetime.strptime(row[1], "%d.%m.%Y"), time(int(row[2][:2]), 30)
        words = [None if cell == "" else cell for cell in row[4:7]]
        book.active.append([row[0], day, hour, numbers[0], *words, *numbers[1:]])
    book.active.append([None] * 9)
    book.create_sheet("Mehr")
    book.save(tmp_path / "homes.xlsx")
    found = inspect_table(tmp_path / "homes.xlsx", {}, ["preis"])
    assert found.notes[0] == "sheet 'Daten' is read, and not 'Mehr' (--sheet)"
    assert found.options["sheet"] == "Daten"
    forms = {"gesehen": "date", "uhr": "date"}
    one = read_table(tmp_path / "homes.xlsx", "preis", id="id", kinds=forms)
    plain = write_csv(tmp_path, "utf-8", ",", ".")
    assert one.fingerprint == read_table(plain, "preis", id="id", kinds=forms).fingerprint
    with pytest.raises(InputError, match=r"no sheet 'Datn' \(sheet\); did you mean 'Daten'"):
        read_table(tmp_path / "homes.xlsx", "preis", sheet="Datn")


def test_cells_of_a_workbook_that_are_no_values(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["x", "y", None], ["1.5", 1, None], ["n/a", "#DIV/0!", None], [2, 0, None]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    data = read_table(tmp_path / "t.xlsx", "y")
    assert data.known("y").tolist() == [True, False, True]
    assert data.features.tolist() == [[-1, 0], [0, 1], [1, 0]]
    book.active["D2"] = 7
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="row 1 has cells to the right of the last column"):
        read_table(tmp_path / "t.xlsx", "y")
    (tmp_path / "t.xlsx").write_bytes(b"\xd0\xcf\x11\xe0 locked")
    with pytest.raises(InputError, match=r"not a workbook that can be read .* without a password"):
        read_table(tmp_path / "t.xlsx", "y")


def test_a_cell_at_the_far_end_of_a_sheet_does_not_fill_the_memory(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for place, value in {
        "A1": "x",
        "B1": "y",
        "A2": 1,
        "B2": 0,
        "A1048576": 2,
        "B1048576": 1,
    }.items():
        book.active[place] = value
    book.save(tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx", "y").size == 2


def test_without_openpyxl_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'allotment\[xlsx\]'"):
        read_table(tmp_path / "t.xlsx", "y")


def test_text_that_nobody_can_guess_is_asked_about(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "cp850")
    with pytest.raises(InputError, match="neither UTF-8 nor Western European text"):
        inspect_table(path, {}, ["preis"])
    assert inspect_table(path, {"encoding": "cp850"}, ["preis"]).options["delimiter"] == ";"
    for name in ("rot13", "undefined", "unicode_escape", "nonsense", "\0"):
        with pytest.raises(InputError, match="is not an encoding of text files"):
            open_table_file(path, Layout(encoding=name))
    with pytest.raises(InputError, match=r"line 1: .*is not utf-16 text throughout"):
        open_table_file(path, Layout(encoding="utf-16"))


def test_what_is_said_is_not_guessed(tmp_path: Path) -> None:
    said = {"columns": ["einheit=categorical", "gesehen=text"], "drop": ["notiz"], "id": "ort"}
    found = inspect_table(write_csv(tmp_path, "utf-8"), said, ["preis"])
    assert found.options["columns"] == [*said["columns"], "uhr=date:ymd"]
    assert "drop" not in found.options
    assert "id" not in found.options


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["2024-01-31T23:59:59.123Z", "2024-02-01 00:00+01:00"], ("ymd", False)),
        (["1/31/2024", "2/1/2024"], ("mdy", False)),
        (["31/1/2024 2:30 PM", "1/2/2024, 12:00 am"], ("dmy", False)),
        (["1/2/2024"], ("dmy", True)),
        (["08:15", "17:30:10", ""], ("ymd", False)),
        (["31/1/2024", "1/31/2024"], ("", False)),
        (["20240131", "20240201"], ("", False)),  # which may be any number
        (["1.2.24"], ("", False)),  # and that the version of something
        (["2024-01-31", "08:15"], ("", False)),
        (["2024-01-31", "yesterday"], ("", False)),
        (["", "NA"], ("", False)),
    ],
)
def test_dates_are_known_by_how_they_are_written(cells: list[str], order: tuple[str, bool]) -> None:
    assert guess_order(cells) == order


ISO_LIKE = st.builds(
    "{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}".format,
    st.integers(0, 9999),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from(" Tx"),
    st.integers(0, 25),
    st.integers(0, 61),
    st.integers(0, 61),
)


@given(st.lists(ISO_LIKE, min_size=1, max_size=4), st.sampled_from([10, 16, 19]))
def test_long_columns_of_plain_dates_are_read_as_single_ones_are(
    cells: list[str], size: int
) -> None:
    cut = [each[:size] for each in cells]
    column = Column("when", None, tuple(cut))

    def read() -> tuple[object, ...]:
        try:
            found = read_moments(column, "date:ymd")
        except InputError as error:
            return (str(error),)
        return found.days.tolist(), found.seconds.tolist(), found.dated

    at_once = guess_order(cut), read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dates, "_read_iso", lambda cells: None)
        assert (guess_order(cut), read()) == at_once


def test_a_date_is_a_few_numbers_that_know_the_season_the_weekday_and_the_hour(
    tmp_path: Path,
) -> None:
    days = [datetime(2023, 1, 2) + timedelta(hours=13 * number) for number in range(1500)]
    lines = "".join(f"{day:%Y-%m-%dT%H:%M},{number % 2}\n" for number, day in enumerate(days))
    (tmp_path / "t.csv").write_text(f"when,y\n{lines}NA,1\n")
    data = read_table(tmp_path / "t.csv", "y", kinds={"when": "date"})
    assert data.columns[0].width == data.features.shape[1] == 8
    since, gone, year, week, hour = np.split(data.features, [1, 2, 4, 6], axis=1)
    assert abs(since.mean()) < 1e-6
    assert gone[:, 0].tolist() == [0] * 1500 + [1]
    assert np.diff(since[:-1, 0]).min() > 0
    for circle in (year, week, hour):
        assert np.allclose((circle[:-1] ** 2).sum(1), 1, atol=1e-5)
        assert not circle[-1].any()
    at = {day: row for row, day in enumerate(days)}
    week_later = days[0] + timedelta(days=91)  # both numbers of hours are multiples of 13 and 24
    assert np.array_equal(week[0], week[at[week_later]])
    assert np.array_equal(hour[0], hour[at[week_later]])
    one_day = read_table(tmp_path / "t.csv", "y", kinds={"when": "text"})
    assert one_day.features.shape[1] == 256
    (tmp_path / "t.csv").write_text("when,y\n2024-01-01,0\n2024-13-01,1\n")
    with pytest.raises(
        InputError, match="line 3: row 2, column 'when': '2024-13-01' is not a date"
    ):
        read_table(tmp_path / "t.csv", "y", kinds={"when": "date"})


LEAKS = {
    "copy": "nearly all its values are the target's",
    "order": "it orders the rows as the target does",
    "final_price": "its name has the target's in it",
    "StyleCode": "its value alone tells the class",
}


def test_columns_that_give_a_label_away_are_named(tmp_path: Path) -> None:
    dice = random.Random(2)
    rows = []
    for _ in range(200):
        price, style = dice.gauss(0, 1), dice.choice("abc")
        code = {"a": "x", "b": "y", "c": "z"}[style]
        fair = [dice.gauss(0, 1), price + dice.gauss(0, 1), dice.choice("pq"), dice.random()]
        rows.append([*fair, price, 5 - price**3, dice.random(), code, price, style])
    head = "noise,hint,word,style_less,copy,order,final_price,StyleCode,price,style"
    lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(f"{head}\n{lines}")
    found = inspect_table(tmp_path / "t.csv", {}, ["price", "style"])
    for name, why in LEAKS.items():
        assert any(f"'{name}' may give" in note and why in note for note in found.notes), name
    assert not any("'noise'" in note or "'hint'" in note for note in found.notes)
    assert not any("'word'" in note for note in found.notes)


CELLS = st.one_of(
    st.sampled_from(
        ["", "NA", "nan", "NaN", "-0.0", "1e5", " 1", "1 ", "inf", "1_0", "+1", "nan(1)"]
    ),
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.text("ab é\t.5-", max_size=4),
    st.text('a,"é', max_size=4).map(lambda text: '"{}"'.format(text.replace('"', '""'))),
    st.sampled_from(['"1.5"', '"NA"', 'a"b', '"a"b', ' "a"', '"', '""a', '"a""']),
)


@settings(deadline=None)
@given(
    columns=st.lists(st.lists(CELLS, min_size=8, max_size=8), min_size=2, max_size=4),
    ends=st.sampled_from(["\n", "\r\n"]),
    odd=st.sampled_from(["", "\n", '"q,\n""x"""', ',"q\n"', "1,2,3,4,5,6", "a\rb"]),
    at=st.integers(0, 7),
)
def test_plain_rows_are_read_as_the_csv_module_reads_them(
    columns: list[list[str]], ends: str, odd: str, at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [",".join(cells) for cells in zip(*columns, strict=True)]
    rows[at] += odd
    names = [f"c{place}" for place in range(len(columns))]
    path = tmp_path_factory.mktemp("plain") / "t.csv"
    path.write_bytes(ends.join([",".join(names), *rows, ""]).encode())
    read = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_csv, "FIRST_PIECE", 20)
        patch.setattr(plain_csv, "PIECE", 30)
        for least in (0, 2**40):
            patch.setattr(plain_csv, "LEAST_SIZE", least)
            try:
                found = open_table_file(path).read(names, names[:1])
            except InputError as error:
                read[least] = str(error)
                continue
            read[least] = repr(
                [
                    (
                        each.name,
                        None if each.numbers is None else each.numbers.tolist(),
                        each.words,
                        list(each.lines or ()),
                    )
                    for each in found.values()
                ]
            )
    assert read[0] == read[2**40]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("word", ["w{}", '"w, {}"', '"the ""{}"""'])
def test_a_large_plain_file_is_read_without_the_csv_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, end: str
) -> None:
    lines = [f"{number},{number / 7},{word.format(number % 3)}" for number in range(300)]
    (tmp_path / "t.csv").write_bytes(end.join(["a,b,c", *lines, ""]).encode())
    slow = open_table_file(tmp_path / "t.csv").read(["a", "b", "c"], ())
    monkeypatch.setattr(plain_csv, "LEAST_SIZE", 0)
    monkeypatch.setattr(plain_csv, "FIRST_PIECE", 100)
    monkeypatch.setattr(csv_file, "_careful_batches", lambda *_: iter(()))
    fast = open_table_file(tmp_path / "t.csv").read(["a", "b", "c"], ())
    for name in "abc":
        assert list(fast[name].texts) == list(slow[name].texts)


def test_one_odd_column_leaves_the_others_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"{number},{number / 7},{number}\n" for number in range(300))
    late = "".join(f"{number},{number / 7},A{number}\n" for number in range(300))
    (tmp_path / "t.csv").write_text(f"a,b,c\n{lines}{late}")
    slow = open_table_file(tmp_path / "t.csv").read(["a", "b", "c"], ())
    monkeypatch.setattr(plain_csv, "LEAST_SIZE", 0)
    monkeypatch.setattr(plain_csv, "FIRST_PIECE", 100)
    monkeypatch.setattr(plain_csv, "PIECE", 2000)
    monkeypatch.setattr(csv_file, "_careful_batches", lambda *_: iter(()))
    tried: list[int] = []

    def count(cells: Sequence[str], decimal: str = ".") -> object:
        tried.append(len(cells))
        return read_numbers(cells, decimal)

    monkeypatch.setattr(plain_csv, "read_numbers", count)
    fast = open_table_file(tmp_path / "t.csv").read(["a", "b", "c"], ())
    for name in "abc":
        assert list(fast[name].texts) == list(slow[name].texts)
    # cells of three columns in the first piece, and of one in the piece where it turned to words
    assert sum(tried) < 200


def test_a_table_is_read_without_loading_what_takes_longer(tmp_path: Path) -> None:
    lines = "".join(f"{number},{number % 7 or ''},w{number % 3}\n" for number in range(300))
    (tmp_path / "t.csv").write_text("a,b,c\n" + lines)
    code = (
        "import sys; from allotment.data import plain_csv;"
        "from allotment.data.table_file import open_table_file;"
        "plain_csv.LEAST_SIZE = 0; columns = open_table_file('t.csv').read(['a', 'b', 'c'], ());"
        "assert columns['b'].missing.sum() == 43; assert 'pyarrow' in sys.modules;"
        "assert not {'pandas', 'pyarrow.compute'} & set(sys.modules)"
    )
    pytest.importorskip("pyarrow")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_columns_are_let_go_once_they_are_encoded(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,z,y\n1,a,3\n2,b,\n3,a,1\n")
    opened = open_table_file(tmp_path / "t.csv")
    data = read_table(opened, "y")
    assert {name for name, _ in opened.known} == {"y"}
    again = opened.read(["x", "z"], ())
    assert [list(column.texts) for column in again.values()] == [["1", "2", "3"], ["a", "b", "a"]]
    assert data.fingerprint == read_table(tmp_path / "t.csv", "y").fingerprint


def test_features_are_read_when_something_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from allotment.data.source import SOURCES, DataSettings

    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n3,a\n")
    data = SOURCES.load("table").open(DataSettings({}, tmp_path / "t.csv", {"y": {}}))
    monkeypatch.setattr(TableInputs, "_read", lambda *_: pytest.fail("features are read"))
    assert data.known("y").all()
    assert data.size == 3
    monkeypatch.undo()
    assert data.fingerprint == read_table(tmp_path / "t.csv", "y").fingerprint
