"""Apache Polaris: Hudi tables are its generic tables, beside Iceberg's own.

    ADDRESS/CATALOG                                         http(s)://host:8181/api/catalog/lake
    v1/CATALOG/namespaces                                   databases, by Iceberg's interface
    polaris/v1/CATALOG/namespaces/NAME/generic-tables       tables: name, format, base-location, properties

A generic table has no columns and no partitions; what Spark needs is in its properties. It cannot be changed:
one that differs is dropped, which leaves its files, and made again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from drawstring.base.errors import InvalidError
from drawstring.services.catalogs.description import CREATED_BY, CatalogPartition, CatalogTable
from drawstring.services.catalogs.rest import JsonService

PREFIX: Final = "polaris+"
TOKEN: Final = "POLARIS_TOKEN"
CREDENTIAL: Final = "POLARIS_CREDENTIAL"
"""Environment variables: a token, or id and secret of a principal with a colon between them."""

_NAME: Final = "Polaris"
_FORMAT: Final = "hudi"
_NAMESPACE_MARK: Final = "\x1f"
_MISSING: Final = (404,)
_THERE: Final = (409,)


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
        found = self._table(table.database, table.name)
        return None if found is None else dict(found.get("properties") or {})

    def create(self, table: CatalogTable, *, with_database: bool) -> None:
        """Create a table, and its namespace if that is missing and wanted."""
        if with_database:
            name = {"namespace": table.database.split("."), "properties": {}}
            self._service.post(self._namespaces, name, accepts=_THERE)
        self._create(table, {})

    def alter(self, table: CatalogTable) -> None:
        """Give a table its properties; others of its properties stay."""
        known = self.properties(table) or {}
        if all(known.get(key) == value for key, value in table.properties.items()):
            return
        folder = _tables(self._namespaces, table.database)
        self._service.delete(f"{folder}/{quote(table.name, safe='')}", accepts=_MISSING)
        self._create(table, known)

    def partitions(self, table: CatalogTable) -> set[tuple[str, ...]]:
        """Return nothing: Polaris knows no partitions of generic tables."""
        return set()

    def add(self, table: CatalogTable, partitions: Iterable[CatalogPartition]) -> None:
        """Do nothing."""

    def drop(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Do nothing."""

    def _create(self, table: CatalogTable, known: dict[str, str]) -> None:
        body = {
            "name": table.name,
            "format": _FORMAT,
            "base-location": table.location.replace("s3a://", "s3://", 1),
            "doc": CREATED_BY,
            "properties": {**known, **table.properties},
        }
        self._service.post(_tables(self._namespaces, table.database), body, accepts=_THERE)

    def _table(self, database: str, name: str) -> dict[str, Any] | None:
        path = f"{_tables(self._namespaces, database)}/{quote(name, safe='')}"
        answer = self._service.get(path, accepts=_MISSING)
        return None if answer is None else answer.get("table")

    def _pages(self, path: str, what: str) -> Iterator[Any]:
        """Yield the entries of a list, page by page."""
        token: str | None = ""
        while token is not None:
            page = self._service.get(f"{path}?{urlencode({'pageToken': token})}", accepts=_MISSING) or {}
            yield from page.get(what) or ()
            token = page.get("next-page-token") or None


def _tables(namespaces: str, database: str) -> str:
    """Return the path of the generic tables of a database, whose parts are divided by dots."""
    name = quote(database.replace(".", _NAMESPACE_MARK), safe="")
    return f"polaris/{namespaces}/{name}/generic-tables"


def _token(service: JsonService, credential: str) -> str:
    client, _, secret = credential.partition(":")
    form = {
        "grant_type": "client_credentials",
        "client_id": client,
        "client_secret": secret,
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    return str(service.post_form("v1/oauth/tokens", urlencode(form)).get("access_token", ""))
