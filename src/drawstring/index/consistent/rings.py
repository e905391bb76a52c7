r"""Hashing metadata of the consistent hashing index: which file group a stretch of hashes belongs to.

    0 ──── fg a ────]1073741823 ──── fg b ────]1610612735 ──── fg c ────]2147483647

A key belongs to the node with the smallest value that is not less than its hash. Each partition has a
ring, in a file `<instant>.hashing_meta`: the first one, at instant 00000000000000, follows from the
partition's name and the number of buckets alone; every resizing that completes adds another, and so does
what drops or overwrites the partition.
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
from drawstring.index.lifecycle import IndexCommit
from drawstring.index.written import FOLDERS, has_rings
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
        prefixes: what the ids of their file groups begin with.
        buckets: how many nodes it began with.
        sequence: how many resizings it went through.
    """

    values: tuple[int, ...]
    prefixes: tuple[str, ...]
    buckets: int = 0
    sequence: int = 0

    @staticmethod
    def first(partition: str, buckets: int) -> Ring:
        """Return the ring that a partition begins with."""
        step = (HASH_MASK + buckets - 1) // buckets
        ends = [min(step * number, HASH_MASK) for number in range(1, buckets + 1)]
        starts = [0, *ends[:-1]]
        return Ring(tuple(ends), tuple(map(_prefix, [partition] * buckets, starts, ends)), buckets)

    @staticmethod
    def of(nodes: Iterable[NodeChange]) -> Ring:
        """Return the ring of some nodes alone."""
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
        """Return the ring of the same stretches with other file groups; every process comes to the same.

        Args:
            partition: partition path.
            instant: of the write that replaces the file groups.
        """
        named = (f"{instant}/{value}/{partition}".encode() for value in self.values)
        return Ring(self.values, tuple(map(_uuid, named)), self.buckets, self.sequence + 1)

    def middle(self, prefix: str) -> int | None:
        """Return the hash in the middle of a node's stretch; None for one that cannot be divided."""
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
        """Return the file of a partition's ring.

        Args:
            partition: partition path.
            instant: of the resizing that it comes from.
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
        """Return the ring of a file.

        Raises:
            CorruptTableError: it is none.
        """
        try:
            content = json.loads(data)
            nodes: list[dict[str, Any]] = content["nodes"]
            numbers = (int(content.get("numBuckets") or len(nodes)), int(content.get("seqNo") or 0))
            pairs = sorted((int(node["value"]), str(node["fileIdPrefix"])) for node in nodes)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptTableError(f"the hashing metadata of a partition is damaged: {error}") from error
        if not pairs:
            raise CorruptTableError("the hashing metadata of a partition has no nodes: restore it")
        return Ring(tuple(value for value, _ in pairs), tuple(prefix for _, prefix in pairs), *numbers)


def load_ring(
    storage: Storage, partition: str, is_completed: Callable[[str], bool], *, confirms: bool = False
) -> Ring | None:
    """Return the newest ring of a partition that counts, None where it has none yet.

    Args:
        storage: the table's.
        partition: partition path.
        is_completed: tells whether the resizing of an instant completed.
        confirms: whether it is noted beside the ring that it counts, where only the timeline says so.

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
    """Put the ring that a partition begins with, unless it has one."""
    path = _path(partition, FIRST + _RING)
    storage.put_if_absent(path, Ring.first(partition, buckets).encode(partition))
    storage.sync(folders_above([path]))


def save_ring(storage: Storage, partition: str, ring: Ring, instant: str) -> None:
    """Put the ring that a resizing, a drop or an overwrite leads to; it counts once that completed."""
    path = _path(partition, instant + _RING)
    storage.put(path, ring.encode(partition, instant))
    storage.sync(folders_above([path]))


def confirm_ring(storage: Storage, partition: str, instant: str) -> None:
    """Note that what a ring comes from completed, for when the timeline does not tell any more."""
    path = _path(partition, instant + _COMMIT)
    storage.put_if_absent(path, b"")
    storage.sync(folders_above([path]))


def sweep_rings(storage: Storage, partition: str, start: str) -> None:
    """Delete rings that nobody goes back to: those before the last one of the archived timeline.

    Args:
        storage: the table's.
        partition: partition path.
        start: where the active timeline begins.
    """
    files = storage.list_files(join_path(FOLDERS[0], partition))
    counting = {status.name.removesuffix(_COMMIT) for status in files if status.name.endswith(_COMMIT)}
    last = max((time for time in counting if time < start), default=FIRST)
    old = [status.path for status in files if status.name.partition(".")[0] < last]
    storage.delete(old)


class RingLifecycle:
    """The lifecycle of rings: an instant that replaces all file groups of a partition leads to a new one.

    The ids of file groups follow from the ring, and an id that was replaced cannot come again.
    """

    def before_commit(self, commit: IndexCommit) -> Sequence[str]:
        """Put new rings for partitions that are dropped or overwritten; they count once that is completed.

        Returns:
            The partitions that have rings; of a table with another index none.
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
        """Note that the new rings count, and delete those that nobody goes back to."""
        for partition in partitions:
            confirm_ring(commit.storage, partition, commit.time)
            if commit.timeline.start is not None:
                sweep_rings(commit.storage, partition, commit.timeline.start)

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the rings of an instant that replaced file groups: older ones count again."""
        if instant.action.completed_action is not Action.REPLACE_COMMIT:
            return
        found = (status for folder in FOLDERS for status in storage.list_tree(folder))
        doomed = [status.path for status in found if status.name.partition(".")[0] == instant.requested]
        storage.delete(doomed)
        storage.sync(folders_above(doomed))


def _path(partition: str, name: str) -> str:
    return join_path(FOLDERS[0], join_path(partition, name))


def _prefix(partition: str, start: int, end: int) -> str:
    """Return the id that Hudi makes of a stretch: a UUID of version 3 of these bytes alone."""
    return _uuid(struct.pack(">qq", start, end) + partition.encode())


def _uuid(data: bytes) -> str:
    digest = bytearray(hashlib.md5(data, usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
