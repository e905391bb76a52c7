"""Check of the layout `lsm_tree`: base and log files are sorted by record key."""

from __future__ import annotations

from dataclasses import replace

from drawstring.config.table.config import TableConfig
from drawstring.config.table.storage_layout import DEFAULT_LAYOUT, STORAGE_LAYOUT
from drawstring.filegroups.read.key_order import AscendingKeys
from drawstring.formats.base_files import Selection, read_base
from drawstring.formats.base_footer import has_footer
from drawstring.model.files import FileSlice
from drawstring.model.validation import Finding, Severity
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage


def unsorted_files(storage: Storage, file_slice: FileSlice) -> list[Finding]:
    """Return a finding for each file of a slice that is not sorted; reads the keys of all.

    Args:
        storage: of the table.
        file_slice: the slice; inline log files, whose blocks are in no order, count as unsorted.
    """
    paths = [file_slice.base.status.path] if file_slice.base else []
    paths += [log.status.path for log in file_slice.logs]
    return [_finding(path) for path in paths if not _is_sorted(storage, path)]


def without_layout(config: TableConfig) -> TableConfig:
    """Return a table's configuration with the default layout, in which readers take nothing for sorted."""
    return replace(config, properties={**config.properties, STORAGE_LAYOUT: DEFAULT_LAYOUT})


def _is_sorted(storage: Storage, path: str) -> bool:
    if not has_footer(path):
        return False
    keys = AscendingKeys()
    batches = read_base(storage, path, Selection([RECORD_KEY]))
    return all(keys.go_on(batch.column(RECORD_KEY)) for batch in batches)


def _finding(path: str) -> Finding:
    text = (
        "The file is not sorted by record key, as hoodie.table.storage.layout=lsm_tree promises: readers may"
        " miss rows. Set the layout to default (drawstring set-layout), or rewrite the file group."
    )
    return Finding(Severity.ERROR, "order", text, path)
