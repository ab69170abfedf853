"""A campaign: one folder that holds everything from the first measurement to the last label, and
its verbs."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from allotment.advice.backtest import Backtest, backtest
from allotment.advice.doctor import Diagnosis, diagnose
from allotment.advice.loss_weights import LOSS_FACTORS, WeightSweep, sweep_loss_weights
from allotment.advice.price import Price, read_rate, time_alone
from allotment.campaign import audit
from allotment.campaign.corrections import Corrected, judge_corrections, list_wanted
from allotment.campaign.doubts import find_odd, find_waiting, set_apart
from allotment.campaign.evaluation import (
    BASE,
    Evaluation,
    Trial,
    check_oracle,
    list_trials,
    tell_dear,
    whole_problem,
)
from allotment.campaign.export import Exported, choose_format, export
from allotment.campaign.gallery import KeptAnswers, collect_pictures
from allotment.campaign.intake import Intake, compare_with_data, list_guessed, note_strange
from allotment.campaign.jobs import (
    Answers,
    Inquiry,
    combine_evaluations,
    combine_examples,
    combine_validations,
    count_left_over,
    find_earlier,
    inquire,
    list_evaluations,
    list_needs,
    list_parts,
    list_validations,
    name_estimates,
    size_of,
    sort_longest_first,
)
from allotment.campaign.origins import Origin, trace
from allotment.campaign.placing import (
    find_open,
    find_place,
    make_form,
    name_sheet,
    name_strategy,
    place_order,
    take_up,
    tell_options,
    write_sheet,
)
from allotment.campaign.rounds import rebase
from allotment.campaign.session import Session
from allotment.campaign.sharing import tell_crowded, tell_shared
from allotment.campaign.sheets import show_columns
from allotment.campaign.state import (
    CampaignState,
    Files,
    Proposal,
    name_diagnosis,
    tell_spent,
)
from allotment.campaign.summary import Judged, Status, collect, summarise
from allotment.campaign.work import (
    PACE,
    PERFORM,
    TIMED_IN,
    VALIDATION,
    Bench,
    count_folds,
    list_training,
    list_trees,
    make_card,
    make_context,
    set_up,
)
from allotment.connect.connector import find_writer
from allotment.connect.delivery import (
    Parts,
    find_names,
    read_delivery,
    read_label,
    write_held,
    write_rejected,
)
from allotment.errors import Infeasible, InputError, Mistake, suggest
from allotment.estimates.estimates import Estimates
from allotment.estimates.forecast import describe_forecasts
from allotment.estimates.method import mark_conclusion
from allotment.estimates.request import FOLDS
from allotment.files import check_free, place_file, replace_file
from allotment.job import JSON, Job
from allotment.learners.choice import find_learner, is_code, is_stepless
from allotment.learners.learner import BUILT_IN, Learner, train
from allotment.learners.validation import Scoreboard, check_scorable
from allotment.ledger import archive
from allotment.ledger.books import name_order, read_order
from allotment.ledger.disk import MASK_FOLDER
from allotment.ledger.lock import Busy
from allotment.ledger.recovery import Restored, restore
from allotment.ledger.schema import STORE_FILE
from allotment.ledger.store import HeldLabel, Store, Value
from allotment.machine import describe_cpu
from allotment.meter import Meter, Pace, showing
from allotment.mistakes import Collected
from allotment.models.inputs import find_inputs
from allotment.models.model import TrainedModel, check_savable, save_model
from allotment.orders.order import Order
from allotment.orders.sheet import Sheet
from allotment.orders.strategy import RANDOM, SHARING
from allotment.plan import baselines, check_counts
from allotment.progress import Progress
from allotment.renames import rename_keys
from allotment.runs.runner import (
    PROCESSES,
    RUNNERS,
    ClusterRunner,
    Done,
    Runner,
    find_runner,
    name_runner,
    run_jobs,
)
from allotment.settings.settings import (
    DIFFERENT,
    HOLD,
    SAME,
    SETTINGS_FILE,
    check_place,
    parse_settings,
    quote,
    set_task_keys,
)
from allotment.standing import Standing
from allotment.stock.fingerprints import keep_fingerprint, keep_rows
from allotment.stock.stock import OWN

MACHINE = "machine"
"""kind of the result that names a CPU on which some of the trainings were done"""
PLACE = "place"
"""kind of the result that says on which machine of a cluster a job was done"""
REPEATS = 10
"""of an evaluation, as in the paper (P16)"""


@dataclass(frozen=True)
class Measured:
    """What an estimate came to."""

    value: Value
    estimates: Estimates
    diagnosis: Diagnosis | None
    """None where there is no money left that a plan could spend"""
    trained: int
    """trainings of this run"""
    kept: int
    """trainings that were there already"""
    earlier: int
    """trainings of earlier rounds, on fewer labels, from which it was concluded as well"""
    left_over: dict[str, int]
    """trainings that are kept but fit no more, by reason"""
    idle: str = ""
    """why there is nothing to plan, if there is not"""
    proposal: Proposal | None = None
    """what to buy by these, in which labels on order count as at hand; None where nothing can be"""
    tried: Mapping[str, Any] = field(default_factory=dict)
    """options of the method that the settings do not say"""

    @property
    def standing(self) -> Standing:
        """Of the plan beside equal budget."""
        return Standing.UNKNOWN if self.diagnosis is None else self.diagnosis.standing

    def to_dict(self) -> dict[str, Any]:
        """What is told of it in JSON."""
        proposal = self.proposal
        return {
            "number": self.value.number,
            "estimates": self.estimates.to_dict(),
            "diagnosis": None if self.diagnosis is None else self.diagnosis.to_dict(),
            "standing": self.standing,
            "scores": {} if proposal is None else describe_forecasts(proposal.forecasts),
            "tranche": None if proposal is None else proposal.tranche.to_dict(),
        }


@dataclass(frozen=True)
class Ordered:
    """An order, its sheet, and whether it is new."""

    value: Value
    order: Order
    place: str
    is_new: bool
    more: str
    """options that order what was asked for before an earlier order is back"""
    connector: str | None = None
    """that was asked for, if one was"""
    shared: str = ""
    """that tasks could not be kept apart, if they should be"""

    @property
    def strategy(self) -> str:
        """By which its instances were chosen."""
        form = self.value.body["form"]
        return str(form.get("strategy", SHARING if form.get("together") else RANDOM))

    def to_dict(self) -> dict[str, Any]:
        """What is told of it in JSON."""
        about = {"number": self.value.number, "new": self.is_new, "sheet": self.place}
        money = {"total": self.order.total, "counts": self.order.counts}
        return about | money | self.order.to_dict()


class Campaign:
    """The verbs, each of which reads the folder anew unless they are used within `once`.

    `learner` is the name of an installed one, or FILE.py:FUNCTION for code of the user's own; it
    goes before the one of the settings. `on` names the runner that trains, as in "ray" or
    "ray://head:10001"; local processes do if left out.
    """

    def __init__(self, folder: str | Path, learner: str | None = None, on: str | None = None):
        self.folder = Path(folder)
        self.learner = find_learner(learner)
        self.on = PROCESSES if on is None else on
        find_runner(self.on)  # what can't be had is said before anything is done
        self._session: Session | None = None

    def __repr__(self) -> str:
        return f"Campaign({str(self.folder)!r})"

    @classmethod
    def create(
        cls, folder: str | Path, text: str, keep: Callable[[Store], None] | None = None
    ) -> Campaign:
        """A new folder with these settings; nothing is made unless the settings are right. What is
        to be on record from the start `keep` writes: the settings come last, so that there is no
        campaign without it."""
        parse_settings(text)
        folder = Path(folder)
        if (folder / SETTINGS_FILE).exists():
            what = f"is a campaign already; look at it with: allot status {quote(folder)}"
            raise InputError([Mistake(str(folder), what)])
        check_place(folder)
        # by one that was stopped before it had written its settings
        begun = (folder / STORE_FILE).exists()
        with Store.open(folder, write=True) if begun else Store.create(folder) as store:
            store.add_settings(text)
            if keep is not None:
                keep(store)
            place_file(folder / SETTINGS_FILE, text.encode())
        return cls(folder)

    @contextmanager
    def once(self, why: str = "", files: Files | None = None) -> Iterator[Session]:
        """Within it, verbs share what the first of them reads and opens: settings and data are not
        read again, and if it is said `why`, nobody else writes until its end."""
        if self._session is not None:
            yield self._session
            return
        self._session = session = Session(self.folder, why, files)
        try:
            yield session
        finally:
            self._session = None
            session.close()

    @contextmanager
    def _open(self, why: str = "") -> Iterator[Store]:
        with self.once(why) as session:
            yield session.open(why)

    def look(self) -> CampaignState:
        """Where it stands."""
        with self.once() as session:
            return session.look()

    def _begin(self, store: Store) -> CampaignState:
        """Where it stands, with the settings as they are now on record."""
        state = self.look()
        store.add_settings(state.text)
        keep_rows(store, state.settings, state.stock)
        return state

    # Measuring

    def set_up(self, state: CampaignState) -> Bench:
        """The learner on the labels at hand, in this process."""
        self._check_begun(state)
        return set_up(state.settings, state.stock, self._choose_learner(state))

    def _choose_learner(self, state: CampaignState) -> str:
        return self.learner or state.settings.learner

    def _check_begun(self, state: CampaignState) -> None:
        """Raises InputError where the built-in learner would begin with weights that nobody
        named."""
        if self._choose_learner(state) == BUILT_IN:
            state.check_begun()

    def price(self, state: CampaignState, hourly: Any = None, workers: int | None = None) -> Price:
        """What the trainings to come take on this machine with so many workers, timed where they
        will be done."""
        _check_clashes(state)
        rate = read_rate(hourly)
        # before anything is timed: a cluster says then that it has no room, where jobs would wait
        together = max(self.count_workers(state, workers), 1)
        timed, loading = self._time("price", state, workers)
        alone = Price.from_dict(timed)
        return replace(
            alone,
            seconds=alone.seconds / together + (loading if alone.trainings else 0.0),
            hourly=rate,
            budget=float(state.settings.problem().budget),
        )

    def _time(self, kind: str, state: CampaignState, workers: int | None) -> tuple[JSON, float]:
        """What a job that times something gave, done where trainings will be, and the seconds that
        these take to begin: processes of their own read everything anew."""
        timed: list[JSON] = []
        job = Job(kind, list_needs(state.as_kept, self._choose_learner(state), 0))
        begun = time.perf_counter()
        self._run(state, [job], 0 if workers == 0 else 1, lambda _, body: timed.append(body))
        took = time.perf_counter() - begun
        loading = max(took - float(timed[-1].get(TIMED_IN, took)), 0.0)
        return timed[-1], 0.0 if workers == 0 else loading

    def list_jobs(self, state: CampaignState) -> list[Job]:
        """What estimates of the labels at hand are made of."""
        return self._inquire(state).jobs

    def _inquire(self, state: CampaignState) -> Inquiry:
        _check_measurable(state)
        bench = cache(lambda: self.set_up(state.as_kept))
        return inquire(state.as_kept, self._choose_learner(state), bench)

    def is_begun(self, state: CampaignState) -> bool:
        """Whether some of the trainings for the estimates to come are done."""
        jobs = self.list_jobs(state)
        with self._open() as store:
            return any(store.result(job.key) is not None for job in jobs)

    def estimate(
        self,
        workers: int | None = None,
        progress: Progress | bool | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Measured:
        """What labels are worth, from trainings on those at hand; what is done already is looked
        up, not done again. With other `options` of the method than the settings have it is kept,
        too, but plans go by the settings."""
        with self._open("estimate") as store:
            state = self._begin(store)
            keep_fingerprint(store, state.as_kept.settings, state.as_kept.stock)
            said = self.look()
            state = said.with_options(options or {})
            _check_clashes(state)
            inquiry = self._inquire(state)
            answers = Answers(store, inquiry)
            parts = list_parts(state.as_kept)
            earlier = find_earlier(store, inquiry, parts, state.outdated)
            left_over = count_left_over(store, state, inquiry, earlier)
            enough = answers.are_enough if inquiry.method.ends_early else None
            done = self._do(store, state, answers.jobs, workers, progress, enough)
            jobs = answers.jobs
            found = answers.conclude(earlier, state.as_kept.settings.names)
            body = {"needs": inquiry.basis, "estimates": found}
            body |= mark_conclusion(inquiry.method)
            body |= {"earlier": [value.key for value in earlier]} if earlier else {}
            body |= {"parts": parts} if parts else {}
            value = store.add_value("estimates", body, name_estimates(body).key)
            estimates = state.read_estimates(value)
            diagnosis = _diagnose(store, state, value, estimates)
            proposal = None if diagnosis is None else _propose(store, state)
        trained = sum(size_of(job) for job in jobs if job.key in done)
        kept, used = (
            sum(map(size_of, jobs)) - trained,
            sum(each.body["needs"]["trainings"] for each in earlier),
        )
        idle = "" if diagnosis is not None else tell_spent(state)
        known = said.settings.estimates
        tried = {key: each for key, each in (options or {}).items() if known.get(key) != each}
        found = (value, estimates, diagnosis, trained, kept, used, left_over, idle, proposal)
        return Measured(*found, tried)

    def backtest(self, repeats: int = 4, progress: Progress | bool | None = None) -> Backtest:
        """What the method would have brought already, from a quarter of the labels at hand; it
        trains in this process, and nothing is kept."""
        state = self.look()
        _check_measurable(state)
        bench, settings = self.set_up(state), state.settings

        with showing(progress, "repeats") as shown:
            return backtest(
                bench.learner,
                bench.labels,
                settings.problem(),
                (settings.method,),
                settings.seed,
                repeats,
                trainings=settings.trainings,
                options=settings.estimates,
                progress=lambda done, total, _: shown(done, total),
            )

    def sweep_loss_weights(
        self,
        factors: Sequence[float] = LOSS_FACTORS,
        progress: Progress | bool | None = None,
        write: bool = False,
    ) -> WeightSweep:
        """What other loss weights would bring on the labels at hand; it trains in this process, and
        nothing is kept but, to `write`, what it advises in the settings."""
        state = self.look()
        _check_measurable(state)
        settings, stock = state.settings, state.stock
        name = self._choose_learner(state)
        if is_stepless(name):
            what = f"{name} adds no losses up, so that it has no loss weights"
            raise InputError([Mistake("learner", what)])

        def make(weights: Mapping[str, float]) -> Learner:
            targets = tuple(
                replace(each, loss_weight=weights[each.name]) for each in stock.data.targets
            )
            data = stock.data.with_targets(targets)
            return set_up(settings, replace(stock, data=data), name).learner

        bench = self.set_up(state)
        with showing(progress) as shown:
            found = sweep_loss_weights(
                make,
                bench.labels,
                {target.name: target.loss_weight for target in stock.data.targets},
                factors=factors,
                folds=count_folds(bench),
                seed=settings.seed,
                importance={task.name: task.weight for task in settings.tasks},
                progress=shown,
            )
        if write and found.changed:
            now = self.look().text  # somebody may have changed it meanwhile
            text = set_task_keys(now, "loss_weight", found.changed)
            replace_file(self.folder / SETTINGS_FILE, text.encode())
        return found

    def _do(
        self,
        store: Store,
        state: CampaignState,
        jobs: Sequence[Job],
        workers: int | None,
        progress: Progress | bool | None,
        enough: Callable[[], bool] | None = None,
    ) -> set[str]:
        """Do the jobs that are not done, until that is `enough`; the keys of those that it did."""
        todo = [job for job in jobs if store.result(job.key) is None]
        total, left, done = sum(map(size_of, jobs)), sum(map(size_of, todo)), dict[str, int]()

        def keep(job: Job, body: JSON) -> None:
            store.put_result(job, body)
            done[job.key] = size_of(job)

        if enough is None:  # otherwise those that come first may be all that is needed
            todo = sort_longest_first(todo)
        if todo and not self._is_elsewhere:
            store.put_result(_name_machine(describe_cpu()), {})
        with showing(progress) as shown:
            meter = shown if isinstance(shown, Meter) else None
            pace = meter or Pace()

            def tell(finished: int, of: int) -> None:
                count = total - left + round(left * finished / max(of, 1))
                shown(count, total)
                if meter is None:
                    pace.count(count, total)
                store.note_headway(count, total, pace.left())

            tell(0, len(todo))
            count = self.count_workers(state, workers)
            note = partial(_note_place, store)
            self._run(state, todo, count, keep, progress=tell, enough=enough, note=note)
            if len(done) < len(todo):
                shown(total - left + sum(done.values()), total - left + sum(done.values()))
        return set(done)

    def tell_machine(self) -> str:
        """That trainings so far were done on another kind of CPU; nothing if none were, or if some
        were on this one."""
        if self._is_elsewhere:
            return ""  # of what trains there nothing is known yet
        with self._open() as store:
            known = [needs["cpu"] for _, needs, _ in store.results(MACHINE)]
        if not known or describe_cpu() in known:
            return ""
        kinds = (
            f"so far this campaign was trained on another kind of CPU ({known[-1]}); this one"
            f" ({describe_cpu()})"
        )
        kept = (
            "What is done is kept; figures to come agree with it closely, but not to the last digit"
        )
        return f"{kinds} rounds differently. {kept}"

    def count_workers(self, state: CampaignState, workers: int | None = None) -> int:
        """How many processes train unless somebody says: one for each core, but one where they
        would share a GPU."""
        if workers is not None:
            return workers
        on_cpu = state.settings.training.get("device", "cpu") == "cpu"
        if not on_cpu and not self._is_elsewhere:
            return 1
        return self._find_runner(state).count_workers()

    @property
    def _is_elsewhere(self) -> bool:
        """Whether a cluster trains, whose machines may be of other kinds and have GPUs to share."""
        return isinstance(RUNNERS.load(name_runner(self.on)), ClusterRunner)

    def _find_runner(self, state: CampaignState) -> Runner:
        return find_runner(self.on, state.settings.cluster)

    def count_places(self) -> dict[str, int]:
        """How many jobs were done on which machines of clusters, by their names."""
        with self._open() as store:
            hosts = [body["host"] for _, _, body in store.results(PLACE)]
        return dict(Counter(hosts).most_common())

    def _run(
        self, state: CampaignState, jobs: Sequence[Job], workers: int, done: Done, **told: Any
    ) -> None:
        self._check_begun(state)
        kept = state.as_kept
        context = make_context(kept.settings, kept.stock, self._choose_learner(state))
        if self._is_elsewhere:
            told["trees"] = list_trees(kept.settings, kept.stock, context)
        runner = self._find_runner(state)
        _check_seen(self._choose_learner(state), runner)
        with RUNNERS.calling(name_runner(self.on)):
            run_jobs(jobs, PERFORM, context, runner=runner, workers=workers, done=done, **told)

    # Planning and buying

    def plan(self, budget: Any = None, stop: bool = False) -> tuple[CampaignState, Proposal]:
        """Where it stands, and the best plan for the money that is left; `budget` is another one
        for all of it. With `stop` the plan ends where labels cost more than they bring, and leaves
        the rest unspent."""
        state = self.look()
        state.check_lost()
        if budget is None and not state.is_affordable:
            raise Infeasible([tell_spent(state)])
        return state, state.propose(budget, stop)

    def record(self, proposal: Proposal) -> Value:
        """Keep a plan."""
        with self._open("plan") as store:
            self._begin(store)
            return store.add_value("plan", proposal.to_dict(), proposal.job.key)

    def try_to_record(self, proposal: Proposal) -> str:
        """Keep a plan if that can be done: somebody else may be writing, or this user only looking,
        and neither is a failure. Why it is not kept, or nothing."""
        try:
            self.record(proposal)
        except InputError as error:
            if not isinstance(error, Busy) and os.access(self.folder, os.W_OK):  # a full disk, say
                raise
            return str(error)
        return ""

    def order(
        self,
        path: str | Path | None = None,
        *,
        everything: bool = False,
        together: bool = False,
        more: bool = False,
        strategy: str | None = None,
        connector: str | None = None,
        stop: bool = False,
    ) -> Ordered:
        """Order the tranche that the plan proposes, or all of it, and write the sheet to be filled
        in. With `stop` the plan is the one that ends where labels cost more than they bring.

        While an order is open its sheet is written again and nothing is ordered, unless `more` is
        wanted. Whoever was stopped before the sheet was there gets that one first, whatever is
        wanted. Instances are chosen by the strategy that is named here, or else in the settings;
        `together` is short for the one of that name. The sheet goes where the connector puts it
        that is named, or that knows the path by its name.
        """
        named = name_strategy(strategy, together)
        given = None if path is None else os.fspath(path)
        writer = find_writer(given, connector)
        with self._open("order") as store:
            state = self._begin(store)
            state.check_lost()
            usual = state.settings.strategy
            if usual == RANDOM and state.settings.instances == SAME:
                usual = SHARING
            form = make_form(everything, named or usual, stop)
            value = find_open(store, state)
            if more and value is not None and store.result(name_sheet(value).key) is not None:
                value = None
            is_new = value is None
            number = len(store.orders()) + 1 if value is None else value.number
            place = given or find_place(self.folder, writer, number)
            if value is None:
                value = place_order(store, state, form, writer, place)
            order, name = read_order(store, value), name_order(store, value)
            store.keep_copy()  # so that what is sent is on record twice
            show = show_columns(state, {name for _, name in order.items})
            try:
                write_sheet(writer, Sheet(order, name, show, state.stock.targets), place)
            except InputError as error:
                if not is_new:
                    raise
                to = "" if connector is None else f" --to {quote(connector)}"
                what = (
                    "is placed all the same; to write its sheet: allot order"
                    f" {quote(self.folder)}{to} -o FILE"
                )
                placed = Mistake(f"order {value.number}", what)
                raise InputError([*error.mistakes, placed]) from None
            store.put_result(name_sheet(value), {})
        options = tell_options(everything, named, stop)
        shared = tell_shared(state, order.items) if is_new and not order.together else ""
        return Ordered(value, order, place, is_new, options, connector, shared)

    def cancel(self, number: int) -> int:
        """Give up what did not come back of an order; its money can be planned again. How many
        labels that were."""
        with self._open("order") as store:
            state = self._begin(store)
            store.cancel(number)
            return sum(each == number for each, _, _ in state.open)

    def ingest(
        self,
        path: str | Path,
        *,
        task: str | None = None,
        id_column: str | None = None,
        connector: str | None = None,
        confirm: bool = False,
    ) -> Intake:
        """Take labels back: all that can be used goes in, all else is listed in a file with the
        reason.

        Labels that look wrong beside those at hand are held back, and listed too, unless the
        settings say otherwise; `confirm` takes those of this delivery, also if it came before.
        """
        with self._open("ingest") as store:
            state = self._begin(store)
            stock = state.stock
            guessed = list_guessed(state.settings, stock)
            said = {"task": task, "id_column": id_column, "connector": connector}
            parts = _read_labels(path, state, guessed=guessed, **said)
            if found := take_up(store, state, parts):
                parts = replace(parts, notes=(*found, *parts.notes))
                state = self.look()
            ever = {(task, name) for _, task, name in store.kept_items(lambda task, name: True)}
            parts = note_strange(parts, state, ever)
            if confirm and (waiting := find_waiting(store, parts.digest)):
                return _confirm(store, state, waiting)
            rule = state.settings.odd_labels
            named = [name for name, keys in state.settings.targets.items() if "classes" in keys]
            odd = {} if confirm or rule == "take" else find_odd(parts, stock, named)
            parts = set_apart(parts, odd, hold=rule == HOLD)
            before = {(each.task, each.instance) for each in store.answers()}
            had = compare_with_data(parts.accepted, stock, before)
            held = [each.row for each in parts.held]
            delivery = store.add_delivery(
                parts.name, parts.digest, parts.accepted, parts.rejected, held
            )
        listed = self.folder / f"rejected-{parts.digest[:8]}.csv" if parts.rejected else None
        # one that is there may have been mended since
        if listed is not None and not listed.exists():
            write_rejected(parts, listed)
        odd_list = self.folder / f"held-{parts.digest[:8]}.csv" if parts.held else None
        if odd_list is not None and not odd_list.exists():
            write_held(parts, odd_list, MASK_FOLDER)
        return Intake(
            parts,
            delivery,
            listed,
            had.count(True),
            had.count(False),
            state.settings.conflicts,
            odd_list,
            rule == HOLD,
        )

    def confirm(self) -> Intake:
        """Take all labels that were held back, since somebody says that they are right."""
        with self._open("ingest") as store:
            state = self._begin(store)
            return _confirm(store, state, store.held())

    def buy(self) -> Intake:
        """Take the labels on order from the data set itself, where it has them."""
        with self._open("ingest") as store:
            state = self._begin(store)
            check_oracle(state)
            if not state.open:
                what = (
                    f"type: allot order {quote(self.folder)}"
                    if state.can_buy
                    else tell_spent(state)
                )
                raise InputError([Mistake("", f"nothing is on order; {what}")])
            accepted = tuple((task, name, OWN) for _, task, name in state.open)
            digest = hashlib.sha256(repr(sorted(state.open)).encode()).hexdigest()
            parts = Parts("the data set itself", digest, accepted, ())
            return Intake(parts, store.add_delivery(parts.name, digest, accepted, ()), None)

    # Correcting

    def correct(self, task: str, instance: str, value: Any, why: str = "") -> Corrected:
        """Say what a label at hand is instead; all that was said before is kept. A mask is the name
        of a PNG file."""
        with self._open("correct") as store:
            state = self._begin(store)
            stock = state.stock
            label = read_label(
                (task, instance, value),
                stock.targets,
                stock.place,
                size_of=stock.size_of,
                keep=self.folder / MASK_FOLDER,
                aliases=state.settings.renames.now,
                decimal=state.settings.data.get("decimal"),
            )
            return _correct(store, state, [label], why)

    def withdraw(self, task: str, instance: str, why: str = "") -> Corrected:
        """Take a label back, so that it counts for nothing; it is kept, and stays paid."""
        with self._open("correct") as store:
            state = self._begin(store)
            task = state.settings.renames.call(task)
            names = find_names(task, instance, state.stock.targets, state.stock.place)
            return _correct(store, state, [(*names, None)], why)

    def correct_from(self, path: str | Path, *, withdraw: bool = False, why: str = "") -> Corrected:
        """Correct all labels that a file names, as in a delivery, or withdraw them: all of them, or
        none if one of them can't be."""
        with self._open("correct") as store:
            state = self._begin(store)
            parts = _read_labels(path, state)
            return _correct(store, state, list_wanted(parts, withdraw), why)

    def history(self, task: str | None = None, instance: str | None = None) -> list[Origin]:
        """All that was ever said of labels, of one task or instance if these are named: where each
        came from, when, at what price, and which counts."""
        with self._open() as store:
            state = self.look()
            task = None if task is None else state.settings.renames.call(task)
            wrong = Collected()
            for what, given, known in (
                ("task", task, state.stock.targets),
                ("instance", instance, state.stock.place),
            ):
                if given is not None and given not in known:
                    wrong.add(what, f"there is no {given!r}; {suggest(given, known)}")
            wrong.raise_all()
            found = trace(state, store)
        return [
            each
            for each in found
            if task in (None, each.task) and instance in (None, each.instance)
        ]

    def export(
        self,
        path: str | Path,
        *,
        form: str | None = None,
        origins: str = "file",
        force: bool = False,
    ) -> Exported:
        """Write the table with every label merged in, and where each came from: in a second file,
        in `columns` of the table, or in `none`."""
        choose_format(Path(path), form)  # before anything is read
        with self._open() as store:
            state = self.look()
            return export(state, trace(state, store), Path(path), form, origins, force)

    # Judging

    def list_trials(
        self,
        state: CampaignState,
        yours: Sequence[Mapping[str, Any]] = (),
        beside: Collection[str] | None = None,
    ) -> list[Trial]:
        """The campaign's own purchase, with what is still planned, beside what a team would do
        anyway: every baseline, or those named in `beside`.
        """
        check_oracle(state)
        problem = whole_problem(state)
        own = {name: state.account.bought(name) for name in problem.names}
        if state.can_buy:
            planned = state.propose().plan.counts
            own = {name: count + planned[name] for name, count in own.items()}
        others = {
            name: counts
            for name, counts in baselines(problem).items()
            if beside is None or name in beside
        }
        return list_trials(own, others, [check_counts(problem, counts) for counts in yours])

    def judge_prices(self, yours: Sequence[Mapping[str, Any]]) -> list[str]:
        """A warning for each plan that the budget would not buy, and for each that can't be bought
        on instances of their own where these are wanted."""
        state = self.look()
        check_oracle(state)
        problem = whole_problem(state)
        dear = tell_dear(problem, [check_counts(problem, counts) for counts in yours])
        if state.settings.instances != DIFFERENT:
            return dear
        return dear + tell_crowded(state, self.list_trials(state, yours))

    def evaluate(
        self, workers: int | None = None, progress: Progress | bool | None = None
    ) -> Scoreboard:
        """How good the model of the labels at hand is now: each label is asked of a model that
        never saw it, and scored in the task's own metrics. What is done already is looked up."""
        with self._open("evaluate") as store:
            state = self._begin(store)
            jobs = self._list_validations(state)
            self._do(store, state, jobs, workers, progress)
            return _combine_scores(store, state, jobs)

    def find_scores(self) -> Scoreboard | None:
        """What `evaluate` says of the labels at hand, if that was done; it trains nothing."""
        with self._open() as store:
            state = self.look()
            try:
                jobs = self._list_validations(state)
            except InputError:  # too few labels
                return None
            if any(store.result(job.key) is None for job in jobs):
                return None
            return _combine_scores(store, state, jobs)

    def _list_validations(self, state: CampaignState) -> list[Job]:
        check_scorable(state.stock.have)
        return list_validations(state.as_kept, self._choose_learner(state))

    def time_evaluation(self, workers: int | None = None) -> float:
        """Seconds that `evaluate` would take on this machine, by a few steps that are timed; 0 if
        it is done already."""
        with self._open() as store:
            state = self.look()
            todo = [
                each for each in self._list_validations(state) if store.result(each.key) is None
            ]
        if not todo:
            return 0.0
        rounds = math.ceil(len(todo) / max(self.count_workers(state, workers), 1))
        timed, loading = self._time(PACE, state, workers)
        return loading + float(timed["seconds"]) * size_of(todo[0]) * rounds

    def time_plans(
        self, yours: Sequence[Mapping[str, Any]], repeats: int, workers: int | None = None
    ) -> tuple[int, float]:
        """How many trainings `try_plans` has to do, and the seconds that these take on this
        machine, by a few steps that are timed."""
        with self._open() as store:
            state = self.look()
            jobs = self._list_tries(state, yours, repeats)[1]
            todo = [job for row in jobs for job in row if store.result(job.key) is None]
        if not todo:
            return 0, 0.0
        trainings = sum(map(size_of, todo))
        together = min(max(self.count_workers(state, workers), 1), len(todo))
        timed, loading = self._time(PACE, state, workers)
        return trainings, loading + float(timed["seconds"]) * trainings / together

    def _list_tries(
        self,
        state: CampaignState,
        yours: Sequence[Mapping[str, Any]],
        repeats: int,
        beside: Collection[str] | None = None,
    ) -> tuple[list[Trial], list[list[Job]]]:
        """The plans to be tried, beside buying nothing, and the jobs of each; tasks are called as
        they are on record."""
        nothing = Trial(BASE, dict.fromkeys(state.settings.names, 0))
        was = state.settings.renames.was
        wanted = (nothing, *self.list_trials(state, yours, beside))
        trials = [each.rename(was) for each in wanted]
        learner = self._choose_learner(state)
        return trials, list_evaluations(state.as_kept, learner, trials, repeats)

    def time_model(self) -> float:
        """Seconds that `train` takes on this machine, by a few steps that are timed; 0 for a
        learner that trains in one step, which would take as long."""
        state = self.look()
        if not any(state.stock.have.values()):
            return 0.0  # which `train` refuses
        bench = self.set_up(state)
        return time_alone(bench.learner, bench.labels, state.settings.seed)

    def train(self, place: str | Path, progress: Progress | bool | None = None) -> TrainedModel:
        """The model of all labels at hand, saved in a new folder with a card; `al.load_model` opens
        it anywhere. It trains in this process, and calls `progress` with the steps done."""
        check_free(Path(place))
        with self._open():
            state = self.look()
            name = self._choose_learner(state)
            if not any(state.stock.have.values()):
                what = "no task has a label yet; there is nothing to train on"
                raise InputError([Mistake("labels at hand", what)])
            bench = self.set_up(state)
            check_savable(bench.learner, name)
            inputs = find_inputs(state.stock.whole(), state.stock.rows)
            scores = self.find_scores()
        seed, total = state.settings.seed, max(bench.learner.steps(bench.labels), 1)

        with showing(progress, "steps") as shown:
            shown(0, total)
            trained = train(
                bench.learner,
                bench.labels,
                seed,
                watch=lambda step, _: shown(min(step, total), total),
            )
        return save_model(
            place,
            bench.learner,
            trained,
            name=name,
            targets=state.stock.data.targets,
            inputs=inputs,
            training=list_training(state.settings),
            card=make_card(state.settings, state.stock, name, bench.labels, scores),
        )

    def try_plans(
        self,
        yours: Sequence[Mapping[str, Any]] = (),
        repeats: int = REPEATS,
        workers: int | None = None,
        progress: Progress | bool | None = None,
        beside: Collection[str] | None = None,
    ) -> tuple[Value, Evaluation]:
        """Buy every plan from the data set's own labels, again and again, retrain, and score on the
        test part."""
        with self._open("evaluate") as store:
            state = self._begin(store)
            trials, jobs = self._list_tries(state, yours, repeats, beside)
            self._do(store, state, [job for row in jobs for job in row], workers, progress)
            found = combine_evaluations(store, state.as_kept, trials, jobs)
            key = Job("evaluated", {"jobs": [[job.key for job in row] for row in jobs]}).key
            body = found.to_dict() | combine_examples(store, state.as_kept, jobs)
            value = store.add_value("evaluation", body, key)
            return value, found.rename(state.settings.renames.now)

    # Keeping

    def verify(self) -> audit.Audit:
        """Hold all that is on record against itself: rows, books, files, copies."""
        return audit.audit(self.folder)

    def restore(self) -> Restored:
        """Put the last sound copy of the store in the place of one that is harmed, gone or
        older."""
        return restore(self.folder)

    def pack(self, path: str | Path | None = None) -> Path:
        """Write all of it into one archive, if it is sound; beside the folder unless said."""
        if faults := self.verify().faults:
            raise InputError([Mistake(repr(str(self.folder)), _tell_faults(self.folder, faults))])
        return archive.pack(self.folder, _name_archive(self.folder) if path is None else path)

    @classmethod
    def unpack(cls, path: str | Path, folder: str | Path) -> Campaign:
        """A campaign from an archive, none of which is trusted, in a new folder."""
        return cls(archive.unpack(path, folder, audit.judge_folder))

    # Looking

    def summarise(self, files: Files | None = None) -> tuple[CampaignState, Status]:
        """Spent, open, expected, next; `files` are its own, if they were read a moment ago."""
        with self.once(files=files) as session:
            store, state = session.open(), session.look()
            recorded = [value.key for value in store.values("plan")]
            labels = state.as_kept.stock.fingerprint
            is_scored = any(needs["labels"] == labels for needs in store.list_needs(VALIDATION))
            judged = Judged(store.latest("evaluation") is not None, is_scored)
            return state, summarise(state, len(store.conflicts()), judged, recorded)

    def report(self) -> dict[str, JSON]:
        """All that a report shows, as far as it is known."""
        with self._open() as store:
            state, status = self.summarise()
            ready = state.can_buy and (not state.measures or state.found is not None)
            proposal = state.propose() if ready else None
            values = collect(
                state,
                proposal,
                store.latest("plan"),
                _find_diagnosis(store, state, proposal),
                store.latest("evaluation"),
                store.orders(),
                status,
            )
            pictures = self.show_pictures()
            return values if pictures is None else values | {"pictures": pictures}

    def show_pictures(self) -> JSON:
        """A few pictures of each task with their labels and with what is on record of what models
        said of them; None where the instances have none. It trains nothing."""
        with self._open() as store:
            state, evaluation = self.look(), store.latest("evaluation")
            kept = KeptAnswers(self._find_answers(store, state), _find_shown(state, evaluation))
            return collect_pictures(state, kept)

    def _find_answers(self, store: Store, state: CampaignState) -> list[dict[str, JSON]]:
        """What models said of the labels at hand as they are now, each of a part that it did not
        see; nothing unless all of that is on record."""
        try:
            jobs = self._list_validations(state)
        except InputError:  # too few labels
            return []
        bodies: list[JSON] = [store.result(job.key) for job in jobs]
        if any(body is None for body in bodies):
            return []
        names = state.settings.renames.now
        return [rename_keys(part, names) for body in bodies for part in body]


