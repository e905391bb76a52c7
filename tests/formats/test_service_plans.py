"""Plans and metadata of cleans, savepoints and restores in real tables, there and back."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats import schemas
from drawstring.formats.avro.container import decode_container, encode_container
from drawstring.formats.metadata.plans import decode_clean, decode_clean_plan, encode_clean, encode_clean_plan
from drawstring.formats.metadata.records import one_record
from drawstring.formats.metadata.rollback import (
    decode_restore_plan,
    decode_savepoint,
    encode_restore,
    encode_restore_plan,
    encode_savepoint,
    rollback_of,
)
from drawstring.model.plans import RestoreMetadata
from tests.support.golden import TABLES

CLEANED = ("v6_cow_clean", "v9_mor_clean", "v8_cow_savepoint_clean", "v6_mor_archived")
RESTORED = ("v6_mor_savepoint_restore", "v9_mor_savepoint_restore")


def files(name: str, ending: str) -> Iterator[bytes]:
    with zipfile.ZipFile(TABLES / f"{name}.zip") as packed:
        for entry in packed.namelist():
            if entry.endswith(ending) and "/metadata/" not in entry and (found := packed.read(entry)):
                yield found


@pytest.mark.parametrize("name", CLEANED)
def test_clean_plans_are_read_and_written_as_hudi_does(name: str) -> None:
    found = list(files(name, ".clean.requested"))
    assert found
    for original in found:
        plan = decode_clean_plan(original)
        root = f"file:/tmp/hudi_fixtures/{name}"
        assert decode_container(encode_clean_plan(plan, root)) == decode_container(original)
        for partition, paths in plan.files.items():
            assert all(path.startswith(f"{partition}/") and path.count("/") == 1 for path in paths)


@pytest.mark.parametrize("name", CLEANED)
def test_clean_metadata_is_read_and_written_as_hudi_does(name: str) -> None:
    found = list(files(name, ".clean"))
    assert found
    for original in found:
        assert decode_container(encode_clean(decode_clean(original))) == decode_container(original)


def test_a_clean_plan_of_version_1_has_names_only() -> None:
    record = {
        "policy": "KEEP_LATEST_COMMITS",
        "version": 1,
        "filesToBeDeletedPerPartition": {"p0": ["a_0-0-0_10.parquet"], "": ["b_0-0-0_10.parquet"]},
    }
    plan = decode_clean_plan(encode_container(schemas.compact("clean_plan"), record))
    assert plan.files == {"p0": ("p0/a_0-0-0_10.parquet",), "": ("b_0-0-0_10.parquet",)}
    assert plan.earliest is None


@pytest.mark.parametrize("partition", ["../other", "/etc"])
def test_a_clean_plan_leads_nowhere_out_of_the_table(partition: str) -> None:
    record = {
        "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": {partition: ["a_0-0-0_1.parquet"]},
    }
    with pytest.raises(CorruptTableError, match="out of the table"):
        decode_clean_plan(encode_container(schemas.compact("clean_plan"), record))


@pytest.mark.parametrize("name", [*RESTORED, "v6_cow_savepoint_clean", "v9_cow_savepoint_clean"])
def test_savepoints_are_read_and_written_as_hudi_does(name: str) -> None:
    (original,) = files(name, ".savepoint")
    saved = decode_savepoint(original)
    assert (saved.by, saved.comments) == ("user1", "a savepoint")
    assert set(saved.files) == {"p0", "p1", "p2"}
    assert decode_container(encode_savepoint(saved)) == decode_container(original)


def restore_of(data: bytes, root: str) -> RestoreMetadata:
    record = one_record(data)
    return RestoreMetadata(
        record["startRestoreTime"],
        record["timeTakenInMillis"],
        tuple((each["commitTime"], each["action"]) for each in record["restoreInstantInfo"]),
        {
            time: tuple(rollback_of(each, root) for each in done)
            for time, done in record["hoodieRestoreMetadata"].items()
        },
    )


@pytest.mark.parametrize("name", RESTORED)
def test_restores_are_read_and_written_as_hudi_does(name: str) -> None:
    (requested,) = files(name, ".restore.requested")
    plan = decode_restore_plan(requested)
    assert [action for _, action in plan.instants] == ["deltacommit", "deltacommit"]
    assert decode_container(encode_restore_plan(plan)) == decode_container(requested)
    (original,) = files(name, ".restore")
    root = f"/tmp/hudi_fixtures/{name}"
    done = restore_of(original, root)
    assert [time for time, _ in done.instants] == list(done.rollbacks)
    written = encode_restore(done, root)
    assert restore_of(written, root) == done
    if name.startswith("v9"):  # version 6 also tells the sizes of the logs that command blocks follow
        assert decode_container(written) == decode_container(original)
