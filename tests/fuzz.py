"""Fuzz every parser of untrusted input, each in a process of its own and within limits.

    python tests/fuzz.py run [NAME ...] [--seconds 300]   all if none is named
    python tests/fuzz.py replay NAME FILE ...             what single inputs do
    python tests/fuzz.py shrink NAME FILE SMALLER         a smaller input that does the same
    python tests/fuzz.py keep [NAME ...]                  what reached something new, as seeds
    python tests/fuzz.py report                           the table of docs/results/fuzzing.md

Inputs follow from the seed of a run, so the same come again; how many there are depends on the
time. An input that shows a fault is put into OUT/NAME/findings, and the run goes on; only a hang, a
crash of the interpreter or memory beyond all limits ends it.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import gzip
import importlib.util
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
CORPUS = HERE / "fuzzing" / "corpus.zip"
FINDINGS = HERE / "fuzzing" / "findings"
"""inputs that once showed a fault, by target; the quick tests read them all"""
REPORT = HERE.parent / "docs" / "results" / "fuzzing.md"
EVERY_INPUT = -1
"""as many as there is time for"""
HANG = 60
"""seconds after which one input is a hang, on a machine that does other things as well"""
MOST_MEMORY = 3072
"""megabytes of one process, torch and all"""
LARGEST_KEPT = 4096
"""bytes of an input in the corpus that is kept"""
MOST_KEPT = 12_000
"""bytes of one target's inputs there, packed"""
DONE = re.compile(r"#(\d+)\s+(?:DONE|INITED|pulse|NEW|REDUCE|RELOAD)\s+cov: (\d+) ft: (\d+)")


