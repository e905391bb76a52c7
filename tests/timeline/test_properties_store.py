from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.table.properties import decode_properties, new_table_properties
from drawstring.config.table_config import TableType
from drawstring.storage.local import LocalStorage
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    create_table,
    load_config,
    save_properties,
)
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.golden import golden_storage as golden
from tests.support.storages import memory
from tests.support.timelines import new_table, properties


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_created_table_loads(version: int) -> None:
    storage, config = new_table(version)
    loaded = load_config(storage)
    assert (loaded.name, loaded.version, loaded.layout) == ("rides", version, config.layout)
    stored = decode_properties(storage.read(PROPERTIES_PATH))
    assert stored["hoodie.table.checksum"].isdigit()


def test_a_local_table_has_the_folders_that_other_engines_list(tmp_path: Path) -> None:
    create_table(LocalStorage(str(tmp_path)), properties(9), SteppingClock())
    assert (tmp_path / ".hoodie/timeline/history").is_dir()
    assert list((tmp_path / ".hoodie/timeline").glob("*.tmp")) == []


def test_creating_twice_is_refused_and_keeps_the_first() -> None:
    storage, _ = new_table(9)
    before = storage.read(PROPERTIES_PATH)
    with pytest.raises(InvalidError, match="already"):
        create_table(storage, properties(6), SteppingClock())
    assert storage.read(PROPERTIES_PATH) == before


def test_a_place_without_a_table_is_named() -> None:
    storage = memory()
    with pytest.raises(InvalidError, match="not a Hudi table") as caught:
        load_config(storage)
    assert storage.spec.uri in str(caught.value)


def test_an_unknown_version_is_not_taken_for_damage() -> None:
    storage = memory()
    storage.put(
        PROPERTIES_PATH, b"hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=11\n"
    )
    with pytest.raises(UnsupportedError, match="11"):
        load_config(storage)


def halves(whole: bytes) -> list[bytes]:
    """Return what a write of `whole` can be cut short to: at the end of each line, and in each line."""
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    cuts = {0, *ends[:-1], *(end - 1 for end in ends), *(end - 2 for end in ends)}
    return [b"\n", *(whole[:cut] for cut in sorted(cuts))]


def file_of(version: int, ordering: str) -> tuple[Storage, bytes]:
    """Make a table with ordering columns and return its properties file."""
    storage = memory()
    described = new_table_properties(
        name="rides",
        table_type=TableType.MERGE_ON_READ,
        version=version,
        record_key=["id"],
        partition_by=["city"],
        ordering=[ordering],
        schema_json=None,
        extra={"hoodie.index.type": "BUCKET"},
    )
    create_table(storage, described, SteppingClock())
    return storage, storage.read(PROPERTIES_PATH)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_file_cut_anywhere_is_read_from_its_backup(version: int) -> None:
    storage, whole = file_of(version, "ts")
    storage.put(BACKUP_PATH, whole)
    for half in halves(whole):
        storage.put(PROPERTIES_PATH, half)
        assert load_config(storage).ordering_fields == ("ts",), half[-40:]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_file_cut_anywhere_without_backup_is_reported(version: int) -> None:
    storage, whole = file_of(version, "ts")
    for half in halves(whole):
        storage.put(PROPERTIES_PATH, half)
        with pytest.raises(CorruptTableError, match="damaged") as caught:
            load_config(storage)
        assert PROPERTIES_PATH in str(caught.value), half[-40:]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_changed_file_cut_anywhere_is_reported(version: int) -> None:
    storage, whole = file_of(version, "ts")
    save_properties(storage, {**decode_properties(whole), "added": "1"}, SteppingClock())
    for half in halves(storage.read(PROPERTIES_PATH)):
        storage.put(PROPERTIES_PATH, half)
        with pytest.raises(CorruptTableError, match="damaged"):
            load_config(storage)


