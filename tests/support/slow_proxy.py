"""A proxy before an object store, which counts requests and answers each after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class SlowProxy(ThreadingHTTPServer):
    """The proxy.

    Args:
        endpoint: address of the store.
        seconds: time that each request takes more.
    """

    daemon_threads = True

    def __init__(self, endpoint: str, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = urlsplit(endpoint).netloc
        self.seconds = seconds
        self.requests: list[str] = []

    @property
    def endpoint(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowProxy

    def forward(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        time.sleep(self.server.seconds)
        connection = HTTPConnection(self.server.store)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        connection.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@contextmanager
def slow_proxy(endpoint: str, seconds: float) -> Iterator[SlowProxy]:
    """Run a proxy before the store at an address."""
    with SlowProxy(endpoint, seconds) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()
