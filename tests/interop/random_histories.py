"""Histories of a table drawn at random: what kind of table, and what happens to it, step by step.

A seed gives the same history every time. The steps are carried out by real Apache Hudi; nothing here
knows what the table must hold afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.histories import CITIES, Row, row, table_of
from tests.support.referee import Referee, RefereeError

DELETED = "_hoodie_is_deleted"
KEYS = 60
_CLUSTERING = {
    "hoodie.clustering.plan.strategy.small.file.limit": "1000000000",
    "hoodie.clustering.plan.strategy.sort.columns": "fare",
}
_LOG_COMPACTION = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
_COMPACTION = {"hoodie.compact.inline.max.delta.commits": "1"}
_CLEAN = {"hoodie.clean.commits.retained": "2"}
_ARCHIVE = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", **_CLEAN}


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    version: int
    table_type: str
    index: str
    by_event_time: bool
    log_format: str
    hive_style: bool
    metadata_table: bool

    @staticmethod
    def draw(rng: random.Random) -> Kind:
        """Choose one."""
        return Kind(
            version=rng.choice((6, 8, 9)),
            table_type=rng.choice(("COPY_ON_WRITE", "MERGE_ON_READ", "MERGE_ON_READ")),
            index=rng.choice(("SIMPLE", "BLOOM", "BUCKET")),
            by_event_time=rng.random() < 0.7,
            log_format=rng.choice(("avro", "parquet")),
            hive_style=rng.random() < 0.5,
            metadata_table=rng.random() < 0.4,
        )

    @property
    def options(self) -> dict[str, str]:
        """What a user of real Hudi sets; services run only when a step asks for them."""
        text = {True: "true", False: "false"}
        options = {
            "hoodie.table.name": "rides",
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.hive_style_partitioning": text[self.hive_style],
            "hoodie.index.type": self.index,
            "hoodie.logfile.data.block.format": self.log_format,
            "hoodie.metadata.enable": text[self.metadata_table],
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.rollback.using.markers": "false",
        }
        if self.index == "BUCKET":
            options["hoodie.bucket.index.num.buckets"] = "2"
        if self.by_event_time:
            options["hoodie.datasource.write.precombine.field"] = "ts"
            options["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING"
        else:
            options["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
            options["hoodie.datasource.write.payload.class"] = (
                "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
            )
        return options


class Draw:
    """Carries a random history out on a table.

    Args:
        referee: real Hudi.
        path: where the table goes.
        seed: says what happens.
    """

    def __init__(self, referee: Referee, path: Path, seed: int) -> None:
        self._referee = referee
        self._path = path
        self._rng = random.Random(seed)
        self.kind = Kind.draw(self._rng)
        self._clock = 100
        self._is_wide = False
        self._deleted = set[str]()
        self.story = [str(self.kind)]

    def run(self) -> None:
        """Write the table; `story` says what was done and what real Hudi refused."""
        self._say("bulk_insert", self._bulk_insert)
        steps = self._steps()
        names, weights = zip(*((name, weight) for name, (weight, _) in steps.items()), strict=True)
        for name in self._rng.choices(names, weights, k=self._rng.randint(5, 8)):
            self._say(name, steps[name][1])

    def _say(self, name: str, step: Callable[[], Any]) -> None:
        try:
            step()
            self.story.append(name)
        except RefereeError as error:
            self.story.append(f"{name}: refused by Hudi: {str(error)[:120]}")

    def _steps(self) -> dict[str, tuple[int, Callable[[], Any]]]:
        """Return what can happen to this kind of table, with weights."""
        steps: dict[str, tuple[int, Callable[[], Any]]] = {
            "upsert": (6, lambda: self._write("upsert", self._rows(18))),
            "soft delete": (2, self._soft_delete),
            "delete": (3, self._delete),
            "insert": (1, lambda: self._write("insert", self._rows(5, first=KEYS + self._clock))),
            "add a column": (1, self._widen),
            "insert_overwrite": (1, lambda: self._write("insert_overwrite", self._rows(6, CITIES[0]))),
            "delete_partition": (1, self._delete_partition),
            "clean": (1, lambda: self._service("clean", _CLEAN)),
            "archive": (1, lambda: self._service("archive", _ARCHIVE)),
            "rollback": (1, self._rollback),
            "savepoint and restore": (1, self._restore),
        }
        if self.kind.index != "BUCKET":
            steps["cluster"] = (1, lambda: self._service("clustering", _CLUSTERING))
            steps["plan clustering"] = (1, lambda: self._service("clustering", _CLUSTERING, run=False))
        if self.kind.table_type == "MERGE_ON_READ":
            steps["compact"] = (3, lambda: self._service("compaction", _COMPACTION))
            steps["plan compaction"] = (2, lambda: self._service("compaction", _COMPACTION, run=False))
            steps["compact logs"] = (1, lambda: self._service("log_compaction", _LOG_COMPACTION))
        if not self.kind.metadata_table:
            steps["die before the commit"] = (1, self._die)
        return steps

    def _rows(self, count: int, city: str | None = None, first: int = 0) -> list[Row]:
        """Return rows, some of them late, but none that was deleted: the two engines differ there."""
        self._clock += 10
        numbers = self._rng.sample(range(first, first + KEYS), count)
        late = {number: self._rng.choice((0, 0, 0, 35)) for number in numbers}
        rows = [row(number, self._clock - late[number], self._rng.randint(1, 99) / 4) for number in numbers]
        rows = [each | {"ts": self._clock} if each["id"] in self._deleted else each for each in rows]
        return [each for each in rows if city is None or each["city"] == city] or rows[:1]

    def _table(self, rows: list[Row], deleted: set[str] | None = None) -> pa.Table:
        table = table_of(rows)
        if self._is_wide:
            table = table.append_column("note", pa.array([f"n{each['ts']}" for each in rows]))
        flags = [each["id"] in (deleted or ()) for each in rows]
        return table.append_column(DELETED, pa.array(flags))

    def _write(self, operation: str, rows: list[Row], **extra: str) -> None:
        options = {
            **self.kind.options,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "false",
            **extra,
        }
        self._referee.write(str(self._path), self._table(rows), options)

    def _bulk_insert(self) -> None:
        self._write("bulk_insert", [row(number, 100) for number in range(KEYS // 2)])

    def _delete(self) -> None:
        rows = self._rows(6)
        self._write("delete", rows)
        self._deleted |= {each["id"] for each in rows}

    def _soft_delete(self) -> None:
        rows = self._rows(8)
        table = self._table(rows, {each["id"] for each in rows[:5]})
        options = {**self.kind.options, "hoodie.datasource.write.operation": "upsert"}
        self._referee.write(str(self._path), table, options)

    def _widen(self) -> None:
        self._is_wide = True
        self._write("upsert", self._rows(10))

    def _delete_partition(self) -> None:
        city = CITIES[1]
        name = f"city={city}" if self.kind.hive_style else city
        extra = {"hoodie.datasource.write.partitions.to.delete": name}
        self._write("delete_partition", self._rows(1), **extra)

    def _service(self, what: str, options: dict[str, str], *, run: bool = True) -> None:
        self._referee.service(str(self._path), what, {**self.kind.options, **options}, run=run)

    def _rollback(self) -> None:
        self._service_at("rollback", self._last_write())

    def _restore(self) -> None:
        savepoint = self._last_write()
        self._service_at("savepoint", savepoint)
        self._write("upsert", self._rows(12))
        self._service_at("restore", savepoint)

    def _service_at(self, what: str, instant: str) -> None:
        self._referee.service(str(self._path), what, self.kind.options, instant=instant)

    def _die(self) -> None:
        """Write, and take the commit away as if the process had died before it."""
        self._write("upsert", self._rows(9))
        requested = self._last_write()
        folder = self._path / (".hoodie" if self.kind.version == 6 else ".hoodie/timeline")
        pending = (".requested", ".inflight")
        [completed] = [f for f in folder.glob(f"{requested}*commit") if f.suffix not in pending]
        completed.unlink()
        for checksum in folder.glob(f".{completed.name}.crc"):
            checksum.unlink()

    def _last_write(self) -> str:
        return max(
            requested
            for requested, _, action, state in self._referee.timeline(str(self._path))
            if action in ("commit", "deltacommit") and state == "COMPLETED"
        )
