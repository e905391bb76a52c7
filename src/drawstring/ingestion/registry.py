"""A schema registry with Confluent's interface, by HTTP."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from drawstring.base.errors import InvalidError, UnavailableError

_TIMEOUT_SECONDS: Final = 30
_TYPE: Final = "application/vnd.schemaregistry.v1+json"


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
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            found = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        kind = UnavailableError if error.code >= 500 else InvalidError
        raise kind(f"The schema registry refuses {plain}: {error.code} {error.reason}. Check it.") from error
    except (OSError, ValueError) as error:
        raise UnavailableError(f"The schema registry does not answer at {plain}: {error}.") from error
    if not isinstance(found, dict) or "schema" not in found or found.get("schemaType", "AVRO") != "AVRO":
        raise InvalidError(f"The schema registry has no Avro schema at {plain}. Check the subject.")
    return str(found["schema"])


def _with_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without user and password, and the headers of a request with them."""
    parts = urlsplit(url)
    headers = {"Accept": _TYPE}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), headers
