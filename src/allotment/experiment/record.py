"""What was computed for experiments: a line for each job, so that nothing is trained twice and
whoever has the file needs neither the data nor the hours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from allotment.job import JSON, Job, canonical, parse


def name_record(folder: str | Path, data: str, size: str) -> Path:
    """The file of what was computed on a data set at one size."""
    return Path(folder) / f"{data}-{size}.jsonl"


class Record:
    """Results of jobs by kind and needs, whichever version of the package did them; their lines say
    which. A line that was cut off counts as not written."""

    def __init__(self, path: str | Path = ""):
        """Of a file; in memory alone without one."""
        self.path = Path(path)
        self._found: dict[str, dict[str, Any]] = {}
        for row in self._read():
            self._keep(row)

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                row = parse(line)
            except ValueError:
                continue
            if isinstance(row, dict) and {"kind", "needs", "result"} <= row.keys():
                yield row

    def __len__(self) -> int:
        return len(self._found)

    def get(self, kind: str, needs: Mapping[str, JSON]) -> JSON:
        """What came of a job; None if it was not done."""
        row = self._found.get(canonical([kind, needs]))
        return None if row is None else row["result"]

    def has(self, job: Job) -> bool:
        return self.get(job.kind, job.needs) is not None

    def find_versions(self, job: Job) -> Mapping[str, JSON] | None:
        """Of the programs that did a job; None if it was not done."""
        row = self._found.get(canonical([job.kind, job.needs]))
        return None if row is None else row.get("versions")

    def take(self, job: Job, result: JSON) -> None:
        """Count a result as known without writing it down."""
        self._keep(_describe(job, result))

    def _keep(self, row: dict[str, Any]) -> None:
        self._found[canonical([row["kind"], row["needs"]])] = row

    def put(self, job: Job, result: JSON) -> None:
        """Keep a result, on the disk before it counts."""
        row = _describe(job, result)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_whole():
                file.write("\n")
            file.write(json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._keep(row)

    def _ends_whole(self) -> bool:
        """Whether the last line has its end: a run that was cut off may have left a part of one."""
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def list_results(self, kind: str) -> list[tuple[Mapping[str, JSON], JSON]]:
        """Needs and result of every job of a kind."""
        return [
            (row["needs"], row["result"]) for row in self._found.values() if row["kind"] == kind
        ]


def _describe(job: Job, result: JSON) -> dict[str, Any]:
    return {
        "kind": job.kind,
        "needs": dict(job.needs),
        "result": result,
        "versions": job.versions,
    }
