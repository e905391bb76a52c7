"""Sync tables to Apache Polaris: Hudi tables are its generic tables, beside Iceberg's own.

This is a plug-in for syncs and for tables by name.

    ADDRESS/CATALOG                                         http(s)://host:8181/api/catalog/lake
    v1/CATALOG/namespaces                                   databases, by Iceberg's interface
    polaris/v1/CATALOG/namespaces/NAME/generic-tables       tables: name, format, base-location, properties

A generic table has no columns and no partitions; what Spark needs is in its properties. Polaris cannot
change it. The sync drops a table that differs, which leaves its files, and makes it again. So the table
does not store the last commit, which would differ after each commit.

If the second request fails, the sync restores the old definition. Readers do not find the table between the
two requests, and its grants are lost.

`JsonService` sends the requests as JSON by HTTP. It follows no redirect, since the token would go with it.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping
from http.client import HTTPException
from typing import IO, Any, Final
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError
from drawstring.base.text_format import address_without_secrets
from drawstring.config.keys.ingest import CatalogSync
from drawstring.services.catalogs.protocol import CatalogProvider
from drawstring.services.catalogs.table_description import (
    CREATED_BY,
    SYNCED,
    CatalogPartition,
    CatalogTable,
    other_format,
)

_TIMEOUT_SECONDS: Final = 30
_REDIRECTS: Final = range(300, 400)
_TOO_MANY: Final = 429
_HTTP_SERVER_ERROR: Final = 500
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
                f"{self._name} redirects {method} {url} to {address_without_secrets(urljoin(url, target))},"
                " which is not"
                " followed since it would get the credentials. If it is the right one, give that address."
            )
        passes = error.code == _TOO_MANY or error.code >= _HTTP_SERVER_ERROR
        kind, step = (UnavailableError, _CHECK_SERVER) if passes else (InvalidError, _CHECK_RIGHTS)
        answer = f"{error.code} {error.reason}. {_start(error)}".rstrip()
        return kind(f"{self._name} refuses {method} {url}: {answer} {step}")

    def _object(self, what: str, text: bytes) -> dict[str, Any]:
        """Return the object that an answer is."""
        try:
            found = json.loads(text) if text.strip() else {}
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        answer = text[:_SHOWN].decode(errors="replace")
        raise InvalidError(
            f"{self._name} answers {what} with what is no JSON object: {answer!r}. {_CHECK_SERVER}"
        )


def _start(answer: IO[bytes]) -> str:
    """Return the start of an answer, as far as it comes."""
    try:
        return answer.read()[:_SHOWN].decode(errors="replace")
    except (OSError, HTTPException):
        return ""


PREFIX: Final = "polaris+"
TOKEN: Final = "POLARIS_TOKEN"
CREDENTIAL: Final = "POLARIS_CREDENTIAL"
"""Environment variables: a token, or id and secret of a principal with a colon between them."""

_NAME: Final = "Polaris"
_FORMAT: Final = "hudi"
_OF_ICEBERG: Final = "ICEBERG"
_NAMESPACE_MARK: Final = "\x1f"
_HTTP_NOT_FOUND: Final = (404,)
_HTTP_CONFLICT: Final = (409,)


class PolarisCatalog:
    """One catalog of a Polaris server.

    Args:
        service: the server.
        catalog: name of the catalog.
    """

    has_partitions: Final = False

    def __init__(self, service: JsonService, catalog: str) -> None:
        self._service = service
        self._namespaces = f"v1/{quote(catalog, safe='')}/namespaces"

    @classmethod
    def connect(cls, address: str) -> PolarisCatalog:
        """Return the catalog at an address, whose last part is its name.

        Args:
            address: with `polaris+` before it or not. Id and secret of a principal may be before the host;
                else they, or a token, are those of the environment.

        Raises:
            InvalidError: the address is none, or Polaris refuses the credentials.
            UnavailableError: Polaris does not answer.
        """
        parts = urlsplit(address.removeprefix(PREFIX))
        path, _, catalog = parts.path.rstrip("/").rpartition("/")
        plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], path=path))
        if not catalog:
            raise InvalidError(f"{plain} names no catalog. Put its name last: .../api/catalog/NAME.")
        credential = os.environ.get(CREDENTIAL, "")
        if parts.username:
            credential = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        token = os.environ.get(TOKEN, "")
        if credential and not (token and not parts.username):
            token = _token(JsonService(_NAME, plain), credential)
        return cls(JsonService(_NAME, plain, token), unquote(catalog))

    def close(self) -> None:
        """Do nothing: each request has a connection of its own."""

    def databases(self) -> list[str]:
        """Return the names of the namespaces."""
        return [".".join(each) for each in self._pages(self._namespaces, "namespaces")]

    def table_names(self, database: str) -> list[str]:
        """Return the names of the Hudi tables of a database."""
        names = [each["name"] for each in self._pages(_tables(self._namespaces, database), "identifiers")]
        return [name for name in names if self.location(database, name) is not None]

    def location(self, database: str, name: str) -> str | None:
        """Return the address of a Hudi table, None if there is none of this name."""
        found = self._table(database, name)
        if found is None or str(found.get("format", "")).lower() != _FORMAT:
            return None
        return found.get("base-location")

    def properties(self, table: CatalogTable) -> dict[str, str] | None:
        """Return the properties that a table has in Polaris, None if it is not there."""
        found = self._hudi(table)
        return None if found is None else dict(found.get("properties") or {})

    def create(self, table: CatalogTable, *, with_database: bool) -> None:
        """Create a table, and its namespace if that is missing and wanted."""
        if with_database:
            name = {"namespace": table.database.split("."), "properties": {}}
            self._service.post(self._namespaces, name, accepts=_HTTP_CONFLICT)
        self._post(table, _definition(table, {}))

    def alter(self, table: CatalogTable) -> None:
        """Make a table again if it differs; properties that others gave it stay."""
        old = self._hudi(table)
        new = _definition(table, old or {})
        if old is not None and _is_same(old, new):
            return
        try:
            if old is not None:
                self._service.delete(self._path(table.database, table.name), accepts=_HTTP_NOT_FOUND)
            self._post(table, new)
        except DrawstringError as error:
            if old is None:
                raise
            raise self._put_back(table, old, error) from error
        if old is None and self._hudi(table) is None:  # Polaris said that it is there
            raise other_format(_NAME, table.full_name, _OF_ICEBERG)

    def partitions(self, table: CatalogTable) -> set[tuple[str, ...]]:
        """Return nothing: Polaris knows no partitions of generic tables."""
        return set()

    def add(self, table: CatalogTable, partitions: Iterable[CatalogPartition]) -> None:
        """Do nothing."""

    def drop(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Do nothing."""

    def _put_back(self, table: CatalogTable, old: dict[str, Any], error: DrawstringError) -> DrawstringError:
        """Give a table that was dropped its old definition, and return the error that tells of it all."""
        kind = UnavailableError if isinstance(error, UnavailableError) else InvalidError
        problem = f"Polaris has not changed {table.full_name}: {error}"
        try:
            if self._table(table.database, table.name) is not None:
                return kind(f"{problem} It is still there.")
            self._post(table, old)
        except DrawstringError as again:
            properties = json.dumps(old.get("properties") or {})
            return kind(
                f"{problem} It may be dropped, and its definition could not be put back: {again} A sync that"
                " succeeds creates it; then give it again its grants and what others set of its properties,"
                f" which were {properties}."
            )
        return kind(
            f"{problem} It was dropped, and its old definition is put back. Give it again its grants, which"
            " are"
            " lost; the sync after the next commit tries again to change it."
        )

    def _post(self, table: CatalogTable, definition: dict[str, Any]) -> None:
        self._service.post(_tables(self._namespaces, table.database), definition, accepts=_HTTP_CONFLICT)

    def _table(self, database: str, name: str) -> dict[str, Any] | None:
        answer = self._service.get(self._path(database, name), accepts=_HTTP_NOT_FOUND)
        return None if answer is None else answer.get("table")

    def _hudi(self, table: CatalogTable) -> dict[str, Any] | None:
        """Return the definition of a generic table, None if it is not there.

        Raises:
            InvalidError: one of another format has its name.
        """
        found = self._table(table.database, table.name)
        if found is not None and str(found.get("format", "")).lower() != _FORMAT:
            raise other_format(_NAME, table.full_name, str(found.get("format") or "unknown"))
        return found

    def _path(self, database: str, name: str) -> str:
        return f"{_tables(self._namespaces, database)}/{quote(name, safe='')}"

    def _pages(self, path: str, what: str) -> Iterator[Any]:
        """Yield the entries of a list, page by page."""
        token: str | None = ""
        while token is not None:
            page = (
                self._service.get(f"{path}?{urlencode({'pageToken': token})}", accepts=_HTTP_NOT_FOUND) or {}
            )
            yield from page.get(what) or ()
            token = page.get("next-page-token") or None


