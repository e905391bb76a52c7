"""File groups that hold the keys of a query, by the record index and secondary indexes.

    id = 'a'       record_index                                                         file groups
    name = 'x'     secondary_index_<name>: keys with the value ── record_index ──>      file groups
    id = 'a'       bloom_filters                                                        base files

The first two describe the latest rows, so only queries of those use them. A bloom filter is of one base file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.bloom.probe import may_have_any
from drawstring.metadata.contents import contents, looked_up
from drawstring.metadata.definitions import definitions, why_not_used
from drawstring.metadata.keys import file_hash, partition_hash
from drawstring.metadata.lookups import Lookup
from drawstring.metadata.metadata_table import MetadataTable, about_metadata
from drawstring.metadata.partitions import BLOOM, BLOOM_FILTERS, KEY, RECORD_INDEX
from drawstring.metadata.record_index import RecordIndex, candidate_groups
from drawstring.metadata.secondary_keys import are_indexed
from drawstring.model.files import FileStatus
from drawstring.query.pruning import key_values
from drawstring.storage.protocol import Storage

_SECONDARY: Final = "secondary_index_"
_FILTERS_AT_ONCE: Final = 32
"""A filter has up to 430 KB."""


@dataclass(frozen=True, slots=True)
class KeyIndexes:
    """The indexes that know the keys or values of a condition.

    Attributes:
        values: what to look up, by index.
        unused: why indexes that know them are not used, in sentences, by index.
    """

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyLookups:
    """Finds file groups by the keys and values that a condition can be true for.

    Attributes:
        metadata: the metadata table.
        storage: the table's files.
        schema: the columns of the query.
        where: the condition.
        keys: the record keys that rows of the condition can have; None for any.
    """

    metadata: MetadataTable
    storage: Storage
    schema: pa.Schema
    where: pc.Expression
    keys: Sequence[str] | None

    def indexes(self) -> KeyIndexes:
        """Return the indexes that know the keys of the condition, with what to look up in each.

        Raises:
            MetadataTableError: the definitions of the indexes are damaged.
        """
        if RECORD_INDEX not in self.metadata.ready:
            return KeyIndexes()
        names = [name for name in self.metadata.ready if name.startswith(_SECONDARY)]
        with about_metadata(self.metadata.storage):
            defined = definitions(self.storage) if names or self.keys is not None else {}
        values = dict(self._values(names, defined))
        why = why_not_used(defined)
        return KeyIndexes(values) if why is None else KeyIndexes(unused=dict.fromkeys(values, why))

    def _values(
        self, names: Sequence[str], defined: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, Sequence[str]]]:
        if self.keys is not None:
            yield RECORD_INDEX, self.keys
        for name in names:
            fields = list(defined.get(name, {}).get("sourceFields") or ())
            column = fields[0] if len(fields) == 1 else ""
            values = key_values(self.where, self.schema, column) if column in self.schema.names else None
            if values is not None and pc.all(are_indexed(values), min_count=0).as_py():
                yield name, values.cast(pa.string()).to_pylist()

    def groups(
        self, index: str, values: Sequence[str], partitions: Sequence[str]
    ) -> frozenset[tuple[str, str]]:
        """Return the file groups that hold some keys, or rows with some values, as partition and file id.

        Args:
            index: one of `indexes`.
            values: what to look up in it.
            partitions: the partitions to look in.

        Raises:
            MetadataTableError: a file of an index is missing or damaged.
        """
        keys = values
        if index != RECORD_INDEX:
            keys = contents(self.metadata, index, "UTC", values).column("key").to_pylist()
        return candidate_groups(RecordIndex.of(self.metadata, self.storage.spec), keys, partitions)


def files_with_keys(
    metadata: MetadataTable, files: Sequence[FileStatus], keys: Sequence[str], index: str = BLOOM_FILTERS
) -> list[bool]:
    """Return for each of some files whether it may have any of a few keys, by their bloom filters.

    Args:
        metadata: the metadata table.
        files: the files; one without a filter may have any key.
        keys: the record keys, or texts of other values.
        index: the partition of the metadata table with the filters.

    Raises:
        MetadataTableError: a file of the index is missing or damaged.
    """
    found: list[bool] = []
    for start in range(0, len(files), _FILTERS_AT_ONCE):
        some = files[start : start + _FILTERS_AT_ONCE]
        names = [partition_hash(each.folder) + file_hash(each.name) for each in some]
        rows = looked_up(metadata, index, Lookup(keys=pa.array(names, pa.string())))
        filters = dict(zip(rows.column(KEY).to_pylist(), rows.column(BLOOM).to_pylist(), strict=True))
        found += [_may_have(filters.get(name), keys) for name in names]
    return found


def _may_have(stored: Mapping[str, Any] | None, keys: Sequence[str]) -> bool:
    if stored is None or stored["isDeleted"]:
        return True
    return may_have_any(bytes(stored["bloomFilter"]), stored["type"], keys)