def main() -> int:
    sys.path.insert(0, str(SOURCE))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "command", choices=["run", "replay", "shrink", "keep", "report", "child", "lines"]
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--seconds", type=int, default=300, help="of fuzzing each target, or of shrinking"
    )
    parser.add_argument("--inputs", type=int, default=EVERY_INPUT, help="at most, of each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "fuzzing")
    given = parser.parse_args()
    if given.command == "child":
        _be_child(given.names[0], given.out, given.seconds, given.seed, given.inputs)
    if given.command == "lines":
        print(json.dumps(count_lines(given.names[0], given.out)))
        return 0
    if given.command == "replay":
        return _replay(given.names[0], list(map(Path, given.names[1:])))
    if given.command == "shrink":
        _shrink(given.names[0], *map(Path, given.names[1:]), seconds=given.seconds)
        return 0
    from fuzzing.registry import NAMES

    names = given.names or NAMES
    if given.command == "run":
        if importlib.util.find_spec("atheris") is None:
            sys.exit(
                "error: fuzzing is guided by atheris, which has wheels for Linux on x86-64 only:"
                " pip install atheris"
            )
        results = [run(name, given.out, given.seconds, given.seed, given.inputs) for name in names]
        print(show(results))
        return int(any(each["findings"] for each in results))
    if given.command == "keep":
        keep(names, given.out)
    else:
        write_report(
            given.out, [each for each in names if (given.out / each / "result.json").is_file()]
        )
    return 0


# One run


def run(
    name: str, out: Path, seconds: int, seed: int = 1, inputs: int = EVERY_INPUT
) -> dict[str, Any]:
    """Fuzz one target; what came of it, as it is written to result.json."""
    folder = out / name
    for part in ("corpus", "findings"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for old in ("record.json", "result.json"):
        (folder / old).unlink(missing_ok=True)
    for old in (folder / "findings").iterdir():
        old.unlink()
    # A child's peak of memory counts what its parent held when it began, so that a small one stands
    # between: the process of the tests alone may hold more than a parser is allowed.
    between = ["sh", "-c", '"$@"; exit $?', "sh"]
    options = ["--out", str(out), "--seconds", str(seconds), "--seed", str(seed)]
    options += ["--inputs", str(inputs)]
    command = [*between, sys.executable, __file__, "child", name, *options]
    begin = time.monotonic()
    with (folder / "log.txt").open("w+") as log:
        code = subprocess.run(
            command, stdout=log, stderr=log, env=_environment(), check=False
        ).returncode
        log.seek(0)
        said = log.read()
    counted = DONE.findall(said) or [("0", "0", "0")]
    record = json.loads(_read(folder / "record.json") or "{}")
    found = {each.name for each in (folder / "findings").iterdir() if each.suffix != ".txt"}
    if code and not found:
        found = {
            f"process ended with {code}:"
            f" {said.strip().splitlines()[-1][:200] if said.strip() else 'nothing said'}"
        }
    result = {
        "name": name,
        "inputs": int(counted[-1][0]),
        "edges": int(counted[-1][1]),
        "features": int(counted[-1][2]),
        "corpus": sum(1 for _ in (folder / "corpus").iterdir()),
        "slowest": record.get("slowest", 0.0),
        "peak": record.get("peak", 0.0),
        "seconds": round(time.monotonic() - begin),
        "seed": seed,
        "findings": sorted(found),
    }
    (folder / "result.json").write_text(json.dumps(result))
    return result


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(SOURCE), str(HERE)])
    return os.environ | {
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "0",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _be_child(name: str, out: Path, seconds: int, seed: int, inputs: int) -> None:
    """Fuzz in this process, which does not come back."""
    import atheris

    # before the machine suffers
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY << 20, MOST_MEMORY << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with atheris.instrument_imports(include=["allotment", "tomllib"]):
        from fuzzing.registry import load

        target = load(name)
    from fuzzing.mutators import guide
    from fuzzing.target import attempt

    # it is another function once fuzzing has begun
    guide(lambda data, most: atheris.Mutate(data, most))
    folder = out / name
    for number, seed_input in enumerate([*target.seeds(), *_kept(name), *_old_findings(name)]):
        (folder / "corpus" / f"seed-{number:03}").write_bytes(seed_input)
    (folder / "words.txt").write_text("".join(f'"{_escape(word)}"\n' for word in target.words))
    record = {"slowest": 0.0, "peak": 0.0}
    seen: set[str] = set()

    def test_one(data: bytes) -> None:
        outcome = attempt(target, data, scratch)
        if (
            outcome.seconds > record["slowest"] * 1.1
            or outcome.megabytes > record["peak"] * 1.1 + 1
        ):
            record["slowest"] = max(record["slowest"], outcome.seconds)
            record["peak"] = max(record["peak"], outcome.megabytes)
            (folder / "record.json").write_text(json.dumps(record))
            (folder / "slowest").write_bytes(data)
        if outcome.finding and outcome.finding.what not in seen:
            seen.add(outcome.finding.what)
            (folder / "findings" / outcome.finding.slug).write_bytes(data)
            (folder / "findings" / f"{outcome.finding.slug}.txt").write_text(
                outcome.finding.told, errors="replace"
            )

    options = [
        f"-seed={seed}", f"-runs={inputs}", f"-max_total_time={seconds}",
        f"-max_len={target.longest}",
        f"-timeout={HANG}",
        f"-rss_limit_mb={MOST_MEMORY}", f"-artifact_prefix={folder}/findings/",
        "-print_final_stats=1",
        "-len_control=0", "-reload=0", *([f"-dict={folder}/words.txt"] if target.words else []),
    ]  # fmt: skip
    with quiet_scratch() as scratch:
        mutator = {} if target.mutate is None else {"custom_mutator": target.mutate}
        atheris.Setup([sys.argv[0], *options, str(folder / "corpus")], test_one, **mutator)
        _leaving = _leave_at_once()
        atheris.Fuzz()


def _leave_at_once() -> Any:
    """atheris ends by C's exit, with the interpreter's lock held; where a thread of pyarrow wants
    that lock to let go of a buffer, its pool waits for it for ever. What is to be done at the end
    is done last come first served, so pools are there before; whoever calls keeps the result."""
    import pyarrow as pa

    pa.cpu_count(), pa.io_thread_count()
    leave = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(lambda code, _: os._exit(code))
    ctypes.CDLL(None).on_exit(leave, None)
    return leave


def _escape(word: str) -> str:
    return "".join(
        chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}"
        for byte in word.encode()
    )


@contextmanager
def quiet_scratch() -> Iterator[Path]:
    """A folder in memory; nothing waits for the disk, which would take most of the time."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    usual, os.fsync = os.fsync, lambda handle: None
    threads = threading.active_count()
    try:
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as top:
            yield Path(top)
    finally:
        os.fsync = usual
    assert threading.active_count() <= threads


def _kept(name: str) -> list[bytes]:
    if not CORPUS.is_file():
        return []
    with zipfile.ZipFile(CORPUS) as archive:
        return [archive.read(each) for each in archive.namelist() if each.startswith(f"{name}/")]


def _old_findings(name: str) -> list[bytes]:
    return [read_input(path) for path in sorted((FINDINGS / name).glob("*"))]


def read_input(path: Path) -> bytes:
    """An input; large ones are kept packed."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


# Single inputs


