"""Options of writes that are batches of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option

_PREFIX: Final = "hoodie.datasource.write.streaming."


@dataclass(frozen=True, slots=True)
class Streaming:
    """Settings of a stream.

    Attributes:
        name: whose position a commit has: one name for each stream into a table.
        attempts: how often a batch is tried.
        pause_ms: milliseconds before the second attempt; each further pause is twice as long.
        ignores_failed: whether a batch that failed is left out.
        skips_compaction: whether the stream leaves compaction to others.
    """

    name: str
    attempts: int
    pause_ms: int
    ignores_failed: bool
    skips_compaction: bool


STREAMING_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        f"{_PREFIX}checkpoint.identifier",
        "Name of a stream: a commit stores its position under it, so that each batch counts once. Give"
        " streams into the same table different names.",
        default="default_single_writer",
        field="name",
    ),
    Option(
        f"{_PREFIX}retry.count",
        "How often a batch of a stream is tried.",
        kind=Kind.NUMBER,
        default=3,
        field="attempts",
    ),
    Option(
        f"{_PREFIX}retry.interval.ms",
        "Milliseconds between the first and the second attempt; each further pause is twice as long.",
        kind=Kind.NUMBER,
        default=2000,
        minimum=0,
        field="pause_ms",
    ),
    Option(
        f"{_PREFIX}ignore.failed.batch",
        "Whether a stream goes on without a batch that failed. Its rows are lost.",
        kind=Kind.FLAG,
        default=False,
        field="ignores_failed",
        warning="a batch of a stream that fails is left out, and its rows are lost.",
    ),
    Option(
        f"{_PREFIX}disable.compaction",
        "Whether a stream never compacts a MERGE_ON_READ table; another process does.",
        kind=Kind.FLAG,
        default=False,
        field="skips_compaction",
    ),
)