def _find_shown(state: CampaignState, evaluation: Value | None) -> dict[str, dict[str, JSON]]:
    """What models of the last plans that were tried said of test pictures, by today's names."""
    shown = {} if evaluation is None else evaluation.body.get("shown", {})
    return {when: rename_keys(each, state.settings.renames.now) for when, each in shown.items()}


def _combine_scores(store: Store, state: CampaignState, jobs: Sequence[Job]) -> Scoreboard:
    """What finished jobs add up to, with tasks called as they are now."""
    return combine_validations(store, state.as_kept, jobs).rename(state.settings.renames.now)


def _read_labels(path: str | Path, state: CampaignState, **said: Any) -> Parts:
    """The labels in a file, held against the campaign's tasks and instances."""
    stock = state.stock
    return read_delivery(
        path,
        stock.targets,
        stock.place,
        own_id=None if stock.rows is None else stock.rows.id,
        size_of=stock.size_of,
        keep=state.folder / MASK_FOLDER,
        aliases=state.settings.renames.now,
        decimal=state.settings.data.get("decimal"),
        **said,
    )


def _correct(
    store: Store, state: CampaignState, wanted: Sequence[tuple[str, str, JSON]], why: str
) -> Corrected:
    found = judge_corrections(state, store, wanted)
    if found.said:
        store.correct(found.said, why)
    return found


