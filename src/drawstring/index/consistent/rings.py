r"""Hashing metadata of the consistent hashing index: the file group of each range of hashes.

    0 ──── fg a ────]1073741823 ──── fg b ────]1610612735 ──── fg c ────]2147483647

A key belongs to the node with the smallest value that is not less than its hash. Each partition has rings in
files `<instant>.hashing_meta`. The first one, at instant 00000000000000, is determined by the partition path
and the number of buckets; every completed resizing adds another, and so does every instant that drops or
overwrites the partition.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from drawstring.base.errors import CorruptTableError
from drawstring.index.consistent.xxhash import Hashes
from drawstring.index.existing_writes import FOLDERS, has_rings
from drawstring.index.lifecycle import IndexCommit
from drawstring.model.files import join_path
from drawstring.model.hashing import NodeChange
from drawstring.model.instant import Action, Instant
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage

FIRST: Final = "00000000000000"
HASH_MASK: Final = 0x7FFFFFFF
_RING, _COMMIT = ".hashing_meta", ".commit"
_NODE = """{{
    "value" : {value},
    "fileIdPrefix" : "{prefix}",
    "tag" : "NORMAL"
  }}"""
_FILE = """{{
  "version" : 0,
  "partitionPath" : {path},
  "instant" : "{instant}",
  "numBuckets" : {count},
  "seqNo" : {sequence},
  "nodes" : [ {nodes} ]
}}"""


@dataclass(frozen=True, slots=True)
class Ring:
    """The nodes of a partition.

    Attributes:
        values: largest hash of each node, ascending.
        prefixes: file id prefix of each node.
        buckets: number of nodes of the first ring.
        sequence: number of resizings so far.
    """

    values: tuple[int, ...]
    prefixes: tuple[str, ...]
    buckets: int = 0
    sequence: int = 0

    @staticmethod
    def first(partition: str, buckets: int) -> Ring:
        """Return the first ring of a partition."""
        step = (HASH_MASK + buckets - 1) // buckets
        ends = [min(step * number, HASH_MASK) for number in range(1, buckets + 1)]
        starts = [0, *ends[:-1]]
        return Ring(tuple(ends), tuple(map(_prefix, [partition] * buckets, starts, ends)), buckets)

    @staticmethod
    def of(nodes: Iterable[NodeChange]) -> Ring:
        """Return the ring with the given nodes only."""
        pairs = sorted((node.value, node.prefix) for node in nodes if node.prefix is not None)
        return Ring(tuple(value for value, _ in pairs), tuple(prefix for _, prefix in pairs))

    def changed(self, nodes: Iterable[NodeChange]) -> Ring:
        """Return the ring after a resizing."""
        ring = dict(zip(self.values, self.prefixes, strict=True))
        for node in nodes:
            if node.prefix is None:
                ring.pop(node.value, None)
            else:
                ring[node.value] = node.prefix
        pairs = sorted(ring.items())
        values, prefixes = (tuple(each) for each in zip(*pairs, strict=True))
        return Ring(values, prefixes, self.buckets, self.sequence + 1)

    def renewed(self, partition: str, instant: str) -> Ring:
        """Return the ring with the same ranges and new file groups; the result is deterministic.

        Args:
            partition: partition path.
            instant: requested time of the write that replaces the file groups.
        """
        named = (f"{instant}/{value}/{partition}".encode() for value in self.values)
        return Ring(self.values, tuple(map(_uuid, named)), self.buckets, self.sequence + 1)

    def middle(self, prefix: str) -> int | None:
        """Return the middle of the hash range of a node; None for a range that cannot be split."""
        number = self.prefixes.index(prefix)
        former, value = self.values[number - 1], self.values[number]
        length = (value - former) % (HASH_MASK + 1) or HASH_MASK + 1
        return (former + length // 2) % (HASH_MASK + 1) if length > 1 else None

    def prefixes_of(self, hashes: Hashes) -> pa.Array:
        """Return the prefix of every hash, dictionary-encoded."""
        places = np.searchsorted(np.array(self.values), hashes & np.uint32(HASH_MASK))
        places[places == len(self.values)] = 0
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), pa.array(self.prefixes))

    def encode(self, partition: str, instant: str = FIRST) -> bytes:
        """Return the content of the file of a ring.

        Args:
            partition: partition path.
            instant: requested time of the resizing that created the ring.
        """
        nodes = ", ".join(
            _NODE.format(value=value, prefix=prefix)
            for value, prefix in zip(self.values, self.prefixes, strict=True)
        )
        path = json.dumps(partition, ensure_ascii=False)
        text = _FILE.format(
            path=path, instant=instant, count=self.buckets, sequence=self.sequence, nodes=nodes
        )
        return text.encode()

    @staticmethod
    def decode(data: bytes) -> Ring:
        """Return the ring in the content of a file.

        Raises:
            CorruptTableError: the content is not a ring.
        """
        try:
            content = json.loads(data)
            nodes: list[dict[str, Any]] = content["nodes"]
            numbers = (int(content.get("numBuckets") or len(nodes)), int(content.get("seqNo") or 0))
            pairs = sorted((int(node["value"]), str(node["fileIdPrefix"])) for node in nodes)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptTableError(
                f"The hashing metadata of a partition is damaged: {error}. Restore the file from a backup."
            ) from error
        if not pairs:
            raise CorruptTableError(
                "The hashing metadata of a partition has no nodes. Restore the file from a backup."
            )
        return Ring(tuple(value for value, _ in pairs), tuple(prefix for _, prefix in pairs), *numbers)


def load_ring(
    storage: Storage, partition: str, is_completed: Callable[[str], bool], *, confirms: bool = False
) -> Ring | None:
    """Return the newest valid ring of a partition; None if it has none yet.

    Args:
        storage: storage of the table.
        partition: partition path.
        is_completed: returns whether the resizing of an instant completed.
        confirms: whether to write the commit file of a ring that only the timeline confirms.

    Raises:
        CorruptTableError: the ring is damaged.
    """
    for folder in FOLDERS:
        names = {status.name for status in storage.list_files(join_path(folder, partition))}
        times = {name.removesuffix(_RING) for name in names if name.endswith(_RING)}
        counting = [time for time in times if time == FIRST or time + _COMMIT in names or is_completed(time)]
        if counting:
            newest = max(counting)
            path = join_path(folder, join_path(partition, newest + _RING))
            if confirms and newest != FIRST and newest + _COMMIT not in names:
                confirm_ring(storage, partition, newest)
            try:
                return Ring.decode(storage.read(path))
            except CorruptTableError as error:
                raise error.at(path=path) from error
    return None


def save_first_ring(storage: Storage, partition: str, buckets: int) -> None:
    """Write the first ring of a partition unless it has one."""
    path = _path(partition, FIRST + _RING)
    storage.put_if_absent(path, Ring.first(partition, buckets).encode(partition))
    storage.sync(folders_above([path]))


def save_ring(storage: Storage, partition: str, ring: Ring, instant: str) -> None:
    """Write the ring of a resizing, a drop or an overwrite; it is valid once that instant completed."""
    path = _path(partition, instant + _RING)
    storage.put(path, ring.encode(partition, instant))
    storage.sync(folders_above([path]))


def confirm_ring(storage: Storage, partition: str, instant: str) -> None:
    """Write the commit file of a ring, which confirms it after its instant was archived."""
    path = _path(partition, instant + _COMMIT)
    storage.put_if_absent(path, b"")
    storage.sync(folders_above([path]))


def sweep_rings(storage: Storage, partition: str, start: str) -> None:
    """Delete obsolete rings: those before the last one of the archived timeline.

    Args:
        storage: storage of the table.
        partition: partition path.
        start: requested time of the first active instant.
    """
    files = storage.list_files(join_path(FOLDERS[0], partition))
    counting = {status.name.removesuffix(_COMMIT) for status in files if status.name.endswith(_COMMIT)}
    last = max((time for time in counting if time < start), default=FIRST)
    old = [status.path for status in files if status.name.partition(".")[0] < last]
    storage.delete(old)


class RingLifecycle:
    """Lifecycle of rings: an instant that replaces all file groups of a partition creates a new ring.

    The ring determines the file ids, and the id of a replaced file group cannot be reused.
    """

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Write new rings for dropped or overwritten partitions; they are valid once the instant completed.

        Returns:
            The partitions that have rings; none for a table with another index.
        """
        renewed: list[str] = []
        if commit.replaced and has_rings(commit.storage):
            for partition in commit.replaced:
                ring = load_ring(commit.storage, partition, commit.timeline.has_completed)
                if ring is not None:
                    save_ring(commit.storage, partition, ring.renewed(partition, commit.time), commit.time)
                    renewed.append(partition)
        return renewed

    def committed(self, commit: IndexCommit, partitions: Sequence[str]) -> None:
        """Confirm the new rings, and delete obsolete ones."""
        for partition in partitions:
            confirm_ring(commit.storage, partition, commit.time)
            if commit.timeline.start is not None:
                sweep_rings(commit.storage, partition, commit.timeline.start)

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the rings of an instant that replaced file groups, so that older rings are valid again."""
        if instant.action.completed_action is not Action.REPLACE_COMMIT:
            return
        rings = (status for folder in FOLDERS for status in storage.list_tree(folder))
        doomed = [status.path for status in rings if status.name.partition(".")[0] == instant.requested]
        storage.delete(doomed)
        storage.sync(folders_above(doomed))


def _path(partition: str, name: str) -> str:
    return join_path(FOLDERS[0], join_path(partition, name))


def _prefix(partition: str, start: int, end: int) -> str:
    """Return the file id prefix of a hash range as in Hudi: a version 3 UUID of these bytes."""
    return _uuid(struct.pack(">qq", start, end) + partition.encode())


def _uuid(data: bytes) -> str:
    digest = bytearray(hashlib.md5(data, usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
