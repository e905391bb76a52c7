"""Locations of records as the record index stores them: partition path, file id, and when the key got there.

    encoding 0   file id = UUID "-" number     fileIdHighBits, fileIdLowBits   the halves of the UUID
                 or a UUID                     fileIndex                       the number, -1 for none
    encoding 1   any other file id             fileId; the numbers are -1

The instant is in epoch milliseconds of its requested time, in the time zone of the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.metadata.partitions import KEY, LOCATION, TYPE, Kind, record_schema
from drawstring.timeline.instants import instant_time

_RECORD_TYPE: Final = 5
_HEX: Final = "[0-9a-f]"
_UUID: Final = re.compile(rf"({_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})(?:-(\d{{1,9}}))?")
_HALF: Final = 1 << 64
_LONG_MAX: Final = 1 << 63
_CUTS: Final = (0, 8, 12, 16, 20, 32)


def location_rows(
    keys: pa.Array, partitions: pa.Array, file_ids: pa.Array, instants_ms: pa.Array
) -> pa.Table:
    """Return the records that tell where keys are.

    Args:
        keys: record keys (string).
        partitions: partition path of each (string).
        file_ids: file id of each (string).
        instants_ms: when each got there, milliseconds since the epoch.
    """
    stored = record_schema(Kind.RECORD_INDEX).field(LOCATION).type
    encoded = file_ids.dictionary_encode()
    parts = [_parts(each) for each in encoded.dictionary.to_pylist()]
    names = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
    by_id = {
        name: pa.array([part[at] for part in parts], stored.field(name).type).take(encoded.indices)
        for at, name in enumerate(names)
    }
    columns = {
        **by_id,
        "partitionName": partitions,
        "instantTime": instants_ms,
        "position": pa.nulls(len(keys), pa.int64()),
    }
    locations = pa.StructArray.from_arrays([columns[field.name] for field in stored], fields=list(stored))
    kinds = pa.repeat(pa.scalar(_RECORD_TYPE, pa.int32()), len(keys))
    return pa.table({KEY: keys, TYPE: kinds, LOCATION: locations})


def _parts(file_id: str) -> tuple[int, int, int, str, int]:
    match = _UUID.fullmatch(file_id)
    if match is None:
        return -1, -1, -1, file_id, 1
    digits = match[1].replace("-", "")
    high, low = _signed(int(digits[:16], 16)), _signed(int(digits[16:], 16))
    return high, low, -1 if match[2] is None else int(match[2]), "", 0


def _signed(bits: int) -> int:
    return bits - _HALF if bits >= _LONG_MAX else bits


def file_ids(locations: pa.StructArray) -> pa.Array:
    """Return the file id of each location."""
    parts = ("fileIdHighBits", "fileIdLowBits", "fileIndex")
    numbers = [locations.field(name).fill_null(-1).to_numpy(zero_copy_only=False) for name in parts]
    ids, codes = np.unique(np.stack(numbers, axis=1), axis=0, return_inverse=True)
    texts = pa.array([_file_id(*each) for each in ids.tolist()], pa.string())
    is_text = pc.equal(locations.field("fileIdEncoding"), 1)
    return pc.if_else(is_text, locations.field("fileId"), texts.take(pa.array(codes.ravel())))


def _file_id(high: int, low: int, number: int) -> str:
    digits = f"{high % _HALF:016x}{low % _HALF:016x}"
    uuid = "-".join(digits[start:stop] for start, stop in pairwise(_CUTS))
    return uuid if number < 0 else f"{uuid}-{number}"


def instants(locations: pa.StructArray, timezone: str) -> pa.Array:
    """Return the instant of each location.

    Args:
        locations: the locations.
        timezone: of the instant times of the table, `UTC` or `LOCAL`.
    """
    encoded = locations.field("instantTime").dictionary_encode()
    texts: Sequence[Any] = [instant_time(each, timezone) for each in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)