def _confirm(store: Store, state: CampaignState, held: Sequence[HeldLabel]) -> Intake:
    """Take labels that were held back, as a delivery of its own."""
    stock = state.stock
    known = [each for each in held if each.task in stock.targets and each.instance in stock.place]
    if not known:
        what = "nothing is held back, so that there is nothing to confirm"
        raise InputError([Mistake("--confirm", what)])
    accepted = tuple((each.task, each.instance, each.value) for each in known)
    digest = Job("confirmed", {"held": [each.number for each in known]}, {}).key
    parts = Parts("those that were held back", digest, accepted, ())
    before = {(each.task, each.instance) for each in store.answers()}
    had = compare_with_data(accepted, stock, before)
    delivery = store.add_delivery(parts.name, digest, accepted)
    rule = state.settings.conflicts
    return Intake(parts, delivery, None, had.count(True), had.count(False), rule)


def _name_archive(folder: Path) -> Path:
    """Beside the folder, with its name; here, where it is called . or .."""
    if folder.name in ("", ".."):
        return Path(f"{folder.resolve().name or 'campaign'}.zip")
    return folder.with_name(f"{folder.name}.zip")


def _tell_faults(folder: Path, faults: Sequence[str]) -> str:
    message = "; ".join(faults[:3]) + (" and more" if faults[3:] else "")
    return (
        f"is not sound, so that it is not packed: {message}. See all of it with: allot verify"
        f" {quote(folder)}"
    )


