"""Requests to a catalog that speaks JSON by HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from http.client import HTTPException
from typing import IO, Any, Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError

_TIMEOUT_SECONDS: Final = 30
_REDIRECTS: Final = range(300, 400)
_TOO_MANY: Final = 429
_SERVERS_OWN: Final = 500
_SHOWN: Final = 300
_CHECK_SERVER: Final = "Check the address and the server."
_CHECK_RIGHTS: Final = "Check the credentials and the privileges of the principal."


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: urllib would send the token to wherever it leads."""

    def redirect_request(self, *details: Any) -> None:
        """Return no request."""


class JsonService:
    """A service.

    Args:
        name: of the product, for errors.
        address: what its paths come behind, without user and password.
        token: that each request carries; empty for none.

    Raises:
        InvalidError: the address is none of HTTP.
    """

    def __init__(self, name: str, address: str, token: str = "") -> None:
        if not address.startswith(("http://", "https://")):
            raise InvalidError(f"{address} is no address of {name}. Give one with http:// or https://.")
        self._name = name
        self._address = address.rstrip("/")
        self._token = token
        self._opener = urllib.request.build_opener(_NoRedirects)

    def get(self, path: str, *, accepts: Collection[int] = ()) -> dict[str, Any] | None:
        """Return the answer, None if it is one of the accepted codes of errors."""
        return self._ask("GET", path, None, {}, accepts)

    def post(self, path: str, body: Mapping[str, Any], *, accepts: Collection[int] = ()) -> None:
        """Send an object."""
        self._ask("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"}, accepts)

    def delete(self, path: str, *, accepts: Collection[int] = ()) -> None:
        """Delete something."""
        self._ask("DELETE", path, None, {}, accepts)

    def post_form(self, path: str, form: str) -> dict[str, Any]:
        """Send a form, and return the answer."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, form.encode(), headers, ()) or {}

    def _ask(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
        accepts: Collection[int],
    ) -> dict[str, Any] | None:
        given = {"Accept": "application/json", **headers}
        if self._token:
            given["Authorization"] = f"Bearer {self._token}"
        url = f"{self._address}/{path}"
        request = urllib.request.Request(url, data, given, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code in accepts:
                return None
            raise self._refusal(method, url, error) from error
        except (OSError, HTTPException, ValueError) as error:
            raise UnavailableError(
                f"{self._name} does not answer at {url}: {error}. {_CHECK_SERVER}"
            ) from error
        return self._object(f"{method} {url}", text)

    def _refusal(self, method: str, url: str, error: urllib.error.HTTPError) -> DrawstringError:
        """Return the error for an answer that is one."""
        target = error.headers.get("Location")
        if error.code in _REDIRECTS and target:
            return InvalidError(
                f"{self._name} redirects {method} {url} to {_plain(urljoin(url, target))}, which is not"
                " followed since it would get the credentials. If it is the right one, give that address."
            )
        passes = error.code == _TOO_MANY or error.code >= _SERVERS_OWN
        kind, step = (UnavailableError, _CHECK_SERVER) if passes else (InvalidError, _CHECK_RIGHTS)
        told = f"{error.code} {error.reason}. {_start(error)}".rstrip()
        return kind(f"{self._name} refuses {method} {url}: {told} {step}")

    def _object(self, what: str, text: bytes) -> dict[str, Any]:
        """Return the object that an answer is."""
        try:
            found = json.loads(text) if text.strip() else {}
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        told = text[:_SHOWN].decode(errors="replace")
        raise InvalidError(
            f"{self._name} answers {what} with what is no JSON object: {told!r}. {_CHECK_SERVER}"
        )


def _start(answer: IO[bytes]) -> str:
    """Return the start of an answer, as far as it comes."""
    try:
        return answer.read()[:_SHOWN].decode(errors="replace")
    except (OSError, HTTPException):
        return ""


def _plain(url: str) -> str:
    """Return an address without what may be secret: user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
