"""The Glue Data Catalog of AWS, by boto3: a plug-in for syncs and for tables by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnavailableError, not_installed
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

_ADDED_MAX: Final = 100
_DROPPED_MAX: Final = 25
"""Partitions in one request, as Glue limits them."""

_MISSING: Final = "EntityNotFoundException"
_THERE: Final = "AlreadyExistsException"
_LISTING: Final = {"hudi.metadata-listing-enabled": "FALSE"}
"""What Hudi's sync tells engines of AWS: that they list the table's folders themselves."""

_KEPT: Final = ("Description", "Owner", "Retention", "ViewOriginalText", "ViewExpandedText", "TableType")


class GlueCatalog:
    """The Glue Data Catalog of an account and region.

    Args:
        client: of Glue, from boto3.
    """

    has_partitions: Final = True

    def __init__(self, client: Any) -> None:
        self._client = client

    @classmethod
    def connect(cls) -> GlueCatalog:
        """Return the catalog of the region and account of the environment, as boto3 finds them.

        Raises:
            InvalidError: boto3 is not installed, or finds no region.
        """
        try:
            import boto3
            from botocore.exceptions import BotoCoreError
        except ImportError as error:
            raise not_installed("AWS Glue needs boto3", "glue") from error
        try:
            return cls(boto3.client("glue"))
        except BotoCoreError as error:
            raise InvalidError(f"AWS Glue cannot be reached: {error}. Set AWS_REGION.") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def databases(self) -> list[str]:
        """Return the names of the databases."""
        with _answers("to list databases"):
            pages = self._client.get_paginator("get_databases").paginate()
            return [each["Name"] for page in pages for each in page["DatabaseList"]]

    def table_names(self, database: str) -> list[str]:
        """Return the names of the Hudi tables of a database."""
        with _answers(database):
            pages = self._client.get_paginator("get_tables").paginate(DatabaseName=database)
            return [each["Name"] for page in pages for each in page["TableList"] if _is_hudi(each)]

    def location(self, database: str, name: str) -> str | None:
        """Return the address of a Hudi table, None if there is none of this name."""
        found = self._table(database, name)
        return found["StorageDescriptor"]["Location"] if found and _is_hudi(found) else None

    def properties(self, table: CatalogTable) -> dict[str, str] | None:
        """Return the properties that a table has in Glue, None if it is not there."""
        found = self._found(table)
        return None if found is None else dict(found.get("Parameters") or {})

    def create(self, table: CatalogTable, *, with_database: bool) -> None:
        """Create a table, and its database if that is missing and wanted."""
        if with_database:
            with _answers(table.full_name, accepts=_THERE):
                self._client.create_database(
                    DatabaseInput={"Name": table.database, "Description": CREATED_BY}
                )
        with _answers(table.full_name, accepts=_THERE):
            self._client.create_table(DatabaseName=table.database, TableInput=_input(table, {}))

    def alter(self, table: CatalogTable) -> None:
        """Give a table its columns and properties; others of its properties stay."""
        found = self._found(table) or {}
        with _answers(table.full_name):
            self._client.update_table(DatabaseName=table.database, TableInput=_input(table, found))

    def partitions(self, table: CatalogTable) -> set[tuple[str, ...]]:
        """Return the values of all partitions."""
        with _answers(table.full_name):
            pages = self._client.get_paginator("get_partitions").paginate(
                DatabaseName=table.database, TableName=table.name, ExcludeColumnSchema=True
            )
            return {tuple(each["Values"]) for page in pages for each in page["Partitions"]}

    def add(self, table: CatalogTable, partitions: Iterable[CatalogPartition]) -> None:
        """Add partitions; those that are there stay."""
        inputs = [
            {"Values": list(each.values), "StorageDescriptor": _storage(table, each.location)}
            for each in partitions
        ]
        for start in range(0, len(inputs), _ADDED_MAX):
            with _answers(table.full_name):
                answer = self._client.batch_create_partition(
                    DatabaseName=table.database,
                    TableName=table.name,
                    PartitionInputList=inputs[start : start + _ADDED_MAX],
                )
            _check(table, answer, accepts=_THERE)

    def drop(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Drop partitions by their values; files stay."""
        dropped = [{"Values": list(each)} for each in values]
        for start in range(0, len(dropped), _DROPPED_MAX):
            with _answers(table.full_name):
                answer = self._client.batch_delete_partition(
                    DatabaseName=table.database,
                    TableName=table.name,
                    PartitionsToDelete=dropped[start : start + _DROPPED_MAX],
                )
            _check(table, answer, accepts=_MISSING)

    def _found(self, table: CatalogTable) -> dict[str, Any] | None:
        """Return what Glue has of a table, None if it is not there.

        Raises:
            InvalidError: a table of another format has its name.
        """
        found = self._table(table.database, table.name)
        if found is not None and not _is_hudi(found):
            kind = format_of(found.get("Parameters") or {}, _input_format(found), found.get("TableType"))
            raise other_format("AWS Glue", table.full_name, kind)
        return found

    def _table(self, database: str, name: str) -> dict[str, Any] | None:
        answer: dict[str, Any] = {}
        with _answers(f"{database}.{name}", accepts=_MISSING):
            answer = self._client.get_table(DatabaseName=database, Name=name)
        return answer.get("Table")


class Glue(CatalogProvider):
    """Connects to the Glue Data Catalog."""

    def for_sync(self, settings: CatalogSync) -> GlueCatalog:
        return GlueCatalog.connect()

    def at_address(self, address: str) -> GlueCatalog:
        return GlueCatalog.connect()


def _is_hudi(table: Mapping[str, Any]) -> bool:
    return is_hudi(table.get("Parameters") or {}, _input_format(table))


def _input_format(table: Mapping[str, Any]) -> str | None:
    return (table.get("StorageDescriptor") or {}).get("InputFormat")


def _input(table: CatalogTable, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as Glue takes it, with what it has of it already."""
    kept = {name: found[name] for name in _KEPT if found.get(name)}
    properties = {**_LISTING, **(found.get("Parameters") or {}), **table.properties}
    return {
        "TableType": "EXTERNAL_TABLE",
        **kept,
        "Name": table.name,
        "Parameters": properties,
        "PartitionKeys": _columns(table.partition_keys),
        "StorageDescriptor": _storage(table, table.location),
    }


def _storage(table: CatalogTable, location: str) -> dict[str, Any]:
    return {
        "Columns": _columns(table.columns),
        "Location": location.replace("s3a://", "s3://", 1),
        "InputFormat": table.classes.input_format,
        "OutputFormat": table.classes.output_format,
        "SerdeInfo": {
            "SerializationLibrary": table.classes.serde,
            "Parameters": dict(table.serde_properties),
        },
    }


def _columns(columns: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"Name": name, "Type": kind, "Comment": ""} for name, kind in columns]


def _check(table: CatalogTable, answer: Mapping[str, Any], accepts: str) -> None:
    """Check the partitions that a request failed for."""
    details = [each.get("ErrorDetail", {}) for each in answer.get("Errors", ())]
    refused = [each for each in details if each.get("ErrorCode") != accepts]
    if refused:
        raise InvalidError(f"AWS Glue refuses partitions of {table.full_name}: {refused[0]}.")


@contextmanager
def _answers(what: str, accepts: str = "") -> Iterator[None]:
    """Turn errors of AWS into drawstring's; one kind of answer is accepted."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == accepts:
            return
        raise InvalidError(f"AWS Glue refuses {what}: {error}.") from error
    except BotoCoreError as error:
        raise UnavailableError(f"AWS Glue does not answer: {error}.") from error
