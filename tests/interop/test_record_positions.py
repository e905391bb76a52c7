"""Positions of records in log files: real Hudi merges by ours, and drawstring by Hudi's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import drawstring
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.record_positions import encode_bitmap
from tests.support.positions import check_positions, relabel
from tests.support.referee import Referee
from tests.support.rows import SCHEMA, WIDE, arrow_rows, rides, sorted_rows
from tests.support.tables import MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create

USE = "hoodie.merge.use.record.positions"
KEYS = [f"k{number}" for number in range(9)]
LOGGED = WITHOUT_SERVICES | NEW_FILE_GROUPS
PARTIAL = LOGGED | {"hoodie.spark.sql.merge.into.partial.updates": "true"}
HUDI = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.table.type": MOR,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.automatic": "false",
    **NEW_FILE_GROUPS,
}
Model = dict[str, tuple[Any, ...]]


def started(path: str, model: Model, **how: Any) -> drawstring.Table:
    table = create(path=path, table_type=MOR, **how)
    model |= {key: (key, "rome", 5, float(number)) for number, key in enumerate(KEYS)}
    table.insert(rides(*model.values()))
    return table


def assert_all_read(referee: Referee, path: str, model: Model, schema: pa.Schema = SCHEMA) -> None:
    expected, names = sorted(model.values()), schema.names
    for used in ("true", "false"):
        found = referee.read(path, {USE: used}, names)
        assert sorted_rows(found) == expected, f"Hudi, {USE}={used}"
        found = drawstring.open(path, options={USE: used}).scan(columns=names).to_arrow()
        assert sorted_rows(found) == expected, f"drawstring, {USE}={used}"


@pytest.mark.parametrize(
    ("version", "index", "log_format", "ordering"),
    [
        (9, "SIMPLE", "parquet", "ts"),
        (9, "BLOOM", "avro", ()),
        (8, "SIMPLE", "avro", "ts"),
        pytest.param(8, "BLOOM", "parquet", (), marks=pytest.mark.long),
        pytest.param(9, "GLOBAL_SIMPLE", "avro", "ts", marks=pytest.mark.long),
    ],
)
def test_real_hudi_merges_by_positions(
    referee: Referee, tmp_path: Path, version: int, index: str, log_format: str, ordering: Any
) -> None:
    path, model = str(tmp_path / "rides"), Model()
    properties = {"hoodie.index.type": index}
    table = started(path, model, version=version, ordering=ordering, properties=properties)
    log = {"hoodie.logfile.data.block.format": log_format}
    changed = [("k7", "rome", 6, 70.0), ("k2", "rome", 6, 20.0), ("k5", "rome", 4, 50.0)]
    table.upsert(rides(*changed), options=LOGGED | log)
    model |= {row[0]: row for row in changed if not ordering or row[2] >= 5}
    table.delete(rides(("k2", "rome", 0, 0.0), ("k8", "rome", 0, 0.0)).select(["id", "city"]), options=LOGGED)
    for key in ("k2", "k8"):
        del model[key]
    back = [("k8", "rome", 9, 80.0), ("k0", "rome", 9, 0.5)]
    table.upsert(rides(*back), options=LOGGED | log)
    model |= {row[0]: row for row in back}
    assert all(each.base is not None for each in check_positions(table))
    assert_all_read(referee, path, model)

    planned = table.services.schedule_compaction()
    table.upsert(rides(late := ("k1", "rome", 9, 11.0)), options=LOGGED | log)
    model["k1"] = late
    assert_all_read(referee, path, model)
    table.services.compact(planned)
    assert_all_read(referee, path, model)  # the last log file has positions of the base file before


def test_real_hudi_merges_partial_updates_by_positions(referee: Referee, tmp_path: Path) -> None:
    path, simple = str(tmp_path / "rides"), {"hoodie.index.type": "SIMPLE"}
    table = create(WIDE, path, table_type=MOR, properties=simple)
    model = {key: (key, "rome", 5, f"n{number}") for number, key in enumerate(KEYS)}
    table.insert(arrow_rows(WIDE, *model.values()))
    source = arrow_rows(WIDE, ("k3", "rome", 6, "new"), ("k6", "rome", 6, None))
    (
        table.merge(source, "target.id = source.id and target.city = source.city", options=PARTIAL)
        .when_matched_update({"ts": "source.ts"})
        .when_not_matched_insert_all()
        .execute()
    )
    model |= {key: (key, "rome", 6, model[key][3]) for key in ("k3", "k6")}
    (block,) = check_positions(table)
    assert (block.is_partial, block.positions) == (True, [3, 6])
    assert_all_read(referee, path, model, WIDE)


def test_a_reader_that_merges_by_positions_looks_at_no_keys(referee: Referee, tmp_path: Path) -> None:
    """Say where a record is not, to see who believes it: what the other tests show would be in vain."""
    path, model = str(tmp_path / "rides"), Model()
    table = started(path, model, properties={"hoodie.index.type": "SIMPLE"})
    table.upsert(rides(("k3", "rome", 6, 33.0)), options=LOGGED)
    relabel(tmp_path / "rides/rome", {HeaderKey.RECORD_POSITIONS: encode_bitmap(np.array([1]))})

    def kept(rows: pa.Table) -> list[tuple[Any, ...]]:
        return [row for row in sorted_rows(rows.select(SCHEMA.names)) if row[0] in ("k1", "k3")]

    by_key = [("k1", "rome", 5, 1.0), ("k3", "rome", 6, 33.0)]
    by_position = [("k3", "rome", 5, 3.0), ("k3", "rome", 6, 33.0)]
    for used, expected in (("true", by_position), ("false", by_key)):
        assert kept(referee.read(path, {USE: used}, SCHEMA.names)) == expected
        assert kept(drawstring.open(path, options={USE: used}).scan().to_arrow()) == expected
    assert kept(referee.read(path, columns=SCHEMA.names)) == by_position
    assert kept(drawstring.open(path).scan().to_arrow()) == by_position


@pytest.mark.parametrize("log_format", ["avro", "parquet"])
@pytest.mark.parametrize("index", ["SIMPLE", pytest.param("BLOOM", marks=pytest.mark.long)])
def test_hudis_positions_lead_to_its_records(
    referee: Referee, tmp_path: Path, index: str, log_format: str
) -> None:
    path, model = str(tmp_path / "rides"), Model()
    options = HUDI | {
        "hoodie.index.type": index,
        "hoodie.logfile.data.block.format": log_format,
        "hoodie.datasource.write.precombine.field": "ts",
    }
    model |= {key: (key, "rome", 5, float(number)) for number, key in enumerate(KEYS)}
    referee.write(path, rides(*model.values()), options | {"hoodie.datasource.write.operation": "insert"})
    changed = [("k7", "rome", 6, 70.0), ("k2", "rome", 6, 20.0), ("k5", "rome", 4, 50.0)]
    referee.write(path, rides(*changed), options | {"hoodie.datasource.write.operation": "upsert"})
    model |= {row[0]: row for row in changed[:2]}
    gone = rides(("k2", "rome", 7, 0.0), ("k8", "rome", 7, 0.0))
    referee.write(path, gone, options | {"hoodie.datasource.write.operation": "delete"})
    for key in ("k2", "k8"):
        del model[key]
    blocks = check_positions(drawstring.open(path))
    assert len(blocks) == 2
    assert all(each.base is not None for each in blocks)
    assert_all_read(referee, path, model)

    drawstring.open(path).upsert(rides(ours := ("k0", "rome", 8, 0.5)), options=LOGGED)
    model["k0"] = ours
    assert_all_read(referee, path, model)
    assert drawstring.open(path).services.compact()
    assert_all_read(referee, path, model)
    drawstring.open(path).upsert(rides(ours := ("k7", "rome", 9, 7.5)), options=LOGGED)
    model["k7"] = ours
    assert check_positions(drawstring.open(path))[-1].base is not None
    assert_all_read(referee, path, model)
