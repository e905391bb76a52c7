"""The schema and the file slices of a table around an instant."""

from __future__ import annotations

import pyarrow as pa

from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.metadata.maintained.protocol import TableChange
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileSlice
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import with_meta, without_meta
from drawstring.timeline.table_schema import table_schema


def schema_after(change: TableChange, commit: CommitMetadata) -> pa.Schema:
    """Return the columns of the table once the instant is complete, with meta columns."""
    if commit.schema_json:
        return with_meta(without_meta(avro_to_arrow(commit.schema_json)))
    return with_meta(table_schema(change.storage, change.store, change.timeline, change.config))


def slice_at(view: FileGroupView, place: tuple[str, str]) -> FileSlice | None:
    """Return the slice of a file group, given by partition path and file id; None without one."""
    partition, file_id = place
    return next((each for each in view.slices(partition) if each.file_id == file_id), None)