@pytest.mark.parametrize(
    "name", ["v6_mor_event_time", "v8_mor_event_time", "v9_mor_event_time", "v8_evo_on_read_cow"]
)
def test_a_file_of_real_hudi_cut_anywhere_is_reported(name: str, tmp_path: Path) -> None:
    golden_storage, _ = golden(name, tmp_path)
    whole = golden_storage.read(PROPERTIES_PATH)
    storage = memory()
    storage.put(PROPERTIES_PATH, whole)
    assert load_config(storage).ordering_fields
    for half in halves(whole):
        storage.put(PROPERTIES_PATH, half)
        with pytest.raises(CorruptTableError, match="damaged"):
            load_config(storage)


def test_a_table_that_lost_its_main_file_in_a_change_is_read_from_the_backup() -> None:
    storage, _ = new_table(9)
    storage.put(BACKUP_PATH, storage.read(PROPERTIES_PATH))
    storage.delete([PROPERTIES_PATH])
    assert load_config(storage).name == "rides"
    save_properties(storage, {**load_config(storage).properties, "added": "1"}, SteppingClock())
    assert load_config(storage).properties["added"] == "1"
    assert not storage.exists(BACKUP_PATH)


def test_a_checksum_of_another_table_is_damage() -> None:
    storage, _ = new_table(9)
    text = storage.read(PROPERTIES_PATH).replace(b"hoodie.table.name=rides", b"hoodie.table.name=other")
    storage.put(PROPERTIES_PATH, text)
    with pytest.raises(CorruptTableError, match="checksum"):
        load_config(storage)


def test_a_change_that_dies_leaves_the_old_properties_or_the_new_ones() -> None:
    seen = set()
    for fail_after in range(5):
        storage, config = new_table(9)
        changed = {**config.properties, "added": "1"}
        try:
            save_properties(FaultyStorage(storage, fail_after), changed, SteppingClock())
        except InjectedFault:
            loaded = load_config(storage).properties
            assert {**loaded, "hoodie.table.checksum": "", "added": "1"} == {
                **changed,
                "hoodie.table.checksum": "",
            }
            seen.add("added" in loaded)
            save_properties(storage, changed, SteppingClock())
        assert load_config(storage).properties["added"] == "1"
        assert not storage.exists(BACKUP_PATH)
    assert seen == {False, True}


def without_checksum(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    left = [line for line in lines if not line.startswith(b"hoodie.table.checksum=")]
    assert len(left) == len(lines) - 1
    return b"".join(left)


@pytest.mark.parametrize("name", ["v6_mor_event_time", "v8_mor_event_time", "v9_cow_nonpart"])
def test_a_file_of_real_hudi_without_a_checksum_is_read(name: str, tmp_path: Path) -> None:
    storage, whole = golden(name, tmp_path)
    storage.put(PROPERTIES_PATH, without_checksum(storage.read(PROPERTIES_PATH)))
    found = load_config(storage)
    assert {**found.properties, "hoodie.table.checksum": ""} == {
        **whole.properties,
        "hoodie.table.checksum": "",
    }
    save_properties(storage, {**found.properties, "added": "1"}, SteppingClock())
    saved = load_config(storage).properties
    assert saved["hoodie.table.checksum"] == whole.properties["hoodie.table.checksum"]


def test_a_file_that_a_person_or_another_tool_wrote_is_read_without_a_checksum() -> None:
    storage, config = new_table(9)
    lines = (f"{key}={value}\n" for key, value in properties(9).items())
    storage.put(PROPERTIES_PATH, "".join(lines).encode())
    assert load_config(storage).record_key_fields == config.record_key_fields


def test_a_file_of_our_own_without_its_last_line_is_damage() -> None:
    storage, _ = new_table(6)
    storage.put(PROPERTIES_PATH, without_checksum(storage.read(PROPERTIES_PATH)))
    with pytest.raises(CorruptTableError, match="checksum is missing: its end was cut off"):
        load_config(storage)
