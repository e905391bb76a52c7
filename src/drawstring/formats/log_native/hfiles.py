"""Native log files in HFiles, as metadata tables have them.

.log.hfile       keys and Avro datums, as in a base file; entries of a footer in the file information
.deletes.hfile   keys of removed records; the datum of each has the key once more
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Final

import pyarrow as pa

from drawstring.formats.avro.encode import RowEncoder
from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native.deletes import DeleteLog, deletes_schema
from drawstring.formats.log_native.footer import encode_footer
from drawstring.schema.meta import RECORD_KEY

_SCHEMA: Final = b"schema"


def hfile_entries(kind: BlockType, header: Mapping[HeaderKey, str]) -> dict[bytes, bytes]:
    """Return the entries of the file information of a native log file.

    Args:
        kind: type of the block that the file is: of records, or of deletes without ordering values.
        header: its headers, the schema of the table among them.
    """
    avro_schema = _deletes().avro_schema if kind is BlockType.DELETE else header[HeaderKey.SCHEMA]
    footer = {name.encode(): text.encode() for name, text in encode_footer(kind, header).items()}
    return {_SCHEMA: avro_schema.encode(), **footer}


def encoded_deletes(keys: pa.Array) -> pa.BinaryArray:
    """Return the Avro datum of each delete.

    Args:
        keys: record keys (string).
    """
    return _encoder().encode_columns({RECORD_KEY: keys})


@cache
def _deletes() -> DeleteLog:
    """Return what the files of deletes look like in a table that orders records by commit time."""
    return deletes_schema(pa.schema([]), json.dumps({"fields": []}), ())


@cache
def _encoder() -> RowEncoder:
    return RowEncoder.of(json.loads(_deletes().avro_schema))
