"""DataHub, told about a table by the aspects that Hudi's sync gives it: a plug-in for syncs.

dataset      urn:li:dataset:(urn:li:dataPlatform:hudi,DATABASE.TABLE,DEV)
aspects      datasetProperties, schemaMetadata, subTypes, status; each is one request and replaces the old one
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

from drawstring.base.errors import UnsupportedError
from drawstring.config.keys.ingest import CatalogSync
from drawstring.plugins.polaris import JsonService
from drawstring.services.catalogs.protocol import CatalogProvider, TableNames
from drawstring.services.catalogs.table_description import CatalogPartition, CatalogTable

_TYPES: Final = {
    "string": "String",
    "binary": "Bytes",
    "boolean": "Boolean",
    "date": "Date",
    "timestamp": "Time",
    "array": "Array",
    "map": "Map",
    "struct": "Record",
}
"""DataHub's types by Hive's; the others are numbers."""

_MISSING: Final = (404,)


class DataHub:
    """A DataHub server.

    Args:
        service: the server.
        platform: name of the data platform, `hudi` unless told otherwise.
        environment: such as `DEV` or `PROD`.
    """

    has_partitions: Final = False

    def __init__(self, service: JsonService, platform: str, environment: str) -> None:
        self._service = service
        self._platform = f"urn:li:dataPlatform:{platform}"
        self._environment = environment

    @classmethod
    def connect(cls, settings: CatalogSync) -> DataHub:
        """Return the server that the options name.

        Raises:
            InvalidError: they name none.
        """
        service = JsonService("DataHub", settings.datahub_server, settings.datahub_token)
        return cls(service, settings.datahub_platform, settings.datahub_environment)

    def close(self) -> None:
        """Do nothing: each request has a connection of its own."""

    def properties(self, table: CatalogTable) -> dict[str, str] | None:
        """Return the properties that a table has in DataHub, None if it is not there."""
        path = f"aspects/{quote(self._urn(table), safe='')}?aspect=datasetProperties&version=0"
        answer = self._service.get(path, accepts=_MISSING)
        if answer is None:
            return None
        found = (answer.get("aspect") or {}).get("com.linkedin.dataset.DatasetProperties") or {}
        return dict(found.get("customProperties") or {})

    def create(self, table: CatalogTable, *, with_database: bool) -> None:
        """Do nothing: the aspects of a dataset make it."""

    def alter(self, table: CatalogTable) -> None:
        """Give a table its columns and properties; others of its properties stay."""
        known = self.properties(table) or {}
        for name, aspect in self._aspects(table, {**known, **table.properties}):
            proposal = {
                "entityType": "dataset",
                "entityUrn": self._urn(table),
                "changeType": "UPSERT",
                "aspectName": name,
                "aspect": {"contentType": "application/json", "value": json.dumps(aspect)},
            }
            self._service.post("aspects?action=ingestProposal", {"proposal": proposal})

    def partitions(self, table: CatalogTable) -> set[tuple[str, ...]]:
        """Return nothing: DataHub is told no partitions."""
        return set()

    def add(self, table: CatalogTable, partitions: Iterable[CatalogPartition]) -> None:
        """Do nothing."""

    def drop(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Do nothing."""

    def _urn(self, table: CatalogTable) -> str:
        return f"urn:li:dataset:({self._platform},{table.full_name},{self._environment})"

    def _aspects(
        self, table: CatalogTable, properties: dict[str, str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the aspects; the status comes last, for a dataset that was removed is shown again then."""
        own = {"base_path": table.location, **properties}
        yield "datasetProperties", {"name": table.name, "customProperties": own}
        columns = [(*each, False) for each in table.columns]
        columns += [(*each, True) for each in table.partition_keys]
        yield (
            "schemaMetadata",
            {
                "schemaName": table.full_name,
                "platform": self._platform,
                "version": 0,
                "hash": "",
                "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
                "fields": [_field(*each) for each in columns],
            },
        )
        yield "subTypes", {"typeNames": ["Table"]}
        yield "status", {"removed": False}


class DataHubServer(CatalogProvider):
    """Connects to a DataHub server."""

    def for_sync(self, settings: CatalogSync) -> DataHub:
        return DataHub.connect(settings)

    def at_address(self, address: str) -> TableNames:
        raise UnsupportedError("DataHub opens no tables by name. Give the address of another catalog.")


def _field(name: str, hive_type: str, is_key: bool) -> dict[str, Any]:
    plain = hive_type.partition("<")[0].partition("(")[0]
    kind = f"com.linkedin.schema.{_TYPES.get(plain, 'Number')}Type"
    return {
        "fieldPath": name,
        "nullable": True,
        "type": {"type": {kind: {}}},
        "nativeDataType": hive_type,
        "isPartitioningKey": is_key,
    }
