"""A server that answers like the XML interface of Google Cloud Storage, in a process of its own.

No server that Python's index has answers the requests of our client: `gcp-storage-emulator` and others speak
JSON and pass over preconditions. So moto's S3 server does the work, since both interfaces have the same
requests, and `AsGcs` adds in what they differ, by Google's reference of the XML interface:

    x-goog-if-generation-match: <n>   a put needs the object to have this generation; 0: not to be there
    x-goog-generation                 the generation of an object, in answers; every put makes a higher one
    x-goog-meta-<name>                metadata
    DELETE of a missing object        404 NoSuchKey
"""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager
from typing import Any

from tests.support.s3_server import moto
from tests.support.store_server import Failing, StoreServer, serve, with_bucket

TOKEN = "a-token"
_CONDITION = "HTTP_X_GOOG_IF_GENERATION_MATCH"
_META = "HTTP_X_GOOG_META_"
_SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, Signature=not-checked"
_ERROR = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{}</Code><Message>{}</Message></Error>"


class GcsServer(StoreServer):
    @property
    def options(self) -> dict[str, str]:
        return {"endpoint": self.endpoint, "bearer_token": TOKEN, "retry_seconds": "5"}

    def address(self, path: str, bucket: str = "lake") -> str:
        return f"gs://{bucket}/{path}"


def gcs_server(bucket: str) -> AbstractContextManager[GcsServer]:
    """Run a server with an empty bucket on a free port of the loopback device."""
    return with_bucket(GcsServer, __name__, bucket)


class AsGcs:
    """Answers requests to Google Cloud Storage by those of an S3 server; called by one thread at a time."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self._generations: dict[str, int] = {}
        self._next = itertools.count(1_700_000_000_000_000)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        path, method, query = environ["PATH_INFO"], environ["REQUEST_METHOD"], environ["QUERY_STRING"]
        if environ.get("HTTP_AUTHORIZATION") not in (None, f"Bearer {TOKEN}"):
            return _refuse(start_response, "401 Unauthorized", "AuthenticationRequired")
        live = self._generations.get(path, 0)
        condition = environ.pop(_CONDITION, None)
        if condition is not None and int(condition) != live:
            return _refuse(start_response, "412 Precondition Failed", "PreconditionFailed")
        if method == "DELETE" and "uploadId" not in query and not live:
            return _refuse(start_response, "404 Not Found", "NoSuchKey")
        environ["HTTP_AUTHORIZATION"] = _SIGNED
        for key in [key for key in environ if key.startswith(_META)]:
            environ["HTTP_X_AMZ_META_" + key.removeprefix(_META)] = environ.pop(key)

        def answer(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            if status.startswith("2"):
                self._note(path, method, query)
            generation = str(self._generations.get(path, 0))
            named = [(name.lower().replace("x-amz-meta-", "x-goog-meta-"), text) for name, text in headers]
            return start_response(status, [*named, ("x-goog-generation", generation)], *more)

        return self._s3(environ, answer)

    def _note(self, path: str, method: str, query: str) -> None:
        """Note what a request that succeeded did to the generation of an object."""
        is_whole = method == "PUT" and "partNumber" not in query
        if is_whole or (method == "POST" and "uploadId" in query):
            self._generations[path] = next(self._next)
        elif method == "DELETE" and "uploadId" not in query:
            del self._generations[path]


def _refuse(start_response: Any, status: str, code: str) -> list[bytes]:
    body = _ERROR.format(code, status).encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    serve(Failing(AsGcs(moto()), one_at_a_time=True))
