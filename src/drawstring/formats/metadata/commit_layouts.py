"""Conversion of commit metadata between layout 1 (JSON) and layout 2 (Avro).

Both layouts have the same field names. Fields that only one of them has (sums of the reader in JSON, a
version in Avro) are never read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from drawstring.formats import schemas
from drawstring.formats.avro.container import DAMAGE, MAGIC, encode_container
from drawstring.formats.metadata.commit import json_commit
from drawstring.formats.metadata.records import damaged, one_record
from drawstring.model.table_version import CommitEncoding, TimelineLayout

_TEXTS: Final = "extraMetadata"
_STATS: Final = "partitionToWriteStats"
_LOG_FIELDS: Final = ("logVersion", "logOffset", "baseFile", "logFiles")
_NULLS: Final = ("path", "cdcStats", "prevBaseFile")
_FIRST_VERSION: Final = 1


def commit_in_layout(data: bytes, layout: TimelineLayout, *, replace: bool) -> bytes:
    """Convert the content of a commit, delta commit or replace commit to a layout.

    Args:
        data: the file; an empty file remains empty.
        layout: that it is to have.
        replace: whether it is a replace commit.

    Raises:
        CorruptTableError: the content is damaged.
    """
    if not data:
        return data
    encoding = CommitEncoding.AVRO if data[:4] == MAGIC else CommitEncoding.JSON
    if encoding is layout.commit_encoding:
        return data
    return _CONVERTERS[layout.commit_encoding](data, replace)


def avro_commit(content: Mapping[str, Any], *, replace: bool) -> bytes:
    """Return decoded commit metadata as an Avro file.

    Raises:
        CorruptTableError: the content does not match the format.
    """
    record = dict(content)
    texts = record.get(_TEXTS) or {}
    record[_TEXTS] = {key: str(text) for key, text in texts.items() if text is not None}
    record.setdefault("version", _FIRST_VERSION)
    try:
        return encode_container(schemas.compact("replace_commit" if replace else "commit"), record)
    except DAMAGE as error:
        raise damaged("commit metadata", error) from error


def _avro_of_json(data: bytes, replace: bool) -> bytes:
    return avro_commit(json_commit(data), replace=replace)


def avro_file(schema_name: str, record: Mapping[str, Any]) -> bytes:
    """Return a decoded record of a timeline file as an Avro file.

    Raises:
        CorruptTableError: the content does not match the format.
    """
    try:
        return encode_container(schemas.compact(schema_name), dict(record))
    except DAMAGE as error:
        raise damaged("an archived instant", error) from error


def _json(record: Mapping[str, Any]) -> bytes:
    content = {key: value for key, value in record.items() if key != "version" and value is not None}
    try:
        content[_STATS] = {
            partition: [_stat(stat) for stat in stats]
            for partition, stats in (record.get(_STATS) or {}).items()
        }
    except (AttributeError, TypeError) as error:
        raise damaged("commit metadata", error) from error
    return json.dumps(content, indent=2, separators=(",", " : "), ensure_ascii=False).encode()


def _json_of_avro(data: bytes, _replace: bool) -> bytes:
    return _json(one_record(data))


_CONVERTERS: Final[Mapping[CommitEncoding, Callable[[bytes, bool], bytes]]] = {
    CommitEncoding.JSON: _json_of_avro,
    CommitEncoding.AVRO: _avro_of_json,
}


def _stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a write stat for JSON, which omits the fields of log files for base files."""
    is_log = stat.get("logVersion") is not None
    return {
        key: value
        for key, value in stat.items()
        if (value is not None or key in _NULLS or (is_log and key in _LOG_FIELDS))
        and (is_log or key not in _LOG_FIELDS)
    }
