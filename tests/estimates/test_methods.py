"""Methods: the built-in ones keep the contract, one that breaks it is told how, and none is taken
for another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers.campaigns import begin, shorten

from allotment.campaign.campaign import Campaign
from allotment.cli.campaign import init
from allotment.errors import InputError
from allotment.estimates.chunks import InChunks, join_chunks
from allotment.estimates.conformance import MethodTests, Pupil
from allotment.estimates.estimates import Estimates
from allotment.estimates.estimating import estimate
from allotment.estimates.method import DEFAULT, METHODS, Method, Plain, describe_methods
from allotment.estimates.methods.neutral import Neutral
from allotment.estimates.methods.response import ByResponse
from allotment.estimates.request import Request, Work
from allotment.ledger.store import Store
from allotment.settings.settings import parse_settings
from allotment.settings.template import write_template


class TestResponse(MethodTests):
    def make(self) -> Method:
        return METHODS.load("response")


class TestSlopes(MethodTests):
    def make(self) -> Method:
        return METHODS.load("slopes")


class TestTaba(MethodTests):
    options: ClassVar = {"pool": range(200, 1200)}

    def make(self) -> Method:
        return METHODS.load("taba")


class TestMendedTaba(MethodTests):
    options: ClassVar = {"pool": range(200, 1200)}

    def make(self) -> Method:
        return METHODS.load("taba-mended")


class TestTabaAlone(MethodTests):
    options: ClassVar = {"pool": range(200, 1200)}

    def make(self) -> Method:
        return METHODS.load("taba-alone")


class TestTag(MethodTests):
    options: ClassVar = {"pool": range(200, 1200), "ahead": 2}

    def make(self) -> Method:
        return METHODS.load("taba-tag")


class TestFixedRate(MethodTests):
    def make(self) -> Method:
        return METHODS.load("taba-b1")


class TestPooledTaba(MethodTests):
    def make(self) -> Method:
        return METHODS.load("taba-pooled")


class TestNeutral(MethodTests):
    def make(self) -> Method:
        return METHODS.load("neutral")


# --- what breaks the contract is found ---


class Wordy(ByResponse):
    about = "two\nlines"


class Greedy(ByResponse):
    def least(self, tasks: int, folds: int) -> int:
        return self.trainings + 1


class Twins(ByResponse):
    def jobs(self, request: Request) -> list[Plain]:
        return [{"takes": 4}, {"takes": 4}]


class Usurper(ByResponse):
    def jobs(self, request: Request) -> list[Plain]:
        return [job | {"seed": 1} for job in super().jobs(request)]


class Forgetful(ByResponse):
    numbers = itertools.count()

    def jobs(self, request: Request) -> list[Plain]:
        return [job | {"at": next(self.numbers)} for job in super().jobs(request)]


class Heavy(ByResponse):
    def weigh(self, request: Request) -> Work:
        return replace(super().weigh(request), steps=1)


class Lazy(ByResponse):
    def do(self, request: Request, job: Plain) -> Plain:
        return super().do(request, {"chunk": [0, 1]})


class Rich(ByResponse):
    def do(self, request: Request, job: Plain) -> Plain:
        return super().do(request, job) | {"array": (1, 2)}


class Moody(ByResponse):
    def do(self, request: Request, job: Plain) -> Plain:
        self.mood = getattr(self, "mood", 0) + 1
        return super().do(request, job) | {"mood": self.mood}


class Curious(ByResponse):
    def do(self, request: Request, job: Plain) -> Plain:
        return super().do(request, job) | {"rich": request.problem is not None}


class Cheat(ByResponse):
    """It trains on labels that score it."""

    def do(self, request: Request, job: Plain) -> Plain:
        learner, _ = request.parts[0]
        learner.start(request.labels, 0)
        return super().do(request, job)


class Blind(ByResponse):
    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        found = super().conclude(request, results, earlier)
        few = slice(0, 2)
        return Estimates(
            found.tasks[few], found.have[few], found.worths[:, few, few], found.shapes[:, few]
        )


class Amnesiac(ByResponse):
    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        return super().conclude(request, results)


class Unsure(ByResponse):
    ends_early = True
    numbers = itertools.count()

    def is_enough(self, request: Request, results: Sequence[Plain]) -> bool:
        return next(self.numbers) % 2 == 0


class Busy(Neutral):
    def jobs(self, request: Request) -> list[Plain]:
        return [{"takes": 1}]


class Unassuming(Neutral):
    def assume(self, problem: Any) -> Any:
        return {}


BROKEN = {
    Wordy: "it_says_what_it_does",
    Greedy: "it_says_what_it_does",
    Twins: "jobs_are_plain_and_their_names_tell_them_apart",
    Usurper: "jobs_are_plain_and_their_names_tell_them_apart",
    Forgetful: "the_same_request_gives_the_same_jobs",
    Heavy: "it_takes_what_it_says",
    Lazy: "it_takes_what_it_says",
    Rich: "results_are_plain",
    Moody: "a_job_gives_the_same_bytes_whenever_it_is_done",
    Curious: "a_job_does_not_look_at_the_problem",
    Cheat: "results_are_plain",
    Blind: "estimates_are_of_every_task_and_plan",
    Amnesiac: "earlier_rounds_are_joined_by_who_says_so",
    Unsure: "the_end_is_the_same_whoever_asks_for_it",
    Busy: "who_trains_nothing_has_no_jobs",
    Unassuming: "who_trains_nothing_has_no_jobs",
}


@pytest.mark.parametrize(("broken", "test"), BROKEN.items(), ids=lambda each: str(each))
def test_a_broken_contract_fails_the_test_for_it(broken: type[Method], test: str) -> None:
    method = broken()

    class Tests(MethodTests):
        def make(self) -> Method:
            return method

    with pytest.raises((AssertionError, InputError)):
        getattr(Tests(), f"test_{test}")()


# --- one list of them ---


def test_the_default_comes_first_and_every_list_says_the_same() -> None:
    first, *_ = METHODS
    assert first == DEFAULT == "response"
    (option,) = [each for each in init.params if each.name == "method"]
    assert option.default == DEFAULT
    known = describe_methods()
    assert list(known) == list(METHODS)
    text = write_template({"name": "scenes"}, {"depth": {"cost": 1, "have": 9}}, "9", first, {})
    ablations = [name for name in known if METHODS.load(name).ablates]
    for name, about in known.items():
        assert (f"#   {name:<12} {about}\n" in text) == (name not in ablations)
    assert f"#   {', '.join(ablations)}: taba with a part left out or replaced" in text
    with pytest.raises(InputError, match=", ".join(known)):
        parse_settings(text.replace('method = "response"', 'method = "zzz"'))


# --- in a campaign it is itself ---


class Flat(InChunks):
    """Trains by a design, as `response` and `slopes` do, and concludes something else."""

    about = "every task gains as much as any"
    trainings = 8

    def conclude(
        self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
    ) -> Estimates:
        response = join_chunks(results)
        size = len(response.tasks)
        worths = np.full((10, 1, 1), float(len(response.scores))) * np.eye(size)
        return Estimates(response.tasks, response.have, worths, np.full((10, size), 0.5))


def start(folder: str, method: str, trainings: int | None = None) -> Campaign:
    begin(folder, "--method", method)
    if trainings is not None:
        shorten(Path(folder), trainings=trainings)
    return Campaign(folder)


@pytest.fixture
def _empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def add(monkeypatch: pytest.MonkeyPatch, name: str, method: Method) -> None:
    """One file more in the folder of methods."""
    monkeypatch.setitem(METHODS.own, name, lambda: method)  # type: ignore[arg-type]


@pytest.mark.usefixtures("_empty")
def test_a_new_method_with_a_design_is_not_taken_for_slopes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(monkeypatch, "flat", Flat())
    campaign = start("camp", "flat")
    found = campaign.estimate(0).estimates
    assert found.about["method"] == "flat"
    assert (found.worths == 8 * np.eye(2)).all()
    assert (found.shapes == 0.5).all()


class Guess(Neutral):
    """Knows from elsewhere that one task is worth a hundred times the other."""

    about = "looks are worth a hundred times sizes"

    def assume(self, problem: Any) -> Any:
        gains = super().assume(problem)
        return dict(gains) | {"look": 100 * gains["look"]}


@pytest.mark.usefixtures("_empty")
def test_a_new_method_that_trains_nothing_plans_with_what_it_assumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(monkeypatch, "guess", Guess())
    campaign = start("camp", "guess")
    assert campaign.summarise()[1].next.startswith("allot plan")
    _, proposal = campaign.plan()
    neutral = start("other", "neutral").plan()[1].plan.counts
    assert proposal.plan.counts["look"] > neutral["look"]
    assert proposal.basis == 'method = "guess": looks are worth a hundred times sizes'
    with pytest.raises(InputError, match="guess measures nothing; go on with: allot plan camp"):
        campaign.estimate(0)


@pytest.mark.usefixtures("_empty")
def test_a_method_says_how_few_trainings_it_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pairs(Flat):
        def least(self, tasks: int, folds: int) -> int:
            return 2 * tasks

    add(monkeypatch, "pairs", Pairs())
    campaign = start("camp", "pairs", trainings=3)
    with pytest.raises(InputError, match="3 is not a whole number of 4 or more, which method"):
        campaign.look()


@pytest.mark.usefixtures("_empty")
def test_a_method_that_ends_early_leaves_the_rest_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Content(Flat):
        """Satisfied with three, if there is a problem to plan for."""

        ends_early = True

        def jobs(self, request: Request) -> list[Plain]:
            return super().jobs(replace(request, per_job=1))

        def is_enough(self, request: Request, results: Sequence[Plain]) -> bool:
            return request.problem is not None and len(results) == 3

    add(monkeypatch, "content", Content())
    campaign = start("camp", "content")
    assert len(campaign.list_jobs(campaign.look())) == 8
    assert campaign.estimate(0).trained == 3
    again = campaign.estimate(0)
    assert (again.trained, again.kept) == (0, 3)
    assert (again.estimates.worths == 3 * np.eye(2)).all()
    labels = MethodTests.labels
    assert len(estimate(Pupil(), labels, method="content").about["method"]) == 7
    with pytest.raises(
        InputError, match="'content' probes nothing; these do: taba-mended, taba-pooled"
    ):
        estimate(Pupil(), labels, method="content", probing={"steps": 9})


# --- of packages ---


def offer_as(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setattr(
        type(METHODS), "version_of", lambda self, name: home if name == "flat" else None
    )


@pytest.mark.usefixtures("_empty")
def test_the_version_of_a_package_is_part_of_what_its_jobs_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(monkeypatch, "flat", Flat())
    offer_as(monkeypatch, "flats 1.0")
    campaign = start("camp", "flat")
    comment = "# it comes with a package that is to be installed: flats 1.0\nmethod = "
    assert comment in Path("camp/campaign.toml").read_text()
    assert {job.needs["package"] for job in campaign.list_jobs(campaign.look())} == {"flats 1.0"}
    assert campaign.estimate(0).trained == 8
    assert campaign.estimate(0).trained == 0
    offer_as(monkeypatch, "flats 1.1")
    newer = campaign.estimate(0)
    assert newer.trained == 8
    assert newer.left_over == {"the labels at hand, the learner or a version are others": 8}
    builtin = start("other", "slopes")
    assert not any("package" in job.needs for job in builtin.list_jobs(builtin.look()))


@pytest.mark.usefixtures("_empty")
def test_a_method_that_is_not_installed_here_is_told_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        add(patch, "flat", Flat())
        offer_as(patch, "flats 1.0")
        start("camp", "flat").estimate(0)
        Campaign("camp").pack("camp.zip")
    parse_settings.cache_clear()
    for verb in (lambda: Campaign("camp").look(), lambda: Campaign.unpack("camp.zip", "copy")):
        with pytest.raises(InputError) as caught:
            verb()
        assert "method: unknown 'flat'; known: response" in str(caught.value)
        assert "method 'flat': comes with flats 1.0; install that first" in str(caught.value)
    assert not Path("copy").exists()


@pytest.mark.usefixtures("_empty")
def test_what_goes_wrong_in_a_package_is_told_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wrong(Flat):
        def conclude(
            self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
        ) -> Estimates:
            return {}["nothing"]  # type: ignore[no-any-return]

    class Few(Flat):
        def conclude(
            self, request: Request, results: Sequence[Plain], earlier: Sequence[Estimates] = ()
        ) -> Estimates:
            return Estimates(("size",), (9,), np.ones((2, 1, 1)), np.full((2, 1), 0.5))

    class Taken(Flat):
        def jobs(self, request: Request) -> list[Plain]:
            return [{"seed": 1}]

    class Impatient(Flat):
        ends_early = True

        def is_enough(self, request: Request, results: Sequence[Plain]) -> bool:
            return results[7] is not None

    offer_as(monkeypatch, "flats 1.0")
    for method, words in (
        (Impatient(), r"method 'flat' of flats 1.0: failed \(IndexError"),
        (Wrong(), r"method 'flat' of flats 1.0: failed \(KeyError: 'nothing'\)"),
        (Few(), "method 'flat': flats 1.0 concluded nothing of look"),
        (Taken(), r"flats 1.0: failed \(ValueError: its jobs must call 'seed' something else"),
    ):
        add(monkeypatch, "flat", method)
        with pytest.raises(InputError, match=words):
            start(type(method).__name__, "flat").estimate(0)


@pytest.mark.usefixtures("_empty")
def test_what_an_archive_says_of_jobs_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    from allotment.job import Job

    for kind, needs in (
        ("training", {"method": ["x"]}),
        ("training", {"method": "x", "takes": "many"}),
        ("training", {}),
        ("piece", {"takes": None}),
        ("response", {"chunk": 7}),
    ):
        folder = f"{kind}-{len(str(needs))}"
        start(folder, "slopes")
        with Store.open(Path(folder), write=True) as store:
            store.put_result(Job(kind, needs), {})
        with pytest.raises(InputError, match=f"the result of a {kind} on record cannot be read"):
            Campaign(folder).look()
