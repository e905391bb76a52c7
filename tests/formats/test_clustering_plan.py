"""Plans of clusterings as real Hudi wrote them: read, and written again as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.commit import encode_requested_replace
from drawstring.formats.metadata.plans import decode_clustering_plan, encode_clustering_plan
from drawstring.formats.metadata.records import one_record
from tests.support.golden import golden_storage

TABLES = [
    *(f"v{version}_cow_{what}" for version in (6, 8, 9) for what in ("clustered", "clustering_pending")),
    *("v6_mor_clustered", "v9_mor_clustered"),
    *(f"v{version}_idx_consistent_split" for version in (6, 8, 9)),
    *("v8_idx_consistent_dual_write", "v9_idx_consistent_dual_done", "v9_idx_consistent_merge"),
]


def plans(name: str, folder: Path) -> list[bytes]:
    storage, config = golden_storage(name, folder)
    word = "replacecommit" if not config.layout.has_own_clustering_action else "clustering"
    files = storage.list_files(config.timeline_folder)
    found = [storage.read(each.path) for each in files if each.name.endswith(f".{word}.requested")]
    assert found
    return found


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_of_real_hudi_is_written_again_as_it_was(name: str, tmp_path: Path) -> None:
    for data in plans(name, tmp_path):
        original = one_record(data)
        again = encode_clustering_plan(decode_clustering_plan(data), f"file:/tmp/hudi_fixtures/{name}")
        assert one_record(again) == original


def test_a_plan_names_slices_by_what_they_are_called_wherever_the_table_is(tmp_path: Path) -> None:
    (data,) = plans("v9_mor_clustered", tmp_path)
    plan = decode_clustering_plan(data)
    assert [group.partition for group in plan.groups] == ["p0", "p1", "p2"]
    assert len(plan.inputs) == 6
    whole, logged = plan.groups[0].slices
    assert whole.base_file == f"{whole.file_id}_0-3964-7492_20261121092253286.parquet"
    assert (whole.log_files, len(logged.log_files)) == ((), 1)
    found = logged.located({})
    assert found.base is not None and found.logs[0].status.path.startswith("p0/.")


def test_a_damaged_plan_and_one_without_groups_are_told_apart(tmp_path: Path) -> None:
    (data,) = plans("v9_cow_clustered", tmp_path)
    for broken in (data[: len(data) // 2], encode_requested_replace(), b""):
        with pytest.raises(CorruptTableError):
            decode_clustering_plan(broken)


def test_a_plan_that_leads_out_of_the_table_is_refused(tmp_path: Path) -> None:
    (data,) = plans("v9_cow_clustered", tmp_path)
    record = one_record(data)
    record["clusteringPlan"]["inputGroups"][0]["slices"][0]["partitionPath"] = "../elsewhere"
    with pytest.raises(CorruptTableError):
        decode_clustering_plan(encode_container(schemas.compact("requested_replace"), record))
