"""Step one of a write: give every row its record key, partition path and location."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.index.location import LOCATION
from drawstring.index.protocol import Index
from drawstring.keygen.keys import KeyGenerator
from drawstring.schema.evolve import conform
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY


@dataclass(frozen=True, slots=True)
class Prepare:
    """A batch function that adds key, partition path and, with an index that hashes, the location.

    Attributes:
        config: the table.
        schema: columns that the write keeps: the table's, none for a delete.
        key_schema: columns that keys and partition paths are made from, as the table types them.
        index: the index of the write.
    """

    config: TableConfig
    schema: pa.Schema
    key_schema: pa.Schema
    index: Index

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the prepared batches."""
        added = (
            [RECORD_KEY, PARTITION_PATH, LOCATION] if self.index.is_hashed else [RECORD_KEY, PARTITION_PATH]
        )
        return pa.schema([*self.schema, *(pa.field(name, pa.string()) for name in added)])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Prepare a stream of batches.

        Raises:
            InvalidError: a record key is null, or a column does not fit the table.
        """
        generator = KeyGenerator(self.config, is_writing=True)
        output = self.output_schema
        for batch in batches:
            # Of no columns a batch would have no rows either.
            named = conform(batch, self.key_schema) if self.key_schema.names else batch
            keys, paths = generator.keys_and_paths(named)
            columns = [*conform(batch, self.schema).columns, keys, paths]
            locations = self.index.locations(keys, paths)
            if locations is not None:
                columns.append(locations)
            yield pa.RecordBatch.from_arrays(columns, schema=output)
