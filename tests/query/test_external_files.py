"""Tables in whose commits another tool registered its own files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import UnsupportedError
from drawstring.formats.metadata.commit import encode_commit
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.instant import Action
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import load_config, save_properties
from drawstring.timeline.store import TimelineStore
from tests.support.rows import SCHEMA, rides
from tests.support.tables import COW, MOR

CALLS: dict[str, Callable[[Table], object]] = {
    "scan": lambda table: table.scan().to_arrow(),
    "incremental": lambda table: table.incremental("000").to_arrow(),
    "follow": lambda table: list(table.follow(poll_seconds=None)),
    "upsert": lambda table: table.upsert(rides(("a", "rome", 1, 1.0))),
    "bulk_insert": lambda table: table.bulk_insert(rides(("a", "oslo", 1, 1.0))),
}


def table_with_registered_file(root: Path, table_type: str, version: int, *, is_listed: bool) -> Table:
    """Make a table with one commit, whose only file another tool wrote and registered."""
    table = drawstring.create(
        root, SCHEMA, record_key="id", partition_by="city", table_type=table_type, version=version
    )
    storage, config = context_of(table).storage, table.config
    store = TimelineStore(storage, config, context_of(table).clock)
    storage.put("rome/part-0.parquet", b"PAR1")
    if is_listed:
        storage.put("rome/.hoodie_partition_metadata", b"partitionDepth=1\n")
    started = store.start(store.request(Action.REPLACE_COMMIT, store.new_time(store.load())))
    path = f"rome/part-0.parquet_{started.requested}_hudiext"
    stat = WriteStat("rome", "part-0.parquet", path, size_bytes=4)
    store.complete(started, encode_commit(CommitMetadata((stat,)), config.layout, replace=True))
    metadata = {"hoodie.table.metadata.partitions": "files"}
    save_properties(storage, {**load_config(storage).properties, **metadata}, context_of(table).clock)
    storage.put(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.name=files\n")
    return drawstring.open(root)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("is_listed", [False, True], ids=["without partition metadata", "with it"])
@pytest.mark.parametrize(("table_type", "version"), [(COW, 6), (COW, 9), (MOR, 9)])
def test_files_that_another_tool_registered_are_named_as_what_they_are(
    tmp_path: Path, table_type: str, version: int, call: Callable[[Table], object], *, is_listed: bool
) -> None:
    table = table_with_registered_file(tmp_path / "rides", table_type, version, is_listed=is_listed)
    with pytest.raises(UnsupportedError, match="registered in the table without rewriting") as caught:
        call(table)
    assert (caught.value.path or "").endswith("_hudiext")
    assert caught.value.table == table.uri
    storage = open_storage(table.uri)
    assert load_config(storage).metadata_partitions, "only the metadata table knows where such files are"
    assert storage.list_tree(".hoodie/metadata")
