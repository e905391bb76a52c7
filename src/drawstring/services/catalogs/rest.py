"""Requests to a catalog that speaks JSON by HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnavailableError

_TIMEOUT_SECONDS: Final = 30
_TOO_MANY: Final = 429
_SERVERS_OWN: Final = 500
_SHOWN: Final = 300


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
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                text = answer.read()
            found: dict[str, Any] = json.loads(text) if text.strip() else {}
        except urllib.error.HTTPError as error:
            if error.code in accepts:
                return None
            told = error.read().decode(errors="replace")[:_SHOWN]
            passes = error.code == _TOO_MANY or error.code >= _SERVERS_OWN
            kind = UnavailableError if passes else InvalidError
            raise kind(f"{self._name} refuses {method} {url}: {error.code} {error.reason}. {told}") from error
        except (OSError, ValueError) as error:
            raise UnavailableError(f"{self._name} does not answer at {url}: {error}.") from error
        return found
