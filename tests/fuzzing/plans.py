"""Problems, settings, plain forms and the small parsers around them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import allotment as al
from allotment.advice.backtest import Backtest
from allotment.advice.doctor import Diagnosis, Finding
from allotment.advice.price import Price
from allotment.amounts import exact, show, whole
from allotment.campaign.evaluation import Evaluation, Trial
from allotment.cells import protect, unprotect
from allotment.data.source import SOURCES
from allotment.errors import InputError
from allotment.estimates.curves import Fit, Points, fit_exact
from allotment.estimates.estimates import Estimates
from allotment.estimates.probes import Probes, Scores
from allotment.estimates.response import Response
from allotment.estimates.transfer import Transfer
from allotment.estimates.verdict import Verdict, judge
from allotment.gains import curve_from_dict
from allotment.job import Job, canonical, parse
from allotment.ledger import lock
from allotment.orders.order import Order
from allotment.plan import Outlook, Plan
from allotment.problem_file import read_problem
from allotment.settings.settings import read_settings
from allotment.settings.template import write_template
from fuzzing.mutators import json_mutator, lines_mutator
from fuzzing.target import Target, check_told

TOML = ("[[task]]", "[task.gain]", "[[cap]]", "[data]", "[training]", "'''", '"""', "\\u0000",
"\\U0010ffff", "1e400",
        "0x", "0b1", "inf", "nan", "true", "1979-05-27", "07:32:00", "[[", "]]", "{", "}", "= ",
        "#")  # fmt: skip
PROBLEM = """
budget = 100.5
count_implied = true
[[task]]
name = "a"
cost = "0.84"
pool = 1000
have = 10
least = 3
most = 100
lot = 5
fee = 2.5
weight = 2
tiers = [{ after = 10, cost = 0.5 }, { after = 20, cost = "1/4" }]
implies = ["b"]
[task.gain]
curve = "sum"
parts = [{ curve = "power", worth = 3, exponent = 0.5 }, { curve = "logarithmic", scale = 2 },
         { curve = "coupled", inner = { curve = "geometric", informativeness = 1, reduction = 0.9 },
           weights = { b = 1 } }]
[[task]]
name = "b"
cost = 1
frozen = 7
gain = { curve = "tabulated", values = [0, 2, 3] }
[[cap]]
name = "hours"
limit = 120
use = { a = 0.25, b = 1 }
"""
SETTINGS = """
budget = "10.50"
method = "slopes"
trainings = 40
seed = 3
conflicts = "majority"
[data]
name = "table"
root = "table.csv"
id = "id"
group = "g"
drop = ["x"]
delimiter = ","
image_size = 32
rows = "0123abcd"
[training]
network = "usual"
steps = 10
epochs = 2
batch_size = 4
optimiser = "adam"
trunk_rate = 0.1
head_rate = 0.01
weight_decay = 1e-4
device = "cpu"
precision = "float32"
[[task]]
name = "y"
cost = 1
kind = "classification"
classes = ["p", "q"]
metric = "accuracy"
loss_weight = 0.5
tiers = [{ after = 10, cost = 0.5 }]
[[cap]]
name = "hours"
limit = 1
use = { y = 0.25 }
"""
OPTIONS = """
[estimates]
ahead = 5
sizes = [0, 50, 100]
validation = 0.25
mode = "soft"
"""
TABLE = "id,g,x,y\n1,u,0.5,p\n2,u,1.5,q\n3,v,2.5,p\n4,w,3.5,q\n"


def _read_problem(data: bytes, place: Path) -> None:
    path = place / "problem.toml"
    path.write_bytes(data)
    problem = read_problem(path).problem
    assert al.Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem


def _make_problems() -> Iterable[bytes]:
    yield PROBLEM.encode()
    for name in ("voc", "taskonomy"):
        yield (files("allotment") / "examples" / f"{name}.toml").read_bytes()
    yield b'budget = 6300\n[[task]]\nname = "seg"\ncost = "0.84"\n'


def _read_settings(data: bytes, place: Path) -> None:
    (place / "table.csv").write_text(TABLE)
    (place / "campaign.toml").write_bytes(data)
    settings, _ = read_settings(place)
    assert settings.text.encode() == data.removeprefix(b"\xef\xbb\xbf")
    settings.problem()
    canonical(dict(settings.estimates))  # which is part of the keys of jobs


