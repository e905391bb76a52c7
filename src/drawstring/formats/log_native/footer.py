"""Footer entries of native log files: two sets of them, so that readers of either kind find their own.

    hudi.log.format.<NAME>     Apache Hudi's: the headers of a block by their names, and VERSION
    hudi.log.<name>            RFC-103 as first proposed: the same headers but the schema, and the type
    hudi.log.format.metadata   Apache Hudi's in June and July 2026: all headers in a JSON object; only read

The schema of the records is a header of the first set. Files without it have it in `parquet.avro.schema`, the
entry of every Parquet file of a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from drawstring.base.errors import REPAIR, CorruptTableError, UnsupportedError
from drawstring.formats.log_inline import BlockType, HeaderKey

AVRO_SCHEMA: Final = "parquet.avro.schema"

_PREFIX: Final = "hudi.log.format."
_WRAPPED: Final = f"{_PREFIX}metadata"
_VERSION: Final = 2
"""What Apache Hudi's master writes into native files, and the greatest that it reads; blocks keep 1."""

_PROPOSED_VERSION_KEY: Final = "hudi.log.format_version"
_PROPOSED_VERSION: Final = 2
_TYPE: Final = "hudi.log.block_type"
_TYPES: Final[Mapping[str, BlockType]] = {
    "parquet_data": BlockType.PARQUET_DATA,
    "hfile_data": BlockType.HFILE_DATA,
    "delete": BlockType.DELETE,
    "command": BlockType.COMMAND,
    "cdc": BlockType.CDC_DATA,
}
_TYPE_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_PROPOSED: Final[Mapping[HeaderKey, str]] = {
    HeaderKey.INSTANT_TIME: "hudi.log.instant_time",
    HeaderKey.TARGET_INSTANT_TIME: "hudi.log.target_instant_time",
    HeaderKey.COMMAND_BLOCK_TYPE: "hudi.log.command_block_type",
    HeaderKey.COMPACTED_BLOCK_TIMES: "hudi.log.compacted_block_times",
    HeaderKey.RECORD_POSITIONS: "hudi.log.record_positions",
    HeaderKey.BLOCK_IDENTIFIER: "hudi.log.block_identifier",
    HeaderKey.IS_PARTIAL: "hudi.log.is_partial",
    HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "hudi.log.base_file_instant_of_positions",
}


def encode_footer(kind: BlockType, header: Mapping[HeaderKey, str]) -> dict[str, str]:
    """Return the footer entries of a native log file.

    Args:
        kind: type of the block that the file is.
        header: its headers.
    """
    first = {f"{_PREFIX}{HeaderKey.VERSION.name}": str(_VERSION)}
    first |= {f"{_PREFIX}{key.name}": text for key, text in header.items()}
    second = {_PROPOSED_VERSION_KEY: str(_PROPOSED_VERSION), _TYPE: _TYPE_NAMES[kind]}
    return first | second | {_PROPOSED[key]: text for key, text in header.items() if key in _PROPOSED}


def decode_footer(entries: Mapping[str, str]) -> tuple[dict[HeaderKey, str], BlockType | None]:
    """Return the headers in the footer of a native log file, and the type of the block if it has one.

    Raises:
        CorruptTableError: an entry is damaged.
        UnsupportedError: the file has a later version of the format.
    """
    wrapped = _unwrapped(entries)
    _check_version(wrapped.get(HeaderKey.VERSION.name), _VERSION)
    _check_version(entries.get(_PROPOSED_VERSION_KEY), _PROPOSED_VERSION)
    header = {key: entries[name] for key, name in _PROPOSED.items() if name in entries}
    header |= {key: wrapped[key.name] for key in HeaderKey if key.name in wrapped}
    if HeaderKey.SCHEMA not in header and AVRO_SCHEMA in entries:
        header[HeaderKey.SCHEMA] = entries[AVRO_SCHEMA]
    return header, _TYPES.get(entries.get(_TYPE, ""))


def _unwrapped(entries: Mapping[str, str]) -> dict[str, str]:
    """Return Apache Hudi's entries without their prefix, those of the early JSON object included."""
    found = {name.removeprefix(_PREFIX): text for name, text in entries.items() if name.startswith(_PREFIX)}
    if _WRAPPED not in entries:
        return found
    try:
        content: Any = json.loads(entries[_WRAPPED])
        return {str(name): str(text) for name, text in content.items() if text is not None} | found
    except (ValueError, AttributeError) as error:
        raise CorruptTableError(
            f"The footer entry {_WRAPPED} of a log file is damaged ({error}). To repair the table, {REPAIR}."
        ) from error


def _check_version(text: str | None, known: int) -> None:
    if text is None:
        return
    try:
        number = int(text)
    except ValueError:
        raise CorruptTableError(
            f"The footer of a log file has the format version {text!r}. To repair the table, {REPAIR}."
        ) from None
    if number > known:
        raise UnsupportedError(
            f"A log file has version {number} of its format, but this release reads versions up to {known}."
            " Upgrade drawstring."
        )
