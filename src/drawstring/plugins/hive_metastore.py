"""A Hive metastore, spoken to by Thrift: a plug-in for syncs and for tables by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from drawstring.base.errors import InvalidError, UnavailableError, UnsupportedError, not_installed
from drawstring.config.keys.ingest import CatalogSync
from drawstring.services.catalogs.protocol import CatalogProvider
from drawstring.services.catalogs.table_description import (
    CREATED_BY,
    CatalogPartition,
    CatalogTable,
    format_of,
    is_hudi,
    other_format,
)

_PARTITIONS_MAX: Final = 1000
"""Partitions in one request."""

_TABLES_MAX: Final = 100
"""Tables in one request."""

_TIMEOUT_MS: Final = 60_000
_PORT: Final = 9083
_CASCADE: Final = {"CASCADE": "true"}
"""Gives the columns to the partitions as well."""


class HiveMetastore:
    """A connection to a Hive metastore.

    Args:
        client: of the metastore's interface.
        transport: its connection, open.
        address: of the metastore, for errors.
    """

    has_partitions: Final = True

    def __init__(self, client: Any, transport: Any, address: str) -> None:
        self._client = client
        self._transport = transport
        self._address = address

    @classmethod
    def connect(cls, addresses: Sequence[str]) -> HiveMetastore:
        """Connect to the first metastore that answers.

        Args:
            addresses: as thrift://host:port.

        Raises:
            InvalidError: the library is not installed, or an address is none.
            UnavailableError: none of them answers.
        """
        try:
            from pymetastore.hive_metastore import ThriftHiveMetastore
            from thrift.protocol.TBinaryProtocol import TBinaryProtocol
            from thrift.transport.TSocket import TSocket
            from thrift.transport.TTransport import TBufferedTransport, TTransportException
        except ImportError as error:
            raise not_installed("A Hive metastore needs pymetastore", "hive") from error
        for address in addresses:
            socket = TSocket(*_host_and_port(address))
            socket.setTimeout(_TIMEOUT_MS)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except TTransportException:
                continue
            return cls(ThriftHiveMetastore.Client(TBinaryProtocol(transport)), transport, address)
        raise UnavailableError(
            f"No Hive metastore answers at {', '.join(addresses)}. Check"
            " the address (hoodie.datasource.hive_sync.metastore.uris of a sync), and whether it runs."
        )

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def databases(self) -> list[str]:
        """Return the names of the databases."""
        with self._answers("to list databases"):
            return list(self._client.get_all_databases())

    def table_names(self, database: str) -> list[str]:
        """Return the names of the Hudi tables of a database."""
        found: list[Any] = []
        with self._answers(database):
            names = self._client.get_all_tables(database)
            for start in range(0, len(names), _TABLES_MAX):
                some = names[start : start + _TABLES_MAX]
                found += self._client.get_table_objects_by_name(database, some)
        return [each.tableName for each in found if _is_hudi(each)]

    def location(self, database: str, name: str) -> str | None:
        """Return the address of a Hudi table, None if there is none of this name."""
        found = self._table(database, name)
        if found is None or not _is_hudi(found):
            return None
        serde = found.sd.serdeInfo.parameters or {}
        return str(serde.get("path") or found.sd.location)  # Spark's own tables have a placeholder there

    def properties(self, table: CatalogTable) -> dict[str, str] | None:
        """Return the properties that a table has in the metastore, None if it is not there."""
        found = self._table(table.database, table.name)
        if found is None:
            return None
        _check_hudi(found, table)
        return dict(found.parameters or {})

    def create(self, table: CatalogTable, *, with_database: bool) -> None:
        """Create a table, and its database if that is missing and wanted."""
        from pymetastore.hive_metastore.ttypes import (
            AlreadyExistsException,
            Database,
            NoSuchObjectException,
            Table,
        )

        with self._answers(table.full_name):
            try:
                self._client.get_database(table.database)
            except NoSuchObjectException:
                if not with_database:
                    raise
                self._client.create_database(
                    Database(name=table.database, description=CREATED_BY, parameters={})
                )
            kind = "MANAGED_TABLE" if table.owner_deletes else "EXTERNAL_TABLE"
            try:
                self._client.create_table(
                    Table(
                        tableName=table.name,
                        dbName=table.database,
                        sd=self._storage(table, table.location),
                        partitionKeys=_columns(table.partition_keys),
                        parameters=dict(table.properties),
                        tableType=kind,
                    )
                )
            except AlreadyExistsException:
                return  # another writer was quicker

    def alter(self, table: CatalogTable) -> None:
        """Give a table its columns and properties; others of its properties stay."""
        from pymetastore.hive_metastore.ttypes import EnvironmentContext

        with self._answers(table.full_name):
            found = self._client.get_table(table.database, table.name)
            _check_hudi(found, table)
            has_new_columns = _pairs(found.sd.cols) != list(table.columns)
            found.sd.cols = _columns(table.columns)
            found.sd.location = table.location
            serde = found.sd.serdeInfo
            serde.parameters = {**(serde.parameters or {}), **table.serde_properties}
            found.parameters = {**(found.parameters or {}), **table.properties}
            cascade = _CASCADE if has_new_columns and table.partition_keys else {}
            self._client.alter_table_with_environment_context(
                table.database, table.name, found, EnvironmentContext(properties=dict(cascade))
            )

    def partitions(self, table: CatalogTable) -> set[tuple[str, ...]]:
        """Return the values of all partitions."""
        with self._answers(table.full_name):
            names = self._client.get_partition_names(table.database, table.name, -1)
            return {tuple(self._client.partition_name_to_vals(name)) for name in names}

    def add(self, table: CatalogTable, partitions: Iterable[CatalogPartition]) -> None:
        """Add partitions; those that are there stay."""
        from pymetastore.hive_metastore.ttypes import AddPartitionsRequest, Partition

        rows = list(partitions)
        for start in range(0, len(rows), _PARTITIONS_MAX):
            added = [
                Partition(
                    values=list(each.values),
                    dbName=table.database,
                    tableName=table.name,
                    sd=self._storage(table, each.location),
                    parameters={},
                )
                for each in rows[start : start + _PARTITIONS_MAX]
            ]
            with self._answers(table.full_name):
                self._client.add_partitions_req(
                    AddPartitionsRequest(
                        dbName=table.database,
                        tblName=table.name,
                        parts=added,
                        ifNotExists=True,
                        needResult=False,
                    )
                )

    def drop(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Drop partitions by their values; files stay."""
        with self._answers(table.full_name):
            for each in values:
                self._client.drop_partition(table.database, table.name, list(each), False)

    def _table(self, database: str, name: str) -> Any:
        from pymetastore.hive_metastore.ttypes import NoSuchObjectException

        with self._answers(f"{database}.{name}"):
            try:
                return self._client.get_table(database, name)
            except NoSuchObjectException:
                return None

    def _storage(self, table: CatalogTable, location: str) -> Any:
        from pymetastore.hive_metastore.ttypes import SerDeInfo, StorageDescriptor

        return StorageDescriptor(
            cols=_columns(table.columns),
            location=location,
            inputFormat=table.classes.input_format,
            outputFormat=table.classes.output_format,
            numBuckets=-1,
            serdeInfo=SerDeInfo(
                serializationLib=table.classes.serde, parameters=dict(table.serde_properties)
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    @contextmanager
    def _answers(self, what: str) -> Iterator[None]:
        """Turn Thrift's errors into drawstring's."""
        from thrift.Thrift import TException
        from thrift.transport.TTransport import TTransportException

        try:
            yield
        except TTransportException as error:
            raise UnavailableError(f"The Hive metastore at {self._address} broke off: {error}.") from error
        except TException as error:
            why = getattr(error, "message", None) or error
            raise InvalidError(f"The Hive metastore at {self._address} refuses {what}: {why}.") from error


class Hive(CatalogProvider):
    """Connects to a Hive metastore."""

    def for_sync(self, settings: CatalogSync) -> HiveMetastore:
        if settings.mode.lower() not in ("", "hms"):
            raise UnsupportedError(
                f"hoodie.datasource.hive_sync.mode={settings.mode} is not supported. Use hms, and name the"
                " metastore in hoodie.datasource.hive_sync.metastore.uris."
            )
        return HiveMetastore.connect(settings.metastore_uris)

    def at_address(self, address: str) -> HiveMetastore:
        return HiveMetastore.connect([address])


def _is_hudi(table: Any) -> bool:
    return is_hudi(table.parameters or {}, table.sd.inputFormat if table.sd else None)


def _check_hudi(found: Any, table: CatalogTable) -> None:
    """Refuse to change a table of another format, which has the name of a Hudi table.

    Raises:
        InvalidError: it is one.
    """
    if not _is_hudi(found):
        kind = format_of(found.parameters or {}, found.sd.inputFormat if found.sd else None, found.tableType)
        raise other_format("The Hive metastore", table.full_name, kind)


def _columns(columns: Iterable[tuple[str, str]]) -> list[Any]:
    from pymetastore.hive_metastore.ttypes import FieldSchema

    return [FieldSchema(name=name, type=kind, comment="") for name, kind in columns]


def _pairs(columns: Iterable[Any]) -> list[tuple[str, str]]:
    return [(each.name, each.type) for each in columns]


def _host_and_port(address: str) -> tuple[str, int]:
    parts = urlsplit(address if "://" in address else f"thrift://{address}")
    try:
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, _PORT
    if parts.scheme != "thrift" or not host:
        raise InvalidError(
            f"{address!r} is no address of a Hive metastore. Write it as thrift://host:port in"
            " hoodie.datasource.hive_sync.metastore.uris."
        )
    return host, port
