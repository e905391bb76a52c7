r"""Find the file group of a record by a hash ring of its partition: the consistent hashing bucket index.

    0 ──── fg a ────]1073741823 ──── fg b ────]1610612735 ──── fg c ────]2147483647

A key belongs to the node with the smallest value that is not less than its hash (XXH32). The ring of a
partition starts with `hoodie.bucket.index.num.buckets` equal nodes and changes when buckets are split or
merged, so that tables can grow without being rewritten. MERGE_ON_READ only, as in Hudi.

Rings are in files `<instant>.hashing_meta` of each partition. The partition path and the number of buckets
determine the first one, at instant 00000000000000. Every completed resizing, and every instant that drops or
overwrites the partition, adds another.

Hashing: `xxhash32` groups texts by length; all texts of one length go through the same steps, one column per
word.

Dual writes: while a resizing is pending, writes also put the records of the buckets that it splits or merges
into the new buckets.

    rows of an old bucket --- unchanged -----------------> log file of the old file group
                         \--- hash on the new ring ------> log file of the new one, named by the resizing

The plan of the resizing names the new file groups, so a writer appends a log file to them as to any file
group. Because the log file carries the instant of the resizing, it becomes visible when the resizing
completes. It then belongs to the base file that the resizing wrote from the rows at planning time, and the
old file group is replaced. So neither waits for the other (RFC-42, and Hudi's
SparkConsistentBucketDuplicateUpdateStrategy).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.keys.services import Clustering
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.formats.bloom import same_length
from drawstring.formats.metadata.plans import decode_clustering_plan
from drawstring.index.bucket import EMPTY, NULL, compound_hashes, is_compound
from drawstring.index.existing_writes import FOLDERS, ExistingWrites, has_rings
from drawstring.index.protocol import LOCATION, DualWrite, HashingIndex, IndexCommit, Location
from drawstring.merge.record_version import Array
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, LogFile, file_id_of, join_path, prefix_of
from drawstring.model.instant import Action, Instant
from drawstring.model.plans import NodeChange, is_resizing, nodes_of
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec, folders_above
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

Hashes = np.ndarray[Any, np.dtype[np.uint32]]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint32(prime) for prime in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
)
_STRIPE: Final = 16


def xxhash32(texts: pa.Array) -> Hashes:
    """Return the XXH32 hash, with seed 0, of the UTF-8 bytes of each text.

    Args:
        texts: an array of strings without nulls.
    """
    hashes: Hashes = np.zeros(len(texts), np.uint32)
    for members, data in same_length(texts):
        hashes[members] = _of_one_length(data)
    return hashes


def _of_one_length(data: np.ndarray[Any, np.dtype[np.uint8]]) -> Hashes:
    rows, length = data.shape
    at = length // _STRIPE * _STRIPE
    hashed = np.full(rows, _P5, np.uint32) if at == 0 else _stripes(data, at)
    hashed += np.uint32(length)
    for start in range(at, length - 3, 4):
        hashed += _word(data, start) * _P3
        hashed = _rotated(hashed, 17) * _P4
    for column in range(length - length % 4, length):
        hashed += data[:, column].astype(np.uint32) * _P5
        hashed = _rotated(hashed, 11) * _P1
    hashed ^= hashed >> np.uint32(15)
    hashed *= _P2
    hashed ^= hashed >> np.uint32(13)
    hashed *= _P3
    hashed ^= hashed >> np.uint32(16)
    return hashed


def _stripes(data: np.ndarray[Any, np.dtype[np.uint8]], end: int) -> Hashes:
    """Mix the bytes up to `end`, 16 at a time, in four lanes."""
    starts = (int(_P1) + int(_P2), int(_P2), 0, -int(_P1))
    lanes = [np.full(len(data), start & 0xFFFFFFFF, np.uint32) for start in starts]
    for start in range(0, end, _STRIPE):
        for number, lane in enumerate(lanes):
            lanes[number] = _rotated(lane + _word(data, start + 4 * number) * _P2, 13) * _P1
    turned = [_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)]
    return np.asarray(turned[0] + turned[1] + turned[2] + turned[3])


def _word(data: np.ndarray[Any, np.dtype[np.uint8]], start: int) -> Hashes:
    return np.ascontiguousarray(data[:, start : start + 4]).view("<u4").ravel().astype(np.uint32)


def _rotated(values: Hashes, bits: int) -> Hashes:
    return np.asarray((values << np.uint32(bits)) | (values >> np.uint32(32 - bits)))


FIRST_RING_INSTANT: Final = "00000000000000"
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

    def encode(self, partition: str, instant: str = FIRST_RING_INSTANT) -> bytes:
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
        counting = [
            time
            for time in times
            if time == FIRST_RING_INSTANT or time + _COMMIT in names or is_completed(time)
        ]
        if counting:
            newest = max(counting)
            path = join_path(folder, join_path(partition, newest + _RING))
            if confirms and newest != FIRST_RING_INSTANT and newest + _COMMIT not in names:
                confirm_ring(storage, partition, newest)
            try:
                return Ring.decode(storage.read(path))
            except CorruptTableError as error:
                raise error.at(path=path) from error
    return None


def save_first_ring(storage: Storage, partition: str, buckets: int) -> None:
    """Write the first ring of a partition unless it has one."""
    path = _path(partition, FIRST_RING_INSTANT + _RING)
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


def clean_rings(storage: Storage, partition: str, start: str) -> None:
    """Delete obsolete rings: those before the last one of the archived timeline.

    Args:
        storage: storage of the table.
        partition: partition path.
        start: requested time of the first active instant.
    """
    files = storage.list_files(join_path(FOLDERS[0], partition))
    counting = {status.name.removesuffix(_COMMIT) for status in files if status.name.endswith(_COMMIT)}
    last = max((time for time in counting if time < start), default=FIRST_RING_INSTANT)
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
                clean_rings(commit.storage, partition, commit.timeline.start)

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the rings of an instant that replaced file groups, so that older rings are valid again."""
        if instant.action.completed_action is not Action.REPLACE_COMMIT:
            return
        rings = (status for folder in FOLDERS for status in storage.list_tree(folder))
        to_delete = [status.path for status in rings if status.name.partition(".")[0] == instant.requested]
        storage.delete(to_delete)
        storage.sync(folders_above(to_delete))


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


