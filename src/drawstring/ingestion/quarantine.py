"""The error table: records that an ingestion cannot take, in a Hudi table of their own.

    rows of a batch ── bad ones ── upsert into the error table ── then the commit of the batch

What is bad is written before the commit that moves the checkpoint behind it, so that a job that dies in
between reads it again. The key of a record is a digest of where it was and what it contained: it is in the
table once, however often it is read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import DrawstringError, InvalidError, NoTableError
from drawstring.config.keys.ingest import IngestOptions
from drawstring.creation import create
from drawstring.entry import open as open_table
from drawstring.ingestion.batch_engine import BatchEngine, BatchRows
from drawstring.ingestion.source_protocol import Rejected, comparable, is_within
from drawstring.table import Table

_FLUSH_RECORDS: Final = 10_000
_NO_INSTANT: Final = "00000000"
_WRITES: Final = "hoodie.errortable.writeconfig."
_KEY: Final = "record_id"
_COLUMNS: Final = pa.schema(
    {
        _KEY: pa.string(),
        "data_record": pa.string(),
        "source_table_base_path": pa.string(),
        "source": pa.string(),
        "source_position": pa.string(),
        "error": pa.string(),
        "base_table_commited_instant_time": pa.string(),
    }
)

_log: Final = logging.getLogger("drawstring")


@dataclass(slots=True)
class Quarantine:
    """Takes bad records.

    Attributes:
        uri: root of the error table.
        name: its name; None for the last part of the address.
        base_path: root of the table that is ingested into.
        source: name of the source.
        source_root: address of what it reads; empty where places say that.
        options: options of its writes.
        storage_options: options of the object store.
        checks_keys: whether rows without a record key are bad.
        is_optional: whether the ingestion goes on when the error table cannot be written.
        count: bad records of the batch so far.
    """

    uri: str
    name: str | None
    base_path: str
    source: str
    source_root: str
    options: Mapping[str, Any]
    storage_options: Mapping[str, str]
    checks_keys: bool = True
    is_optional: bool = False
    count: int = 0
    _instant: str = _NO_INSTANT
    _waiting: list[Rejected] = field(default_factory=list)

    @staticmethod
    def of(
        parsed: IngestOptions,
        given: Mapping[str, Any],
        base_path: str,
        source: str,
        storage_options: Mapping[str, str],
    ) -> Quarantine | None:
        """Return the error table that the options describe, None for none.

        Raises:
            InvalidError: it has no address, or is not apart from the table.
        """
        if not parsed.quarantines:
            return None
        if not parsed.quarantine_path:
            raise InvalidError(
                "hoodie.errortable.enable is true, but the error table has no address. Set"
                " hoodie.errortable.base.path."
            )
        quarantine = parsed.quarantine_path
        if is_within(quarantine, base_path) or is_within(base_path, quarantine):
            raise InvalidError(
                f"The error table {parsed.quarantine_path} and the table {base_path} are the same, or one is"
                " inside the other. Set hoodie.errortable.base.path to a folder of its own."
            )
        root = parsed.files_root or parsed.hudi_path or ""
        options = {
            key[len(_WRITES) :]: value for key, value in given.items() if key.lower().startswith(_WRITES)
        }
        return Quarantine(
            parsed.quarantine_path,
            parsed.quarantine_name,
            base_path,
            source,
            comparable(root) if root else "",
            options,
            storage_options,
            parsed.quarantine_checks_keys,
            parsed.quarantine_failure == "LOG_ERROR",
        )

    def begin(self, table: Table | None) -> None:
        """Begin with a batch, of which nothing was written.

        Args:
            table: that is ingested into; None if there is none yet.
        """
        newest = table.timeline.latest_write() if table is not None else None
        self._instant = newest.requested if newest is not None else _NO_INSTANT
        self._waiting.clear()
        self.count = 0

    def add(self, record: Rejected) -> None:
        """Take a bad record."""
        self._waiting.append(record)
        self.count += 1
        if len(self._waiting) >= _FLUSH_RECORDS:
            self.flush()

    def flush(self) -> None:
        """Write what was taken.

        Raises:
            DrawstringError: the error table was not written, and the ingestion is not to go on without.
        """
        if not self._waiting:
            return
        rows = pa.Table.from_pylist([self._row(each) for each in self._waiting], _COLUMNS)
        try:
            self._table().upsert(rows, options=self.options)
        except DrawstringError as error:
            if not self.is_optional:
                raise error.at(table=self.uri) from error.__cause__
            _log.exception(
                "%d bad records are lost: the error table %s cannot be written.", len(rows), self.uri
            )
        self._waiting.clear()

    def sifted(self, engine: BatchEngine, rows: BatchRows, fields: Sequence[str], since: str) -> BatchRows:
        """Return the rows that have a record key. All bad records are written before the last row is.

        Args:
            engine: has the rows.
            rows: the rows of a batch.
            fields: the columns of the record key.
            since: the checkpoint before the batch.
        """
        copies: Counter[bytes] = Counter()
        reason = f"the record key {','.join(fields)} is null or empty"

        def take(contents: Sequence[bytes]) -> None:
            for content in contents:
                copies[content] += 1
                place = f"copy {copies[content]} after checkpoint {since or 'none'}"
                self.add(Rejected(place, content, reason))

        return engine.sifted(rows, fields if self.checks_keys else (), take, self.flush)

    def _row(self, record: Rejected) -> dict[str, str]:
        text = record.content.decode(errors="backslashreplace")
        parts = (self.base_path, self.source, self.source_root, record.place, text)
        key = sha256("\0".join(parts).encode()).hexdigest()
        values = (key, text, self.base_path, self.source, record.place, record.reason, self._instant)
        return dict(zip(_COLUMNS.names, values, strict=True))

    def _table(self) -> Table:
        storage_options = self.storage_options or None
        try:
            return open_table(self.uri, storage_options=storage_options)
        except NoTableError:
            return create(
                self.uri, _COLUMNS, record_key=_KEY, name=self.name, storage_options=storage_options
            )
