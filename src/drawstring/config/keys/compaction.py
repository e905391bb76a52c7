"""Options about compaction: which file groups it takes, when it is due, and who runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import Kind, Option

_STRATEGY_KEY: Final = "hoodie.compaction.strategy"
_REGEX_KEY: Final = "hoodie.compaction.partition.path.regex"
_PACKAGE: Final = "org.apache.hudi.table.action.compact.strategy."
_SUFFIX: Final = "CompactionStrategy"


class Strategy(StrEnum):
    """Which file groups a compaction takes and in which order; Hudi's class names without the ending."""

    LOG_FILE_SIZE = "LogFileSizeBased"
    LOG_FILE_NUMBER = "LogFileNumBased"
    BOUNDED_IO = "BoundedIO"
    UNBOUNDED = "UnBounded"
    DAY_BASED = "DayBased"
    BOUNDED_PARTITIONS = "BoundedPartitionAware"
    UNBOUNDED_PARTITIONS = "UnBoundedPartitionAware"
    PARTITION_REGEX = "PartitionRegexBased"


class Trigger(StrEnum):
    """What makes a compaction due."""

    COMMITS = "NUM_COMMITS"
    COMMITS_SINCE_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    SECONDS = "TIME_ELAPSED"
    COMMITS_AND_SECONDS = "NUM_AND_TIME"
    COMMITS_OR_SECONDS = "NUM_OR_TIME"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """How and when a table is compacted.

    Attributes:
        inline: whether a write compacts when due.
        by_default: whether it does so because nobody said who compacts.
        schedule_inline: whether a write makes the plan when due, for another process to run.
        background: whether a write has it run by a thread of its own process when due.
        trigger: what makes it due.
        commits: delta commits after which it is due.
        seconds: seconds after which it is due.
        strategies: which file groups it takes, one strategy after the other.
        target_io_mib: reading and writing of one plan, MiB.
        log_bytes_min: bytes of log files below which a file group is left alone.
        log_files_min: number of log files below which it is.
        partitions: how many days a day-based strategy looks back, or takes.
        partition_regex: which partitions it takes.
        log_inline: whether a write compacts logs among themselves when due.
        log_blocks: log blocks of a file group at which its logs are compacted among themselves.
        hybrid: whether a compaction decides by file group between a base file and a log file.
        full_log_ratio: of hybrid compaction: bytes of logs, as a share of those of the base file, at which a
            file group gets a base file.
        full_log_files: of hybrid compaction: number of log files at which it does.
    """

    inline: bool
    by_default: bool
    schedule_inline: bool
    background: bool
    trigger: Trigger
    commits: int
    seconds: int
    strategies: tuple[Strategy, ...]
    target_io_mib: int
    log_bytes_min: int
    log_files_min: int
    partitions: int
    partition_regex: str
    log_inline: bool
    log_blocks: int
    hybrid: bool
    full_log_ratio: float
    full_log_files: int

    @classmethod
    def take(cls, fields: dict[str, Any]) -> Self:
        """Return the settings among the fields of parsed options, which are taken out of them.

        Raises:
            InvalidError: a regular expression that is none.
            UnsupportedError: a strategy of the user's own.
        """
        taken = {option.field: fields.pop(option.field) for option in COMPACTION_OPTIONS}
        unsaid = taken["inline"] is None
        taken["by_default"] = unsaid and not (taken["background"] or taken["schedule_inline"])
        taken["inline"] = taken["by_default"] if unsaid else taken["inline"]
        taken["trigger"] = Trigger(taken["trigger"])
        taken["strategies"] = tuple(_strategy(name) for name in taken["strategies"])
        try:
            re.compile(taken["partition_regex"])
        except re.error as error:
            raise InvalidError(
                f"{_REGEX_KEY} is {taken['partition_regex']!r}, which is no regular expression: {error}"
            ) from None
        return cls(**taken)


def _strategy(name: str) -> Strategy:
    asked = name.rpartition(".")[2].removesuffix(_SUFFIX)
    for strategy in Strategy:
        if strategy.lower() == asked.lower():
            return strategy
    raise UnsupportedError(
        f"{_STRATEGY_KEY}={name} is no strategy that drawstring has: use one of "
        + ", ".join(f"{each}{_SUFFIX}" for each in Strategy)
    )