def _replay(name: str, paths: Sequence[Path]) -> int:
    from fuzzing.registry import load
    from fuzzing.target import attempt

    target, bad = load(name), 0
    with quiet_scratch() as scratch:
        for path in paths:
            outcome = attempt(target, read_input(path), scratch)
            told = f"{outcome.finding.what}\n{outcome.finding.told}" if outcome.finding else "fine"
            print(f"{path}: {outcome.seconds:.2f} s, {outcome.megabytes:.0f} MB: {told}")
            bad += outcome.finding is not None
    return int(bad > 0)


def _shrink(name: str, path: Path, smaller: Path, seconds: int) -> None:
    """Leave out pieces, halves first and single bytes last, as long as the same fault shows."""
    from fuzzing.registry import load
    from fuzzing.target import attempt

    target, data, end = load(name), read_input(path), time.monotonic() + seconds
    with quiet_scratch() as scratch:

        def fault(each: bytes) -> str:
            found = attempt(target, each, scratch).finding
            return found.what if found else ""

        wanted, size = fault(data), len(data) // 2
        while wanted and size and time.monotonic() < end:
            at = 0
            while at < len(data) and time.monotonic() < end:
                shorter = data[:at] + data[at + size :]
                if fault(shorter) == wanted:
                    data = shorter
                else:
                    at += size
            size //= 2
    smaller.parent.mkdir(parents=True, exist_ok=True)
    smaller.write_bytes(gzip.compress(data, mtime=0) if smaller.suffix == ".gz" else data)
    print(f"{wanted or 'shows no fault'}: {path.stat().st_size} bytes, now {len(data)}")


# Lines