def _make_settings() -> Iterable[bytes]:
    yield SETTINGS.encode()
    yield (SETTINGS.replace('"slopes"', '"taba"') + OPTIONS).encode()
    training = {"network": "usual", "steps": 300}
    for name in ("scenes", "voc", "taskonomy"):
        source = SOURCES.load(name)
        known = source.tasks.items()
        tasks = {task: {"cost": each.cost, "have": each.have} for task, each in known}
        data = {"name": name, **({"root": "."} if source.root else {})}
        data |= {key.name: key.initial for key in source.keys if key.initial is not None}
        yield write_template(data, tasks, "2580", "response", training).encode()
    yield write_template({"name": "table", "root": "table.csv", "id": "id"}, {"y": {"cost": "1"}},
    "5", "neutral",
                         training).encode()  # fmt: skip


# Forms that were written by `to_dict`

FORMS: dict[str, Any] = {
    "plan": Plan, "problem": al.Problem, "estimates": Estimates, "order": Order, "points": Points,
    "fit": Fit,
    "verdict": Verdict, "response": Response, "probes": Probes, "transfer": Transfer,
    "backtest": Backtest,
    "diagnosis": Diagnosis, "price": Price, "evaluation": Evaluation, "outlook": Outlook,
}  # fmt: skip


def _read_form(data: bytes, place: Path) -> None:
    try:
        name, plain = parse(data)
    except (ValueError, TypeError):  # of bytes that are no JSON nothing comes this far
        return
    if name == "curve":
        curve_from_dict(plain)
    elif isinstance(name, str) and name in FORMS:
        made = FORMS[name].from_dict(plain)
        if hasattr(made, "to_dict"):
            canonical(made.to_dict())


def _make_forms() -> Iterable[bytes]:
    problem = al.Problem(
        [al.Task("a", cost="0.5", pool=50, lot=2, tiers=[(10, "0.25")]), al.Task("b", cost=2,
        implies=["a"])],
        budget=30, caps=[al.Cap("hours", 100, {"a": 1, "b": 2})], count_implied=True,
    )  # fmt: skip
    gains = {
        "a": al.Power(3, 10, 0.5),
        "b": al.Geometric(1, 0.9) + al.Coupled(al.Logarithmic(1, 5), {"a": 1.0}),
    }
    estimates = Estimates(
        ("a", "b"), (10, 5), np.ones((3, 2, 2)), np.full((3, 2), 0.5), about={"method": "response"}
    )
    points = Points(
        sizes=(10, 20, 40),
        scores=[[0.3, 0.4, 0.45], [0.31, 0.38, 0.46]],
        higher_is_better=True,
        have=40,
    )
    outlook = Outlook(
        mean=1.0,
        low=0.5,
        high=2.0,
        level=0.8,
        chance=0.9,
        plateau={"a": (1, 2)},
        counts={"a": (1, 2)},
    )
    response = Response(
        ("a", "b"), (10, 5), np.array([[10, 5], [5, 5], [10, 2], [2, 2]]), np.ones((4, 2)),
        np.zeros((4, 2)),
        (True, False), np.array([0, 0, 1, 1]),
    )  # fmt: skip
    scores = Scores(np.ones((2, 2)), np.ones((2, 2, 2)))
    probes = Probes(("a", "b"), (True, False), 3, ("r", "r"), np.array([1, 2]), scores, scores)
    transfer = Transfer(("a", "b"), "pooled", "metric", "r", np.ones((2, 2, 2)), np.ones((2, 2)))
    backtest = Backtest(
        ("response", "equal"), ((1.0, 2.0), (0.5, 1.5)), (({"a": 1},) * 2,) * 2, {"a": 3}, "30"
    )
    evaluation = Evaluation(
        ("a",),
        (1.0,),
        (True,),
        (Trial("plan", {"a": 3}),),
        np.array([[0.5], [0.5]]),
        np.array([[[0.6], [0.7]]]),
    )
    finding = Finding(**dict.fromkeys(Finding.__dataclass_fields__, "x"))
    diagnosis = Diagnosis({"a": 3}, {"a": 2}, outlook, "%", (finding,))
    price = Price(**dict.fromkeys(Price.__dataclass_fields__, 1))
    order = Order(
        (("a", "1"), ("b", "2")),
        seed=1,
        together=False,
        costs={"a": Fraction(1, 2), "b": Fraction(2)},
    )
    made = {
        "plan": al.allocate(problem, gains), "problem": problem, "estimates": estimates,
        "points": points,
        "fit": fit_exact(points, draws=3), "verdict": judge(points), "response": response,
        "probes": probes,
        "transfer": transfer, "backtest": backtest, "diagnosis": diagnosis, "price": price,
        "evaluation": evaluation,
        "order": order,
    }  # fmt: skip
    for name, each in made.items():
        yield json.dumps([name, each.to_dict()], default=str).encode()
    plan = al.allocate(
        al.Problem([al.Task("a", cost=1), al.Task("b", cost=2)], budget=30), estimates
    )
    yield json.dumps(["plan", plan.to_dict()]).encode()
    for curve in (*gains.values(), al.Tabulated([0, 2, 3])):
        yield json.dumps(["curve", curve.to_dict()]).encode()
        scaled = {"curve": "scaled", "inner": curve.to_dict(), "factor": 0.5}
        yield json.dumps(["curve", scaled]).encode()