def _note_place(store: Store, job: Job, where: JSON) -> None:
    """On what machine of a cluster a job was done, and what kind this is, on record once."""
    store.put_result(_name_machine(where["cpu"]), {})
    place = Job(PLACE, {"job": job.key})
    if store.result(place.key) is None:  # done again, it may have been elsewhere
        store.put_result(place, where)


def _check_seen(learner: str, runner: Runner) -> None:
    """Raises InputError where machines would need a file with code of the user's own, which does
    not travel."""
    if is_code(learner) and not getattr(runner, "sees_files", True):
        what = (
            f"{learner} is a file of this machine, and code does not travel; offer it as a package"
            " that is installed on the cluster (docs/extending.md), or write shared = true below"
            " [cluster] if its machines see the file at the same path"
        )
        raise InputError([Mistake("learner", what)])


def _name_machine(cpu: str) -> Job:
    """Where trainings were done, as something that is on record once."""
    return Job(MACHINE, {"cpu": cpu})


def _diagnose(
    store: Store, state: CampaignState, value: Value, estimates: Estimates
) -> Diagnosis | None:
    if not state.can_buy:
        return None
    problem = state.rest()
    found = diagnose(problem, rebase(estimates, {task.name: task.have for task in problem.tasks}))
    store.add_value("diagnosis", found.to_dict(), name_diagnosis(value.key, problem))
    return found


