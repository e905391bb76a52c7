"""The files of many partitions in columns, and what their names tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.files import BASE_NAME, LOG_NAME, NATIVE_LOG_NAME, FileStatus, NativeLog, join_path

Array: TypeAlias = "np.ndarray[Any, Any]"

_NAMES: Final = tuple(f"^(?:{pattern})$" for pattern in (BASE_NAME, LOG_NAME, NATIVE_LOG_NAME))


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Files of some partitions.

    Attributes:
        paths: the partition paths.
        partitions: the number of the path of each file.
        names: the name of each file.
        sizes: its size in bytes.
    """

    paths: Sequence[str]
    partitions: Array
    names: pa.StringArray
    sizes: Array

    def statuses(self, rows: Array) -> list[FileStatus]:
        """Return the files at some places."""
        columns = self.partitions[rows].tolist(), self.names.take(pa.array(rows)).to_pylist()
        files = zip(*columns, self.sizes[rows].tolist(), strict=True)
        return [FileStatus(join_path(self.paths[place], name), size) for place, name, size in files]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The base files, then the log files, without CDC files.

    Attributes:
        rows: the place of each in the listed files.
        is_log: whether it is a log file.
        file_ids: its file group.
        instants: the instant in its name.
    """

    rows: Array
    is_log: Array
    file_ids: pa.StringArray
    instants: pa.StringArray

    @staticmethod
    def of(names: pa.StringArray) -> DataFiles:
        """Return the data files among files with some names."""
        bases, inline, native = (_Names.of(names, pattern) for pattern in _NAMES)
        inline = inline.take(np.flatnonzero(pc.equal(_texts(inline.parts, "cdc"), "")))
        native = native.take(np.flatnonzero(pc.not_equal(_texts(native.parts, "kind"), NativeLog.CDC.value)))
        found = (bases, inline, native)
        return DataFiles(
            np.concatenate([each.rows for each in found]),
            np.repeat([False, True, True], [len(each.rows) for each in found]),
            pa.concat_arrays([_texts(each.parts, "file_id") for each in found]),
            pa.concat_arrays([_texts(each.parts, "instant") for each in found]),
        )


@dataclass(frozen=True, slots=True)
class _Names:
    """The parts of the names that a pattern matches, and their places."""

    rows: Array
    parts: pa.StructArray

    @staticmethod
    def of(names: pa.StringArray, pattern: str) -> _Names:
        parts = pc.extract_regex(names, pattern)
        is_match = parts.is_valid()
        found = np.flatnonzero(is_match.to_numpy(zero_copy_only=False))
        return _Names(found, parts.filter(is_match))

    def take(self, chosen: Array) -> _Names:
        return _Names(self.rows[chosen], self.parts.take(pa.array(chosen)))


def _texts(parts: pa.StructArray, name: str) -> pa.StringArray:
    return parts.field(name)
