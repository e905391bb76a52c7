"""The function `read_blob` of SQL: the bytes of a BLOB, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.schema.logical_types import INLINE
from drawstring.spark.storage_options import hadoop_settings, settings_for
from drawstring.spark.workers.tasks import work
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage

NAME: Final = "read_blob"
_FOLDERS_KEPT: Final = 16


def register_read_blob(spark: SparkSession) -> None:
    """Give a session the function."""
    read = BlobReader(hadoop_settings(spark))
    function = UserDefinedFunction(read, BinaryType(), NAME, PythonEvalType.SQL_BATCHED_UDF)
    spark.udf.register(NAME, function)


@dataclass(frozen=True)
class BlobReader:
    """Returns the bytes of BLOBs, in Python workers.

    Attributes:
        settings: of the session for Hadoop's file systems.
    """

    settings: Mapping[str, str]

    def __call__(self, blob: Any) -> bytes | None:
        """Return the bytes of a BLOB; None for null.

        Raises:
            CorruptTableError: the file is missing, or too short.
            InvalidError: the struct is no BLOB, or has no bytes and names no place of them.
        """
        with work():
            if blob is None:
                return None
            if blob["type"] == INLINE:
                return _inline(blob["data"])
            return self._from_file(blob["reference"])

    def _from_file(self, reference: Any) -> bytes:
        path = reference and reference["external_path"]
        if not path:
            raise InvalidError(
                "A BLOB is OUT_OF_LINE, but its reference has no external_path. Correct the row."
            )
        offset, length = reference["offset"], reference["length"]
        if (offset is None) != (length is None) or min(offset or 0, length or 0) < 0:
            raise InvalidError(
                f"A BLOB is a part of {path} from {offset}, of length {length}. Give both, or neither for the"
                " whole file; none is negative."
            )
        folder, _, name = path.rpartition("/")
        options = settings_for(path, self.settings)
        storage = _storage(folder.removeprefix("file:") or "/", tuple(sorted(options.items())))
        if length is None:
            return storage.read(name)
        with storage.open(name) as file:
            file.seek(offset)
            data = bytes(file.read(length))
        if len(data) < length:
            raise CorruptTableError(
                f"A BLOB is {length} bytes of {path} from {offset} on, but the file ends before. Restore it."
            )
        return data


def _inline(data: bytes | None) -> bytes:
    if data is None:
        raise InvalidError("A BLOB is INLINE, but has no data. Correct the row.")
    return bytes(data)


@lru_cache(_FOLDERS_KEPT)
def _storage(folder: str, options: tuple[tuple[str, str], ...]) -> Storage:
    return open_storage(folder, dict(options))
