"""Where the records of a table are: by its files, and by its record index."""

from __future__ import annotations

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.read_task import InstantRange
from drawstring.index.protocol import LOCATION_SCHEMA
from drawstring.metadata.record_index_lookup import open_record_index
from drawstring.query.table_state import load_facts
from drawstring.testing import context_of

Place = tuple[str, str, str]
"""Key, partition path, file id."""


def places(table: drawstring.Table) -> set[Place]:
    """Return key, partition and file group of all live records, as the files of the table say."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    read = ReadKeys(
        facts.storage.spec, facts.config, facts.full_schema, InstantRange.of(facts.timeline), LOCATION_SCHEMA
    )
    found = [
        tuple(row.values())
        for path in facts.view.partitions()
        for file_slice in facts.view.slices(path)
        for batch in read(file_slice)
        for row in batch.to_pylist()
    ]
    live = [(key, partition, file_id) for key, partition, file_id, is_deleted in found if not is_deleted]
    assert len(live) == len(set(live))
    return set(live)


def indexed_places(table: drawstring.Table) -> set[Place]:
    """Return key, partition and file group of all records, as the record index says."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    index = open_record_index(facts.storage, facts.config, facts.timeline, SteppingClock())
    assert index is not None, facts.config.metadata_partitions
    paths = facts.view.partitions() if index.is_partitioned else [""]
    rows = [
        row
        for path in paths
        for shard in index.shards(None, path)
        for batch in index.read(shard)
        for row in batch.to_pylist()
    ]
    found = [(row["key"], row["partition"], row["file_id"]) for row in rows]
    assert len(found) == len(set(found))
    return set(found)