class Polaris(CatalogProvider):
    """Connects to a catalog of a Polaris server."""

    def for_sync(self, settings: CatalogSync) -> PolarisCatalog:
        return PolarisCatalog.connect(settings.polaris_url)

    def at_address(self, address: str) -> PolarisCatalog:
        return PolarisCatalog.connect(address)


def _tables(namespaces: str, database: str) -> str:
    """Return the path of the generic tables of a database, whose parts are divided by dots."""
    name = quote(database.replace(".", _NAMESPACE_MARK), safe="")
    return f"polaris/{namespaces}/{name}/generic-tables"


def _definition(table: CatalogTable, old: dict[str, Any]) -> dict[str, Any]:
    """Return a table as Polaris takes it, with what others gave it."""
    properties = {**(old.get("properties") or {}), **table.properties}
    return {
        "name": table.name,
        "format": _FORMAT,
        "base-location": table.location.replace("s3a://", "s3://", 1),
        "doc": old.get("doc") or CREATED_BY,
        "properties": {key: value for key, value in properties.items() if key not in SYNCED},
    }


def _is_same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether location and all new properties are those that a table has."""
    known = old.get("properties") or {}
    is_there = _place(old.get("base-location") or "") == _place(new["base-location"])
    return is_there and all(known.get(key) == value for key, value in new["properties"].items())


def _place(location: str) -> str:
    """Return a location in one of the ways to write it, since Polaris may have it in another one."""
    return re.sub(r"^file:/+", "file:/", location).rstrip("/")


def _token(service: JsonService, credential: str) -> str:
    client, _, secret = credential.partition(":")
    form = {
        "grant_type": "client_credentials",
        "client_id": client,
        "client_secret": secret,
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    return str(service.post_form("v1/oauth/tokens", urlencode(form)).get("access_token", ""))
