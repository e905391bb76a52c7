"""The file slices that a query may have to read, one by one and in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.base.sequences import LazySequence
from drawstring.filegroups.view.slice_columns import SliceColumns
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile
from drawstring.query.pruning import Partition

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A file slice that a query may have to read.

    Attributes:
        partition: its partition.
        file_slice: the slice.
        also: the files of another slice that it takes values from; None for none.
    """

    partition: Partition
    file_slice: FileSlice
    also: FileSlice | None = None

    @property
    def logs(self) -> Sequence[LogFile]:
        """All log files."""
        return (*self.file_slice.logs, *(self.also.logs if self.also else ()))

    @property
    def statuses(self) -> list[FileStatus]:
        """All files, base files first."""
        return [*(each.status for each in self.bases), *(each.status for each in self.logs)]

    @property
    def bases(self) -> Iterator[BaseFile]:
        """All base files."""
        for each in (self.file_slice, self.also):
            if each is not None and each.base is not None:
                yield each.base


class LazyCandidates(LazySequence[Candidate]):
    """Candidates that are known in columns, each made when it is asked for.

    Args:
        slices: their slices.
        partitions: the partitions with the paths of `slices.files`, in the same order.
    """

    def __init__(self, slices: SliceColumns, partitions: Sequence[Partition]) -> None:
        super().__init__(len(slices), self._candidate, self._candidates)
        self.slices = slices
        self.partitions = partitions

    @property
    def has_logs(self) -> bool:
        """Whether any slice has log files."""
        return len(self.slices.logs) > 0

    @property
    def size_bytes(self) -> int:
        """The size of the slices."""
        return self.slices.size_bytes

    def _candidate(self, number: int) -> Candidate:
        partition = self.partitions[self.slices.partitions[number]]
        return Candidate(partition, self.slices.slice_at(number))

    def _candidates(self) -> Iterator[Candidate]:
        places = self.slices.partitions.tolist()
        for place, each in zip(places, self.slices.each(), strict=True):
            yield Candidate(self.partitions[place], each)


def those_that(matches: Array, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return those of some candidates that may match.

    Args:
        matches: for each candidate whether it may.
        candidates: the candidates.
    """
    if isinstance(candidates, LazyCandidates):
        return LazyCandidates(candidates.slices.take(np.flatnonzero(matches)), candidates.partitions)
    return [each for each, is_match in zip(candidates, matches, strict=True) if is_match]


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """Candidates and their files.

    Attributes:
        partitions: partitions, among them those of the candidates.
        places: the number of the partition of each candidate.
        file_ids: the file group of each candidate.
        has_logs: which candidates have log files.
        names: the name of each file; null if statistics do not describe it.
        groups: the number of the candidate of each file.
    """

    partitions: Sequence[Partition]
    places: Array
    file_ids: pa.StringArray
    has_logs: Array
    names: pa.StringArray
    groups: Array

    @staticmethod
    def of(candidates: Sequence[Candidate]) -> CandidateColumns:
        """Return candidates in columns."""
        if isinstance(candidates, LazyCandidates):
            return _of_slices(candidates.slices, candidates.partitions)
        return _of_each(candidates)

    @property
    def paths(self) -> pa.StringArray:
        """The partition path of each candidate."""
        return pa.array([each.path for each in self.partitions], pa.string()).take(pa.array(self.places))

    @property
    def own_partitions(self) -> list[Partition]:
        """The partitions of the candidates."""
        return [self.partitions[place] for place in np.unique(self.places)]


def _of_slices(slices: SliceColumns, partitions: Sequence[Partition]) -> CandidateColumns:
    has_base = np.flatnonzero(slices.has_base)
    rows = np.concatenate([slices.bases[has_base], slices.logs])
    return CandidateColumns(
        partitions,
        slices.partitions,
        slices.file_ids,
        slices.has_logs,
        slices.files.names.take(pa.array(rows)),
        np.concatenate([has_base, slices.log_slices]),
    )


def _of_each(candidates: Sequence[Candidate]) -> CandidateColumns:
    numbers: dict[str, int] = {}
    partitions: list[Partition] = []
    places: list[int] = []
    names: list[str | None] = []
    groups: list[int] = []
    for number, each in enumerate(candidates):
        places.append(numbers.setdefault(each.partition.path, len(numbers)))
        if places[-1] == len(partitions):
            partitions.append(each.partition)
        # The statistics of a bootstrapped file are those of its meta columns.
        of_bases = [base.status.name if base.source is None else None for base in each.bases]
        own = [*of_bases, *(log.status.name for log in each.logs)]
        names += own
        groups += [number] * len(own)
    return CandidateColumns(
        partitions,
        np.array(places, np.int64),
        pa.array([each.file_slice.file_id for each in candidates], pa.string()),
        np.array([bool(each.logs) for each in candidates], np.bool_),
        pa.array(names, pa.string()),
        np.array(groups, np.int64),
    )
