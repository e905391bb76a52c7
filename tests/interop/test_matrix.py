"""Every operation with every index: real Hudi reads what drawstring did, upserts, and drawstring goes on.

README.md here tells what is compared where.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import drawstring
from drawstring.model.result import CommitResult
from tests.support.contract.cells import PATCHES, Cell
from tests.support.contract.kinds import FILES, INDEXES, Kind
from tests.support.contract.matrix import cells, step_of
from tests.support.contract.model import Model
from tests.support.contract.steps import FIRST, Both, Item, Pace, Step, table_of
from tests.support.contract.witness import data_blocks
from tests.support.referee import Referee

SHORT = "consistent"
CELLS = [
    pytest.param(cell, id=str(cell), marks=[] if cell.kind.index == SHORT else [pytest.mark.long])
    for cell in cells()
]


def hudi_options(kind: Kind, operation: str = "upsert") -> dict[str, str]:
    """Return what a user of real Hudi sets to write to this kind of table."""
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind.is_mor else "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": ",".join(kind.keys),
        "hoodie.datasource.write.partitionpath.field": ",".join(kind.partition_fields),
        "hoodie.datasource.write.operation": operation,
        "hoodie.write.table.version": kind.version,
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.metadata.enable": "false",
        **INDEXES.get(kind.index, {"hoodie.index.type": kind.index.upper()}),
        **FILES[kind.files],
    }
    if kind.layout == "hive":
        options["hoodie.datasource.write.hive_style_partitioning"] = "true"
        options["hoodie.datasource.write.partitionpath.urlencode"] = "true"
    else:
        options["hoodie.datasource.write.keygenerator.class"] = (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        )
    if kind.is_ordered:
        options["hoodie.datasource.write.precombine.field"] = "ts"
    if kind.is_mor:
        options["hoodie.logfile.data.block.format"] = kind.storage
    return options


@dataclass
class Turns:
    """A table that both write to, and its model."""

    referee: Referee
    path: str
    both: Both

    @property
    def kind(self) -> Kind:
        return self.both.kind

    def ours(self, step: Step) -> CommitResult | None:
        self.both.table = drawstring.open(self.path)
        result = self.both.take(step)
        self.compare(step.operation)
        return result

    def theirs(self, number: int, operation: str = "upsert") -> None:
        """Let real Hudi upsert records that are there, in other partitions too, and new ones."""
        if self.kind.index.endswith("log"):  # Hudi's bloom index does not look into log files
            self.both.take(Step("compact"))
        items = (
            Item(number % 6, 1),
            Item(3, 0, Pace.LATE),
            Item((number + 2) % 6, 2),
            Item(6 + number % 3, 0),
        )
        rows = self.both.sent(self.both.rows(Step("upsert", items)))
        options = hudi_options(self.kind, operation)
        self.referee.write(self.path, table_of(rows, self.both.columns), options)
        self.both.model.write(rows, "")
        self.compare(f"Hudi's {operation}")

    def compare(self, after: str) -> None:
        expected = self.both.expected()
        assert self.both.plain(self.referee.read(self.path)) == expected, f"Hudi reads, after {after}"
        found = drawstring.open(self.path).scan().to_arrow()
        assert self.both.plain(found) == expected, f"drawstring reads, after {after}"


@pytest.mark.parametrize("cell", CELLS)
def test_hudi_goes_on_after_each_operation(referee: Referee, tmp_path: Path, cell: Cell) -> None:
    path = str(tmp_path / "rides")
    turns = Turns(referee, path, Both(cell.kind, cell.kind.create(path), Model(cell.kind)))
    turns.ours(FIRST)
    for number, operation in enumerate(cell.operations):
        turns.ours(step_of(operation, number))
        turns.theirs(number)
    turns.ours(step_of("upsert", 1))


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        Kind("simple", "parquet", "9", "event", "hive", "bare"),
        Kind("bucket", "avro", "8", "event", "none", "bare"),
    ],
    ids=str,
)
def test_hudi_goes_on_with_blocks_that_have_some_of_the_columns(
    referee: Referee, tmp_path: Path, kind: Kind
) -> None:
    path = str(tmp_path / "rides")
    turns, patched = Turns(referee, path, Both(kind, kind.create(path), Model(kind))), []
    turns.ours(FIRST)
    for number, operation in enumerate((*PATCHES, "delete", *PATCHES, "compact", *PATCHES)):
        result = turns.ours(step_of(operation, number))
        if result and any(each.is_partial for each in data_blocks(turns.both.table, result.instant)):
            patched.append(operation)
        turns.theirs(number)
    assert set(patched) == {*PATCHES}


STARTED_BY_HUDI = [
    Kind("consistent", "parquet", "9", "event", "hive", "full"),
    Kind("consistent", "avro", "6", "event", "hive", "full"),
    Kind("bucket", "parquet", "6", "event", "hive", "full"),
    Kind("global_bloom", "cow", "6", "event", "hive", "full"),
    Kind("global_simple", "parquet", "9", "event", "hive", "full"),
    Kind("bloom", "cow", "9", "event", "hive", "cdc_all"),
]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.long] if number else [])
        for number, kind in enumerate(STARTED_BY_HUDI)
    ],
    ids=str,
)
def test_drawstring_goes_on_with_a_table_that_hudi_began(
    referee: Referee, tmp_path: Path, kind: Kind
) -> None:
    path = str(tmp_path / "rides")
    unborn = kind.create(str(tmp_path / "unborn"))
    index = INDEXES.get(kind.index, {"hoodie.index.type": kind.index.upper()})
    turns = Turns(referee, path, Both(kind, unborn, Model(kind), more=index))
    turns.theirs(0, "insert")
    for number, operation in enumerate(("upsert", "merge", "delete", "insert")):
        turns.ours(step_of(operation, number))
        turns.theirs(number + 1)
