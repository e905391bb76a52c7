"""Tables whose partition values are white space, line ends and the like, through every service."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.model.instant import WRITE_ACTIONS, State
from drawstring.model.result import Severity
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.combinations import others_long
from tests.support.faulty_storage import InjectedFault
from tests.support.methods import method
from tests.support.simulation.steps import DiesBefore

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
    ]
)
VALUES = (
    " lead", "trail ", " ", "a\nb", "a\rb", "a\r\nb", "\n", "\t", "a\x0bb", "a\x0cb", "a\x1cb", "a\x1db",
    "a\x1eb", "a\x85b", "a\u2028b", "\u2029", "\u3000", "%", "%0A", "a=b", "..a", "a..", "...", "\U0001f600",
    "x.marker.CREATE", "plain",
)  # fmt: skip
KINDS = [
    (version, table_type, encodes)
    for version, table_type in ((6, "MERGE_ON_READ"), (9, "MERGE_ON_READ"), (9, "COPY_ON_WRITE"))
    for encodes in (False, True)
]
OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


def rows(ts: int, values: tuple[str, ...] = VALUES) -> pa.Table:
    made = [{"id": f"k{VALUES.index(value)}", "place": value, "ts": ts} for value in values]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def held(table: Table) -> dict[str, int]:
    found = table.scan(["place", "ts"]).to_arrow().to_pylist()
    assert len(found) == len({row["place"] for row in found})
    return {row["place"]: row["ts"] for row in found}


def die(table: Table, verb: str, *arguments: pa.Table) -> None:
    """Let the process of a call die right before what it did takes effect."""
    storage = DiesBefore(context_of(table).storage, WRITE_ACTIONS, State.COMPLETED)
    with suppress(InjectedFault):
        method(Table(replace(context_of(table), storage=storage)), verb)(*arguments, options=OPTIONS)
        raise AssertionError(f"the {verb} lives on")


@pytest.mark.parametrize(("version", "table_type", "encodes"), others_long(KINDS, KINDS[1::3] + KINDS[2:3]))
def test_a_table_with_unusual_partition_values_goes_through_all_services(
    version: int, table_type: str, encodes: bool, tmp_path: Path
) -> None:
    table = drawstring.create(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="place", ordering="ts", version=version,
        table_type=table_type, properties={"hoodie.datasource.write.partitionpath.urlencode": str(encodes)},
    )  # fmt: skip
    table.insert(rows(1), options=OPTIONS)
    die(table, "upsert", rows(2))
    assert held(table) == dict.fromkeys(VALUES, 1)
    table.upsert(rows(3), options=OPTIONS)
    assert held(table) == dict.fromkeys(VALUES, 3)
    if table_type == "MERGE_ON_READ":
        table.services.schedule_compaction(options=OPTIONS)
        die(table, "compact")
        assert table.services.compact(options=OPTIONS)
    table.services.schedule_clustering(options=OPTIONS)
    die(table, "cluster")
    assert table.services.cluster(options=OPTIONS)
    table.delete(rows(4, VALUES[::2]), options=OPTIONS)
    table.upsert(rows(5, VALUES[1::2]), options=OPTIONS)
    table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert held(table) == dict.fromkeys(VALUES[1::2], 5)
    assert context_of(table).storage.list_folders(".hoodie/.temp") == []
    table.delete_partition(VALUES[1], options=OPTIONS)
    assert held(table) == dict.fromkeys(VALUES[3::2], 5)
    found = table.services.validate().findings
    assert [each for each in found if each.severity is not Severity.NOTE] == []
