"""`allot serve`: the page of now, for this machine alone, and how far a run is; the campaign is not
touched."""

from __future__ import annotations

import base64
import hashlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.campaigns import begin, fine, refused, shorten

from allotment import InputError
from allotment.campaign.campaign import Campaign
from allotment.job import Job
from allotment.ledger import lock
from allotment.ledger.store import Store
from allotment.reports.live import LiveCampaign
from allotment.reports.page import render
from allotment.reports.server import PageServer, open_server

CAMPAIGN = Path("camp")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign in it, to be copied."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        begin("camp", "--method", "neutral")
    return folder


@pytest.fixture(autouse=True)
def _campaign(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[PageServer]:
    with open_server(LiveCampaign("camp")) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


Reply = tuple[int, dict[str, str], str]


def ask(server: PageServer, path: str, method: str = "GET", **headers: str) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = (answer.status, dict(answer.getheaders()), answer.read().decode())
    connection.close()
    return found


def see(server: PageServer) -> dict[str, Any]:
    """What /progress says."""
    status, headers, text = ask(server, "/progress")
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    return dict(json.loads(text))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A one for each page that is made."""
    found: list[int] = []
    report: Callable[[Campaign], dict[str, Any]] = Campaign.report

    def count(self: Campaign) -> dict[str, Any]:
        found.append(1)
        return report(self)

    monkeypatch.setattr(Campaign, "report", count)
    return found


# Whom it answers, and with what


def test_it_shows_the_page_that_report_writes(server: PageServer) -> None:
    status, headers, text = ask(server, "/report")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert text == render(Campaign("camp").report())
    assert ask(server, "/report?again")[2] == text
    status, headers, nothing = ask(server, "/report", "HEAD")
    assert (status, nothing) == (200, "")
    assert int(headers["Content-Length"]) == len(text.encode())


def test_the_frame_runs_its_own_script_and_no_other(server: PageServer) -> None:
    status, headers, text = ask(server, "/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    for kind in ("script", "style"):
        (inside,) = re.findall(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "'unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "frame-ancestors 'self'" in ask(server, "/report")[1]["Content-Security-Policy"]
    assert "Nothing is running." in text


def test_headers_that_keep_others_out(server: PageServer) -> None:
    for path in ("/", "/report", "/progress", "/nowhere"):
        headers = ask(server, path)[1]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert not [key for key in headers if key.lower().startswith("access-control")]
        assert "Python" not in headers["Server"]


FOREIGN = (
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}",
    "127.0.0.1:{port}.evil", "[::1]:{port}", "",
)  # fmt: skip


def test_who_asks_for_another_machine_is_refused(server: PageServer) -> None:
    for host in FOREIGN:
        for path in ("/", "/report", "/progress", "/nowhere"):
            status, _, text = ask(server, path, Host=host.format(port=server.server_port))
            assert (status, text) == (403, "this server answers only for this machine\n"), host


def test_both_names_of_this_machine_will_do(server: PageServer) -> None:
    assert ask(server, "/progress", Host=f"LOCALHOST:{server.server_port}")[0] == 200
    assert server.server_address[0] == "127.0.0.1"
    assert server.link == f"http://127.0.0.1:{server.server_port}/"


def test_nothing_but_looking_is_allowed(server: PageServer) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
        status, headers, _ = ask(server, "/", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD"), method


def test_there_is_nothing_else(server: PageServer) -> None:
    for path in (
        "/nowhere", "/report/", "/../camp/campaign.toml", "/%2e%2e/", "/favicon.ico",
        f"{server.link}report",
    ):  # fmt: skip
        assert ask(server, path)[0] == 404, path


def test_what_is_no_request_is_refused(server: PageServer) -> None:
    for line in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00\xff\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as talk:
            talk.sendall(line)
            said = b"".join(iter(lambda: talk.recv(4096), b""))
        assert b"<" not in said
        assert b"Bad Request" in said or b"Not Supported" in said
        assert ask(server, "/progress")[0] == 200


# What is under way


def test_a_run_is_seen_with_its_time_left_and_is_not_disturbed(server: PageServer) -> None:
    assert see(server)["running"] is False
    with Store.open(CAMPAIGN, write=True, why="allot estimate camp") as store:
        found = see(server)
        assert (found["running"], found["said"]) == (True, "allot estimate camp is under way")
        assert (found["done"], found["total"], found["left"]) == (None, None, None)
        store.note_headway(12, 30, 6000.0)
        found = see(server)
        assert (found["done"], found["total"], found["command"]) == (12, 30, "allot estimate camp")
        assert 0 < found["left"] <= 6000
        assert found["said"] == "allot estimate camp: 12 of 30 trainings, about 1.7 h left"
        assert (
            '<progress id="bar" aria-labelledby="said" max="30" value="12">' in ask(server, "/")[2]
        )
        store.put_result(Job("probe", {"n": 1}), {"x": 1})  # while others look on
        store.note_headway(13, 30, None)
        assert see(server)["said"] == "allot estimate camp: 13 of 30 trainings"
        store.note_headway(30, 30, 0.0)
        assert see(server)["said"] == "allot estimate camp: 30 of 30 trainings, adding up"
    assert see(server)["running"] is False


def test_status_says_in_another_terminal_how_far_a_run_is() -> None:
    assert "Under way" not in fine("status", "camp")
    with Store.open(CAMPAIGN, write=True, why="allot estimate camp") as store:
        store.note_headway(12, 30, 6000.0)
        said = "allot estimate camp: 12 of 30 trainings, about 1.7 h left"
        assert f"Under way: {said}." in fine("status", "camp").replace("\n", " ")
        assert json.loads(fine("status", "camp", "--json"))["under_way"] == said
    assert "under_way" not in json.loads(fine("status", "camp", "--json"))


def test_trainings_tell_how_far_they_are(server: PageServer) -> None:
    """In a real run, asked in the midst of it."""
    fine("init", "real", "--root", "table.csv", "--targets", "size,look", "--cost", "size=1",
         "--cost", "look=5", "--budget", 90, "--steps", 3)  # fmt: skip
    shorten(Path("real"), trainings=16)
    server.live = LiveCampaign("real")
    seen = []
    Campaign("real").estimate(
        workers=0, progress=lambda done, total: seen.append((done, total, see(server)))
    )
    assert len(seen) >= 3
    for (done, total, _), (_, _, then) in itertools.pairwise(seen):
        assert (then["done"], then["total"]) == (done, total)
        assert then["command"] == "allot estimate real"
    assert seen[-1][2]["left"] is not None
    assert see(server)["running"] is False
    assert "Buy " in ask(server, "/report")[2]


def test_a_run_that_was_killed_is_over(server: PageServer) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    holder = lock.Holder(gone.pid, socket.gethostname(), "allot estimate camp", "2026-01-01")
    (CAMPAIGN / lock.LOCK_FILE).write_bytes(holder.write())
    assert see(server)["running"] is False
    elsewhere = lock.Holder(os.getpid(), "elsewhere", "allot estimate camp", "2026-01-01")
    (CAMPAIGN / lock.LOCK_FILE).write_bytes(elsewhere.write())
    assert see(server)["running"] is False


def test_what_a_lock_says_is_only_shown(server: PageServer) -> None:
    evil = "</script><script>alert(1)</script>\x1b[31m\u202e"
    holder = lock.Holder(os.getpid(), socket.gethostname(), evil, evil)
    (CAMPAIGN / lock.LOCK_FILE).write_bytes(holder.write())
    assert "\x1b" not in see(server)["said"]
    text = ask(server, "/")[2]
    assert text.count("<script>") == 1
    assert "alert(1)&lt;/script&gt;" in text


# When the page is made anew


def test_the_page_is_made_anew_when_it_would_be_another(
    server: PageServer, made: list[int]
) -> None:
    first = see(server)["page"]
    for _ in range(3):
        ask(server, "/report")
    assert (len(made), see(server)["page"]) == (1, first)
    with Store.open(CAMPAIGN, write=True, why="allot estimate camp") as store:
        ask(server, "/report")  # a run has begun
        assert len(made) == 2
        running = see(server)["page"]
        for place in range(3):
            store.put_result(Job("probe", {"n": place}), {"x": place})
            ask(server, "/report")
        assert (len(made), see(server)["page"]) == (2, running)  # trainings change nothing yet
    fine("order", "camp")
    assert see(server)["page"] not in (first, running)
    assert "allot ingest camp FILE" in ask(server, "/report")[2]


def test_data_and_settings_change_the_page_too(server: PageServer) -> None:
    marks = [see(server)["page"]]
    table = Path("table.csv")
    table.write_text(table.read_text() + "0.5,0.5,4.0,\n")
    marks.append(see(server)["page"])
    settings = CAMPAIGN / "campaign.toml"
    settings.write_text(settings.read_text().replace("budget = 90", "budget = 80"))
    marks.append(see(server)["page"])
    assert len(set(marks)) == 3
    assert "80 of 80 are planned" in ask(server, "/report")[2]


def test_what_is_wrong_is_said_until_it_is_right_again(server: PageServer) -> None:
    good = ask(server, "/report")[2]
    settings = CAMPAIGN / "campaign.toml"
    text = settings.read_text()
    settings.write_text(text.replace("budget = 90", 'budget = "<b>much</b>"'))
    status, _, said = ask(server, "/report")
    assert status == 503
    assert "camp cannot be shown now" in said
    assert "&lt;b&gt;much&lt;/b&gt;" in said
    assert see(server)["running"] is False
    settings.write_text(text)
    assert ask(server, "/report")[::2] == (200, good)


def test_looking_changes_nothing(server: PageServer) -> None:
    fine("status", "camp")
    before = {
        path: path.stat().st_mtime_ns for path in CAMPAIGN.rglob("*") if "-shm" not in path.name
    }
    for path in ("/", "/report", "/progress"):
        assert ask(server, path)[0] == 200
    after = {
        path: path.stat().st_mtime_ns for path in CAMPAIGN.rglob("*") if "-shm" not in path.name
    }
    assert before == after


# The command


def test_a_port_that_is_taken_is_named(server: PageServer) -> None:
    with pytest.raises(
        InputError, match=f"--port {server.server_port}: is taken by another program"
    ):
        open_server(LiveCampaign("camp"), server.server_port)
    said = refused(2, "serve", "camp", "--port", server.server_port)
    assert "leave it out, and a free one is found" in said
    refused(2, "serve", "nothing")


def test_it_ends_with_ctrl_c_and_leaves_nothing_behind(tmp_path: Path) -> None:
    fine("status", "camp")
    before = sorted(tmp_path.rglob("*"))
    command = [sys.executable, "-m", "allotment.cli", "serve", "camp"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        said = run.stdout.readline()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ shows camp; Ctrl-C ends it\.\n", said)
        assert match, said
        connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=60)
        connection.request("GET", "/report")
        assert connection.getresponse().status == 200
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(match[1])), timeout=60)


def test_the_time_left_counts_down() -> None:
    noted = lock.Headway(1, 4, 90.0, time.time() - 30)
    assert noted.find_left() == pytest.approx(60, abs=5)
    assert lock.Headway(1, 4, 90.0, time.time() - 300).find_left() == 0
    assert lock.Headway(1, 4, 90.0, time.time() + 3000).find_left() == 90
    assert lock.Headway(1, 4, None, 0.0).find_left() is None
