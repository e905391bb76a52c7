"""Formatters of the parts of a partition path, one for each partition column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.config.table.key_settings import SLASHED_DATES, PathTimestamps
from drawstring.keygen.paths import DEFAULT_PARTITION, escape
from drawstring.keygen.texts import is_moment, java_text, map_distinct, sql_text, timestamp_text
from drawstring.keygen.timestamps import TimestampTexts
from drawstring.model.files import HOODIE_FOLDER, PARTITION_METADATA

_RESERVED: Final = frozenset({HOODIE_FOLDER, PARTITION_METADATA})


class PathPart(Protocol):
    """Formats one part of partition paths."""

    @property
    def field(self) -> str:
        """The partition column."""
        ...

    def check_type(self, kind: pa.DataType, *, number_texts: bool = False) -> None:
        """Refuse types that are not supported in paths; see `KeyGenerator.check_columns`."""
        ...

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the part of each row's path."""
        ...


@dataclass(frozen=True, slots=True)
class SimplePart:
    """The text of the value.

    Attributes:
        field: the partition column.
        hive_style, url_encode: the table's path style.
        is_slashed: whether dashes become slashes, so that `2024-01-15` becomes `2024/01/15`.
        timestamps: how timestamps are shown.
    """

    field: str
    hive_style: bool
    url_encode: bool
    is_slashed: bool
    timestamps: PathTimestamps = PathTimestamps.NUMBERS

    @staticmethod
    def of(field: str, config: TableConfig) -> SimplePart:
        """Return the formatter of a table's partition column.

        Raises:
            UnsupportedError: slash-separated dates are combined with hive-style paths or a CUSTOM generator.
        """
        is_slashed = config.has_slashed_dates
        if is_slashed and (config.hive_style or config.key_generator is KeyGeneratorType.CUSTOM):
            raise UnsupportedError(
                f"{SLASHED_DATES} is not supported with hive-style paths or a CUSTOM key generator, since"
                " Hudi's writers and readers interpret the combination differently. Drop one of the two."
            )
        is_single = len(config.partition_fields) == 1
        timestamps = config.path_timestamps or _timestamps(config)
        return SimplePart(field, config.hive_style, config.url_encode, is_slashed and is_single, timestamps)

    def check_type(self, kind: pa.DataType, *, number_texts: bool = False) -> None:
        """Refuse types that are not supported in paths; `number_texts` has no effect."""
        java_text(pa.nulls(0, kind), self.field)

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the part of each row's path."""
        if self.timestamps is not PathTimestamps.NUMBERS and is_moment(values.type):
            text = sql_text if self.timestamps is PathTimestamps.SECONDS else timestamp_text
            return map_distinct(text(values).fill_null(""), self._escaped_part)
        if pt.is_integer(values.type) or pt.is_date32(values.type):  # few values, so few texts
            encoded = pc.dictionary_encode(values, null_encoding="encode")
            texts = java_text(encoded.dictionary, self.field).fill_null("").to_pylist()
            return pa.array([self._part(text) for text in texts], pa.string()).take(encoded.indices)
        return map_distinct(java_text(values, self.field).fill_null(""), self._part)

    def _escaped_part(self, value: str) -> str:
        """Return the part of a date and time, which is escaped regardless of the table's path style."""
        part = escape(value) or DEFAULT_PARTITION
        return f"{self.field}={part}" if self.hive_style else part

    def _part(self, value: str) -> str:
        part = (escape(value) if self.url_encode else value) or DEFAULT_PARTITION
        if self.is_slashed and not part.startswith("-"):
            part = part.replace("-", "/")
        if not _RESERVED.isdisjoint(part.split("/")):
            raise _reserved(f"Partition column {self.field}", value)
        return f"{self.field}={part}" if self.hive_style else part


def _timestamps(config: TableConfig) -> PathTimestamps:
    """Return how the paths of a new table show timestamps.

    Paths have no colons unless they are encoded; those of Hudi's SQL, in whole seconds, always are.
    """
    if not config.texts_of_timestamps:
        return PathTimestamps.NUMBERS
    return PathTimestamps.TEXTS if config.url_encode else PathTimestamps.SECONDS


@dataclass(frozen=True, slots=True)
class TimestampPart:
    """The value formatted as a date.

    Attributes:
        field: the partition column.
        hive_style, url_encode: the table's path style.
        dates: formats the dates.
    """

    field: str
    hive_style: bool
    url_encode: bool
    dates: TimestampTexts

    def check_type(self, kind: pa.DataType, *, number_texts: bool = False) -> None:
        """Refuse types that cannot be converted to dates."""
        self.dates.check_type(kind, self.field, number_texts=number_texts)

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the part of each row's path."""
        return map_distinct(self.dates.texts(values, self.field), self._part)

    def _part(self, date: str) -> str:
        part = escape(date) if self.url_encode else date
        return f"{self.field}={part}" if self.hive_style else part


def check_paths(paths: pa.Array, maker: str) -> pa.Array:
    """Check partition paths of a user's key generator, and return them.

    Args:
        paths: partition paths.
        maker: name of the key generator, for errors.

    Raises:
        InvalidError: a path leads out of the table or into Hudi's own folder.
    """

    def inside(path: str) -> str:
        if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise InvalidError(
                f"The key generator {maker} returned the partition path {path!r}. Return paths without"
                " empty, '.' or '..' parts and without outer slashes."
            )
        if not _RESERVED.isdisjoint(path.split("/")):
            raise _reserved(f"The key generator {maker}", path)
        return path

    return map_distinct(paths, inside)


def _reserved(maker: str, value: str) -> InvalidError:
    return InvalidError(
        f"{maker} has the value {value!r}. Hudi stores its own files under that name, and readers would not"
        " look for rows there. Change the value."
    )