# Small ones


def _read_job(data: bytes, place: Path) -> None:
    try:
        value = parse(data)
    except ValueError:
        return
    text = canonical(value)
    assert canonical(parse(text)) == text
    job = Job("probe", {"value": value})
    assert job == Job("probe", parse(canonical({"value": value})))
    assert len(str(job)) < 200


def _read_amount(data: bytes, place: Path) -> None:
    text = data.decode(errors="replace")
    for read in (exact, whole):
        try:
            amount = Fraction(read(text))
        except InputError:
            raise
        except ValueError as error:
            check_told(str(error))
        else:
            assert abs(amount) <= 10**15
            told = show(amount)
            assert told.startswith("~") or exact(told) == amount
    name, equals, price = text.strip().rpartition("=")  # as in --cost NAME=PRICE
    if equals and name:
        al.Problem([al.Task(name, cost=price)], budget=text[:20] if "/" not in text else 1)


def _read_cell(data: bytes, place: Path) -> None:
    text = data.decode(errors="replace")
    safe = protect(text)
    assert unprotect(safe) == text or text.startswith("'"), (text, safe)
    assert unprotect(protect(safe)) == safe or text.startswith("'")
    assert safe[:1] not in tuple("=+@\t\r\n＝＋－＠"), safe
    assert not safe.startswith("-") or float(safe) <= 0


def _read_lock(data: bytes, place: Path) -> None:
    (place / lock.LOCK_FILE).write_bytes(data)
    holder = lock.read_holder(place / lock.LOCK_FILE)
    said = lock._say_who(holder)
    assert len(said) < 30_000


def _make_locks() -> Iterable[bytes]:
    yield json.dumps(
        {"pid": 1, "host": "here", "command": "allot order x", "since": "2026-07-01T12:00:00"}
    ).encode()
    headway = lock.Headway(3, 9, 12.5, 1.8e9)
    yield lock.Holder(1, "here", "allot estimate x", "2026-07-01T12:00:00", headway).write()


TARGETS = (
    Target(
        "problem", _read_problem, _make_problems,
        ("problem_file", "toml", "mistakes", "problem", "gains", "amounts"), lines_mutator, TOML,
        1 << 14,
    ),
    Target(
        "settings", _read_settings, _make_settings,
        ("settings/settings", "toml", "mistakes", "learners/recipe"), lines_mutator, TOML, 1 << 14,
    ),
    Target(
        "forms", _read_form, _make_forms,
        ("plan", "problem", "gains", "orders/order", "estimates/estimates", "estimates/curves",
        "estimates/verdict",
         "estimates/response", "estimates/probes", "estimates/transfer", "advice/backtest",
         "advice/doctor",
         "advice/price", "campaign/evaluation"), json_mutator, (), 1 << 14,
    ),
    Target("job", _read_job, lambda: [b'{"a": [1, 2.5, null, "x", {"b": true}]}'], ("job",),
    json_mutator),
    Target(
        "amount", _read_amount, lambda: [b"0.035", b"1/3", b"seg=20", b"-1e15",
        b"a=b=0.000000000001"],
        ("amounts",), None, ("1e", "/", "=", "-", "_", "inf", "nan", ".", "0000"), 1 << 10,
    ),
    Target(
        "cell", _read_cell, lambda: [b"=1+1", b"'=1", b"-1.5", b"cat", b"''-1", "＝x".encode()],
        ("cells",), None, ("=", "+", "-", "@", "'", "\t", "\r"), 1 << 8,
    ),
    Target("lock", _read_lock, _make_locks, ("ledger/lock",), json_mutator),
)  # fmt: skip