COMPACTION_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.compact.inline",
        "Whether a write to a MERGE_ON_READ table compacts it when due, and runs what others planned. Not"
        " given: it compacts when due, unless a thread or another process is to, and what others planned can"
        " wait till then.",
        kind=Kind.FLAG,
        field="inline",
    ),
    Option(
        "hoodie.compact.schedule.inline",
        "Whether a write to a MERGE_ON_READ table plans its compaction when due; another process runs it.",
        kind=Kind.FLAG,
        default=False,
        field="schedule_inline",
    ),
    Option(
        "hoodie.datasource.compaction.async.enable",
        "Whether a write plans a compaction when due, and a thread of its process runs it meanwhile. Call"
        " `table.wait_for_services()` before the process ends, else it stays planned.",
        kind=Kind.FLAG,
        default=False,
        field="background",
    ),
    Option(
        "hoodie.compact.inline.trigger.strategy",
        "What makes compaction due: delta commits since the last one completed, or was requested; time; both;"
        " or either.",
        default=str(Trigger.COMMITS),
        choices=tuple(Trigger),
        field="trigger",
    ),
    Option(
        "hoodie.compact.inline.max.delta.commits",
        "Delta commits after which compaction is due.",
        kind=Kind.NUMBER,
        default=5,
        field="commits",
    ),
    Option(
        "hoodie.compact.inline.max.delta.seconds",
        "Seconds since the last compaction, or the first delta commit, after which compaction is due.",
        kind=Kind.NUMBER,
        default=3600,
        field="seconds",
    ),
    Option(
        _STRATEGY_KEY,
        "Which file groups a compaction takes, and which of them first: a class of Hudi's, in full or without"
        " package and ending; several in a row narrow each other's choice.",
        kind=Kind.LIST,
        default=(f"{_PACKAGE}{Strategy.LOG_FILE_SIZE}{_SUFFIX}",),
        field="strategies",
    ),
    Option(
        "hoodie.compaction.target.io",
        "What the bounded strategies read and write in one compaction, MiB.",
        kind=Kind.NUMBER,
        default=500 * 1024,
        field="target_io_mib",
    ),
    Option(
        "hoodie.compaction.logfile.size.threshold",
        "Bytes of log files below which LogFileSizeBasedCompactionStrategy leaves a file group alone.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="log_bytes_min",
    ),
    Option(
        "hoodie.compaction.logfile.num.threshold",
        "Log files below which LogFileNumBasedCompactionStrategy leaves a file group alone.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="log_files_min",
    ),
    Option(
        "hoodie.compaction.daybased.target.partitions",
        "How many partitions the day-based strategy takes, and how many days the partition-aware ones look"
        " back.",
        kind=Kind.NUMBER,
        default=10,
        field="partitions",
    ),
    Option(
        _REGEX_KEY,
        "Which partitions PartitionRegexBasedCompactionStrategy takes: those whose path matches somewhere.",
        default=".*",
        field="partition_regex",
    ),
    Option(
        "hoodie.log.compaction.inline",
        "Whether a write to a MERGE_ON_READ table makes one log file of many in a file group.",
        kind=Kind.FLAG,
        default=False,
        field="log_inline",
    ),
    Option(
        "hoodie.log.compaction.blocks.threshold",
        "Log blocks of a file group at which its log files become one.",
        kind=Kind.NUMBER,
        default=5,
        minimum=2,
        field="log_blocks",
    ),
    Option(
        "drawstring.compaction.hybrid",
        "Whether a compaction decides for each file group whether it gets a new base file, or one log file in"
        " place of many (at `hoodie.log.compaction.blocks.threshold`), or is left alone. Versions 8 and 9.",
        kind=Kind.FLAG,
        default=False,
        field="hybrid",
    ),
    Option(
        "drawstring.compaction.hybrid.log.ratio",
        "Hybrid compaction: bytes of log files, as a share of the base file's, at which there is a new base"
        " file; a file group without one gets it always.",
        kind=Kind.FRACTION,
        default=0.3,
        field="full_log_ratio",
    ),
    Option(
        "drawstring.compaction.hybrid.log.files",
        "Hybrid compaction: number of log files at which there is a new base file, whatever their size.",
        kind=Kind.NUMBER,
        default=100,
        field="full_log_files",
    ),
)
