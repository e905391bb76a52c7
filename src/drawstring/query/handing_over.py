"""Snapshots as lazy tables of other libraries, which push columns and conditions into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.arrow_dataset import ScannedDataset
from drawstring.query.facts import TableFacts
from drawstring.query.polars_scan import lazy_frame
from drawstring.query.scan import Scan
from drawstring.query.snapshot import snapshot_scan

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as it was at one moment.

    Attributes:
        facts: the loaded table.
        as_of: an instant or a date-time, None for the newest state.
    """

    facts: TableFacts
    as_of: Any = None

    def scan(self, columns: Sequence[str] | None, where: str | pc.Expression | None) -> Scan:
        """Return some of its columns and rows."""
        return snapshot_scan(self.facts, columns=columns, where=where, as_of=self.as_of)

    def reader(self, columns: Sequence[str] | None, where: pc.Expression | None) -> pa.RecordBatchReader:
        """Return some of its columns and rows as they are read."""
        return self.scan(columns, where).to_reader()

    def dataset(self) -> ScannedDataset:
        """Return it as a dataset of Arrow."""
        return ScannedDataset(self.scan(None, None).schema, self.reader)

    def polars(self) -> polars.LazyFrame:
        """Return it as a lazy frame of polars."""
        return lazy_frame(self.scan(None, None).schema, self.scan)
