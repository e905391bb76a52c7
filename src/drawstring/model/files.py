"""Data files and their names, file slices and file groups.

    base file         <fileId>_<writeToken>_<instant>.<extension>
    inline log file   .<fileId>_<instant>.log.<version>_<writeToken>[.cdc]
    native log file   <fileId>_<writeToken>_<instant>_<version>.<log|deletes|cdc>.<format>

The instant in a log file's name is the slice's base instant in table version 6, and the delta
commit that wrote the file in later versions (specification: File Layout Hierarchy).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from drawstring.base.resources import EXCHANGE_BYTES_MAX

_OF_PARTITION = "record-index-[^_/]*"
"""Id of a file group that has the record index of one partition of the table: its path is part of the id."""

BASE_NAME = (
    rf"(?P<file_id>[a-zA-Z0-9-]+|{_OF_PARTITION})_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)"
    r"(?P<extension>\.[a-zA-Z0-9]+)"
)
"""Regular expression for the whole name of a base file."""

LOG_NAME = (
    rf"\.(?P<file_id>[^._]+|{_OF_PARTITION})"
    r"_(?P<instant>[^.]*)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+)(?P<cdc>\.cdc)?)?"
)
"""Regular expression for the whole name of an inline log file."""

NATIVE_LOG_NAME = (
    rf"(?P<file_id>[^._/]+|{_OF_PARTITION})"
    r"_(?P<token>[0-9]+-[0-9]+-[0-9]+)_(?P<instant>[^_./]+)_(?P<version>[0-9]+)"
    r"\.(?P<kind>log|deletes|cdc)\.(?P<format>[^./]+)"
)
"""Regular expression for the whole name of a native log file."""

_BASE, _LOG, _NATIVE_LOG = map(re.compile, (BASE_NAME, LOG_NAME, NATIVE_LOG_NAME))

PARQUET, ORC, HFILE, LANCE = ".parquet", ".orc", ".hfile", ".lance"
"""Endings of base files and native log files."""

BASE_EXTENSIONS = (PARQUET, ORC, HFILE, LANCE)
FORMAT_NAMES = {PARQUET: "Parquet", ORC: "ORC", HFILE: "HFile", LANCE: "Lance"}
"""What messages call their formats."""

METADATA_BOOTSTRAP = "00000000000001"
"""The instant of base files that a metadata-only bootstrap wrote: they hold only meta columns."""

FULL_BOOTSTRAP = "00000000000002"
"""The instant of base files that a full-record bootstrap wrote."""

_ORDINAL = "-0"

PARTITION_METADATA = ".hoodie_partition_metadata"
HOODIE_FOLDER = ".hoodie"


def file_id_of(prefix: str) -> str:
    """Return the id of the first file group with a prefix; writers number those of one prefix from 0."""
    return f"{prefix}{_ORDINAL}"


def random_file_id(uuid: str) -> str:
    """Return the id of a new file group that is not a bucket.

    An id that begins with a small decimal number would look like that of a bucket: one of 40,000 random ids.

    Args:
        uuid: a random UUID.
    """
    return file_id_of(f"f{uuid[1:]}" if uuid.startswith("000") else uuid)


def prefix_of(file_id: str) -> str:
    """Return the prefix of a file group's id, which precedes its number."""
    return file_id.removesuffix(_ORDINAL)


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What runs, and what it may use.

    Attributes:
        task, stage, attempt: numbers of which the write token is made, `<task>-<stage>-<attempt>`.
        threads: how many threads the task may work on.
        memory_bytes: bytes of rows that it may hold.
    """

    task: int
    stage: int
    attempt: int
    threads: int = 1
    memory_bytes: int = EXCHANGE_BYTES_MAX

    @property
    def write_token(self) -> str:
        """The token in the names of files that this attempt writes."""
        return f"{self.task}-{self.stage}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file as listed: its path relative to the table's root, and its size in bytes."""

    path: str
    size_bytes: int
    modified_ms: int = 0

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The path without its last part; empty at the root."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file: all records of a file group as of an instant.

    Attributes:
        status: the file.
        file_id: the file group.
        write_token: write token of the task that wrote the file.
        instant: requested time of the write.
        source: address of the bootstrap source file, which holds the records' own columns in the same row
            order, if the base file has only meta columns; None if it has all columns.
    """

    status: FileStatus
    file_id: str
    write_token: str
    instant: str
    source: str | None = None

    @staticmethod
    def parse(status: FileStatus) -> BaseFile | None:
        """Return a listed file as a base file, None if its name is not that of one."""
        match = _BASE.fullmatch(status.name)
        return BaseFile(status, match[1], match[2], match[3]) if match else None

    @staticmethod
    def name_of(file_id: str, write_token: str, instant: str, extension: str = PARQUET) -> str:
        """Return the name of a base file."""
        return f"{file_id}_{write_token}_{instant}{extension}"


class NativeLog(StrEnum):
    """What a native log file holds, in the order of the files of one write; values are parts of names."""

    DATA = "log"
    DELETES = "deletes"
    CDC = "cdc"


_NATIVE_ORDER = tuple(NativeLog)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file: changes to the records of a file slice.

    Attributes:
        status: the file.
        file_id: the file group.
        instant: requested time in its name.
        version: number of the file among those with the same instant and write token.
        write_token: write token of the task that wrote the file; empty if the name has none.
        is_cdc: whether it holds images of changes rather than records.
        native: what a native log file holds; None for an inline log file, which is a sequence of blocks.
    """

    status: FileStatus
    file_id: str
    instant: str
    version: int
    write_token: str
    is_cdc: bool = False
    native: NativeLog | None = None

    @staticmethod
    def parse(status: FileStatus) -> LogFile | None:
        """Return a listed file as a log file, None if its name is not that of one."""
        name = status.name
        if match := _LOG.fullmatch(name):
            return LogFile(status, match[1], match[2], int(match[3]), match[4] or "", bool(match[5]))
        if match := _NATIVE_LOG.fullmatch(name):
            kind = NativeLog(match[5])
            is_cdc = kind is NativeLog.CDC
            return LogFile(status, match[1], match[3], int(match[4]), match[2], is_cdc, kind)
        return None

    @staticmethod
    def name_of(file_id: str, instant: str, version: int, write_token: str) -> str:
        """Return the name of an inline log file."""
        return f".{file_id}_{instant}.log.{version}_{write_token}"

    @staticmethod
    def native_name_of(
        file_id: str,
        instant: str,
        version: int,
        write_token: str,
        kind: NativeLog,
        extension: str = PARQUET,
    ) -> str:
        """Return the name of a native log file; the extension tells its format."""
        return f"{file_id}_{write_token}_{instant}_{version}.{kind}{extension}"

    @property
    def order(self) -> tuple[str, int, str, int]:
        """The sort key of the file among the log files of its slice."""
        place = int(self.is_cdc) if self.native is None else _NATIVE_ORDER.index(self.native)
        return (self.instant, self.version, self.write_token, place)