def count_lines(name: str, out: Path) -> dict[str, Any]:
    """How many lines of the parser's modules the corpus of a run reaches, and which inputs reached
    a new step."""
    steps: set[tuple[str, int, int]] = set()
    current: set[tuple[str, int, int]] = set()
    last: dict[int, int] = {}
    wanted: dict[str, str] = {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        key = wanted.get(frame.f_code.co_filename)
        if key is None:
            return None
        before = last.get(id(frame), 0) if event == "line" else 0
        if event == "line" or event == "call":
            current.add((key, before, frame.f_lineno))
            last[id(frame)] = frame.f_lineno
        return trace

    from fuzzing.registry import load
    from fuzzing.target import attempt

    target = load(name)
    for module in target.covers:
        wanted[str(SOURCE / "allotment" / f"{module}.py")] = module
    useful = []
    inputs = sorted((out / name / "corpus").iterdir(), key=lambda path: path.stat().st_size)
    end = time.monotonic() + 120
    with quiet_scratch() as scratch:
        for path in inputs:
            if time.monotonic() > end:
                break
            current.clear()
            last.clear()
            sys.settrace(trace)
            try:
                attempt(target, path.read_bytes(), scratch)
            finally:
                sys.settrace(None)
            if current - steps:
                steps |= current
                useful.append(path.name)
    reached = {(key, line) for key, _, line in steps}
    total = {(key, line) for path, key in wanted.items() for line in _lines_of(Path(path))}
    return {"reached": len(reached & total), "lines": len(total), "useful": useful}


def _lines_of(path: Path) -> set[int]:
    """The lines inside of functions that a file can run: those of its classes and constants run
    when it is loaded."""

    def inside(code: CodeType) -> Iterator[int]:
        for each in code.co_consts:
            if isinstance(each, CodeType):
                if each.co_flags & 0x2:  # of a function, not of a class
                    yield from (
                        line for *_, line in each.co_lines() if line and line != each.co_firstlineno
                    )
                yield from inside(each)

    return set(inside(compile(path.read_text(), str(path), "exec")))


def keep(names: Sequence[str], out: Path) -> None:
    """Pack the inputs that reached something new, the smallest first, as seeds for the next
    runs."""
    held: dict[str, list[bytes]] = {}
    if CORPUS.is_file():
        with zipfile.ZipFile(CORPUS) as archive:
            for each in archive.namelist():
                held.setdefault(each.partition("/")[0], []).append(archive.read(each))
    for name in names:
        if not (out / name / "corpus").is_dir():
            continue
        useful, size, chosen = _ask_lines(name, out)["useful"], 0, []
        for each in useful:
            content = (out / name / "corpus" / each).read_bytes()
            packed = len(zlib.compress(content)) + 100
            if (
                len(content) <= LARGEST_KEPT
                and size + packed <= MOST_KEPT
                and not each.startswith("seed-")
            ):
                chosen.append(content)
                size += packed
        held[name] = chosen
        print(f"{name}: {len(chosen)} of {len(useful)} kept")
    with zipfile.ZipFile(CORPUS, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(held):
            for number, content in enumerate(held[name]):
                archive.writestr(
                    zipfile.ZipInfo(f"{name}/{number:03}"), content, zipfile.ZIP_DEFLATED
                )


def _ask_lines(name: str, out: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "lines", name, "--out", str(out)]
    said = subprocess.run(
        command, capture_output=True, text=True, env=_environment(), check=True
    ).stdout
    return dict(json.loads(said.splitlines()[-1]))


# The table


def show(results: Sequence[dict[str, Any]]) -> str:
    """A table in Markdown."""
    lines = [
        "| parser | inputs | edges | features | lines reached | slowest, s | peak, MB | findings |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in results:
        reached = f"{each['reached']} of {each['lines']}" if "lines" in each else ""
        lines.append(
            f"| {each['name']} | {each['inputs']:,} | {each['edges']:,} | {each['features']:,} |"
            f" {reached} | {each['slowest']:.2f} | {each['peak']:.0f} | {len(each['findings'])} |"
        )
    for each in results:
        lines += [f"\n{each['name']}: {found}" for found in each["findings"]]
    return "\n".join(lines)


def write_report(out: Path, names: Sequence[str]) -> None:
    """docs/results/fuzzing.md, from the results of the runs."""
    from importlib.metadata import version

    from allotment.data.pixels import MOST_PIXELS

    results = [json.loads((out / name / "result.json").read_text()) for name in names]
    for each in results:
        each |= {
            key: value for key, value in _ask_lines(each["name"], out).items() if key != "useful"
        }
    text = REPORT_TEXT.format(
        date=datetime.date.today().isoformat(),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        python=platform.python_version(),
        atheris=version("atheris"),
        seed=", ".join(sorted({str(each["seed"]) for each in results})),
        seconds=min(each["seconds"] for each in results),
        pixels=MOST_PIXELS // 10**6,
        table=show(results),
        total=f"{sum(each['inputs'] for each in results):,}",
    )
    REPORT.write_text(text)
    print(text)


REPORT_TEXT = """# Fuzzing

`python tests/fuzz.py run --seconds N`, seed {seed}, then `python tests/fuzz.py report`; {date},
{machine} (shared with
other programs), Python {python}, atheris {atheris}. {total} inputs in all.

{table}

Inputs are those of one run of {seconds} seconds and more, which begins with good inputs, with those
that reached something new in earlier runs (`tests/fuzzing/corpus.zip`) and with those that once
showed a fault. Edges and features are what libFuzzer counts in the code of allotment and in
tomllib; lines are those inside of functions in the parser's modules, reached by the inputs that the
run kept. Modules do more than read, so not all of their lines can be reached. CPU time is that of
one input with every branch recorded, several times slower than without. The peak is what one input
took beyond what the process held before it; a picture may have {pixels} million pixels, which a few
kilobytes can hold, and that is most of the memory there. A finding is anything but a result or an
`InputError` in printable words: another exception, more CPU time or memory than the target is
allowed, a crash, a hang, an assertion about the result.

## What reads what others wrote

| input | read by | parsers above |
|---|---|---|
| problem files | `problem_file.py` | problem |
| `campaign.toml` | `settings/settings.py` | settings |
| plans, estimates, orders and other forms of JSON | `from_dict` of each; `job.py` | forms, job |
| prices and counts on the command line | `amounts.py` | amount |
| cells of sheets that come back | `cells.py` | cell |
| deliveries: CSV, JSONL, folders and zip archives of masks | `connect/` | delivery-csv, -jsonl, -folder, -zip, mask |
| archives of campaigns, and what is in them | `ledger/archive.py`, `disk.py` | archive |
| a store, `campaign.sqlite`, and a folder with one | `ledger/schema.py`, `ledger/store.py`, `campaign/state.py` | store, campaign |
| `campaign.lock` | `ledger/lock.py` | lock |
| tables: CSV, TSV, gzip, xlsx, Parquet, npz | `data/table_file.py` and what follows | table-csv, -tsv-gz, -parquet, -found, -xlsx, -npz |
| pictures of tables and of data sets | `data/pictures.py`, `pixels.py` | picture, pixels |
| lists and masks of VOC | `data/voc.py` | voc-list, pixels |
| names and images of Taskonomy | `data/taskonomy.py` | taskonomy-names, pixels |
| weights: .pth, .npz, .safetensors | `learners/weights.py` | weights-pth, -npz, -safetensors |
| folders of trained models | `models/model.py`, `models/inputs.py`, `models/card.py`, `data/encoders.py` | model |

VOC's XML annotations are not read. What the system says of itself (`/proc`, control groups) and
what our own processes write to each other is trusted, and so is the code of a learner that a user
names."""  # noqa: E501

if __name__ == "__main__":
    sys.exit(main())
