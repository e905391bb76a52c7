"""The lifecycle of every index: whatever replaces file groups, or fails to, keys stay where it finds them.

Each hook is left out once, and the same contract fails: an index that needs it cannot do without.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.index.bucket import BucketIndex
from drawstring.index.consistent_bucket import ConsistentIndex, RingLifecycle
from drawstring.index.existing_writes import FOLDERS
from drawstring.index.factory import choose_index, declared_index
from drawstring.index.protocol import LookupIndex, NoIndexFiles
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.schema.fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from tests.support.index_reference import SCHEMA, Kind, Row, content, table_of
from tests.support.interrupted import in_no_time

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
BUCKETS = (("hoodie.bucket.index.num.buckets", "3"),)
CONSISTENT = Kind("BUCKET", MOR, more=(*BUCKETS, ("hoodie.index.bucket.engine", "CONSISTENT_HASHING")))
KINDS = {
    "simple": Kind("SIMPLE", COW),
    "bloom": Kind("BLOOM", MOR),
    "global": Kind("GLOBAL_SIMPLE", COW),
    "global-bloom": Kind("GLOBAL_BLOOM", MOR),
    "bucket": Kind("BUCKET", COW, more=BUCKETS),
    "bucket-logs": Kind("BUCKET", MOR, more=BUCKETS),
    "consistent": CONSISTENT,
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
RESIZING = {
    "hoodie.parquet.max.file.size": "1000",
    "hoodie.bucket.index.split.threshold": "1.0",
    "hoodie.bucket.index.max.num.buckets": "8",
}


def created(kind: Kind) -> Table:
    table = kind.create(f"memory://{uuid.uuid4()}")
    table.upsert(table_of(ROMANS + LIMANS))
    return in_no_time(table)


def rows(partition: str, ts: int, count: int = 12) -> list[Row]:
    return [(f"{partition}{number:02}", partition, ts, number) for number in range(count)]


ROMANS, LIMANS = rows("rome", 1), rows("lima", 1)


@contextmanager
def dying(at: str) -> Iterator[None]:
    """Let whatever replaces file groups die before its completed file is put."""
    complete = TimelineStore.complete

    def failing(store: TimelineStore, instant: Instant, *rest: object, **others: object) -> Instant:
        if instant.action.completed_action is Action.REPLACE_COMMIT:
            raise OSError(at)
        return complete(store, instant, *rest, **others)

    with pytest.MonkeyPatch.context() as patched, pytest.raises((OSError, DrawstringError), match=at):
        patched.setattr(TimelineStore, "complete", failing)
        yield


def index_files(table: Table) -> list[str]:
    """The names of the files, with their partitions, that an index keeps beside the data."""
    storage = context_of(table).storage
    return sorted(status.path for folder in FOLDERS for status in storage.list_tree(folder))


def check(table: Table, expected: list[Row]) -> None:
    """Every key is read once, and is where the index looks for it, whatever becomes of the timeline."""
    assert content(table) == sorted(expected)
    assert [each for each in table.services.validate().findings if each.severity == "error"] == []
    timeline = table.timeline
    index = declared_index(table.config, context_of(table).storage, Timeline((), timeline.start))
    found = table.scan(columns=[RECORD_KEY, PARTITION_PATH, FILE_NAME]).to_arrow()
    for key, partition, name in zip(*(column.to_pylist() for column in found.columns), strict=True):
        file_slice = FileSlice(partition, name[:38], "1", None)
        assert index.owns_keys(file_slice, pa.array([key])).all(), (key, partition, name)
    keeps_files = isinstance(index, ConsistentIndex)
    for partition in {row[1] for row in expected}:
        assert any(f"/{partition}/" in path for path in index_files(table)) is keeps_files


def overwrites_and_drops(kind: Kind) -> None:
    """An overwrite and a drop end as they do without an index, and writes go on after each."""
    table = created(kind)
    check(table, ROMANS + LIMANS)
    table.insert_overwrite(table_of(rows("rome", 2, 6)))
    check(table, rows("rome", 2, 6) + LIMANS)
    table.upsert(table_of(rows("rome", 3) + rows("lima", 3)))
    check(table, rows("rome", 3) + rows("lima", 3))
    table.delete_partition("rome")
    table.upsert(table_of(rows("rome", 4)))
    check(table, rows("rome", 4) + rows("lima", 3))
    table.insert_overwrite_table(table_of(ROMANS))
    table.upsert(table_of(rows("rome", 5) + LIMANS))
    check(table, rows("rome", 5) + LIMANS)


def failed_overwrites(kind: Kind) -> None:
    """An overwrite that fails leaves the index as it was, and no file of it."""
    table = created(kind)
    before = index_files(table)
    for overwrite in (table.insert_overwrite, table.insert_overwrite_table):
        with dying("on the way"):
            overwrite(table_of(rows("rome", 2)))
        assert index_files(table) == before
        check(table, ROMANS + LIMANS)
    table.upsert(table_of(rows("rome", 3)))
    check(table, rows("rome", 3) + LIMANS)


def restored_overwrites(kind: Kind) -> None:
    """A restore to the time before an overwrite brings the index of that time back."""
    table = created(kind)
    table.savepoints.create()
    before, savepoint = index_files(table), table.timeline.writes()[-1].requested
    table.insert_overwrite(table_of(rows("rome", 2)))
    table.savepoints.restore(savepoint)
    assert index_files(table) == before
    table.upsert(table_of(rows("rome", 3)))
    check(table, rows("rome", 3) + LIMANS)


def resizings(kind: Kind) -> None:
    """Writes go on while buckets are resized; a resizing that dies and is unscheduled leaves no file."""
    table = created(kind)
    table.services.compact()
    before = index_files(table)
    resizing = table.services.schedule_clustering(options=RESIZING)
    assert resizing is not None
    table.upsert(table_of(rows("rome", 2)))
    assert content(table) == sorted(rows("rome", 2) + LIMANS)
    with dying("on the way"):
        table.services.cluster(instant=resizing)
    assert len(index_files(table)) > len(before)
    table.services.rollback(resizing)
    assert index_files(table) == before
    table.upsert(table_of(rows("lima", 2)))
    check(table, rows("rome", 2) + rows("lima", 2))
    table.services.compact()
    table.services.cluster(options=RESIZING)
    table.upsert(table_of(rows("rome", 3)))
    check(table, rows("rome", 3) + rows("lima", 2))


def refused_tables(kind: Kind) -> None:
    """A table that does not name its index refuses others, which would not find its keys."""
    names = {"record_key": "id", "partition_by": "city", "ordering": "ts"}
    table = drawstring.create(f"memory://{uuid.uuid4()}", SCHEMA, name="rides", table_type=MOR, **names)
    table.upsert(table_of(ROMANS), options={"hoodie.index.type": CONSISTENT.index, **dict(CONSISTENT.more)})
    with pytest.raises(InvalidError, match="has a consistent hashing index"):
        table.upsert(table_of(ROMANS), options={"hoodie.index.type": kind.index, **dict(kind.more)})
    assert content(table) == sorted(ROMANS)


@kinds
@pytest.mark.parametrize("contract", [overwrites_and_drops, failed_overwrites, restored_overwrites])
def test_keys_are_found_through_all_that_replaces_file_groups(
    kind: Kind, contract: Callable[[Kind], None]
) -> None:
    contract(kind)


def test_keys_are_found_through_resizings() -> None:
    resizings(CONSISTENT)


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind != CONSISTENT], ids=str)
def test_a_table_of_another_index_is_refused(kind: Kind) -> None:
    refused_tables(kind)


@pytest.mark.parametrize(
    ("owner", "hook", "contract", "kind"),
    [
        (ConsistentIndex, "for_overwrite", overwrites_and_drops, CONSISTENT),
        (ConsistentIndex, "after_files_written", overwrites_and_drops, CONSISTENT),
        (RingLifecycle, "before_commit", overwrites_and_drops, CONSISTENT),
        (RingLifecycle, "committed", overwrites_and_drops, CONSISTENT),
        (RingLifecycle, "rolled_back", failed_overwrites, CONSISTENT),
        (RingLifecycle, "rolled_back", restored_overwrites, CONSISTENT),
        (RingLifecycle, "rolled_back", resizings, CONSISTENT),
        (ConsistentIndex, "dual_write", resizings, CONSISTENT),
        (BucketIndex, "check_table", refused_tables, KINDS["bucket-logs"]),
        (LookupIndex, "check_table", refused_tables, KINDS["simple"]),
    ],
)
def test_an_index_cannot_leave_out_a_hook_that_it_needs(
    owner: type, hook: str, contract: Callable[[Kind], None], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, hook, getattr(NoIndexFiles, hook, lambda *_: None))
    with pytest.raises((AssertionError, DrawstringError, pytest.fail.Exception)):
        contract(kind)


def test_the_contract_covers_every_index() -> None:
    indexes = set()
    for kind in KINDS.values():
        table = kind.create(f"memory://{uuid.uuid4()}")
        options, storage = WriteOptions.parse({}), context_of(table).storage.spec
        indexes.add(type(choose_index(options, table.config, storage, table.timeline)))
    families = {family.__name__ for family in NoIndexFiles.__subclasses__()}
    every = {each.__name__ for family in NoIndexFiles.__subclasses__() for each in family.__subclasses__()}
    assert {each.__name__ for each in indexes} == every - families
