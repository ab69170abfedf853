"""Jobs and their keys: what they depend on, and that it is all they depend on."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allotment import __version__
from allotment.errors import InputError
from allotment.job import Job, canonical, installed, parse

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False,
    allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner,
    max_size=4),
    max_leaves=20,
)  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Equal and of equal types: 1, 1.0 and True are three values, 0.0 and -0.0 are two."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


@given(PLAIN)
def test_a_plain_value_comes_back_as_it_was(value: Any) -> None:
    text = canonical(value)
    assert text.isascii()
    assert same(parse(text), value)
    assert canonical(parse(text)) == text


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_count(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(value) == canonical(turned)
    assert Job("probe", value).key == Job("probe", turned).key
    assert Job("probe", value) == Job("probe", turned)
    assert len({Job("probe", value), Job("probe", turned)}) == 1


def test_the_text_is_that_of_json() -> None:
    assert (
        canonical({"b": [1, 2.5, True, None], "a": "é\ud800\n"})
        == '{"a":"\\u00e9\\ud800\\n","b":[1,2.5,true,null]}'
    )
    assert canonical((1, (2,), {})) == "[1,[2],{}]"
    assert canonical(np.float64(0.1)) == "0.1"


@pytest.mark.parametrize(
    ("value", "where", "what"),
    [
        ({"a": [0, float("nan")]}, "a[1]", "nan has no form"),
        (float("-inf"), "the value", "-inf has no form"),
        ({1: 2}, "the value", "the key 1 is not text"),
        ({"a": {None: 2}}, "a", "the key None is not text"),
        ({"a": {"b": {3}}}, "a.b", "of type set"),
        ([np.int64(3)], "[0]", "of type int64"),
        ([b"x"], "[0]", "of type bytes"),
        ([10**400], "[0]", "more than 300 digits"),
        ({"x": object}, "x", "of type type"),
    ],
)
def test_what_json_has_no_form_for_is_refused_with_its_place(
    value: Any, where: str, what: str
) -> None:
    with pytest.raises(InputError) as caught:
        canonical(value)
    (mistake,) = caught.value.mistakes
    assert mistake.where == where
    assert what in mistake.what


def test_all_mistakes_are_said_at_once_but_not_a_million() -> None:
    with pytest.raises(InputError) as caught:
        canonical({"a": float("nan"), "b": [float("inf")], "c": 1, "d": {2}})
    assert [mistake.where for mistake in caught.value.mistakes] == ["a", "b[0]", "d"]
    with pytest.raises(InputError) as caught:
        canonical([float("nan")] * 10_000)
    assert len(caught.value.mistakes) == 20


def test_a_list_in_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError, match="levels deep"):
        canonical(endless)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a":1,"a":2}',
        "[" * 100_000,
        "",
        "[1,]",
        "nul",
        "1" * 5000,
        b"\xff\xfe",
    ],
)
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_a_key_is_the_digest_of_kind_needs_and_versions() -> None:
    job = Job("probe", {"task": "seg", "size": 100})
    text = json.dumps(
        {"kind": "probe", "needs": {"size": 100, "task": "seg"}, "versions": installed()},
        sort_keys=True,
        separators=(",", ":"),
    )
    assert job.key == hashlib.sha256(text.encode()).hexdigest()


def test_keys_never_change() -> None:
    """Stores that exist look their results up by these."""
    old = Job(
        "probe",
        {"task": "seg", "size": 100, "seeds": [1, 2]},
        {"allotment": "0.1.0", "torch": "2.13.0+cpu"},
    )
    assert old.key == "eaaad0a396e0bd2aa11894771ceb70c0de947c02cb10e47d8672384f704ef01c"


def test_everything_in_a_job_is_in_its_key() -> None:
    jobs = [
        Job("probe", {"size": 1}),
        Job("curve", {"size": 1}),
        Job("probe", {"size": 2}),
        Job("probe", {"size": 1.0}),
        Job("probe", {"size": True}),
        Job("probe", {"size": "1"}),
        Job("probe", {"size": 1, "task": None}),
        Job("probe", {"size": 1}, {"allotment": "9.9", "torch": None}),
        Job("probe", {"size": 1}, {}),
    ]
    assert len({job.key for job in jobs}) == len(jobs)
    assert len(set(jobs)) == len(jobs)


def test_the_versions_are_those_that_run() -> None:
    torch = pytest.importorskip("torch")
    assert installed() == {"allotment": __version__, "torch": torch.__version__}


def test_a_job_does_not_change_with_what_it_was_made_from() -> None:
    sizes = [1, 2]
    job = Job("probe", {"sizes": sizes})
    key = job.key
    sizes.append(3)
    assert job.needs == {"sizes": [1, 2]}
    assert Job(job.kind, job.needs).key == key


@pytest.mark.parametrize("kind", ["", "  ", "a\nb", 3, None])
def test_a_job_has_a_kind(kind: Any) -> None:
    with pytest.raises(InputError, match="kind of a job"):
        Job(kind, {})


def test_needs_are_checked() -> None:
    with pytest.raises(InputError, match=r"job 'probe': needs.*not a mapping"):
        Job("probe", [1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"job 'probe': needs: sizes\[0\]: nan"):
        Job("probe", {"sizes": [float("nan")]})


def test_making_a_key_loads_nothing_heavy() -> None:
    code = (
        "import sys; from allotment.job import Job; Job('a', {}).key; print({'torch', 'numpy'} &"
        " set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"
