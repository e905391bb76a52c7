"""A table of pypaimon, which has no compaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from local_tables import Condition
from pypaimon import CatalogFactory, Schema
from shapes import Shape

SIGNS = {"=": "equal", ">=": "greater_or_equal", "<=": "less_or_equal"}


class Table:
    def __init__(self, path: str, shape: Shape) -> None:
        self._warehouse, self._shape = path, shape
        self._name = f"db.{shape.name}"

    def load(self, file: str) -> None:
        Path(self._warehouse).mkdir(parents=True, exist_ok=True)
        catalog = self._catalog()
        catalog.create_database("db", True)
        keys = [*self._shape.key, *self._shape.partition_by]
        options = {
            "bucket": str(self._shape.buckets),
            "sequence.field": self._shape.ordering,
            "file.format": "parquet",
        }
        schema = Schema.from_pyarrow_schema(
            self._stored(file), list(self._shape.partition_by), primary_keys=keys, options=options
        )
        catalog.create_table(self._name, schema, False)
        self.upsert(file)

    def upsert(self, file: str) -> None:
        builder = self._open().new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(pq.read_table(file).cast(self._stored(file)))
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def rows(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        builder = self._open().new_read_builder()
        if columns:
            builder = builder.with_projection(columns)
        if where:
            conditions = builder.new_predicate_builder()
            found = [getattr(conditions, SIGNS[sign])(name, value) for name, sign, value in where]
            builder = builder.with_filter(conditions.and_predicates(found))
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    def _stored(self, file: str) -> pa.Schema:
        """Return the schema of a file with its keys not null."""
        keys = {*self._shape.key, *self._shape.partition_by}
        return pa.schema([field.with_nullable(field.name not in keys) for field in pq.read_schema(file)])

    def _open(self) -> Any:
        return self._catalog().get_table(self._name)

    def _catalog(self) -> Any:
        return CatalogFactory.create({"warehouse": self._warehouse})
