"""The pipeline's steps on the embedded engine: no Java."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import drawstring
from demo.check import delays_of
from demo.tables import BY_HAND, DELAYS, FLIGHTS, GROUP, TableSpec

KEYS = list(GROUP)
MEASURES = [*GROUP, "dep_delay", "arr_time", "arr_delay"]


class LocalBackend:
    """Keeps `backend.Backend`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.label = f"the embedded engine, {os.cpu_count()} cores, no Java"

    def load(self, spec: TableSpec, file: Path) -> None:
        self._create(spec).bulk_insert(_stream(file))

    def upsert(self, spec: TableSpec, file: Path) -> None:
        self._open(spec).upsert(_stream(file), options=BY_HAND)

    def delete(self, spec: TableSpec, file: Path) -> None:
        self._open(spec).delete(_stream(file), options=BY_HAND)

    def changed_groups(self, since: str) -> pa.Table:
        changed = self._open(FLIGHTS).incremental(since, columns=KEYS).to_arrow()
        return changed.group_by(KEYS).aggregate([])

    def groups_in(self, file: Path) -> pa.Table:
        return pq.read_table(file, columns=KEYS).group_by(KEYS).aggregate([])

    def refresh(self, groups: pa.Table) -> int:
        """Compute the groups from the months they are in; a group that lost all flights goes."""
        if groups.num_rows == 0:
            return 0
        months = pc.field("month").isin(pc.unique(groups["month"]).to_pylist())
        flights = self._open(FLIGHTS).scan(columns=MEASURES, where=months).to_arrow()
        delays = delays_of(flights.join(groups, KEYS, join_type="left semi"))
        table = self._create(DELAYS) if not (self._folder / DELAYS.name).exists() else self._open(DELAYS)
        if delays.num_rows:
            table.upsert(delays)
        gone = groups.join(delays.select(KEYS), KEYS, join_type="left anti")
        if gone.num_rows:
            table.delete(gone.select(KEYS))
        return groups.num_rows

    def compact(self, spec: TableSpec) -> None:
        self._open(spec).services.compact()

    def read(self, spec: TableSpec, as_of: str | None = None) -> pa.Table:
        return self._open(spec).scan(columns=spec.schema.names, as_of=as_of).to_arrow()

    def close(self) -> None:
        """Nothing to stop."""

    def _create(self, spec: TableSpec) -> drawstring.Table:
        return drawstring.create(
            str(self._folder / spec.name),
            spec.schema,
            name=spec.name,
            table_type=spec.table_type,
            record_key=list(spec.record_key),
            partition_by=list(spec.partition_by),
            ordering=list(spec.ordering),
            properties=spec.properties,
        )

    def _open(self, spec: TableSpec) -> drawstring.Table:
        return drawstring.open(str(self._folder / spec.name))


def _stream(file: Path) -> pa.RecordBatchReader:
    """Return the rows of a Parquet file as a stream: the file is never in memory as a whole."""
    return ds.dataset(file, format="parquet").scanner().to_reader()
