"""The bloom filters of a table's base files: in their footers, and in its metadata table."""

from __future__ import annotations

from typing import Any

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.formats.parquet import stored_summary
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import file_hash, open_metadata_table, partition_hash
from drawstring.model.files import BaseFile
from drawstring.query.table_state import load_facts
from drawstring.testing import context_of

Filters = dict[str, tuple[str, str, bytes]]
"""Type, instant and bytes of filters by the key of their record."""


def stored_filters(table: drawstring.Table) -> Filters:
    """Return the filters in the footers of all committed base files."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    found: Filters = {}
    for partition in facts.view.partitions():
        for status in facts.storage.list_files(partition):
            base = BaseFile.parse(status)
            if base is not None and facts.timeline.completion_of(base.instant) is not None:
                summary = stored_summary(facts.storage, status.path)
                key = partition_hash(partition) + file_hash(status.name)
                found[key] = (summary.filter_type, base.instant, summary.filter_text.encode())
    return found


def indexed_filters(table: drawstring.Table) -> Filters:
    """Return the filters that the metadata table has, without those of deleted files."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())
    rows: list[dict[str, Any]] = records(opened, "bloom_filters").to_pylist()
    live = {row["key"]: row["BloomFilterMetadata"] for row in rows}
    return {
        key: (each["type"], each["timestamp"], bytes(each["bloomFilter"]))
        for key, each in live.items()
        if not each["isDeleted"]
    }
