"""Options of compaction: when it is due, which file groups it compacts, and which process runs it."""

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
    """Which file groups a compaction compacts, and in which order; Hudi's class names without the suffix."""

    LOG_FILE_SIZE = "LogFileSizeBased"
    LOG_FILE_NUMBER = "LogFileNumBased"
    BOUNDED_IO = "BoundedIO"
    UNBOUNDED = "UnBounded"
    DAY_BASED = "DayBased"
    BOUNDED_PARTITIONS = "BoundedPartitionAware"
    UNBOUNDED_PARTITIONS = "UnBoundedPartitionAware"
    PARTITION_REGEX = "PartitionRegexBased"


class Trigger(StrEnum):
    """The condition under which a compaction is due."""

    COMMITS = "NUM_COMMITS"
    COMMITS_SINCE_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    SECONDS = "TIME_ELAPSED"
    COMMITS_AND_SECONDS = "NUM_AND_TIME"
    COMMITS_OR_SECONDS = "NUM_OR_TIME"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """Settings of compaction and log compaction.

    Attributes:
        inline: whether a write compacts the table when a compaction is due.
        by_default: whether `inline` is true only because no option says which process compacts.
        schedule_inline: whether a write only plans a due compaction, for another process to run.
        background: whether a write runs a due compaction in a thread of its own process.
        trigger: the condition under which a compaction is due.
        commits: delta commits after which it is due.
        seconds: seconds after which it is due.
        strategies: strategies that choose the file groups, applied one after the other.
        target_io_mib: largest I/O of a plan, MiB.
        log_bytes_min: bytes of log files below which a file group is skipped.
        log_files_min: number of log files below which a file group is skipped.
        partitions: number of partitions of the day-based strategy, or days of the partition-aware ones.
        partition_regex: regular expression of the partitions to compact.
        log_inline: whether a write runs a log compaction when due.
        log_blocks: log blocks of a file group at which a log compaction is due.
        hybrid: whether a compaction chooses between compaction and log compaction for each file group; None
            if no option says so.
        full_log_ratio: of hybrid compaction, the size of the log records relative to the base file at which a
            file group gets a new base file.
        full_space_ratio: of hybrid compaction, the size of all log files relative to the base file at which
            it gets one.
        full_log_files: of hybrid compaction, the number of log files at which it gets one.
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
    hybrid: bool | None
    full_log_ratio: float
    full_space_ratio: float
    full_log_files: int

    @classmethod
    def take(cls, fields: dict[str, Any]) -> Self:
        """Remove the settings from the fields of parsed options, and return them.

        Raises:
            InvalidError: a regular expression is not valid.
            UnsupportedError: a strategy is not one of `Strategy`.
        """
        settings = {option.field: fields.pop(option.field) for option in COMPACTION_OPTIONS}
        is_unset = settings["inline"] is None
        settings["by_default"] = is_unset and not (settings["background"] or settings["schedule_inline"])
        settings["inline"] = settings["by_default"] if is_unset else settings["inline"]
        settings["trigger"] = Trigger(settings["trigger"])
        settings["strategies"] = tuple(_strategy(name) for name in settings["strategies"])
        try:
            re.compile(settings["partition_regex"])
        except re.error as error:
            raise InvalidError(
                f"{_REGEX_KEY} is {settings['partition_regex']!r}, which is not a regular expression"
                f" ({error}). Correct it."
            ) from None
        return cls(**settings)


def _strategy(name: str) -> Strategy:
    short_name = name.rpartition(".")[2].removesuffix(_SUFFIX)
    for strategy in Strategy:
        if strategy.lower() == short_name.lower():
            return strategy
    raise UnsupportedError(
        f"{_STRATEGY_KEY}={name} is not supported. Use one of "
        + ", ".join(f"{strategy}{_SUFFIX}" for strategy in Strategy)
        + "."
    )


COMPACTION_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.compact.inline",
        "Whether a write to a MERGE_ON_READ table compacts it when due, and runs pending plans of others."
        " When not given, it compacts when due unless a thread or another process is configured to do so, and"
        " runs pending plans of others only then.",
        kind=Kind.FLAG,
        field="inline",
    ),
    Option(
        "hoodie.compact.schedule.inline",
        "Whether a write to a MERGE_ON_READ table only plans a due compaction; another process runs it.",
        kind=Kind.FLAG,
        default=False,
        field="schedule_inline",
    ),
    Option(
        "hoodie.datasource.compaction.async.enable",
        "Whether a write plans a due compaction, and a thread of its process runs it in the background. Call"
        " `table.wait_for_services()` before the process ends, otherwise the compaction may remain pending.",
        kind=Kind.FLAG,
        default=False,
        field="background",
    ),
    Option(
        "hoodie.compact.inline.trigger.strategy",
        "When a compaction is due: after a number of delta commits since the last one completed, or since it"
        " was requested; after a time; after both; or after either.",
        default=str(Trigger.COMMITS),
        choices=tuple(Trigger),
        field="trigger",
    ),
    Option(
        "hoodie.compact.inline.max.delta.commits",
        "Delta commits after which a compaction is due. So many stay on the active timeline until then, as in"
        " Hudi: to put compactions off, set hoodie.compact.inline=false rather than a great number here.",
        kind=Kind.NUMBER,
        default=5,
        field="commits",
    ),
    Option(
        "hoodie.compact.inline.max.delta.seconds",
        "Seconds since the last compaction, or the first delta commit, after which a compaction is due.",
        kind=Kind.NUMBER,
        default=3600,
        field="seconds",
    ),
    Option(
        _STRATEGY_KEY,
        "Which file groups a compaction compacts, and in which order: a class of Hudi's, in full or without"
        " package and suffix; of several, each one narrows the choice of the one before.",
        kind=Kind.LIST,
        default=(f"{_PACKAGE}{Strategy.LOG_FILE_SIZE}{_SUFFIX}",),
        field="strategies",
    ),
    Option(
        "hoodie.compaction.target.io",
        "Largest I/O (reads and writes) of one compaction with a bounded strategy, MiB.",
        kind=Kind.NUMBER,
        default=500 * 1024,
        field="target_io_mib",
    ),
    Option(
        "hoodie.compaction.logfile.size.threshold",
        "Bytes of log files below which LogFileSizeBasedCompactionStrategy skips a file group.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="log_bytes_min",
    ),
    Option(
        "hoodie.compaction.logfile.num.threshold",
        "Log files below which LogFileNumBasedCompactionStrategy skips a file group.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="log_files_min",
    ),
    Option(
        "hoodie.compaction.daybased.target.partitions",
        "Number of partitions that the day-based strategy compacts, and number of days that the"
        " partition-aware strategies look back.",
        kind=Kind.NUMBER,
        default=10,
        field="partitions",
    ),
    Option(
        _REGEX_KEY,
        "Regular expression of the partitions that PartitionRegexBasedCompactionStrategy compacts; it may"
        " match any part of the path.",
        default=".*",
        field="partition_regex",
    ),
    Option(
        "hoodie.log.compaction.inline",
        "Whether a write to a MERGE_ON_READ table runs a log compaction when due, which merges the log files"
        " of a file group into one.",
        kind=Kind.FLAG,
        default=False,
        field="log_inline",
    ),
    Option(
        "hoodie.log.compaction.blocks.threshold",
        "Log blocks of a file group at which a log compaction is due.",
        kind=Kind.NUMBER,
        default=5,
        minimum=2,
        field="log_blocks",
    ),
    Option(
        "drawstring.compaction.hybrid",
        "Whether a compaction decides for each file group whether to compact it into a new base file, merge"
        " its newest log files into one (from `hoodie.log.compaction.blocks.threshold` writes and log"
        " compactions on), or skip it. When not given, compactions after a commit do so if the storage layout"
        " is lsm_tree. Version 8 and later.",
        kind=Kind.FLAG,
        field="hybrid",
    ),
    Option(
        "drawstring.compaction.hybrid.log.ratio",
        "Hybrid compaction: size of the log records relative to the base file at which a file group gets a"
        " new base file; a file group without a base file always gets one.",
        kind=Kind.FRACTION,
        default=0.3,
        field="full_log_ratio",
    ),
    Option(
        "drawstring.compaction.hybrid.space.ratio",
        "Hybrid compaction: size of all log files, those that were merged into others included, relative to"
        " the base file at which a file group gets a new base file.",
        kind=Kind.FRACTION,
        default=1.0,
        field="full_space_ratio",
    ),
    Option(
        "drawstring.compaction.hybrid.log.files",
        "Hybrid compaction: number of log files at which a file group gets a new base file, regardless of"
        " their size.",
        kind=Kind.NUMBER,
        default=100,
        field="full_log_files",
    ),
)
