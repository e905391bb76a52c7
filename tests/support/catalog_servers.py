"""Servers of catalogs that speak JSON, as far as syncs and look-ups ask them: Apache Polaris, and DataHub.

They follow the published interfaces (Polaris: Iceberg's namespaces and the API of generic tables, in pages of
two; DataHub: the aspects of its metadata service), and refuse requests without the token that they gave.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, Any]
TOKEN = "given"
CLIENT = {"client_id": ["root"], "client_secret": ["s3cr3t"], "grant_type": ["client_credentials"]}
PAGE = 2


class Polaris:
    """One catalog, `lake`, below /api/catalog."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}
        self.changes: list[str] = []
        self.refusals: list[int] = []
        """Codes for the next requests that create a table."""

        self.keeps = False
        """Whether it refuses to drop tables."""

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes, token: str) -> Answer:
        if path == "/api/catalog/v1/oauth/tokens":
            form = parse_qs(body.decode())
            known = CLIENT.items() <= form.items()
            return (200, {"access_token": TOKEN}) if known else (401, {"error": "who is it?"})
        if token != TOKEN:
            return 401, {"error": "no token"}
        given = json.loads(body) if body else {}
        if path == "/api/catalog/v1/lake/namespaces":
            return self._namespaces(method, query, given)
        head, _, rest = path.partition("/api/catalog/polaris/v1/lake/namespaces/")
        space, _, name = rest.partition("/generic-tables")
        if head or not rest or unquote(space) not in self.tables:
            return 404, {"error": {"type": "NoSuchNamespaceException"}}
        return self._tables(method, self.tables[unquote(space)], unquote(name.lstrip("/")), query, given)

    def _namespaces(self, method: str, query: dict[str, list[str]], given: dict[str, Any]) -> Answer:
        if method == "GET":
            return 200, self._page("namespaces", [each.split("\x1f") for each in self.tables], query)
        name = "\x1f".join(given["namespace"])
        if name in self.tables:
            return 409, {"error": {"type": "AlreadyExistsException"}}
        self.tables[name] = {}
        return 200, given

    def _tables(
        self,
        method: str,
        tables: dict[str, Any],
        name: str,
        query: dict[str, list[str]],
        given: dict[str, Any],
    ) -> Answer:
        if method != "GET":
            self.changes.append(method)
        if method == "POST":
            if self.refusals:
                return self.refusals.pop(0), {"error": "not now"}
            if given["name"] in tables:
                return 409, {"error": {"type": "AlreadyExistsException"}}
            if any(given["base-location"] == each["base-location"] for each in tables.values()):
                return 400, {"error": "conflicts with existing table"}
            tables[given["name"]] = given
            return 200, {"table": given}
        if not name:
            names = [{"namespace": [], "name": each} for each in tables]
            return 200, self._page("identifiers", names, query)
        if name not in tables:
            return 404, {"error": {"type": "NoSuchTableException"}}
        if method == "DELETE" and self.keeps:
            return 403, {"error": "not yours"}
        if method == "DELETE":
            del tables[name]
            return 204, None
        return 200, {"table": tables[name]}

    def _page(self, what: str, entries: list[Any], query: dict[str, list[str]]) -> dict[str, Any]:
        start = int((query.get("pageToken") or ["0"])[0] or 0)
        more = str(start + PAGE) if start + PAGE < len(entries) else None
        return {what: entries[start : start + PAGE], "next-page-token": more}


class DataHubServer:
    """The newest aspects by URN."""

    def __init__(self) -> None:
        self.aspects: dict[str, dict[str, Any]] = {}

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: bytes, token: str) -> Answer:
        if token != TOKEN:
            return 401, {"message": "Unauthorized"}
        if method == "POST" and path == "/aspects" and query["action"] == ["ingestProposal"]:
            proposal = json.loads(body)["proposal"]
            aspects = self.aspects.setdefault(proposal["entityUrn"], {})
            aspects[proposal["aspectName"]] = json.loads(proposal["aspect"]["value"])
            return 200, {"value": proposal["entityUrn"]}
        urn = unquote(path.removeprefix("/aspects/"))
        if urn not in self.aspects:
            return 404, {"message": "not found"}
        found = self.aspects[urn]["datasetProperties"]
        return 200, {"aspect": {"com.linkedin.dataset.DatasetProperties": found}}


@contextmanager
def serving(answer: Callable[[str, str, dict[str, list[str]], bytes, str], Answer]) -> Iterator[str]:
    """Serve on the loopback device; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            code, found = answer(self.command, parts.path, parse_qs(parts.query), body, token)
            self.send_response(code)
            self.end_headers()
            if found is not None:
                self.wfile.write(json.dumps(found).encode())

        do_GET = do_POST = do_DELETE = reply

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
