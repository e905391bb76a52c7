"""What an ingestion did and does."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.model.result import CommitResult, Result


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """What an ingestion has done when it has committed a batch.

    Attributes:
        commit: the commit of the batch.
        checkpoint: where the source goes on.
        batches: batches so far.
        rows: rows that were read so far.
        size, unit: size of this batch, and what it counts: `bytes`, `records` or `commits`.
        left: what waits in the source, in the same unit.
        rejected: records that were left out or went to the error table so far.
        seconds: duration so far.
    """

    commit: CommitResult
    checkpoint: str
    batches: int
    rows: int
    size: int
    unit: str
    left: int
    rejected: int
    seconds: float


@dataclass(frozen=True, slots=True)
class IngestResult(Result):
    """What an ingestion did.

    Attributes:
        batches: batches that were committed.
        rows: rows that were read.
        rejected: records that were left out, or went to the error table.
        checkpoint: where the source goes on; empty if it never had anything.
        seconds: duration.
    """

    batches: int
    rows: int
    rejected: int
    checkpoint: str
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether there is a commit."""
        return self.batches > 0
