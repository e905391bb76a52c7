"""The bootstrap index, which maps base files with only meta columns to their source files.

    .hoodie/.aux/.bootstrap/.partitions/<name>.hfile   part=<partition>                  all its files
    .hoodie/.aux/.bootstrap/.fileids/<name>.hfile      part=<partition>;fileid=<file id>  one file

Values, and the entry `INDEX_INFO` of the file information, are Avro container files of one record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.hfile import HFileReader, encode_hfile
from drawstring.formats.metadata.records import one_record, read_as

_FOLDER: Final = ".hoodie/.aux/.bootstrap"
_NAME: Final = "00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
BY_PARTITION: Final = f"{_FOLDER}/.partitions/{_NAME}"
BY_FILE_ID: Final = f"{_FOLDER}/.fileids/{_NAME}"

_PARTITION_KEY: Final = "part="
_INFO: Final = b"INDEX_INFO"
_WHAT: Final = "a bootstrap index"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file and the file group that refers to it.

    Attributes:
        partition: partition path of the file group.
        file_id: its id.
        uri: address of the source file.
        folder: folder of the source file, relative to the source's root.
        size_bytes: size of the source file.
        modified_ms: modification time of the source file, milliseconds since the epoch.
    """

    partition: str
    file_id: str
    uri: str
    folder: str
    size_bytes: int
    modified_ms: int


def encode_bootstrap_index(files: Sequence[SourceFile], source: str, created_ms: int) -> tuple[bytes, bytes]:
    """Return the two files of an index, by partition and by file id.

    Args:
        files: all files of the metadata-only bootstrap.
        source: address of the source's root.
        created_ms: the current time, milliseconds since the epoch.
    """
    ordered = sorted(files, key=lambda file: (file.partition, file.file_id))
    by_partition = {
        f"{_PARTITION_KEY}{partition}": _partition_record(partition, list(some))
        for partition, some in groupby(ordered, lambda file: file.partition)
    }
    by_file_id = {
        f"{_PARTITION_KEY}{file.partition};fileid={file.file_id}": {
            "version": 1,
            "bootstrapPartitionPath": file.folder,
            "bootstrapFileStatus": _status(file),
            "partitionPath": file.partition,
        }
        for file in ordered
    }
    return (
        _hfile("bootstrap_partition", by_partition, source, created_ms),
        _hfile("bootstrap_file", by_file_id, source, created_ms),
    )


def read_bootstrap_index(file: pa.NativeFile, size: int) -> dict[str, bytes]:
    """Return the entries of an index by partition.

    Args:
        file: the index, open for random access.
        size: its size in bytes.

    Raises:
        CorruptTableError: the index is damaged.
    """
    return {
        key.removeprefix(_PARTITION_KEY): value
        for entries in HFileReader(file, size).scan()
        for key, value in zip(entries.keys.to_pylist(), entries.values().to_pylist(), strict=True)
    }


def source_files(entry: bytes) -> dict[str, str]:
    """Return the addresses of the source files of a partition, by file id.

    Args:
        entry: the index entry of the partition.

    Raises:
        CorruptTableError: the entry is damaged.
    """
    return read_as(_addresses, one_record(entry), _WHAT)


def _addresses(record: dict[str, Any]) -> dict[str, str]:
    files: Mapping[str, Any] = record.get("fileIdToBootstrapFile") or {}
    addresses = {file_id: status["path"]["uri"] for file_id, status in files.items()}
    for uri in addresses.values():
        if not isinstance(uri, str) or not uri:
            raise ValueError(f"it has {uri!r} instead of an address")
    return addresses


def _hfile(schema: str, records: Mapping[str, dict[str, Any]], source: str, created_ms: int) -> bytes:
    info = {
        "version": 1,
        "bootstrapBasePath": source,
        "createdTimestamp": created_ms,
        "numKeys": len(records),
    }
    values = [encode_container(schemas.compact(schema), record) for record in records.values()]
    return encode_hfile(
        pa.array(list(records), pa.string()),
        pa.array(values, pa.binary()),
        {_INFO: encode_container(schemas.compact("bootstrap_info"), info)},
        created_ms,
    )


def _partition_record(partition: str, files: Sequence[SourceFile]) -> dict[str, Any]:
    return {
        "version": 1,
        "bootstrapPartitionPath": files[0].folder,
        "partitionPath": partition,
        "fileIdToBootstrapFile": {file.file_id: _status(file) for file in files},
    }


def _status(file: SourceFile) -> dict[str, Any]:
    return {
        "version": 1,
        "path": {"version": 1, "uri": file.uri},
        "length": file.size_bytes,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "modificationTime": file.modified_ms,
        "accessTime": 0,
        "permission": None,
        "owner": None,
        "group": None,
        "symlink": None,
    }


_BLOCK_BYTES: Final = 32 << 20
