"""Define the protocols of catalogs, and find catalogs by name.

    Catalog            a sync tells it about a table after a commit
    TableNames         tables are opened by the names that it has
    CatalogProvider    connects to one

Catalogs are plug-ins: entry points of the group `drawstring.catalogs`, classes whose objects, made without
arguments, follow `CatalogProvider`. An entry point is named by a tool of Hudi's sync
(`hoodie.meta.sync.client.tool.class`), or by the begin of the addresses of the catalog. Those of drawstring
are in `drawstring.plugins`; users add their own. A folder of tables, `table_description.Warehouse`, needs no
plug-in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from drawstring.base.plugins import custom_faults, find_plugin
from drawstring.config.keys.ingest import CatalogSync
from drawstring.services.catalogs.table_description import CatalogPartition, CatalogTable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "drawstring.catalogs"
_KIND: Final = "catalog"
_Connected = TypeVar("_Connected")


class Catalog(Protocol):
    """A catalog that knows tables by name."""

    @property
    def has_partitions(self) -> bool:
        """Whether it has partitions, and Hive's three tables of a MERGE_ON_READ table; else it has one."""
        ...

    def properties(self, table: CatalogTable) -> dict[str, str] | None:
        """Return the properties that a table has in the catalog, None if it is not there.

        Raises:
            InvalidError: a table of another format has its name.
        """
        ...

    def create(self, table: CatalogTable, *, with_database: bool) -> None:
        """Create a table, and its database if that is missing and wanted."""
        ...

    def alter(self, table: CatalogTable) -> None:
        """Give a table its columns and properties; others of its properties stay.

        Raises:
            InvalidError: a table of another format has its name.
        """
        ...

    def partitions(self, table: CatalogTable) -> set[tuple[str, ...]]:
        """Return the values of all partitions."""
        ...

    def add(self, table: CatalogTable, partitions: Iterable[CatalogPartition]) -> None:
        """Add partitions, beside those that the catalog has."""
        ...

    def drop(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Drop partitions by their values; files stay."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class TableNames(Protocol):
    """A catalog that knows where tables are."""

    def databases(self) -> list[str]:
        """Return the names of the databases."""
        ...

    def table_names(self, database: str) -> list[str]:
        """Return the names of the Hudi tables of a database."""
        ...

    def location(self, database: str, name: str) -> str | None:
        """Return the address of a Hudi table, None if there is none of this name."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class CatalogProvider(Protocol):
    """Connects to a catalog."""

    def for_sync(self, settings: CatalogSync) -> Catalog:
        """Return the catalog that the options of a sync name, connected.

        Args:
            settings: of the sync.

        Raises:
            InvalidError: an option is missing or wrong, or a package that the catalog needs is not installed.
            UnavailableError: the catalog does not answer.
            UnsupportedError: no sync tells this catalog about tables.
        """
        ...

    def at_address(self, address: str) -> TableNames:
        """Return the catalog at an address, connected.

        Args:
            address: begins with the name of the entry point.

        Raises:
            InvalidError: the address is wrong, or a package that the catalog needs is not installed.
            UnavailableError: the catalog does not answer.
            UnsupportedError: tables are not opened by the names of this catalog.
        """
        ...


def catalog_of_tool(tool: str, settings: CatalogSync) -> Catalog | None:
    """Return the catalog of a tool of Hudi's sync, connected; None if there is no such tool.

    Args:
        tool: its class, with its package or without, or the name of a plug-in.
        settings: of the sync.

    Raises:
        DrawstringError: see `CatalogProvider`.
    """
    plugin = find_plugin(GROUP, tool) or find_plugin(GROUP, tool.rpartition(".")[2])
    if plugin is None:
        return None
    return _connected(plugin, lambda provider: provider.for_sync(settings))


def catalog_at(address: str) -> TableNames | None:
    """Return the catalog at an address, connected; None if no plug-in has addresses that begin so.

    Args:
        address: as in `thrift://host:port`, `polaris+https://host/api/catalog/NAME` or `glue`.

    Raises:
        DrawstringError: see `CatalogProvider`.
    """
    scheme, mark, _ = address.partition("://")
    plugin = find_plugin(GROUP, scheme.partition("+")[0] if mark else address)
    return None if plugin is None else _connected(plugin, lambda provider: provider.at_address(address))


def _connected(plugin: EntryPoint, connect: Callable[[CatalogProvider], _Connected]) -> _Connected:
    with custom_faults(plugin, _KIND, "cannot be imported"):
        provider: CatalogProvider = plugin.load()()
    with custom_faults(plugin, _KIND, "could not be connected"):
        return connect(provider)
