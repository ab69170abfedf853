"""`allot serve`: the page of a campaign on this machine while it goes on.

It answers those on this machine who ask for this machine, with GET and HEAD, and nobody else: a
page from elsewhere that has its own name lead here is refused by the Host that its browser names.
"""

from __future__ import annotations

import errno
import json
import socketserver
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from allotment.errors import InputError, Mistake
from allotment.reports.assets import hash_inline, read_asset
from allotment.reports.live import LiveCampaign
from allotment.reports.markup import Html, load_templates
from allotment.reports.page import POLICY
from allotment.reports.style import DARK, LIGHT

HOST = "127.0.0.1"
NAMES_OF_HOST = (HOST, "localhost")
PATIENCE_WITH_CLIENTS = 30.0
"""seconds for a request to come"""
HTML_TYPE, JSON_TYPE, TEXT_TYPE = "text/html", "application/json", "text/plain"
SAID_IDLE = "Nothing is running. This page follows the campaign."
SAID_LOST = "allot serve has ended; what is shown may be out of date."
SAID_NO_SCRIPT = "The page by itself, without progress"
FRAME_SCRIPT = read_asset("live.js")


def _list_colours(theme: Mapping[str, str]) -> str:
    named = ("ground", "panel", "text", "rule", "accent")
    return f":root {{ {' '.join(f'--{key}: {theme[key]};' for key in named)} }}"


FRAME_STYLE = (
    f"{_list_colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {_list_colours(DARK)} }}\n"
    """:root { color-scheme: light dark; }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: var(--ground); color: var(--text);
  font: .9375rem/1.4 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1rem;
  padding: .4rem 1.25rem; background: var(--panel); border-bottom: 1px solid var(--rule); }
progress { flex: 1 1 8rem; max-width: 24rem; accent-color: var(--accent); }
progress[hidden] { display: none; }
iframe { flex: 1; width: 100%; border: 0; }
@media print { header { display: none; } }
"""
)
FRAME_POLICY = (
    f"default-src 'none'; script-src '{hash_inline(FRAME_SCRIPT)}';"
    f" style-src '{hash_inline(FRAME_STYLE)}'; img-src data:; connect-src 'self'; frame-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = f"{POLICY}; frame-ancestors 'self'"
NO_POLICY = "default-src 'none'; frame-ancestors 'none'"
"""for what is no page"""
FIXED_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class WebAnswer:
    """What is sent back."""

    text: str
    kind: str = TEXT_TYPE
    status: HTTPStatus = HTTPStatus.OK
    policy: str = NO_POLICY
    more: tuple[tuple[str, str], ...] = ()
    """further headers"""


class PageServer(ThreadingHTTPServer):
    """Answers until it is closed; `link` is where. Whatever is still being sent then is cut off."""

    daemon_threads = True

    def __init__(self, live: LiveCampaign, port: int = 0):
        """Port 0 is one that is free."""
        self.live = live
        super().__init__((HOST, port), _Handler)

    def server_bind(self) -> None:
        """Without asking the network for a name, as the library would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    @property
    def link(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # who asked has gone
            super().handle_error(request, client_address)


def open_server(live: LiveCampaign, port: int = 0) -> PageServer:
    """A server that listens on this machine alone; raises InputError where it can't have the
    port."""
    try:
        return PageServer(live, port)
    except OSError as error:
        what = "is taken by another program" if error.errno == errno.EADDRINUSE else None
        what = what or f"cannot be used ({error.strerror})"
        remedy = "leave it out, and a free one is found, or give another"
        raise InputError([Mistake(f"--port {port}", f"{what}; {remedy}")]) from None


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "allot", ""
    timeout = PATIENCE_WITH_CLIENTS

    def do_GET(self) -> None:
        answer = self._answer()
        self._head(answer)
        self.wfile.write(answer.text.encode())

    def do_HEAD(self) -> None:
        self._head(self._answer())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """In our own form what the library refuses: other methods, and what is no request."""
        answer = WebAnswer(f"{HTTPStatus(code).phrase}\n", status=HTTPStatus(code))
        if code == HTTPStatus.NOT_IMPLEMENTED:
            only = "only GET and HEAD are answered\n"
            allowed = (("Allow", "GET, HEAD"),)
            answer = WebAnswer(only, status=HTTPStatus.METHOD_NOT_ALLOWED, more=allowed)
        self._head(answer)
        self.wfile.write(answer.text.encode())

    def _judge_host(self) -> WebAnswer | None:
        """The answer to whoever asks for another machine."""
        port = self.server.server_port
        known = {f"{name}:{port}" for name in NAMES_OF_HOST}
        known |= set(NAMES_OF_HOST) if port == 80 else set()
        if (self.headers.get("Host") or "").lower() in known:
            return None
        return WebAnswer("this server answers only for this machine\n", status=HTTPStatus.FORBIDDEN)

    def _answer(self) -> WebAnswer:
        if (refused := self._judge_host()) is not None:
            return refused
        live, path = self.server.live, self.path.partition("?")[0]
        if path == "/":
            return WebAnswer(write_frame(live), HTML_TYPE, policy=FRAME_POLICY)
        if path == "/report":
            page = live.show_page()
            status = HTTPStatus.OK if page.is_sound else HTTPStatus.SERVICE_UNAVAILABLE
            return WebAnswer(page.text, HTML_TYPE, status, REPORT_POLICY)
        if path == "/progress":
            return WebAnswer(json.dumps(live.find_progress()), JSON_TYPE)
        return WebAnswer("there is / and /report and /progress\n", status=HTTPStatus.NOT_FOUND)

    def _head(self, answer: WebAnswer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(answer.text.encode())))
        self.send_header("Content-Security-Policy", answer.policy)
        for key, value in (*FIXED_HEADERS.items(), *answer.more):
            self.send_header(key, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: who looks is nobody's business."""


def write_frame(live: LiveCampaign) -> str:
    """The page around the page: progress above, the report below."""
    progress = live.find_progress()
    return (
        load_templates()
        .get_template("live.html")
        .render(
            name=live.name,
            progress=progress,
            said=progress["said"] or SAID_IDLE,
            idle=SAID_IDLE,
            lost=SAID_LOST,
            no_script=SAID_NO_SCRIPT,
            style=Html(FRAME_STYLE),
            script=Html(FRAME_SCRIPT),
        )
    )
