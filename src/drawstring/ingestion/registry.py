"""A schema registry with Confluent's interface, by HTTP."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from drawstring.base.errors import InvalidError, UnavailableError

_TIMEOUT_SECONDS: Final = 30
_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_AUTHORIZATION: Final = "Authorization"


class _KeepsCredentials(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but sends no credentials to another server: urllib would send them along."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request."""
        followed = super().redirect_request(req, fp, code, msg, headers, newurl)
        if followed is not None and _server(newurl) != _server(req.full_url):
            followed.remove_header(_AUTHORIZATION)
        return followed


_OPENER: Final = urllib.request.build_opener(_KeepsCredentials)


@dataclass(slots=True)
class SchemaRegistry:
    """A registry.

    Attributes:
        address: of the registry, with the part before its paths.
    """

    address: str
    _known: dict[int, str] = field(default_factory=dict)

    @staticmethod
    def of_subject(url: str) -> SchemaRegistry:
        """Return the registry that has a subject, given the address of one of its versions."""
        return SchemaRegistry(url.partition("/subjects/")[0].rstrip("/"))

    def schema(self, number: int) -> str:
        """Return the schema with an id; each is asked for once.

        Raises:
            InvalidError: there is no such schema, or it is no Avro schema.
            UnavailableError: the registry does not answer.
        """
        if number not in self._known:
            self._known[number] = fetch_schema(f"{self.address}/schemas/ids/{number}")
        return self._known[number]


def fetch_schema(url: str) -> str:
    """Return the Avro schema at an address of a registry.

    Args:
        url: the address, with user and password before the host if it needs them.

    Raises:
        InvalidError: there is no such schema, or it is no Avro schema.
        UnavailableError: the registry does not answer.
    """
    plain, headers = _with_credentials(url)
    if not plain.startswith(("http://", "https://")):
        raise InvalidError(f"{plain} is no address of a schema registry. Give one with http:// or https://.")
    try:
        request = urllib.request.Request(plain, headers=headers)
        with _OPENER.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            found = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        kind = UnavailableError if error.code >= 500 else InvalidError
        told = f"{error.code} {error.reason}. {_what_to_check(plain, error.url)}"
        raise kind(f"The schema registry refuses {plain}: {told}") from error
    except (OSError, ValueError) as error:
        raise UnavailableError(f"The schema registry does not answer at {plain}: {error}.") from error
    if not isinstance(found, dict) or "schema" not in found or found.get("schemaType", "AVRO") != "AVRO":
        raise InvalidError(f"The schema registry has no Avro schema at {plain}. Check the subject.")
    return str(found["schema"])


def _what_to_check(asked: str, answered: str) -> str:
    """Return what to do about an answer that is an error, from the address asked or one it leads to."""
    if _server(asked) == _server(answered):
        return "Check it."
    return (
        f"It redirects to {_plain(answered)}, another server, which does not get the credentials. If that is"
        " the right one, give its address."
    )


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2]


def _plain(url: str) -> str:
    """Return an address without what may be secret: user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _with_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without user and password, and the headers of a request with them."""
    parts = urlsplit(url)
    headers = {"Accept": _TYPE}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers[_AUTHORIZATION] = f"Basic {base64.b64encode(pair).decode()}"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), headers
