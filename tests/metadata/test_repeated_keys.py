"""Queries by key of tables with several records of a key, whose record index has one place for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.cli.app import run
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.partitions import record_index
from drawstring.model.result import Remedy, Severity
from drawstring.services import indexing
from drawstring.services import validate as validation
from drawstring.services.validation import repair
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.rows import rides
from tests.support.tables import BUCKETS, NEW_FILE_GROUPS, create, table_types

GLOBAL = {"hoodie.metadata.global.record.level.index.enable": "true"}
OF_PARTITIONS = {"hoodie.metadata.record.level.index.enable": "true"}
ROME, OSLO = ("k", "rome", 1, 1.0), ("k", "oslo", 1, 2.0)


def cities(table: Table, where: str = "id = 'k'") -> list[str]:
    return sorted(table.scan(["city"], where=where).to_arrow().column("city").to_pylist())


def is_looked_up(table: Table, where: str = "id = 'k'") -> bool:
    return any(each.by == "record_index" and each.skipped for each in table.scan(where=where).explain().steps)


@table_types
@pytest.mark.parametrize("version", [6, 9, 10])
@pytest.mark.parametrize("index", [{}, {"hoodie.index.type": "BLOOM"}, BUCKETS])
def test_a_key_in_two_partitions_is_found_in_both(
    table_type: str, version: int, index: dict[str, str], tmp_path: Path
) -> None:
    table = create(path=tmp_path / "t", table_type=table_type, version=version, properties=index)
    table.upsert(rides(ROME, ("a", "pisa", 1, 1.0)), options=GLOBAL)
    table.upsert(rides(OSLO), options=GLOBAL)
    assert cities(table) == ["oslo", "rome"]
    table.delete(rides(OSLO))
    assert cities(table) == ["rome"]


def test_updates_and_deletes_by_key_reach_both_partitions() -> None:
    table = create()
    table.upsert(rides(ROME), options=GLOBAL)
    table.upsert(rides(OSLO))
    table.update("id = 'k'", {"fare": "9.0"})
    assert table.scan(["fare"]).to_arrow().column("fare").to_pylist() == [9.0, 9.0]
    table.delete(where="id = 'k'")
    assert table.scan().to_arrow().num_rows == 0


def test_a_write_whose_options_name_another_index_than_the_table_has_loses_no_record() -> None:
    table = create(properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.upsert(rides(ROME), options=GLOBAL)
    table.upsert(rides(OSLO), options={"hoodie.index.type": "SIMPLE"})
    assert cities(table) == ["oslo", "rome"]


@table_types
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_a_write_by_the_record_index_reaches_both_partitions(index: str, table_type: str) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(ROME, ("a", "pisa", 1, 1.0)), options=GLOBAL)
    table.upsert(rides(OSLO))
    table.delete(rides(OSLO), options={"hoodie.index.type": index})
    assert cities(table, "fare > 0") == ["pisa"]


@table_types
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_keys_that_move_leave_and_come_back_are_looked_up(index: str, table_type: str) -> None:
    table, options = create(table_type=table_type), {**GLOBAL, "hoodie.index.type": index}
    table.upsert(rides(ROME, ("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0)), options=options)
    table.upsert(rides(("k", "oslo", 2, 2.0)), options=options)
    table.delete(rides(("b", "rome", 3, 1.0)), options=options)
    table.upsert(rides(("b", "oslo", 4, 4.0)), options=options)
    table.upsert(rides(("k", "rome", 5, 5.0)), options=options)
    table.delete_partition("rome", options=options)
    table.upsert(rides(("k", "oslo", 6, 6.0), ("d", "rome", 6, 6.0)), options=options)
    assert cities(table) == ["oslo"]
    assert is_looked_up(table)


def test_a_key_in_two_partitions_of_one_write_is_found_in_both() -> None:
    table = create()
    table.upsert(rides(("a", "rome", 1, 1.0)), options=GLOBAL)
    table.upsert(rides(ROME, OSLO))
    assert cities(table) == ["oslo", "rome"]


def test_validation_finds_the_keys_that_another_engine_did_not_note() -> None:
    table = create()
    table.upsert(rides(ROME), options=GLOBAL)
    table.upsert(rides(OSLO))
    storage = context_of(table).storage
    defined = definitions(storage)["record_index"]
    define(storage, {**defined, "indexOptions": {"isPartitioned": "false"}})
    assert cities(table) == ["oslo"]
    errors = [each.what for each in table.services.validate().findings if each.severity is Severity.ERROR]
    assert len(errors) == 1
    assert "queries by key miss rows" in errors[0]
    table.indexes.drop("record_index")
    table.indexes.create("record_index")
    assert cities(table) == ["oslo", "rome"]
    assert table.services.validate().is_sound


@pytest.mark.parametrize("options", [GLOBAL, OF_PARTITIONS])
def test_a_key_that_was_inserted_twice_is_found_twice(options: dict[str, str]) -> None:
    table = create()
    table.insert(rides(ROME), options=options)
    table.insert(rides(("k", "rome", 2, 5.0)), options=NEW_FILE_GROUPS)
    assert cities(table) == ["rome", "rome"]


@pytest.mark.parametrize(
    ("index", "options"), [({"hoodie.index.type": "RECORD_INDEX"}, {}), ({}, OF_PARTITIONS)]
)
def test_an_index_that_has_all_places_stays_in_use(index: dict[str, str], options: dict[str, Any]) -> None:
    table = create(properties=index)
    table.upsert(rides(ROME, ("a", "pisa", 1, 1.0)), options=options)
    table.upsert(rides(("k", "rome", 2, 3.0), ("b", "rome", 1, 1.0)))
    table.insert(rides(("c", "rome", 1, 1.0)), options=NEW_FILE_GROUPS)
    table.services.cluster()
    table.insert_overwrite(rides(("k", "rome", 3, 4.0)))
    assert is_looked_up(table)
    assert cities(table) == ["rome"]


def test_a_record_that_moves_is_in_one_place() -> None:
    table = create(properties={"hoodie.index.type": "RECORD_INDEX"})
    moves = {"hoodie.record.index.update.partition.path": "true"}
    table.upsert(rides(ROME))
    table.upsert(rides(("k", "oslo", 2, 2.0)), options=moves)
    assert (cities(table), is_looked_up(table)) == (["oslo"], True)


def test_an_index_that_is_built_of_keys_in_two_partitions_is_not_used() -> None:
    table = create()
    table.upsert(rides(ROME, OSLO, ("a", "rome", 1, 1.0)))
    table.indexes.create("record_index")
    assert (cities(table), is_looked_up(table)) == (["oslo", "rome"], False)


def test_an_index_that_is_built_beside_writers_is_not_used() -> None:
    table = create()
    table.upsert(rides(ROME, OSLO))
    table.indexes.schedule("record_index")
    table.indexes.run()
    assert (cities(table), is_looked_up(table)) == (["oslo", "rome"], False)


@pytest.mark.parametrize(("rows", "is_used"), [([("new", "oslo", 1, 1.0)], True), ([OSLO], False)])
def test_what_is_written_while_an_index_is_built_decides_whether_it_is_used(
    rows: list[tuple[str, str, int, float]], is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create()
    table.upsert(rides(ROME, ("a", "rome", 1, 1.0)))
    fill = indexing.fill_partition

    def fill_after_a_write(*arguments: Any) -> list[str]:
        table.upsert(rides(*rows))
        table.services.cluster()
        return fill(*arguments)

    monkeypatch.setattr(indexing, "fill_partition", fill_after_a_write)
    table.indexes.schedule("record_index")
    table.indexes.run()
    key = f"id = '{rows[0][0]}'"
    assert is_looked_up(table, key) is is_used
    assert cities(table, key) == (["oslo"] if is_used else ["oslo", "rome"])


def test_damaged_definitions_are_done_without_reported_and_repaired() -> None:
    table = create()
    table.upsert(rides(ROME, ("a", "pisa", 1, 1.0)), options=GLOBAL)
    context_of(table).storage.put(".hoodie/.index_defs/index.json", b"{")
    assert (cities(table), is_looked_up(table)) == (["rome"], False)
    assert [each.remedy for each in table.services.validate().findings] == [Remedy.METADATA]
    table.services.repair(apply=True)
    assert not table.services.validate().findings
    assert (cities(table), is_looked_up(table)) == (["rome"], True)


def test_an_index_is_used_again_once_it_was_built_without_the_surplus_record() -> None:
    table = create()
    table.upsert(rides(ROME), options=GLOBAL)
    table.upsert(rides(OSLO))
    table.delete(where="city = 'oslo'")
    table.indexes.drop("record_index")
    table.indexes.create("record_index")
    assert (cities(table), is_looked_up(table)) == (["rome"], True)


def test_rows_with_a_value_are_found_in_both_partitions_by_a_secondary_index() -> None:
    table = create()
    table.upsert(rides(ROME, ("a", "pisa", 1, 7.0)), options=GLOBAL)
    table.indexes.create("by_ts", "ts")
    table.upsert(rides(OSLO))
    assert cities(table, "ts = 1 and id = 'k'") == ["oslo", "rome"]


def test_the_writer_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    table = create()
    table.upsert(rides(ROME), options=GLOBAL)
    table.upsert(rides(OSLO))
    table.upsert(rides(("k", "pisa", 1, 1.0)))
    told = [each for each in caplog.messages if "several records of a key" in each]
    assert len(told) == 1


def not_used(table: Table) -> list[str]:
    return [each.name for each in table.indexes.list() if each.unused]


def test_an_index_that_is_not_used_says_why_and_what_to_do_wherever_it_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = create(path=tmp_path / "t")
    table.upsert(rides(ROME), options=GLOBAL)
    table.indexes.create("by_ts", "ts")
    table.indexes.create("bloom_filters")
    assert not_used(table) == []
    table.upsert(rides(OSLO))
    assert not_used(table) == ["record_index", "secondary_index_by_ts"]
    explained = str(table.scan(where="id = 'k'").explain())
    (found,) = table.services.validate().findings
    (brief,) = table.services.validate(quick=True).findings
    path = str(tmp_path / "t")
    shown = []
    for call in (
        ["indexes", "list", path],
        ["inspect", "metadata", path],
        ["head", path, "--where", "id='k'", "--explain"],
    ):
        assert run(call) == 0
        shown.append(capsys.readouterr().out)
    for text in (explained, found.what, brief.what, *shown):
        assert "not use" in text
        assert "knows one of them" in text
        assert "drawstring services repair" in text
    assert "'k'" in found.what
    assert {found.severity, brief.severity} == {Severity.WARNING}
    assert "not used" not in str(table.scan(where="fare > 0").explain())


@pytest.mark.parametrize("options", [GLOBAL, OF_PARTITIONS])
def test_a_repair_has_an_index_used_again_once_no_key_is_repeated(options: dict[str, str]) -> None:
    table = create()
    table.insert(rides(ROME, ("a", "rome", 1, 1.0)), options=options)
    table.indexes.create("by_ts", "ts")
    table.insert(rides(("k", "rome", 2, 5.0)), options=NEW_FILE_GROUPS)
    assert not table.services.repair(apply=True)
    assert not_used(table) == ["record_index", "secondary_index_by_ts"]
    table.delete(where="id = 'k' and fare = 5.0")
    assert [each.remedy for each in table.services.validate().findings] == [Remedy.METADATA]
    assert not_used(table)
    assert [each.remedy for each in table.services.repair(apply=True)] == [Remedy.METADATA]
    assert not table.services.validate().findings
    assert not_used(table) == []
    assert is_looked_up(table)
    assert "secondary_index_by_ts" in str(table.scan(where="ts = 7").explain())
    assert cities(table) == ["rome"]


@pytest.mark.parametrize("apply", [True, False])
def test_a_repair_reads_indexes_and_keys_while_others_write(
    apply: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_surplus_deleted()
    other, waits_not = (
        drawstring.open(context_of(table).storage.spec.uri),
        {"hoodie.write.lock.wait_time_ms": "0"},
    )

    def write_while(read: Callable[..., Any], key: str) -> Callable[..., Any]:
        def reads(*arguments: Any, **named: Any) -> Any:
            other.insert(rides((key, "rome", 1, 1.0)), options=waits_not)
            return read(*arguments, **named)

        return reads

    for module, name in ((repair, "read_indexes"), (validation, "check_contents")):
        monkeypatch.setattr(module, name, write_while(getattr(module, name), name))
    found = table.services.repair(apply=apply)
    assert [each.remedy for each in found] == [Remedy.METADATA]
    assert bool(not_used(table)) is not apply
    monkeypatch.undo()
    keys = table.scan(["id"]).to_arrow().column("id").to_pylist()
    assert sorted(keys) == ["a", "check_contents", "k", "read_indexes"]
    assert bool(table.services.validate().findings) is not apply


def test_a_key_that_is_repeated_during_a_repair_keeps_the_index_out_of_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = with_surplus_deleted()
    check = validation.check_contents

    def repeated_since(*arguments: Any, **named: Any) -> Any:
        found = check(*arguments, **named)
        table.insert(rides(("k", "rome", 2, 5.0)), options=NEW_FILE_GROUPS)
        return found

    monkeypatch.setattr(validation, "check_contents", repeated_since)
    assert table.services.repair(apply=True)
    monkeypatch.undo()
    assert not_used(table) == ["record_index"]
    assert cities(table) == ["rome", "rome"]


def with_surplus_deleted() -> Table:
    """Return a table whose record index is not used, although no key is repeated any more."""
    table = create()
    table.insert(rides(ROME, ("a", "rome", 1, 1.0)), options=GLOBAL)
    table.insert(rides(("k", "rome", 2, 5.0)), options=NEW_FILE_GROUPS)
    table.delete(where="id = 'k' and fare = 5.0")
    assert not_used(table) == ["record_index"]
    return table


def test_the_keys_of_a_write_by_the_record_index_are_not_looked_up_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up = []
    kept = record_index.repeats_keys
    monkeypatch.setattr(record_index, "repeats_keys", lambda *given: looked_up.append(1) or kept(*given))
    table = create(properties={"hoodie.index.type": "RECORD_INDEX"})
    table.upsert(rides(ROME, ("a", "pisa", 1, 1.0)))
    table.upsert(rides(("k", "oslo", 2, 2.0), ("b", "pisa", 1, 1.0)))
    assert not looked_up
    table.insert(rides(("c", "pisa", 1, 1.0)))
    assert looked_up


@table_types
def test_a_write_by_a_record_index_with_damaged_definitions_reads_the_files(
    table_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = create(properties={"hoodie.index.type": "RECORD_INDEX"}, table_type=table_type)
    table.upsert(rides(ROME, ("a", "pisa", 1, 1.0)))
    context_of(table).storage.put(".hoodie/.index_defs/index.json", b"{")
    table.upsert(rides(("k", "rome", 2, 2.0), ("b", "pisa", 1, 1.0)))
    assert any("files of the table are read instead" in each for each in caplog.messages)
    assert any("index.json" in each and "drawstring services repair" in each for each in caplog.messages)
    table.insert(rides(("c", "pisa", 1, 1.0)))
    table.upsert(rides(("d", "pisa", 1, 1.0)))
    table.upsert(rides(("k", "rome", 3, 3.0)))
    assert sorted(table.scan(["id"]).to_arrow().column("id").to_pylist()) == ["a", "b", "c", "d", "k"]
    assert is_looked_up(table)
    assert table.services.validate().is_sound
