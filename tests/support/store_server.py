"""What the servers of object stores have in common, and how a test makes them fail.

A failure is of one of these kinds: `lost` carries the next request out but answers with an error, the others
do not carry it out; the empty text lets a request pass.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

s3_first = pytest.mark.parametrize(
    "store",
    ["s3", *(pytest.param(store, marks=pytest.mark.long) for store in ("gcs", "azure"))],
    indirect=True,
)
"""For tests of processes: the other stores are long, for the contract of storages says what they do alike."""

ROOT = Path(__file__).parents[2]
FAULTS_PATH = "/__faults"
ANSWERS = {"lost": "500 Internal Server Error", "busy": "503 Slow Down", "refuse": "403 Forbidden"}
ANSWERS |= {"conflict": "409 Conflict", "throttled": "429 Too Many Requests"}


@dataclass(frozen=True)
class StoreServer:
    """A server in a process of its own.

    Attributes:
        endpoint: its address.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options of a table that lies in it."""
        raise NotImplementedError

    def address(self, path: str, bucket: str = "lake") -> str:
        """Return the address of a table."""
        raise NotImplementedError

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        self.send(f"/{name}", "PUT")

    def put(self, path: str, data: bytes = b"") -> None:
        """Put an object the way another client does; the path begins with the bucket."""
        self.send(f"/{path}", "PUT", data)

    def make_folder(self, path: str) -> None:
        """Make what other engines put in place of a folder; the path begins with the bucket."""
        self.put(f"{path}/")

    def fail(self, *kinds: str) -> None:
        """Let the next requests fail, one after the other."""
        self.send(FAULTS_PATH, "POST", ",".join(kinds).encode())

    def send(self, path: str, method: str, data: bytes = b"") -> None:
        request = urllib.request.Request(self.endpoint + path, data, method=method)
        with urllib.request.urlopen(request) as answer:
            answer.read()


Server = TypeVar("Server", bound=StoreServer)


@contextmanager
def server_process(module: str, *arguments: str) -> Iterator[str]:
    """Run a module that prints the port that it listens at; yields its address on the loopback device."""
    # As a module: run as a script it would find the modules beside it under the names of libraries.
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


@contextmanager
def with_bucket(kind: type[Server], module: str, bucket: str) -> Iterator[Server]:
    """Run the server of a module on a free port of the loopback device, with an empty bucket."""
    with server_process(module) as endpoint:
        server = kind(endpoint)
        server.make_bucket(bucket)
        yield server


class Failing:
    """Passes requests to an application, or makes them fail.

    Args:
        application: what answers them.
        one_at_a_time: whether it gets no request before it answered the last one.
    """

    def __init__(self, application: Any, *, one_at_a_time: bool) -> None:
        self._application = application
        self._turn = threading.Lock() if one_at_a_time else nullcontext()
        self._lock = threading.Lock()
        self._faults: list[str] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] == FAULTS_PATH:
            text = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
            with self._lock:
                self._faults = text.split(",") if text else []
            return _answer(start_response, "200 OK")
        with self._lock:
            fault = (self._faults.pop(0) or None) if self._faults else None
        with self._turn:
            if fault == "lost":
                b"".join(self._application(environ, lambda *_: None))
            if fault is not None:
                return _answer(start_response, ANSWERS[fault])
            return [b"".join(self._application(environ, start_response))]


def _answer(start_response: Any, status: str) -> list[bytes]:
    start_response(status, [("Content-Length", "0")])
    return []


def serve(application: Any) -> None:
    """Answer requests at a free port, which is printed."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Silent)
    print(server.server_port, flush=True)
    server.serve_forever()
