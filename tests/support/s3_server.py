"""An S3 server in a process of its own: moto's, one request at a time, so that conditional puts are atomic.

A test can tell it to fail: `lost` carries the next request out but answers with an error, the other kinds of
failure do not carry it out; the empty text lets a request pass.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FAULTS_PATH = "/__faults"
ANSWERS = {"lost": "500 Internal Server Error", "busy": "503 Slow Down", "refuse": "403 Forbidden"}
ANSWERS |= {"conflict": "409 Conflict", "throttled": "429 Too Many Requests"}


@dataclass(frozen=True)
class S3Server:
    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "retry_seconds": "5",
        }

    def make_bucket(self, name: str) -> None:
        self._send(f"/{name}", "PUT")

    def put(self, path: str, data: bytes = b"") -> None:
        """Put an object the way another client does."""
        self._send(f"/{path}", "PUT", data)

    def fail(self, *kinds: str) -> None:
        """Let the next requests fail, one after the other."""
        self._send(FAULTS_PATH, "POST", ",".join(kinds).encode())

    def _send(self, path: str, method: str, data: bytes = b"") -> None:
        request = urllib.request.Request(self.endpoint + path, data, method=method)
        with urllib.request.urlopen(request) as answer:
            answer.read()


@contextmanager
def s3_server(bucket: str) -> Iterator[S3Server]:
    """Run a server with an empty bucket on a free port of the loopback device."""
    # As a module: run as a script it would find the modules beside it under the names of libraries.
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            server = S3Server(f"http://127.0.0.1:{port}")
            server.make_bucket(bucket)
            yield server
        finally:
            process.terminate()


class OneAtATime:
    """Passes requests to an application, one at a time, or makes them fail."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._faults: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        with self._lock:
            if environ["PATH_INFO"] == FAULTS_PATH:
                text = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
                self._faults = text.split(",") if text else []
                return self._answer(start_response, "200 OK")
            fault = (self._faults.pop(0) or None) if self._faults else None
            if fault == "lost":
                b"".join(self._application(environ, lambda *_: None))
            if fault is not None:
                return self._answer(start_response, ANSWERS[fault])
            return [b"".join(self._application(environ, start_response))]

    def _answer(self, start_response: Any, status: str) -> list[bytes]:
        start_response(status, [("Content-Length", "0")])
        return []


def serve() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve()
