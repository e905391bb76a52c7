"""Statistics of columns that a commit adds to the schema of a table.

Files of earlier commits lack such a column, so all of its values in them are null, and their statistics say
so: Hudi skips files without a record for a condition such as `added IS NULL`. They are made of the statistics
of another column, and no file is read. An index of columns that a user chose keeps to these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.merge.versions import flat
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.metadata.contents import looked_up
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.keys import name_hash
from drawstring.metadata.lookups import Lookup
from drawstring.metadata.maintained.indexed_columns import IndexedColumns
from drawstring.metadata.maintained.protocol import TableChange, TableFacts
from drawstring.metadata.partitions import KEY, STATISTICS
from drawstring.metadata.statistics_encoding import Described, encode_statistics
from drawstring.model.column_summary import ColumnSummary
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import without_meta
from drawstring.storage.protocol import Storage
from drawstring.timeline.table_schema import table_schema


def added_columns(change: TableChange) -> tuple[str, ...]:
    """Return the columns that an instant adds to the table, and that the index of the first columns gets.

    Args:
        change: what the instant changes.
    """
    commit, config = change.commit, change.config
    if commit is None or not commit.schema_json or COLUMN_STATS not in config.metadata_partitions:
        return ()
    known = {*(definitions(change.storage).get(COLUMN_STATS, {}).get("sourceFields") or ())}
    wanted = IndexedColumns().among(without_meta(avro_to_arrow(commit.schema_json)), config)
    if not known or known.issuperset(wanted):
        return ()
    before = table_schema(change.storage, change.store, change.timeline, config)
    if not known.issuperset(IndexedColumns().among(before, config)):
        return ()
    return tuple(name for name in wanted if name not in known and name not in before.names)


def listed_columns(facts: TableFacts, asked: IndexedColumns) -> IndexedColumns | None:
    """Return the columns of an index together with those of a list, None if it has these already.

    Args:
        facts: the table.
        asked: columns that a write asks statistics of.
    """
    known = definitions(facts.storage).get(COLUMN_STATS, {}).get("sourceFields") or ()
    if not asked.names or not known or COLUMN_STATS not in facts.config.metadata_partitions:
        return None
    schema = table_schema(facts.storage, facts.store, facts.timeline, facts.config)
    if {*known}.issuperset(asked.among(schema, facts.config)):
        return None
    return IndexedColumns((*dict.fromkeys((*known, *asked.names)),))


def add_to_definition(storage: Storage, added: Sequence[str]) -> None:
    """Say that the index has statistics of more columns; the caller holds the table lock."""
    defined = definitions(storage).get(COLUMN_STATS)
    if defined is not None:
        define(storage, {**defined, "sourceFields": [*dict.fromkeys((*defined["sourceFields"], *added))]})


def null_statistics(
    change: TableChange,
    partition: str,
    added: Sequence[pa.Field],
    *,
    is_v2: bool,
    without: Collection[str] = (),
) -> Iterator[pa.Table]:
    """Yield the records of added columns for what has records of another column.

    Args:
        change: what the instant changes.
        partition: of the metadata table.
        added: the columns, with the types of the table.
        is_v2: whether the statistics have version V2.
        without: names of files or partitions that are left out.
    """
    fields = definitions(change.storage)[COLUMN_STATS]["sourceFields"]
    rows = looked_up(change.metadata, partition, Lookup(prefixes=(name_hash(fields[0]),)))
    rows = rows.filter(pc.invert(flat(rows.column(STATISTICS)).field("isDeleted")))
    statistics = flat(rows.column(STATISTICS))
    rows = rows.filter(
        pc.invert(pc.is_in(statistics.field("fileName"), pa.array(list(without), pa.string())))
    )
    statistics = flat(rows.column(STATISTICS))
    names = statistics.field("fileName").to_pylist()
    counts = statistics.field("valueCount").fill_null(0).to_pylist()
    if not names:
        return
    rest = pc.utf8_slice_codeunits(flat(rows.column(KEY)), len(name_hash("")))
    for column in added:
        bounds = pa.nulls(2, column.type)
        described = [
            Described(*_place(partition, name), ColumnSummary(column.name, bounds, count, count))
            for name, count in zip(names, counts, strict=True)
        ]
        records = encode_statistics(described, is_v2=is_v2)
        keys = pc.binary_join_element_wise(name_hash(column.name), rest, "")
        yield records.set_column(records.column_names.index(KEY), KEY, keys)


def _place(partition: str, name: str) -> tuple[str, str | None]:
    """Return partition path and name of the file, of which one is enough: the keys are known."""
    return ("", name) if partition == COLUMN_STATS else (name, None)
