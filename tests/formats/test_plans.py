"""Plans and rollback metadata of real tables, there and back."""

from __future__ import annotations

import pytest

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats import schemas
from drawstring.formats.avro.container import decode_container, encode_container
from drawstring.formats.metadata.commit import (
    clustering_groups,
    decode_compaction_plan,
    decode_rollback,
    decode_rollback_plan,
    encode_compaction_plan,
    encode_requested_replace,
    encode_rollback,
    encode_rollback_plan,
)
from drawstring.model.plans import RollbackMetadata, RollbackPlan, RollbackRequest, RollbackStat
from tests.support.hudi_files import data

HERE = "s3://bucket/tables/t"


def written_root(name: str) -> str:
    """Return where the table was when Hudi rolled back, from the first path in the file."""
    (record,), _ = decode_container(data(name))
    first = record["RollbackRequests"][0]
    path = next(iter(first["filesToBeDeleted"] or first["logBlocksToBeDeleted"]))
    return str(path).removesuffix("/" + "/".join(str(path).split("/")[-2:])) if ".log." in path else str(path)


def test_a_compaction_plan_is_read_and_written_as_hudi_does() -> None:
    original = data("v9_compaction.requested")

    plan = decode_compaction_plan(original)

    assert decode_container(encode_compaction_plan(plan)) == decode_container(original)
    first = plan.operations[0]
    assert (first.partition, first.base_instant) == ("p2", "20261121092237646")
    assert first.base_file == "06c25587-c903-404e-bb04-8dc828b89303-2_0-3768-7077_20261121092237646.parquet"
    assert first.log_files == (".06c25587-c903-404e-bb04-8dc828b89303-2_20261121092238225.log.1_2-3783-7102",)
    assert first.metrics["TOTAL_LOG_FILES_SIZE"] == 1330.0


def test_a_compaction_plan_of_version_1_is_not_supported() -> None:
    old = encode_container(schemas.compact("compaction_plan"), {"operations": [], "version": 1})

    with pytest.raises(UnsupportedError, match="version 1"):
        decode_compaction_plan(old)


@pytest.mark.parametrize(
    ("name", "operation"), [("v9_overwrite", None), ("v9_delete_partition", "DELETE_PARTITION")]
)
def test_a_requested_replace_is_written_as_hudi_does(name: str, operation: str | None) -> None:
    original = data(f"{name}.requested")

    assert decode_container(encode_requested_replace(operation)) == decode_container(original)
    assert clustering_groups(original) == []


def test_the_groups_of_a_pending_clustering_are_found() -> None:
    groups = clustering_groups(data("v9_clustering.requested"))

    assert len(groups) == 6
    assert groups[0] == ("p0", "131fdfe3-39f8-439f-a230-a82bc9d81cd6-0")
    assert {partition for partition, _ in groups} == {"p0", "p1", "p2"}
    assert clustering_groups(b"") == []


def test_rollback_paths_become_relative_wherever_the_table_is_now() -> None:
    plan = decode_rollback_plan(data("v9_rollback.requested"), HERE)

    assert (plan.instant, plan.action) == ("20261121093457475", "deltacommit")
    assert plan.requests[0] == RollbackRequest(
        partition="p0",
        files_to_delete=("p0/.12a0c4cb-02c3-4a34-a864-eb00ba039029-0_20261121093457475.log.1_0-10355-20464",),
    )


def test_a_version_6_plan_that_names_the_table_instead_of_a_log_file_is_read() -> None:
    plan = decode_rollback_plan(data("v6_rollback.requested"), HERE)

    assert plan.requests[0] == RollbackRequest(
        partition="p0",
        file_id="800e27cf-21f7-45ff-8c4b-1e40218c44de-0",
        base_instant="20261121093546481",
        log_blocks={"": 1},
    )


@pytest.mark.parametrize("name", ["v6_rollback.requested", "v9_rollback.requested"])
def test_a_rollback_plan_is_written_as_hudi_does(name: str) -> None:
    root = written_root(name)

    written = encode_rollback_plan(decode_rollback_plan(data(name), root), root)

    assert decode_container(written) == decode_container(data(name))


def test_completed_rollbacks_are_read() -> None:
    old, new = (decode_rollback(data(name), HERE) for name in ("v6.rollback", "v9.rollback"))

    assert (old.instant, old.action, old.seconds) == ("20261121093548498", "deltacommit", 0.239)
    assert old.stats[0].command_files == {
        "p0/.800e27cf-21f7-45ff-8c4b-1e40218c44de-0_20261121093546481.log.3_0-10847-21470": 105
    }
    assert new.stats[0].deleted == (
        "p0/.12a0c4cb-02c3-4a34-a864-eb00ba039029-0_20261121093457475.log.1_0-10355-20464",
    )


@pytest.mark.parametrize("root", ["/lake/t", "/lake/t/", HERE, "file:///lake/t"])
def test_rollbacks_survive_with_absolute_paths_in_the_file(root: str) -> None:
    log = "a/b/.f-0_20240101000000000.log.2_1-0-1"
    plan = RollbackPlan(
        "20240101000000000",
        "commit",
        (
            RollbackRequest("a/b", "f-0", "20240101000000000", ("a/b/x.parquet",), {log: 12}),
            RollbackRequest("", files_to_delete=("y.parquet",)),
        ),
    )
    meta = RollbackMetadata(
        "20240102000000000",
        0.5,
        plan.instant,
        plan.action,
        (RollbackStat("a/b", ("a/b/x.parquet",), (), {log: 105}), RollbackStat("", ("y.parquet",))),
    )

    assert decode_rollback_plan(encode_rollback_plan(plan, root), root) == plan
    assert decode_rollback(encode_rollback(meta, root), root) == meta
    (record,), _ = decode_container(encode_rollback(meta, root))
    paths = record["partitionMetadata"]["a/b"]["successDeleteFiles"]
    assert paths == [root.rstrip("/") + "/a/b/x.parquet"]
    assert record["totalFilesDeleted"] == 2


def test_content_of_another_kind_is_corrupt() -> None:
    for decode in (decode_compaction_plan, clustering_groups):
        with pytest.raises(CorruptTableError):
            decode(b"not avro")
    with pytest.raises(CorruptTableError):
        decode_rollback_plan(data("v9.savepoint"), HERE)
    with pytest.raises(CorruptTableError):
        decode_rollback(data("v9_compaction.requested"), HERE)
