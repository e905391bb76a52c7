"""Tables by name, from a catalog: a Hive metastore, AWS Glue, Apache Polaris, or a folder of tables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.engine.protocol import Engine
from drawstring.entry import open as open_table
from drawstring.services.catalogs.protocol import TableNames, catalog_at
from drawstring.services.catalogs.table_description import Warehouse
from drawstring.storage import open_storage
from drawstring.table import Table

_DEFAULT: Final = "default"
_PLACES: Final = (
    "Catalogs are at thrift://host:port, glue, polaris+https://host:8181/api/catalog/NAME, or a folder of"
    " tables."
)


class TableCatalog:
    """A catalog, connected. It is a context manager, which closes the connection."""

    def __init__(self, names: TableNames, address: str, storage_options: Mapping[str, str] | None) -> None:
        self._names = names
        self._address = address
        self._storage_options = storage_options

    def __enter__(self) -> TableCatalog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def databases(self) -> list[str]:
        """Return the names of the databases."""
        return sorted(self._names.databases())

    def tables(self, database: str = _DEFAULT) -> list[str]:
        """Return the names of the Hudi tables of a database; other tables are left out."""
        return sorted(self._names.table_names(database))

    def table(
        self, name: str, *, options: Mapping[str, Any] | None = None, engine: Engine | None = None
    ) -> Table:
        """Open a table by its name, as in `lake.rides`; without a database that is `default`.

        The three names that a sync gives a MERGE_ON_READ table (`rides`, `rides_ro`, `rides_rt`) open the
        same table. `options` and `engine` are those of `drawstring.open`.

        Raises:
            InvalidError: there is no Hudi table of this name.
            UnavailableError: the catalog or the storage does not answer.
        """
        database, _, short = name.rpartition(".")
        location = self._names.location(database or _DEFAULT, short)
        if location is None:
            raise InvalidError(
                f"There is no Hudi table {database or _DEFAULT}.{short} in {self._address}."
                " tables(database) lists those that there are."
            )
        return open_table(
            _as_uri(location), storage_options=self._storage_options, options=options, engine=engine
        )

    def close(self) -> None:
        """Close the connection."""
        self._names.close()


def catalog(
    address: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
) -> TableCatalog:
    """Connect to a catalog, to open tables by their names.

    Args:
        address: `thrift://host:port` of a Hive metastore; `glue` for the AWS Glue Data Catalog of the region
            and account of the environment; `polaris+https://host:8181/api/catalog/NAME` for a catalog of
            Apache Polaris, with id and secret of a principal before the host or in the environment
            (`POLARIS_CREDENTIAL`, or `POLARIS_TOKEN`); or path or address of a warehouse folder, in which
            `rides` is the table `rides`, and `lake.db/rides` the table `lake.rides`, as Spark and Hive lay
            them out.
        storage_options: options of the object store in which the tables are.

    Returns:
        The catalog, with methods `databases()`, `tables(database)`, `table(name)` and `close()`.

    Raises:
        InvalidError: the address is none, or the client of the catalog is not installed.
        UnavailableError: the catalog does not answer.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> made = drawstring.create(f"{folder}/rides", rides.schema, record_key="id")
        >>> drawstring.catalog(folder).tables()
        ['rides']
    """
    if not isinstance(address, str | os.PathLike):
        raise InvalidError(f"{address!r} is not the address of a catalog. {_PLACES}")
    text = os.fspath(address)
    shown = re.sub(r"(?<=//)[^/@]*@", "", text)  # without id and secret
    return TableCatalog(_names_of(text, storage_options), shown, storage_options)


def _names_of(address: str, storage_options: Mapping[str, str] | None) -> TableNames:
    catalog = catalog_at(address)
    if catalog is not None:
        return catalog
    try:
        storage = open_storage(address, storage_options)
    except UnsupportedError as error:
        raise UnsupportedError(f"{error.message} {_PLACES}") from error
    folder = storage.local_path("")
    if folder is not None and not os.path.isdir(folder):
        raise InvalidError(f"There is no folder {folder}. {_PLACES}")
    return Warehouse(storage)


def _as_uri(location: str) -> str:
    """Return an address as `open` takes it; a metastore has paths as they are behind `file:`."""
    return re.sub(r"^file:(//)?(?=/)", "", location)