def _check_clashes(state: CampaignState) -> None:
    """Raises Infeasible where no plan can follow: that is found before anything is trained."""
    if state.clashes and state.money[2] >= 0:
        raise Infeasible(state.clashes)


def _find_diagnosis(store: Store, state: CampaignState, proposal: Proposal | None) -> Value | None:
    """What was found out about the plan that is shown, and about no other; the last one where none
    is."""
    if proposal is None or state.found is None:
        return store.latest("diagnosis")
    key = name_diagnosis(state.found.value.key, proposal.plan.problem)
    return next((value for value in store.values("diagnosis") if value.key == key), None)


def _propose(store: Store, state: CampaignState) -> Proposal:
    """By what was concluded since the state was looked at."""
    outlooks = {value.key: value.body["outlook"] for value in store.values("diagnosis")}
    return replace(state, estimates=tuple(store.values("estimates")), outlooks=outlooks).propose()


def _check_measurable(state: CampaignState) -> None:
    if not state.measures:
        go_on = f"go on with: allot plan {quote(state.folder)}"
        what = f"{state.settings.method} measures nothing; {go_on}"
        raise InputError([Mistake("method", what)])
    if not any(state.stock.have.values()):
        what = 'no task has a label yet; label a few of each, or plan with method = "neutral"'
        raise InputError([Mistake("labels at hand", what)])
    if max(state.stock.have.values()) < FOLDS:
        counts = ", ".join(f"{name} {count}" for name, count in state.stock.have.items())
        what = (
            f"{counts}: too few to train on some and to score on others; label {FOLDS} or more of"
            " each task"
        )
        what += (
            f" (each of {FOLDS} parts scores in turn), or plan and order them with method ="
            ' "neutral"'
        )
        raise InputError([Mistake("labels at hand", what)])