def key_hashes(keys: pa.Array, fields: tuple[str, ...]) -> Hashes:
    """Return the hash of every record key: of the whole key, or of the values of its hash fields.

    Args:
        keys: record keys (string).
        fields: hash fields of a compound key.
    """
    keys = keys.cast(pa.string())
    hashes = xxhash32(keys)
    rows = np.flatnonzero(is_compound(keys))
    if len(rows):
        compound = compound_hashes(keys.take(pa.array(rows)), fields, _joined_hash)
        hashes[rows] = compound.astype(np.uint32)
    return hashes


def _joined_hash(values: list[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    columns = [
        pc.if_else(pc.equal(each, NULL), "null", pc.if_else(pc.equal(each, EMPTY), "", each))
        for each in values
    ]
    return xxhash32(pc.binary_join_element_wise(*columns, "")).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ResizedBuckets:
    """The new buckets of a partition in a pending resizing.

    Attributes:
        instant: requested time of the resizing.
        old: file id prefixes of the buckets that are replaced.
        new: file id prefixes of the buckets that replace them.
        ring: the ring after the resizing.
    """

    instant: str
    old: frozenset[str]
    new: frozenset[str]
    ring: Ring


@dataclass(frozen=True, slots=True)
class ResizingDualWrite:
    """Batch function that repeats the rows of old buckets with their locations on the new ring. Picklable.

    Attributes:
        partitions: the partitions in a pending resizing, by path.
        hash_fields: the fields of a compound key that are hashed.
    """

    partitions: Mapping[str, ResizedBuckets]
    hash_fields: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield every batch, followed by copies of its rows that are written twice."""
        for batch in batches:
            yield batch
            paths = batch.column(PARTITION_PATH)
            for path in pc.unique(paths).to_pylist():
                if path in self.partitions:
                    yield from self._copies(batch.filter(pc.equal(paths, path)), self.partitions[path])

    def _copies(self, rows: pa.RecordBatch, resized: ResizedBuckets) -> Iterator[pa.RecordBatch]:
        place = rows.schema.get_field_index(LOCATION)
        field = rows.schema.field(place)
        moving = rows.filter(pc.is_in(rows.column(place).cast(pa.string()), pa.array(sorted(resized.old))))
        if moving.num_rows:
            prefixes = resized.ring.prefixes_of(key_hashes(moving.column(RECORD_KEY), self.hash_fields))
            yield moving.set_column(place, field, prefixes.cast(field.type))

    def target(self, partition: str, location: Location, lookup: SliceLookup) -> FileSlice | None:
        """Return the slice of a new bucket with its log files; None for other locations."""
        resized = self.partitions.get(partition)
        if resized is None or location.value not in resized.new:
            return None
        file_id = file_id_of(location.value)
        parsed = (LogFile.parse(status) for status in lookup.view().listing.files(partition))
        logs = (log for log in parsed if log and (log.file_id, log.instant) == (file_id, resized.instant))
        ordered = sorted((log for log in logs if not log.is_cdc), key=lambda log: log.order)
        return FileSlice(partition, file_id, resized.instant, None, tuple(ordered))

    def once(self, stats: Sequence[WriteStat]) -> list[WriteStat]:
        """Return the statistics for the result of a write, without the copies."""
        return [
            replace(stat, num_writes=0, num_inserts=0, num_updates=0, num_deletes=0)
            if self._is_copy(stat)
            else stat
            for stat in stats
        ]

    def _is_copy(self, stat: WriteStat) -> bool:
        resized = self.partitions.get(stat.partition)
        return resized is not None and prefix_of(stat.file_id) in resized.new


def dual_write(
    ring_of: Callable[[str], Ring],
    hash_fields: tuple[str, ...],
    store: TimelineStore,
    timeline: Timeline,
    clustering: Clustering,
) -> ResizingDualWrite | None:
    """Return the dual write of a table; None if no bucket is being split or merged.

    Args:
        ring_of: returns the ring of a partition.
        hash_fields: the fields of a compound key that are hashed.
        store: reads the plans.
        timeline: timeline at the start of the write.
        clustering: policy for writes to file groups in a pending clustering.

    Raises:
        ConflictError: the policy rejects such writes, or another kind of clustering is pending.
    """
    if clustering.allows_updates:
        return None
    resized: dict[str, ResizedBuckets] = {}
    for instant in timeline.pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(store.read_requested(instant))
        if clustering.rejects_updates or not is_resizing(plan):
            raise _pending_resizing_error(instant)
        for partition in sorted({group.partition for group in plan.groups}):
            groups = [group for group in plan.groups if group.partition == partition]
            nodes = [node for group in groups for node in nodes_of(group)]
            old = {prefix_of(each.file_id) for group in groups for each in group.slices}
            new = {node.prefix for node in nodes if node.prefix is not None}
            ring = ring_of(partition).changed(nodes)
            if partition in resized:
                raise _pending_resizing_error(instant)
            resized[partition] = ResizedBuckets(instant.requested, frozenset(old), frozenset(new), ring)
    return ResizingDualWrite(resized, hash_fields) if resized else None


def _pending_resizing_error(instant: Instant) -> ConflictError:
    return ConflictError(
        "A pending clustering splits or merges buckets of the table. Run that clustering"
        " (table.services.cluster(), drawstring services cluster) or roll it back"
        f" (table.services.rollback('{instant.requested}')), then write again. Or remove"
        " hoodie.clustering.updates.strategy, so that records are written to the old and the new buckets.",
        instant=instant.requested,
    )


class ConsistentIndex(RingLifecycle, HashingIndex):
    """Index that determines the file group by a hash ring. Picklable; rings are cached per process.

    Args:
        bucket_count: number of nodes of a new partition.
        hash_fields: the fields of a compound key that are hashed.
        storage: opens the table.
        timeline: timeline with the completed resizings.
        overwrite: requested time of a write that creates new file groups in all its partitions; else empty.
    """

    def __init__(
        self,
        bucket_count: int,
        hash_fields: tuple[str, ...],
        storage: StorageSpec,
        timeline: Timeline,
        overwrite: str = "",
    ) -> None:
        self.bucket_count = bucket_count
        self.hash_fields = hash_fields
        self._storage = storage
        self._timeline = timeline
        self._overwrite = overwrite
        self._rings: dict[str, Ring] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return self.bucket_count, self.hash_fields, self._storage, self._timeline, self._overwrite

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return the file id prefixes of the keys' nodes."""
        hashes = key_hashes(keys, self.hash_fields)
        paths = pc.dictionary_encode(partitions)
        locations = pa.nulls(len(keys), pa.string())
        for number, path in enumerate(paths.dictionary.to_pylist()):
            is_here = pc.equal(paths.indices, number)
            here = self.ring(path).prefixes_of(hashes[is_here.to_numpy(zero_copy_only=False)])
            locations = pc.replace_with_mask(locations, is_here, here.cast(pa.string()))
        return locations

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice of a node; None if it has none yet.

        Raises:
            InvalidError: a file group of the partition belongs to no node.
        """
        for each in slices:
            if not self.has_group(each.partition, each.file_id):
                raise InvalidError(
                    f"File group {each.file_id} is not in the hashing metadata of its partition, because the"
                    " table was written with another index. Use the index settings of the earlier writes.",
                    path=each.partition,
                )
        return next((each for each in slices if prefix_of(each.file_id) == location.value), None)

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Return the file id of a node."""
        return file_id_of(location.value)

    def owns_keys(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Return which keys belong to the node of a slice."""
        places = pa.repeat(file_slice.partition, len(keys))
        is_here = pc.equal(self.locations(keys, places), prefix_of(file_slice.file_id))
        return np.asarray(is_here.to_numpy(zero_copy_only=False))

    def has_group(self, partition: str, file_id: str) -> bool:
        """Return whether a file group is on the ring of its partition."""
        return prefix_of(file_id) in self.ring(partition).prefixes

    def after_files_written(self, storage: Storage, partitions: Iterable[str]) -> None:
        """Write the first ring of partitions without one."""
        for partition in sorted(set(partitions)):
            if load_ring(storage, partition, self._timeline.has_completed, confirms=True) is None:
                save_first_ring(storage, partition, self.bucket_count)

    def for_overwrite(self, instant: str) -> Self:
        """Return the index with the new rings of a write that replaces its partitions."""
        return type(self)(self.bucket_count, self.hash_fields, self._storage, self._timeline, instant)

    def check_table(self, table: ExistingWrites) -> None:
        """Check that no file group of a ring was replaced: a node's file id is fixed and cannot be reused.

        Raises:
            UnsupportedError: a file group was replaced.
        """
        lookup = SliceLookup(table.storage.spec, table.config, table.timeline)
        for partition, file_id in lookup.view().replaced_groups():
            if self.has_group(partition, file_id):
                raise UnsupportedError(
                    f"Another engine replaced file group {file_id} of the consistent hashing index, so"
                    " readers would not see rows that are written to it. Overwrite the partition"
                    " (insert_overwrite) to give it new file groups.",
                    path=partition,
                )

    def dual_write(
        self, store: TimelineStore, timeline: Timeline, clustering: Clustering
    ) -> DualWrite | None:
        """Return the dual write for buckets that are being resized."""
        return dual_write(self.ring, self.hash_fields, store, timeline, clustering)

    def ring(self, partition: str) -> Ring:
        """Return the stored ring of a partition, or its first ring; for an overwrite, the new ring."""
        if partition not in self._rings:
            stored = load_ring(open_spec(self._storage), partition, self._timeline.has_completed)
            ring = stored or Ring.first(partition, self.bucket_count)
            self._rings[partition] = ring.renewed(partition, self._overwrite) if self._overwrite else ring
        return self._rings[partition]
