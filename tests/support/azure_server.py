"""Azurite, Microsoft's emulator of Azure Blob Storage, behind a proxy that makes requests fail.

client ── proxy (this module's process) ── Azurite (a child of it)
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import signal
import sys
import urllib.request
from contextlib import AbstractContextManager
from email.utils import formatdate
from typing import Any, Final

import obstore
import pytest
from obstore.store import AzureStore

from scripts import azurite
from tests.support.store_server import Failing, StoreServer, serve, with_bucket

ACCOUNT: Final = "devstoreaccount1"
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_API: Final = "2021-08-06"
_HOP_BY_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "date", "server"}


class AzureServer(StoreServer):
    @property
    def options(self) -> dict[str, str]:
        return {"endpoint": f"{self.endpoint}/{ACCOUNT}", "account_key": KEY, "retry_seconds": "5"}

    def address(self, path: str, bucket: str = "lake") -> str:
        return f"abfss://{bucket}@{ACCOUNT}.dfs.core.windows.net/{path}"

    def make_bucket(self, name: str) -> None:
        date = formatdate(usegmt=True)
        resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_API}\n{resource}"
        digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": date,
            "x-ms-version": _API,
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
        }
        url = f"{self.endpoint}/{ACCOUNT}/{name}?restype=container"
        request = urllib.request.Request(url, None, headers, method="PUT")
        with urllib.request.urlopen(request) as answer:
            answer.read()

    def make_folder(self, path: str) -> None:
        self.put(path)

    def put(self, path: str, data: bytes = b"") -> None:
        bucket, _, inside = path.partition("/")
        store = AzureStore(
            bucket,
            config={"endpoint": f"{self.endpoint}/{ACCOUNT}", "account_name": ACCOUNT, "account_key": KEY},
            client_options={"allow_http": True},
        )
        obstore.put(store, inside, data)


def azure_server(bucket: str) -> AbstractContextManager[AzureServer]:
    """Run a server with an empty container; without what it needs the test is skipped, visibly."""
    if reason := azurite.reason_not_to_run():
        pytest.skip(reason)
    return with_bucket(AzureServer, __name__, bucket)


class Forwarding:
    """Sends requests to a server."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        headers = {
            key.removeprefix("HTTP_").replace("_", "-"): value
            for key, value in environ.items()
            if key.startswith("HTTP_") or key == "CONTENT_TYPE"
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        try:
            connection.request(environ["REQUEST_METHOD"], environ["RAW_URI"], body, headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        kept = [(name, text) for name, text in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
        start_response(f"{answer.status} {answer.reason}", kept)
        return [data]


def main() -> None:
    # A process that is terminated has to take its child with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with azurite.server() as port:
        serve(Failing(Forwarding(port), one_at_a_time=False))


if __name__ == "__main__":
    main()
