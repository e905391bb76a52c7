"""Validate says what is wrong with a table and where, and repair puts right what it can."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.cli import app
from drawstring.model.files import BaseFile
from drawstring.model.instant import Action
from drawstring.model.result import Severity
from drawstring.services import validate_content
from drawstring.services.validate_content import SharedKeys
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import BACKUP_PATH, PROPERTIES_PATH
from tests.support.compaction import FIRST, NEWER, logged
from tests.support.faults import HOUR_MS, START_MS, is_decided, opened, prepared
from tests.support.faulty_storage import FaultyStorage
from tests.support.limits import SetLimits
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, create, listing, store_of, versions


def found(table: Table, **how: Any) -> list[tuple[str, str, str | None]]:
    return [(each.severity, each.check, each.path) for each in table.services.validate(**how).findings]


def base_file(table: Table, partition: str = "rome") -> str:
    return next(
        each.base.status.path for each in table.inspect.files() if each.base and each.partition == partition
    )


@versions
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
def test_a_table_in_use_is_sound(version: int, table_type: str, index: dict[str, str]) -> None:
    table = create(table_type=table_type, version=version, properties=index)
    assert table.services.validate().findings == ()
    table.upsert(rides(*FIRST))
    table.upsert(rides(*NEWER))
    table.delete(rides(("c", "oslo", 9, 9.0)))
    table.insert_overwrite(rides(("x", "rome", 1, 1.0)))
    if table_type == MOR:
        table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
        table.services.compact()
    result = table.services.validate()
    assert (result.findings, result.is_sound) == ((), True)
    assert (result.partitions, result.records) == (2, len(held(table)))
    assert table.services.repair() == ()


@versions
def test_a_missing_a_shortened_and_a_damaged_file_are_named(version: int) -> None:
    for damage in ("gone", "shorter", "flipped"):
        table = logged(version)
        storage, path = context_of(table).storage, base_file(table)
        data = storage.read(path)
        if damage == "gone":
            storage.delete([path])
        else:
            storage.put(path, data[:-9] if damage == "shorter" else b"\0" * len(data))
        result = table.services.validate()
        assert not result.is_sound, damage
        named = {each.check for each in result.findings if each.path == path}
        assert named & {"gone": {"missing"}, "shorter": {"size"}, "flipped": {"unreadable"}}[damage], damage
        assert table.services.repair() == (), "a lost file is nothing that a repair brings back"


def test_a_damaged_log_block_is_named_only_where_contents_are_looked_at() -> None:
    table = logged(9)
    log = next(log.status.path for each in table.inspect.files() for log in each.logs)
    data = context_of(table).storage.read(log)
    context_of(table).storage.put(log, data[:60] + b"\xff" * (len(data) - 60))
    assert ("error", "unreadable", log) in found(table)
    assert found(table, quick=True) == []


@versions
def test_orphans_are_found_and_deleted_when_asked_to(version: int) -> None:
    table = logged(version)
    storage, path = context_of(table).storage, base_file(table)
    base = BaseFile.parse(next(each for each in storage.list_files("rome") if each.path == path))
    assert base is not None
    never = f"rome/{base.file_id}_9-9-9_19990101000000000.parquet".replace("1999", "2999")
    again = f"rome/{base.file_id}_7-7-7_{base.instant}.parquet"
    for orphan in (never, again):
        storage.put(orphan, storage.read(path))
    expected = {("warning", "orphan", never), ("warning", "orphan", again)}
    assert set(found(table, quick=True)) == expected
    assert {each.path for each in table.services.repair()} == {never, again}
    assert storage.exists(never)
    assert {each.path for each in table.services.repair(only=["orphan"], apply=True)} == {never, again}
    assert not storage.exists(never) and not storage.exists(again)
    assert table.services.validate().findings == ()


def test_a_partition_that_lost_its_metadata_is_a_partition_again() -> None:
    table = listing(logged(9))
    before = held(table)
    storage = context_of(table).storage
    storage.delete([each.path for each in storage.list_files("rome") if "partition_metadata" in each.name])
    assert ("error", "partition", "rome") in found(table)
    with pytest.raises(DrawstringError):
        held(table)
    table.services.repair(apply=True)
    assert b"partitionDepth=1" in storage.read("rome/.hoodie_partition_metadata")
    assert (held(table), table.services.validate().findings) == (before, ())


def test_damaged_properties_are_put_in_order_from_their_backup() -> None:
    table = logged(9)
    storage = context_of(table).storage
    good = storage.read(PROPERTIES_PATH)
    storage.put(BACKUP_PATH, good)
    storage.put(PROPERTIES_PATH, good[: len(good) // 2])
    assert found(table, quick=True) == [("error", "properties", PROPERTIES_PATH)]
    table.services.repair(only=["properties"], apply=True)
    assert not storage.exists(BACKUP_PATH)
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("version", [6, 9])
def test_what_dead_writers_leave_is_told_and_taken_back(version: int) -> None:
    start = prepared(MOR, version, "upsert")
    for steps in range(4, 24, 2):
        copy = start.copy()
        with suppress(DrawstringError):
            opened(FaultyStorage(copy, steps), START_MS).upsert(rides(*NEWER))
        if is_decided(copy):
            continue  # the repair completes it
        table = opened(copy, START_MS + HOUR_MS)
        rows = held(table)
        assert table.services.validate().is_sound, steps
        table.services.repair(apply=True)
        assert (held(table), table.timeline.pending()) == (rows, ()), steps
        assert table.services.validate().findings == (), steps


def test_a_rollback_that_was_cut_short_is_finished() -> None:
    table = logged(9)
    store = store_of(table)
    stuck = store.request(Action.ROLLBACK, store.new_time(store.load()), b"")
    assert [each.check for each in table.services.validate().findings] == ["rollback"]
    assert [each.instant for each in table.services.repair(only=["rollback"], apply=True)] == [
        stuck.requested
    ]
    assert (table.services.validate().findings, table.timeline.pending()) == ((), ())


def test_a_key_in_several_file_groups_and_one_in_a_wrong_bucket_are_named() -> None:
    table = create(table_type=COW)
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    table.append(rides(("a", "rome", 2, 2.0)))
    (shared,) = table.services.validate().findings
    assert (shared.check, shared.severity, shared.path) == ("key", Severity.WARNING, "rome")
    assert "1 keys are in several file groups, 'a' in " in shared.what

    buckets = create(table_type=COW, properties=BUCKETS)
    buckets.upsert(rides(*((str(number), "rome", 1, 1.0) for number in range(20))))
    one, other = (each.base for each in buckets.inspect.files()[:2])
    assert one is not None and other is not None
    storage = context_of(buckets).storage
    storage.put(one.status.path, storage.read(other.status.path))
    checks = {each.check: each for each in buckets.services.validate().findings}
    assert checks["bucket"].severity is Severity.ERROR
    assert "Upserts will not find them" in checks["bucket"].what


def test_a_key_in_two_partitions_is_named_where_a_key_has_one_place() -> None:
    for index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM"):
        table = create(table_type=COW, properties={"hoodie.index.type": index})
        table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)))
        table.upsert(rides(("a", "oslo", 2, 2.0)))
        assert table.services.validate().findings == ()
        table.append(rides(("a", "bern", 3, 3.0), ("b", "bern", 3, 3.0)))
        (shared,) = table.services.validate().findings
        assert (shared.check, shared.severity, shared.path) == ("key", Severity.WARNING, ".")
        assert "2 keys are in several file groups, 'a' in the partitions bern and" in shared.what

    plain = create(table_type=COW)
    plain.upsert(rides(("a", "rome", 1, 1.0), ("a", "oslo", 1, 1.0)))
    assert plain.services.validate().findings == ()
    assert len(plain.services.validate(global_keys=True).findings) == 1


def test_keys_are_compared_alike_in_memory_and_on_disk() -> None:
    draw = np.random.default_rng(7)
    slices = [draw.integers(0, 2**64, 50_000, dtype=np.uint64) for _ in range(3)]
    slices[2][:2000] = slices[0][:2000]
    for limit in (1 << 30, 1 << 16):
        seen = SharedKeys(limit)
        for number, bits in enumerate(slices):
            seen.add(number, bits)
        found = seen.shared()
        seen.close()
        assert (found.keys, len(found.bits)) == (2000, 1000)
        assert found.slices == {0, 2}
        assert set(found.bits) <= set(slices[0][:2000])


def test_a_damaged_commit_and_timeline_are_findings_and_no_exceptions() -> None:
    table = logged(9)
    write = table.timeline.writes()[-1]
    store = store_of(table)
    path = store.path(write)
    data = context_of(table).storage.read(path)
    context_of(table).storage.put(path, data[:100])
    (finding,) = (each for each in table.services.validate().findings if each.check == "commit")
    assert (finding.path, finding.instant, finding.severity) == (path, write.requested, Severity.ERROR)
    context_of(table).storage.put(path, data)
    twice = path.replace(f"_{write.completed}", "_29990101000000000")
    context_of(table).storage.put(twice, data)
    assert any("completed twice" in each.what for each in table.services.validate().findings)


def test_a_remedy_that_is_none_is_refused() -> None:
    with pytest.raises(
        InvalidError, match="Choose among metadata, orphan, partition-metadata, properties, rollback"
    ):
        create(table_type=COW).services.repair(only=["everything"])


def test_the_command_line_says_what_it_found_and_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "rides")
    table = create(path=path)
    table.upsert(rides(*FIRST))
    assert app.run(["services", "validate", path]) == 0
    assert (
        "sound: looked at 1 instant, 2 partitions, 2 file groups, 2 files, 6 records"
        in capsys.readouterr().out
    )
    (tmp_path / "rides/rome/.hoodie_partition_metadata").unlink()
    assert app.run(["services", "validate", path, "--json", "--quick"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["sound"], found["findings"][0]["check"], found["records"]) == (False, "partition", None)
    assert app.run(["services", "repair", path]) == 0
    assert "1 repair found; apply them with --apply" in capsys.readouterr().out
    assert app.run(["services", "repair", path, "--apply", "--json"]) == 0
    assert [each["remedy"] for each in json.loads(capsys.readouterr().out)] == ["partition-metadata"]
    assert app.run(["services", "repair", path, "--only", "orphan"]) == 0
    told = capsys.readouterr().out
    assert "nothing to repair without a decision; drawstring services validate tells" in told


def test_bits_of_keys_are_kept_once(limit: SetLimits) -> None:
    limit(distinct_hashes_unsorted_max=10)
    bits = validate_content.DistinctBits()
    for start in range(0, 100, 5):
        bits.add(np.arange(start, start + 6, dtype=np.uint64))

    assert bits.distinct().tolist() == list(range(101))
    assert set(bits.repeated().tolist()) <= set(range(5, 100, 5))
    assert len(bits.repeated()) == 10
