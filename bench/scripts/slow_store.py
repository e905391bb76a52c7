"""A folder as the bucket of an object store that answers each request late; only for reading."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

LATENCY_SECONDS = 0.03
PAGE = 1000
BUCKET = "lake"


class SlowStore(ThreadingHTTPServer):
    """The store.

    Args:
        root: the folder.
    """

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.requests = 0

    @property
    def options(self) -> dict[str, str]:
        """Storage options of a table in it."""
        keys = {"region": "us-east-1", "access_key_id": "key", "secret_access_key": "secret"}
        return {"endpoint": f"http://127.0.0.1:{self.server_port}", **keys}

    def keys(self, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        """Return the keys with a prefix, sorted, and the beginnings up to the next delimiter of others."""
        folder, start = self.root / prefix.rpartition("/")[0], prefix.rpartition("/")[2]
        if not folder.is_dir():
            return [], []
        if not delimiter:
            found = (path.relative_to(self.root).as_posix() for path in folder.rglob("*") if path.is_file())
            return sorted(key for key in found if key.startswith(prefix)), []
        inside = [path for path in folder.iterdir() if path.name.startswith(start)]
        names = {path: path.relative_to(self.root).as_posix() for path in inside}
        files = [name for path, name in names.items() if path.is_file()]
        return sorted(files), sorted(f"{name}/" for path, name in names.items() if path.is_dir())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowStore

    def answer(self) -> None:
        self.server.requests += 1
        time.sleep(LATENCY_SECONDS)
        address = urlsplit(self.path)
        key = unquote(address.path).removeprefix(f"/{BUCKET}").strip("/")
        if key:
            self._object(self.server.root / key)
        else:
            self._page({name: values[0] for name, values in parse_qs(address.query).items()})

    do_GET = do_HEAD = answer

    def _object(self, path: Path) -> None:
        if not path.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
            return
        size, wanted = path.stat().st_size, self.headers.get("Range")
        if wanted is None:
            self._send(200, path.read_bytes())
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
        self._send(206, data, **{"Content-Range": f"bytes {start}-{end - 1}/{size}"})

    def _page(self, query: dict[str, str]) -> None:
        keys, folders = self.server.keys(query.get("prefix", ""), query.get("delimiter", ""))
        after = query.get("continuation-token") or query.get("start-after", "")
        entries = sorted([(key, True) for key in keys] + [(key, False) for key in folders])
        entries = [each for each in entries if each[0] > after]
        page = "".join(self._entry(*each) for each in entries[:PAGE])
        more = len(entries) > PAGE
        token = (
            f"<NextContinuationToken>{escape(entries[PAGE - 1][0])}</NextContinuationToken>" if more else ""
        )
        head = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}"
        self._send(200, f"<ListBucketResult>{head}{page}</ListBucketResult>".encode(), "application/xml")

    def _entry(self, key: str, is_file: bool) -> str:
        if not is_file:
            return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
        status = (self.server.root / key).stat()
        changed = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return (
            f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
            f'<ETag>"{status.st_mtime_ns:x}"</ETag><Size>{status.st_size}</Size></Contents>'
        )

    def _send(self, code: int, data: bytes, kind: str = "binary/octet-stream", **headers: str) -> None:
        self.send_response(code)
        modified = {"Last-Modified": self.date_time_string(), "ETag": '"0"', "Content-Type": kind}
        for name, value in {**modified, **headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@contextmanager
def slow_store(root: Path) -> Iterator[SlowStore]:
    """Serve a folder on a free port of the loopback device.

    Args:
        root: the folder.
    """
    with SlowStore(root) as store:
        thread = threading.Thread(target=store.serve_forever, daemon=True)
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()