def parse_data_file(status: FileStatus) -> BaseFile | LogFile | None:
    """Return a listed file as a base or log file (CDC files included), None if it is neither."""
    return BaseFile.parse(status) or LogFile.parse(status)


def is_base_path(path: str) -> bool:
    """Return whether a path ends like that of a base file; native log files have the same extensions."""
    return path.endswith(BASE_EXTENSIONS) and not _NATIVE_LOG.fullmatch(path.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A version of a file group: a base file (or none yet) and the log files on top of it.

    Attributes:
        partition: partition path, empty for a table without partitions.
        file_id: the file group's id.
        base_instant: requested time that identifies the slice.
        base: the base file, None when the slice has only log files.
        logs: log files in merge order, without CDC files.
    """

    partition: str
    file_id: str
    base_instant: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Total size in bytes of the files of the slice."""
        base = self.base.status.size_bytes if self.base else 0
        return base + sum(log.status.size_bytes for log in self.logs)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All slices of one file id in one partition, oldest first."""

    partition: str
    file_id: str
    slices: tuple[FileSlice, ...]


def file_extension(path: str) -> str:
    """Return the extension of a base file's name, with its dot and in lower case; empty for none."""
    _, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{ending}".lower() if dot else ""


def join_path(*parts: str) -> str:
    """Join path parts with `/`, leaving out empty ones."""
    return "/".join(part for part in parts if part)


_BUCKETS_MAX = 100_000
_BUCKET_FILE_ID = re.compile(r"(\d{8})-")


def bucket_of(file_id: str) -> int | None:
    """Return the bucket number in a file id; None if it has none."""
    match = _BUCKET_FILE_ID.match(file_id)
    return int(match[1]) if match else None


def has_bucket(file_id: str) -> bool:
    """Return whether a file id is that of a bucket."""
    bucket = bucket_of(file_id)
    return bucket is not None and bucket < _BUCKETS_MAX
