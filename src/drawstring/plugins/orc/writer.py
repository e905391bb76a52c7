"""The encoder of ORC files (`encoded_sink`).

The footer has what Hudi's writer puts there as user metadata (`tail`): `orc.avro.schema`, the record schema,
and the key summary under the names of Parquet footers. Times are stored without a zone, as wall-clock times
in UTC, as a JVM in UTC stores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import pyarrow as pa
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError
from drawstring.plugins.orc.footer import with_user_metadata
from drawstring.schema.evolution import conform, null_mask, own_items
from drawstring.schema.logical_types import is_vector

STRIPE_BYTES: Final = 32 << 20
"""Bytes of rows of a stripe, which its writer and its readers hold in memory."""

_TIME_MILLIS_BITS: Final = 32
_CODECS: Final = {"gzip": "zlib", "lz4": "snappy", "lz4_raw": "snappy", "brotli": "zstd"}
_FILE_VERSION: Final = "0.12"


class OrcEncoder:
    """Writes batches to an open file as stripes.

    Args:
        target: the file, open for writing.
        schema: its columns.
        compression: Parquet codec by name; those that ORC lacks get the one that is most alike.
        stripe_bytes: bytes of rows of a stripe.
    """

    def __init__(self, target: pa.NativeFile, schema: pa.Schema, compression: str, stripe_bytes: int) -> None:
        self._target = target
        self._types = pa.schema([_stored(field) for field in schema])
        self._end = _HeldEnd(target)
        codec = compression.lower()
        self._writer = orc.ORCWriter(
            pa.PythonFile(self._end, "w"),
            file_version=_FILE_VERSION,
            compression=_CODECS.get(codec, codec),
            stripe_size=min(stripe_bytes, STRIPE_BYTES),
        )
        self._is_empty = True

    @property
    def bytes_written(self) -> int:
        """Number of bytes in the file."""
        return self._end.size_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            InvalidError: a time is out of the range of ORC files.
        """
        try:
            stored = conform(batch, self._types)
        except InvalidError as error:
            raise _unfit(error) from error
        columns = [_with_own_nulls(column) for column in stored.columns]
        with self._end.own_errors():
            self._writer.write(pa.Table.from_arrays(columns, schema=self._types))
        self._is_empty = False

    def finish(self, entries: Mapping[str, str]) -> None:
        """Write the last stripe and the footer, and close the file.

        Args:
            entries: user metadata for the footer.
        """
        if self._is_empty:
            self._writer.write(self._types.empty_table())
        self._end.hold()
        with self._end.own_errors():
            self._writer.close()
        self._target.write(with_user_metadata(self._end.held(), entries))

    def abort(self) -> None:
        """Give up; the file is closed and deleted by its owner."""
        self._end.drop()
        with suppress(OSError, RuntimeError, ValueError, pa.ArrowException):
            self._writer.close()


class _HeldEnd:
    """A file that passes bytes on, and keeps those after `hold`: the last stripe and the end of the file."""

    def __init__(self, target: pa.NativeFile) -> None:
        self._target = target
        self._held: list[bytes] | None = None
        self._is_dropped = False
        self._error: OSError | None = None
        self.size_bytes = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        content = bytes(data)
        self.size_bytes += len(content)
        if self._held is not None:
            self._held.append(content)
        elif not self._is_dropped:
            try:
                self._target.write(content)
            except OSError as error:
                self._error = error
                raise
        return len(content)

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise the errors of the file as they were; what Arrow makes of them has no error number."""
        try:
            yield
        except OSError as error:
            if self._error is None:
                raise
            raise self._error from error

    def hold(self) -> None:
        """Keep what comes from now on."""
        self._held = []

    def held(self) -> bytes:
        """Return what was kept."""
        return b"".join(self._held or ())

    def drop(self) -> None:
        """Forget what comes from now on."""
        self._is_dropped = True

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self.size_bytes

    def flush(self) -> None:
        """Do nothing: the owner of the file closes it."""

    def close(self) -> None:
        """Do nothing but to note it."""
        self.closed = True


def _with_own_nulls(array: pa.Array) -> pa.Array:
    """Return an array in which the fields of null structs are null.

    Of other ones Arrow's writer stores the values, too, unless the struct is a column: later rows get them.
    """
    kind = array.type
    if pt.is_struct(kind):
        parts = [_with_own_nulls(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, fields=kind.fields, mask=null_mask(array))
    if pt.is_map(kind):
        offsets, keys = own_items(array.offsets, array.keys)
        items = _with_own_nulls(own_items(array.offsets, array.items)[1])
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null_mask(array))
    if pt.is_list(kind):
        offsets, items = own_items(array.offsets, array.values)
        return pa.ListArray.from_arrays(offsets, _with_own_nulls(items), type=kind, mask=null_mask(array))
    return array


def _stored(field: pa.Field) -> pa.Field:
    """Return a field as ORC files have it, which know no required ones."""
    return pa.field(field.name, _stored_type(field.type))


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that ORC files have for a type of a table (`read`)."""
    if pt.is_dictionary(kind):
        return _stored_type(kind.value_type)
    if pt.is_timestamp(kind):
        return pa.int64() if kind.tz is None else pa.timestamp("ns")
    if pt.is_time(kind):
        return pa.int32() if kind.bit_width == _TIME_MILLIS_BITS else pa.int64()
    if pt.is_fixed_size_binary(kind) or is_vector(kind):
        return pa.binary()
    if pt.is_struct(kind):
        return pa.struct([_stored(each) for each in kind.fields])
    if pt.is_map(kind):
        return pa.map_(_stored_type(kind.key_type), _stored(kind.item_field))
    if pt.is_list(kind):
        return pa.list_(_stored(kind.value_field))
    return kind


def _unfit(error: InvalidError) -> InvalidError:
    return InvalidError(
        f"Rows cannot be stored in an ORC file: {error} Times can be from 1678 to 2261 there. Correct the"
        " rows, or use a table with Parquet base files."
    )
