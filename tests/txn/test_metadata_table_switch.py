from __future__ import annotations

import logging
from pathlib import Path

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import load_config, save_properties
from drawstring.txn.foreign_features import switch_off_metadata_table
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.golden import golden_storage
from tests.support.storages import paths
from tests.support.timelines import new_table

READY = "hoodie.table.metadata.partitions"
BUILDING = "hoodie.table.metadata.partitions.inflight"


def with_metadata_table(key: str = READY) -> Storage:
    storage, config = new_table(9)
    save_properties(storage, {**config.properties, key: "column_stats,files"}, SteppingClock())
    for name in (".hoodie/hoodie.properties", "files/a.hfile"):
        storage.put(f".hoodie/metadata/{name}", b"x")
    return storage


@pytest.mark.parametrize("version", [6, 9])
def test_the_metadata_table_of_real_hudi_goes(
    version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage, config = golden_storage(f"v{version}_mdt_cow", tmp_path)
    assert config.metadata_partitions
    with caplog.at_level(logging.INFO):
        changed = switch_off_metadata_table(storage, config, SteppingClock())
    assert changed is not None
    assert changed.metadata_partitions == ()
    assert load_config(storage) == changed
    assert paths(storage, ".hoodie/metadata") == []
    assert [record.levelname for record in caplog.records] == ["INFO"], "its callers build it again"
    assert f"Removed the metadata table of v{version}_mdt_cow" in caplog.text
    kept = {key: value for key, value in config.properties.items() if key not in (READY, BUILDING)}
    assert dict(changed.properties) == kept


def test_one_that_is_only_being_built_goes_too() -> None:
    storage = with_metadata_table(BUILDING)
    assert switch_off_metadata_table(storage, load_config(storage), SteppingClock()) is not None
    assert BUILDING not in load_config(storage).properties
    assert paths(storage, ".hoodie/metadata") == []


def test_a_table_without_one_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    storage, config = new_table(9)
    dead = FaultyStorage(storage, 0)
    assert switch_off_metadata_table(dead, config, SteppingClock()) is None
    assert caplog.records == []


def test_dying_in_between_never_leaves_a_named_but_damaged_metadata_table() -> None:
    for fail_after in range(6):
        storage = with_metadata_table()
        before = paths(storage, ".hoodie/metadata")
        try:
            switch_off_metadata_table(
                FaultyStorage(storage, fail_after), load_config(storage), SteppingClock()
            )
        except InjectedFault:
            if load_config(storage).metadata_partitions:
                assert paths(storage, ".hoodie/metadata") == before
        switch_off_metadata_table(storage, load_config(storage), SteppingClock())
        assert load_config(storage).metadata_partitions == ()
        assert paths(storage, ".hoodie/metadata") == []
