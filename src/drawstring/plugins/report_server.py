"""A small web server of reports: a list of tables, and the report of each, both refreshed. It is a plug-in.

    GET /               the list
    GET /tables.json    its facts
    GET /table/2        the report of the second table
    GET /table/2.json   its facts

A report is made when a browser asks for it, and kept for as long as a page waits before it asks again. A
table that cannot be read says so in its place.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, Final

from drawstring.base.clock import Clock, SystemClock
from drawstring.base.errors import DrawstringError, UnavailableError
from drawstring.model.result import size_text
from drawstring.plugins.report_page import document, moment, page
from drawstring.services.table_report import ServedTable, TableReport

_TABLE: Final = re.compile(r"/table/([0-9]{1,6})(\.json)?", re.ASCII)
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request: status, type of the content, content."""

    status: int
    kind: str
    content: str


@dataclass(frozen=True, slots=True)
class _Known:
    """A report, or why there is none, and when it was made."""

    facts: TableReport | None
    problem: str
    made_ms: int


class ReportPages:
    """The pages of a server.

    Args:
        tables: the tables, in the order of the list.
        refresh_seconds: after how many seconds a page asks again.
        clock: says how old a report is.
    """

    def __init__(
        self, tables: Sequence[ServedTable], refresh_seconds: int, clock: Clock | None = None
    ) -> None:
        self._tables = tables
        self._refresh_seconds = refresh_seconds
        self._clock = clock or SystemClock()
        self._known: dict[int, _Known] = {}
        self._locks = [Lock() for _ in tables]

    def answer(self, path: str) -> Answer:
        """Return the answer to a GET request.

        Args:
            path: of the request; what follows `?` is ignored.
        """
        path = path.partition("?")[0]
        if path == "/":
            return Answer(200, _HTML, self._list())
        if path == "/tables.json":
            return Answer(200, _JSON, json.dumps([self._row(number) for number in range(len(self._tables))]))
        match = _TABLE.fullmatch(path)
        number = int(match[1]) - 1 if match else -1
        if match is None or not 0 <= number < len(self._tables):
            return Answer(404, _TEXT, "There is no such page. / lists the tables.\n")
        known = self._current(number)
        if known.facts is None:
            return Answer(503, _TEXT, f"{known.problem}\n")
        if match[2]:
            return Answer(200, _JSON, json.dumps(asdict(known.facts)))
        top = '<p><a href="/">All tables</a></p>'
        return Answer(200, _HTML, page(known.facts, top=top, refresh_seconds=self._refresh_seconds))

    def _current(self, number: int) -> _Known:
        """Return the report of a table, a new one if the last one is old."""
        with self._locks[number]:
            now_ms = self._clock.now_ms()
            known = self._known.get(number)
            if known is None or now_ms - known.made_ms >= self._refresh_seconds * 1000:
                known = self._known[number] = self._made(self._tables[number], now_ms)
            return known

    def _made(self, table: ServedTable, now_ms: int) -> _Known:
        try:
            return _Known(table.load(), "", now_ms)
        except (DrawstringError, OSError) as error:
            _log.warning("There is no report of %s: %s", table.uri, error)
            return _Known(None, str(error), now_ms)

    def _row(self, number: int) -> dict[str, Any]:
        """Return what the list says of a table."""
        known, uri = self._current(number), self._tables[number].uri
        facts = known.facts
        if facts is None:
            return {"uri": uri, "problem": known.problem}
        last = facts.commits[-1] if facts.commits else None
        return {
            "uri": uri,
            "name": facts.name,
            "table_type": facts.table_type,
            "size_bytes": sum(each.base_bytes + each.log_bytes for each in facts.slices),
            "file_groups": len(facts.slices),
            "partitions": len(facts.partitions),
            "last_commit": last.requested if last else None,
            "last_operation": last.operation if last else None,
            "due": [each.service for each in facts.due if each.is_due],
        }

    def _list(self) -> str:
        """Return the page with all tables."""
        names = ("table", "type", "size", "file groups", "partitions", "last commit", "due")
        head = "".join(f"<th>{each}</th>" for each in names)
        rows = "".join(self._line(number) for number in range(len(self._tables)))
        body = f"<h1>Tables</h1><table><tr>{head}</tr>{rows}</table>"
        return document(f"{len(self._tables)} tables", body, refresh_seconds=self._refresh_seconds)

    def _line(self, number: int) -> str:
        row = self._row(number)
        if "problem" in row:
            problem = f'<td colspan="6">{escape(row["problem"])}</td>'
            return f'<tr class="due"><td>{escape(row["uri"])}</td>{problem}</tr>'
        due = ", ".join(row["due"])
        last = f"{row['last_operation']} {moment(row['last_commit'])}" if row["last_commit"] else "none"
        name = f'<a href="/table/{number + 1}">{escape(row["name"])}</a><br>{escape(row["uri"])}'
        cells = (
            row["table_type"],
            size_text(row["size_bytes"]),
            f"{row['file_groups']:,}",
            f"{row['partitions']:,}",
            last,
            due or "nothing",
        )
        return f"<tr><td>{name}</td>{''.join(f'<td>{escape(each)}</td>' for each in cells)}</tr>"


class ReportServer(ThreadingHTTPServer):
    """Serves pages until it is shut down.

    Args:
        pages: the pages.
        host, port: where it listens; port 0 for a free one.

    Raises:
        UnavailableError: it cannot listen there.
    """

    daemon_threads = True

    def __init__(self, pages: ReportPages, host: str, port: int) -> None:
        self.pages = pages
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise UnavailableError(
                f"The server cannot listen at {host}:{port}: {error.strerror or error}. Choose another port"
                " with --port, or stop what uses it."
            ) from error

    @property
    def address(self) -> str:
        """The address that a browser opens."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def report_server(
    tables: Sequence[ServedTable], refresh_seconds: int, host: str, port: int, /
) -> ReportServer:
    """Return a server; see `services.table_report.report_server`."""
    return ReportServer(ReportPages(tables, refresh_seconds), host, port)


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    server_version = "drawstring"
    sys_version = ""

    def do_GET(self) -> None:
        """Send a page."""
        self._send(with_content=True)

    def do_HEAD(self) -> None:
        """Send the headers of a page."""
        self._send(with_content=False)

    def _send(self, *, with_content: bool) -> None:
        answer = self.server.pages.answer(self.path)
        content = answer.content.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Note a request in the log instead of on standard error."""
        _log.debug("%s %s", self.address_string(), format % args)
