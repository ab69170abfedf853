"""What is looked at while tables and figures are made: what is on record of a case, and its data
where these are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from allotment.errors import InputError, Mistake
from allotment.estimates.estimates import Estimates
from allotment.experiment.case import Case
from allotment.experiment.ground import Ground
from allotment.experiment.outcomes import Outcomes, Plans
from allotment.experiment.record import Record
from allotment.experiment.work import (
    Question,
    conclude,
    list_measurings,
    name_estimates,
    name_pool,
    name_training,
)
from allotment.job import JSON, Job


@dataclass(frozen=True, eq=False)
class Casebook:
    """A case with its record. Without its data nothing new is planned or measured, and what is on
    record can be shown all the same."""

    case: Case
    record: Record
    ground: Ground | None = None

    @property
    def outcomes(self) -> Outcomes:
        return Outcomes(self.case, self.record)

    @property
    def pool(self) -> int:
        """Labels of each task that can be bought."""
        job = name_pool(self.case)
        known = self.record.get(job.kind, job.needs)
        if known is None:
            known = {"instances": self._open().pool}
            self.record.put(job, known)
        return int(known["instances"])

    def _open(self) -> Ground:
        if self.ground is None:
            what = f"are not on record, and the data of {self.case.data} are not given; add --root"
            raise InputError([Mistake("figures", what)])
        return self.ground

    def train_out(self, plans: Plans, same: bool = False, tasks: tuple[str, ...] = ()) -> list[Job]:
        """The trainings of a plan."""
        bought = self.outcomes.list_purchases(plans, same, tasks)
        return [name_training(self.case, each) for each in bought]

    def find_estimates(self, asked: Question) -> Estimates | None:
        """What a method concluded; None if that is not on record."""
        job = name_estimates(self.case, asked)
        plain: Mapping[str, JSON] | None = self.record.get(job.kind, job.needs)
        return None if plain is None else Estimates.from_dict(plain["estimates"])

    def list_measurings(self, asked: Question) -> list[Job]:
        """What is to be measured before a method can conclude anything; nothing once it has."""
        if self.find_estimates(asked) is not None:
            return []
        return list_measurings(self._open(), asked)

    def conclude(self, asked: Question) -> bool:
        """Put on record what the finished measurements of a question add up to; whether there was
        something new."""
        if self.find_estimates(asked) is not None:
            return False
        jobs = list_measurings(self._open(), asked)
        results = [self.record.get(job.kind, job.needs) for job in jobs]
        if not jobs or any(each is None for each in results):
            return False
        found = conclude(self._open(), asked, [each["plain"] for each in results])
        seconds = sum(float(each["seconds"]) for each in results)
        self.record.put(
            name_estimates(self.case, asked),
            {"estimates": found.to_dict(), "seconds": round(seconds, 2)},
        )
        return True
