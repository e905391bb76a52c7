"""What a look-up of some keys reads: which file groups, and which keys or beginnings of keys in their HFiles.

files                     the key is a partition path
record_index              the key is a record key, whose hash tells the file group of a global index
secondary_index_<name>    keys begin with the value
column_stats, bloom_filters and the like   keys begin with the hash of a column or a partition
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.javahash import string_hash
from drawstring.formats.hfile import HFileEntries, HFileReader
from drawstring.metadata.keys import encode_secondary_value, partition_hash
from drawstring.metadata.partitions import ROOT_PARTITION, Kind
from drawstring.model.files import FileSlice

_DASHES_OF_PARTITIONED: Final = 4
"""Number of dashes in the id of a file group that has the record index of one partition of the table."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What to read of HFiles.

    Attributes:
        keys: whole keys (string); None to look for prefixes.
        prefixes: beginnings of keys.
    """

    keys: pa.Array | None = None
    prefixes: tuple[str, ...] = ()

    @staticmethod
    def of(kind: Kind, names: Sequence[str]) -> Lookup:
        """Return the look-up of record keys, values, columns or partition paths, as the kind has them."""
        match kind:
            case Kind.FILES:
                return Lookup(keys=pa.array([name or ROOT_PARTITION for name in names], pa.string()))
            case Kind.RECORD_INDEX:
                return Lookup(keys=pa.array(names, pa.string()))
            case Kind.SECONDARY_INDEX:
                return Lookup(prefixes=tuple(encode_secondary_value(name) for name in names))
            case _:
                return Lookup(prefixes=tuple(partition_hash(name) for name in names))

    def entries(self, reader: HFileReader) -> Iterator[HFileEntries]:
        """Yield the entries of an HFile."""
        yield from reader.seek_prefixes(self.prefixes) if self.keys is None else reader.seek(self.keys)

    def by_group(self, slices: Sequence[FileSlice]) -> Iterator[tuple[FileSlice, Lookup]]:
        """Yield the file groups that may have the keys, with the look-up in each.

        Args:
            slices: the latest slices of all file groups of the partition, by file id.
        """
        if self.keys is None or not slices or any(_is_of_partition(each) for each in slices):
            yield from ((each, self) for each in slices)
            return
        groups = group_numbers(self.keys, len(slices))
        for number in np.unique(groups):
            yield slices[number], Lookup(self.keys.filter(pa.array(groups == number)))


def _is_of_partition(file_slice: FileSlice) -> bool:
    return file_slice.file_id.count("-") >= _DASHES_OF_PARTITIONED


def group_numbers(keys: pa.Array, groups: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of the file group that each key belongs to, as Java computes it.

    Args:
        keys: keys of records.
        groups: number of file groups.
    """
    hashes = string_hash(keys).astype(np.int64)
    # Java's absolute value of the smallest int is itself; the remainder has its sign.
    positive = np.where(hashes == np.iinfo(np.int32).min, hashes, np.abs(hashes))
    return np.abs(np.fmod(positive, max(1, groups)))
