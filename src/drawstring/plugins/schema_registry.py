"""Fetch schemas from a registry with Confluent's HTTP interface, and decode Avro records that name them.

1  magic    0
4  schema   id in the registry, big-endian
   datum    in Avro's binary encoding
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np
import pyarrow as pa

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.base.text_format import address_without_secrets
from drawstring.formats.avro.container import DAMAGE
from drawstring.formats.avro.decoder import RowDecoder, Spans
from drawstring.ingestion.file_sources import ParsedRecords, concat_rows
from drawstring.ingestion.source_protocol import Reading, Rejected, SourceContext
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import evolve

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
        told = f"{error.code} {error.reason}. {_error_hint(plain, error.url)}"
        raise kind(f"The schema registry refuses {plain}: {told}") from error
    except (OSError, ValueError) as error:
        raise UnavailableError(f"The schema registry does not answer at {plain}: {error}.") from error
    if not isinstance(found, dict) or "schema" not in found or found.get("schemaType", "AVRO") != "AVRO":
        raise InvalidError(f"The schema registry has no Avro schema at {plain}. Check the subject.")
    return str(found["schema"])


def _error_hint(asked: str, answered: str) -> str:
    """Return what to do about an answer that is an error, from the address asked or one it leads to."""
    if _server(asked) == _server(answered):
        return "Check it."
    return (
        f"It redirects to {address_without_secrets(answered)}, another server, which does not get the"
        " credentials. If that is"
        " the right one, give its address."
    )


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2]


def _with_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without user and password, and the headers of a request with them."""
    parts = urlsplit(url)
    headers = {"Accept": _TYPE}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers[_AUTHORIZATION] = f"Basic {base64.b64encode(pair).decode()}"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), headers


HEAD_BYTES: Final = 5
MAGIC: Final = b"\0"


@dataclass(frozen=True, slots=True)
class AvroValues:
    """Makes rows of records; see `kafka.Decode`.

    Attributes:
        registry: has the schemas.
    """

    registry: SchemaRegistry

    def __call__(
        self, records: Sequence[bytes], reading: Reading, place: Callable[[int], str]
    ) -> ParsedRecords:
        """Return the rows of records."""
        kept: list[int] = []
        parts: list[pa.Table] = []
        for number, run in groupby(range(len(records)), lambda at: _schema_of(records[at])):
            for at, rows in self._decoded(number, list(run), records, reading, place):
                kept += at
                parts.append(rows)
        whole = len(kept) == len(records)
        return ParsedRecords(concat_rows(parts), None if whole else kept)

    def _decoded(
        self,
        number: int | None,
        at: list[int],
        records: Sequence[bytes],
        reading: Reading,
        place: Callable[[int], str],
    ) -> Iterator[tuple[list[int], pa.Table]]:
        """Yield rows of records of one schema, with their numbers; those that are damaged by halving."""
        if number is None:
            for each in at:
                reading.reject(Rejected(place(each), records[each], "it names no schema of a registry"))
            return
        schema_json = self.registry.schema(number)
        wrong = _conflict(avro_to_arrow(schema_json), reading) if reading.is_strict else None
        if wrong is not None:
            for each in at:
                reading.reject(Rejected(place(each), records[each], f"schema {number} does not fit: {wrong}"))
            return
        try:
            yield at, _rows(schema_json, [records[each] for each in at])
        except DAMAGE as error:
            if len(at) == 1:
                reading.reject(
                    Rejected(place(at[0]), records[at[0]], f"it does not fit schema {number}: {error}")
                )
                return
            for half in (at[: len(at) // 2], at[len(at) // 2 :]):
                yield from self._decoded(number, half, records, reading, place)


def _schema_of(record: bytes) -> int | None:
    """Return the id of a record's schema, None for a record without."""
    has_head = len(record) >= HEAD_BYTES and record[:1] == MAGIC
    return int.from_bytes(record[1:HEAD_BYTES], "big") if has_head else None


def _conflict(schema: pa.Schema, reading: Reading) -> str | None:
    """Say why the known columns cannot take those of a schema; None if they can."""
    try:
        evolve(reading.known, schema)
    except InvalidError as error:
        return error.message
    return None


def _rows(schema_json: str, records: Sequence[bytes]) -> pa.Table:
    schema = avro_to_arrow(schema_json)
    ends = np.cumsum(np.array([len(each) for each in records], np.int64))
    starts = np.concatenate([[0], ends[:-1]]) + HEAD_BYTES
    decoder = RowDecoder.of(json.loads(schema_json), schema)
    return pa.Table.from_batches(decoder.decode(Spans(b"".join(records), starts, ends)), schema)


def registry_of(context: SourceContext) -> str | None:
    """Return the address of a registry, or of a subject in it, that the options name; None if they do not."""
    address = context.options.registry or context.given.get("schema.registry.url")
    return str(address) if address else None


def avro_values(context: SourceContext) -> AvroValues:
    """Return what makes rows of Avro records.

    Args:
        context: what the source of the records is made of.

    Raises:
        InvalidError: the options name no registry.
    """
    address = registry_of(context)
    if address is None:
        raise InvalidError(
            "The source has no schema registry. Set hoodie.streamer.schemaprovider.registry.url to the"
            " address of the subject, or schema.registry.url to that of the registry."
        )
    return AvroValues(SchemaRegistry.of_subject(address))
