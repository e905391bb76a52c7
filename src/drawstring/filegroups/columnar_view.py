"""Find the latest file slices of many file groups in Arrow columns, without a Python object per file.

    listed files ── names ──> base files, log files ── group by partition and file id
                                   │
        latest visible base file <─┴─> visible log files that completed after it was requested

`latest_in_columns` applies the rules of `view.slicing` to all file groups at once. `SliceColumns` makes a
file slice only when a caller asks for it. `slicing` itself still handles file groups with log files of
layout 1, with two base files of one instant, and with log files of archived completion times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.lazy import LazySequence
from drawstring.filegroups.view.slicing import GroupFiles, Visibility, group_files
from drawstring.model.files import (
    BASE_NAME,
    LOG_NAME,
    NATIVE_LOG_NAME,
    BaseFile,
    FileSlice,
    FileStatus,
    LogFile,
    NativeLog,
    join_path,
)

Array: TypeAlias = "np.ndarray[Any, Any]"

_NAMES: Final = tuple(f"^(?:{pattern})$" for pattern in (BASE_NAME, LOG_NAME, NATIVE_LOG_NAME))


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Files of some partitions.

    Attributes:
        paths: the partition paths.
        partitions: the number of the path of each file.
        names: the name of each file.
        sizes: its size in bytes.
    """

    paths: Sequence[str]
    partitions: Array
    names: pa.StringArray
    sizes: Array

    def statuses(self, rows: Array) -> list[FileStatus]:
        """Return the files at some places."""
        columns = self.partitions[rows].tolist(), self.names.take(pa.array(rows)).to_pylist()
        files = zip(*columns, self.sizes[rows].tolist(), strict=True)
        return [FileStatus(join_path(self.paths[place], name), size) for place, name, size in files]


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The base files, then the log files, without CDC files.

    Attributes:
        rows: the place of each in the listed files.
        is_log: whether it is a log file.
        file_ids: its file group.
        instants: the instant in its name.
    """

    rows: Array
    is_log: Array
    file_ids: pa.StringArray
    instants: pa.StringArray

    @staticmethod
    def of(names: pa.StringArray) -> DataFiles:
        """Return the data files among files with some names."""
        bases, inline, native = (_Names.of(names, pattern) for pattern in _NAMES)
        inline = inline.take(np.flatnonzero(pc.equal(_texts(inline.parts, "cdc"), "")))
        native = native.take(np.flatnonzero(pc.not_equal(_texts(native.parts, "kind"), NativeLog.CDC.value)))
        found = (bases, inline, native)
        return DataFiles(
            np.concatenate([each.rows for each in found]),
            np.repeat([False, True, True], [len(each.rows) for each in found]),
            pa.concat_arrays([_texts(each.parts, "file_id") for each in found]),
            pa.concat_arrays([_texts(each.parts, "instant") for each in found]),
        )


@dataclass(frozen=True, slots=True)
class _Names:
    """The parts of the names that a pattern matches, and their places."""

    rows: Array
    parts: pa.StructArray

    @staticmethod
    def of(names: pa.StringArray, pattern: str) -> _Names:
        parts = pc.extract_regex(names, pattern)
        is_match = parts.is_valid()
        found = np.flatnonzero(is_match.to_numpy(zero_copy_only=False))
        return _Names(found, parts.filter(is_match))

    def take(self, chosen: Array) -> _Names:
        return _Names(self.rows[chosen], self.parts.take(pa.array(chosen)))


def _texts(parts: pa.StructArray, name: str) -> pa.StringArray:
    return parts.field(name)


_NONE: Final = -1
_SLICES_PER_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class SliceColumns:
    """Latest slices of file groups.

    Attributes:
        files: the listed files.
        partitions: the number of the path of each slice, in `files.paths`.
        file_ids: the file group of each slice.
        bases: the place of the base file of each slice in the listed files; -1 for none.
        logs: the places of all log files, slice by slice.
        log_slices: the number of the slice of each of them.
        made: slices that do not follow from these, by number.
    """

    files: FileColumns
    partitions: Array
    file_ids: pa.StringArray
    bases: Array
    logs: Array
    log_slices: Array
    made: Mapping[int, FileSlice]

    def __len__(self) -> int:
        return len(self.bases)

    @property
    def has_base(self) -> Array:
        """Which slices have a base file."""
        return np.asarray(self.bases != _NONE)

    @property
    def has_logs(self) -> Array:
        """Which slices have log files."""
        found = np.zeros(len(self), np.bool_)
        found[self.log_slices] = True
        return found

    @property
    def size_bytes(self) -> int:
        """Total size in bytes of the files of all slices."""
        sizes = self.files.sizes
        return int(sizes[self.bases[self.has_base]].sum() + sizes[self.logs].sum())

    def slice_at(self, number: int) -> FileSlice:
        """Return the slice with a number."""
        return self._slices(number, number + 1)[0]

    def each(self) -> Iterator[FileSlice]:
        """Yield all slices, made a thousand at a time."""
        for start in range(0, len(self), _SLICES_PER_BATCH):
            yield from self._slices(start, min(start + _SLICES_PER_BATCH, len(self)))

    def _slices(self, start: int, stop: int) -> list[FileSlice]:
        based = np.flatnonzero(self.bases[start:stop] != _NONE)
        bases = dict(zip(based.tolist(), self.files.statuses(self.bases[start + based]), strict=True))
        begin, end = np.searchsorted(self.log_slices, (start, stop))
        logs: dict[int, list[FileStatus]] = defaultdict(list)
        owners = (self.log_slices[begin:end] - start).tolist()
        for owner, status in zip(owners, self.files.statuses(self.logs[begin:end]), strict=True):
            logs[owner].append(status)
        groups = zip(
            map(self.files.paths.__getitem__, self.partitions[start:stop].tolist()),
            self.file_ids[start:stop].to_pylist(),
            strict=True,
        )
        return [
            self.made.get(start + at) or _slice(*group, bases.get(at), logs.get(at, ()))
            for at, group in enumerate(groups)
        ]

    def take(self, numbers: Array) -> SliceColumns:
        """Return some of the slices.

        Args:
            numbers: their numbers, ascending.
        """
        now = np.full(len(self), _NONE)
        now[numbers] = np.arange(len(numbers))
        stay = now[self.log_slices] != _NONE
        made = {int(now[number]): each for number, each in self.made.items() if now[number] != _NONE}
        return SliceColumns(
            self.files,
            self.partitions[numbers],
            self.file_ids.take(pa.array(numbers)),
            self.bases[numbers],
            self.logs[stay],
            now[self.log_slices[stay]],
            made,
        )

    def without_logs(self) -> SliceColumns:
        """Return the slices with a base file, without their log files."""
        left = self.take(np.flatnonzero(self.has_base))
        made = {number: replace(each, logs=()) for number, each in left.made.items()}
        return replace(left, logs=left.logs[:0], log_slices=left.log_slices[:0], made=made)


def _slice(path: str, file_id: str, of_base: FileStatus | None, of_logs: Iterable[FileStatus]) -> FileSlice:
    base = None if of_base is None else BaseFile.parse(of_base)
    logs = sorted(filter(None, map(LogFile.parse, of_logs)), key=lambda log: log.order)
    return FileSlice(path, file_id, base.instant if base else logs[0].instant, base, tuple(logs))


class LatestSlices(LazySequence[FileSlice]):
    """Latest slices that are known in columns.

    Args:
        columns: the slices.
    """

    def __init__(self, columns: SliceColumns) -> None:
        super().__init__(len(columns), columns.slice_at, columns.each)
        self.columns = columns


@dataclass(frozen=True, slots=True)
class SliceRules:
    """What makes slices of the files of a table.

    Attributes:
        visible: the visible instants.
        by_completion: whether log files belong to slices by the completion of their writes (layout 2).
        replaced: the replaced file groups, as partition path and file id.
        slices_of: returns the slices of a file group, oldest first, from its partition path, id and files.
    """

    visible: Visibility
    by_completion: bool
    replaced: Collection[tuple[str, str]]
    slices_of: Callable[[str, str, GroupFiles], list[FileSlice]]


def latest_in_columns(files: FileColumns, rules: SliceRules) -> SliceColumns:
    """Return the latest slice of each file group that is not replaced, by partition and file id.

    Args:
        files: the listed files.
        rules: what makes slices of them.
    """
    data = DataFiles.of(files.names)
    groups, times = _Groups.among(files, data), _Times.of(data.instants, rules.visible)
    bases, is_special = _latest_bases(data, groups, times)
    base_at = np.where(bases == _NONE, _NONE, times.at[bases])[groups.of]
    is_log = data.is_log & times.is_seen
    of_slice = is_log & (times.done >= base_at)
    is_unsure = data.is_log
    if rules.by_completion:  # a write whose completion was archived may have completed before or after
        is_unsure = is_log & (times.done == times.at) & (times.at < base_at)
    is_special[groups.of[is_unsure]] = True
    exists = bases != _NONE
    exists[groups.of[is_log]] = True
    of_slice &= ~is_special[groups.of]
    logs, log_groups = data.rows[of_slice], groups.of[of_slice]
    order = np.argsort(log_groups, kind="stable")
    found = SliceColumns(
        files,
        groups.partitions,
        groups.file_ids,
        np.where(bases == _NONE, _NONE, data.rows[bases]),
        logs[order],
        log_groups[order],
        {},
    )
    special = np.flatnonzero(is_special)
    found = _with_sliced_groups(found, data.rows, groups, special, rules)
    exists[special] = [number in found.made for number in special.tolist()]
    return found.take(np.flatnonzero(exists & ~_replaced(found, rules.replaced)))


def _latest_bases(data: DataFiles, groups: _Groups, times: _Times) -> tuple[Array, Array]:
    """Return the latest visible base file of each group, -1 for none, and whether another has its instant."""
    count = len(groups.partitions)
    chosen = np.flatnonzero(times.is_seen & ~data.is_log)
    ordered = chosen[np.lexsort((times.at[chosen], groups.of[chosen]))]
    group, at = groups.of[ordered], times.at[ordered]
    is_same = group[1:] == group[:-1]
    latest, has_rival = np.full(count, _NONE), np.zeros(count, np.bool_)
    latest[group] = ordered  # of several the last one stays
    has_rival[group[1:][is_same & (at[1:] == at[:-1])]] = True
    return latest, has_rival


@dataclass(frozen=True, slots=True)
class _Groups:
    """The file groups, by partition and file id.

    Attributes:
        of: the number of the group of each data file.
        partitions: the number of the partition path of each group.
        file_ids: the file id of each group.
    """

    of: Array
    partitions: Array
    file_ids: pa.StringArray

    @staticmethod
    def among(files: FileColumns, data: DataFiles) -> _Groups:
        encoded = data.file_ids.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        rank = np.empty(len(order), np.int64)
        rank[order.to_numpy()] = np.arange(len(order))
        count = max(1, len(order))
        pairs = files.partitions[data.rows] * count + rank[encoded.indices.to_numpy()]
        distinct, numbers = np.unique(pairs, return_inverse=True)
        file_ids = encoded.dictionary.take(order).take(pa.array(distinct % count))
        return _Groups(numbers, distinct // count, file_ids)


@dataclass(frozen=True, slots=True)
class _Times:
    """The instants in the names of data files, and when they completed, as ranks of one order.

    Attributes:
        is_seen: whether the instant is visible.
        at: the rank of the instant.
        done: the rank of its completion.
    """

    is_seen: Array
    at: Array
    done: Array

    @staticmethod
    def of(instants: pa.StringArray, visible: Visibility) -> _Times:
        encoded = instants.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        completed = [visible.completion_of(text) or text for text in texts]
        ranks = {text: rank for rank, text in enumerate(sorted({*texts, *completed}))}
        places = encoded.indices.to_numpy()
        return _Times(
            np.array([visible.sees(text) for text in texts], np.bool_)[places],
            np.array([ranks[text] for text in texts], np.int64)[places],
            np.array([ranks[text] for text in completed], np.int64)[places],
        )


def _replaced(slices: SliceColumns, replaced: Collection[tuple[str, str]]) -> Array:
    """Return which of some slices are of file groups that were replaced."""
    if not replaced:
        return np.zeros(len(slices), np.bool_)
    ids = pa.array(sorted({file_id for _, file_id in replaced}), pa.string())
    may_be = pc.is_in(slices.file_ids, value_set=ids).to_numpy(zero_copy_only=False)
    paths = slices.files.paths
    for number in np.flatnonzero(may_be):
        may_be[number] = (paths[slices.partitions[number]], slices.file_ids[number].as_py()) in replaced
    return np.asarray(may_be)


def _with_sliced_groups(
    slices: SliceColumns, rows: Array, groups: _Groups, special: Array, rules: SliceRules
) -> SliceColumns:
    """Return slices of all groups with those of some groups as `slicing` makes them.

    Args:
        slices: the slices of the other groups, a slice a group.
        rows: the places of the data files.
        groups: their file groups.
        special: the numbers of the groups, ascending.
        rules: what makes slices.
    """
    order = np.argsort(groups.of, kind="stable")
    ends = np.searchsorted(groups.of[order], special, side="right")
    starts = np.searchsorted(groups.of[order], special)
    bases, logs, made = slices.bases.copy(), [], {}
    for number, start, end in zip(special.tolist(), starts, ends, strict=True):
        own = rows[order[start:end]]
        of_paths = dict(zip(slices.files.statuses(own), own.tolist(), strict=True))
        path, file_id = slices.files.paths[groups.partitions[number]], groups.file_ids[number].as_py()
        for made[number] in rules.slices_of(path, file_id, group_files(of_paths)[file_id])[-1:]:
            base = made[number].base
            bases[number] = _NONE if base is None else of_paths[base.status]
            logs += [(number, of_paths[log.status]) for log in made[number].logs]
    log_slices = np.concatenate([slices.log_slices, np.array([number for number, _ in logs], np.int64)])
    by_slice = np.argsort(log_slices, kind="stable")
    places = np.concatenate([slices.logs, np.array([row for _, row in logs], np.int64)])
    return replace(slices, bases=bases, logs=places[by_slice], log_slices=log_slices[by_slice], made=made)
