"""What a JSON service's odd answers become: errors that say what to do, and no request to another server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import drawstring
from drawstring.plugins.polaris import JsonService


@contextmanager
def replying(code: int, body: bytes = b"", **headers: str) -> Iterator[tuple[str, list[str]]]:
    """Serve one reply to every request; yields the address and the tokens that came."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = reply

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", tokens
    finally:
        server.shutdown()
        server.server_close()


def refused(server: str, kind: type[drawstring.DrawstringError]) -> str:
    """Ask a server for something, and return the text of the error."""
    with pytest.raises(kind) as told:
        JsonService("Polaris", server, "t0ken").get("v1/lake")
    return str(told.value)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_and_the_token_goes_nowhere_else(code: int) -> None:
    with replying(200, b"{}") as (other, tokens):
        target = f"{other}/login"
        secret = target.replace("//", "//me:pa55@") + "?key=s3cr3t"
        with replying(code, Location=secret) as (server, _):
            told = refused(server, drawstring.InvalidError)
    assert tokens == []
    assert f"redirects GET {server}/v1/lake to {target}, which is not followed" in told
    assert told.endswith("If it is the right one, give that address.")
    assert "pa55" not in told
    assert "s3cr3t" not in told


@pytest.mark.parametrize("code", [200, 503])
def test_an_answer_that_breaks_off_is_told(code: int) -> None:
    with replying(code, b'{"a"', Content_Length="99") as (server, _):
        assert refused(server, drawstring.UnavailableError).endswith("Check the address and the server.")


def test_an_answer_that_breaks_the_rules_of_http_is_told() -> None:
    with replying(200, b"{}", **{"X" * 70_000: "long"}) as (server, _):
        told = refused(server, drawstring.UnavailableError)
    assert told.startswith(f"Polaris does not answer at {server}/v1/lake: ")
    assert told.endswith(". Check the address and the server.")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"yes"', b"<html>Welcome</html>", b"\xff\xfe\x00"])
def test_an_answer_that_is_no_object_is_told(body: bytes) -> None:
    with replying(200, body) as (server, _):
        told = refused(server, drawstring.InvalidError)
    assert f"Polaris answers GET {server}/v1/lake with what is no JSON object" in told
    assert told.endswith(". Check the address and the server.")


@pytest.mark.parametrize(
    ("code", "kind", "step"),
    [
        (403, drawstring.InvalidError, "Check the credentials and the privileges of the principal."),
        (503, drawstring.UnavailableError, "Check the address and the server."),
    ],
)
def test_a_refusal_says_what_to_check(code: int, kind: type[drawstring.DrawstringError], step: str) -> None:
    with replying(code, b"no") as (server, _), pytest.raises(kind) as told:
        JsonService("Polaris", server).delete("v1/lake")
    assert str(told.value).startswith(f"Polaris refuses DELETE {server}/v1/lake: {code} ")
    assert str(told.value).endswith(f". no {step}")


def test_an_address_that_is_none_is_told_with_all_kinds_of_catalogs() -> None:
    with pytest.raises(drawstring.InvalidError) as told:
        drawstring.catalog(7)  # type: ignore[arg-type]
    for each in ("thrift://host:port", "glue", "polaris+https://host:8181/api/catalog/NAME", "a folder"):
        assert each in str(told.value)
