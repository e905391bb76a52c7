"""Define the options of the table services: archive, clean, clustering, compaction, partition TTL.

- Archiving: the length of the active timeline, and the files of the archived one.
- Cleaning: which old file slices are retained.
- Clustering: when it is due, which file groups it rewrites, and how it sorts their rows.
- Compaction: when it is due, which file groups it compacts, and which process runs it.
- Partition TTL: drops partitions by age.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.java_compat import simple_class_name
from drawstring.config.keys.sizing import MIB
from drawstring.config.options.option import Kind, Option, class_names
from drawstring.model.plans import CleanPolicy

CLEAN_WINDOW: Final = "drawstring.clean.window.minutes"
"""Option of the greatest duration of queries whose files a clean retains."""

_MIN: Final = 20
_MAX: Final = 30


@dataclass(frozen=True, slots=True)
class Archiving:
    """Settings of archiving.

    Attributes:
        automatic: whether every write archives.
        asked_min: writes that are to remain on the active timeline after archiving, None if not given.
        asked_max: writes on the active timeline before archiving is to start, None if not given.
        beyond_savepoint: whether writes after a savepoint are archived.
        waits_for_cleans: whether writes whose files the last clean retained stay on the timeline.
        commits_min, commits_max: the two bounds; one that is given alone raises the other.
        batch_files: files of one level of the archived timeline that are merged into one of the next level.
        file_bytes_max: target size in bytes of a file of the archived timeline.
        manifests_kept: older versions of the archived timeline that are retained for readers.
    """

    automatic: bool
    asked_min: int | None
    asked_max: int | None
    beyond_savepoint: bool
    batch_files: int
    file_bytes_max: int
    manifests_kept: int
    waits_for_cleans: bool = False
    commits_min: int = field(init=False)
    commits_max: int = field(init=False)

    def __post_init__(self) -> None:
        commits_min = _MIN if self.asked_min is None else self.asked_min
        commits_max = commits_min + _MAX - _MIN if self.asked_max is None else self.asked_max
        if self.asked_min is None:
            commits_max = max(commits_max, commits_min + 1)
        object.__setattr__(self, "commits_min", commits_min)
        object.__setattr__(self, "commits_max", commits_max)
        if commits_min >= commits_max:
            raise InvalidError(
                f"hoodie.keep.max.commits is {commits_max}, which is not greater than"
                f" hoodie.keep.min.commits ({commits_min}). Change one of them."
            )


ARCHIVE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.archive.automatic",
        "Whether a write moves old instants into the archived timeline after its commit.",
        kind=Kind.FLAG,
        default=True,
        field="automatic",
    ),
    Option(
        "hoodie.keep.min.commits",
        "Newest writes that remain on the active timeline after archiving, 20 when not given; at least two"
        " more than a clean retains.",
        kind=Kind.NUMBER,
        field="asked_min",
    ),
    Option(
        "hoodie.keep.max.commits",
        "Writes on the active timeline before archiving starts; when not given 10 more than remain. Given"
        " alone, it is at least one more than remain.",
        kind=Kind.NUMBER,
        field="asked_max",
    ),
    Option(
        "hoodie.archive.beyond.savepoint",
        "Whether writes after the first savepoint are archived, except the savepoints themselves.",
        kind=Kind.FLAG,
        default=False,
        field="beyond_savepoint",
    ),
    Option(
        "hoodie.archive.block.on.latest.clean.ectr",
        "Whether writes stay on the timeline from the earliest one on that the last clean retained.",
        kind=Kind.FLAG,
        default=False,
        field="waits_for_cleans",
    ),
    Option(
        "hoodie.timeline.compaction.batch.size",
        "Files of one level of the archived timeline (versions 8 and 9) that are merged into one of the"
        " next.",
        kind=Kind.NUMBER,
        default=10,
        minimum=2,
        field="batch_files",
    ),
    Option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        "Target size of a file of the archived timeline, bytes.",
        kind=Kind.NUMBER,
        default=1000 * 1024 * 1024,
        field="file_bytes_max",
    ),
    Option(
        "hoodie.timeline.manifest.retained.versions",
        "Versions of the archived timeline that are retained for running readers.",
        kind=Kind.NUMBER,
        default=3,
        field="manifests_kept",
    ),
)


PARTITION_PATTERN: Final = "hoodie.clean.partition.filter.regex"
_POLICIES: Final = tuple(each.value for each in CleanPolicy)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Settings of cleaning.

    Attributes:
        automatic: whether every write cleans.
        policy: `KEEP_LATEST_COMMITS`, `KEEP_LATEST_FILE_VERSIONS` or `KEEP_LATEST_BY_HOURS`.
        commits_retained: newest commits whose files are retained.
        versions_retained: newest file slices of a file group that are retained.
        hours_retained: hours for which files are retained.
        incremental: whether a clean scans only the partitions that changed since the last clean.
        partition_pattern: regular expression of the partitions that a clean looks at, None for all.
        partitions: paths of the partitions that it looks at, which win over the pattern; empty for all.
        commits_max: most commits that a clean covers after the one before; None for no bound.
        due_after_commits: commits after the last clean before the next one.
        has_filter: whether a clean leaves out partitions.
        window_minutes: duration of queries whose files are retained regardless of the policy; 0 for none.
    """

    automatic: bool
    policy: str
    commits_retained: int
    versions_retained: int
    hours_retained: int
    incremental: bool
    partition_pattern: str | None
    partitions: tuple[str, ...]
    commits_max: int | None
    due_after_commits: int
    window_minutes: int
    has_filter: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_filter", bool(self.partitions or self.partition_pattern))
        if self.partition_pattern:
            try:
                re.compile(self.partition_pattern)
            except re.error as error:
                raise InvalidError(
                    f"{PARTITION_PATTERN} is {self.partition_pattern!r}, which is no regular expression"
                    f" ({error}). Correct it, or drop it."
                ) from None

    def covers(self, partition: str) -> bool:
        """Return whether a clean looks at a partition."""
        if self.partitions:
            return partition in self.partitions
        return not self.partition_pattern or re.fullmatch(self.partition_pattern, partition) is not None


CLEAN_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clean.automatic",
        "Whether a write cleans the table, that is deletes old file slices, after its commit.",
        kind=Kind.FLAG,
        default=True,
        field="automatic",
    ),
    Option(
        "hoodie.clean.policy",
        "What a clean retains: the files of the newest commits, the newest file slices of each file group, or"
        " the files of the last hours.",
        default=_POLICIES[0],
        choices=_POLICIES,
        alternatives=("hoodie.cleaner.policy",),
        field="policy",
    ),
    Option(
        "hoodie.clean.commits.retained",
        "Newest commits whose files a clean retains.",
        kind=Kind.NUMBER,
        default=10,
        alternatives=("hoodie.cleaner.commits.retained",),
        field="commits_retained",
    ),
    Option(
        "hoodie.clean.fileversions.retained",
        "Newest file slices of each file group that a clean retains.",
        kind=Kind.NUMBER,
        default=3,
        alternatives=("hoodie.cleaner.fileversions.retained",),
        field="versions_retained",
    ),
    Option(
        "hoodie.clean.hours.retained",
        "Hours for which a clean retains files.",
        kind=Kind.NUMBER,
        default=24,
        alternatives=("hoodie.cleaner.hours.retained",),
        field="hours_retained",
    ),
    Option(
        "hoodie.clean.incremental.enabled",
        "Whether a clean scans only the partitions that changed since the last clean.",
        kind=Kind.FLAG,
        default=True,
        alternatives=("hoodie.cleaner.incremental.mode",),
        field="incremental",
    ),
    Option(
        PARTITION_PATTERN,
        "Regular expression of the paths of the partitions that a clean looks at, all of it; the others keep"
        " their files. Such a clean scans all of these partitions.",
        alternatives=("hoodie.cleaner.partition.filter.regex",),
        field="partition_pattern",
    ),
    Option(
        "hoodie.clean.partition.filter.selected",
        "Paths of the partitions that a clean looks at; they win over the regular expression.",
        kind=Kind.LIST,
        default=(),
        alternatives=("hoodie.cleaner.partition.filter.selected",),
        field="partitions",
    ),
    Option(
        "hoodie.clean.max.commits.to.clean",
        "Most commits whose files a clean deletes, counted from the first one that the clean before retained;"
        " later cleans go on from there. No bound when not given.",
        kind=Kind.NUMBER,
        field="commits_max",
    ),
    Option(
        "hoodie.clean.trigger.max.commits",
        "Commits after the last clean before a write cleans again.",
        kind=Kind.NUMBER,
        default=1,
        alternatives=("hoodie.clean.max.commits",),
        field="due_after_commits",
    ),
    Option(
        CLEAN_WINDOW,
        "Longest duration of a query, in minutes: a clean retains the files that a query needs which began"
        " that long ago, however many commits there were since; 0 for no such guarantee.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="window_minutes",
    ),
)


_PLANS: Final = "org.apache.hudi.client.clustering.plan.strategy."
_UPDATES: Final = "org.apache.hudi.client.clustering.update.strategy."

SIZE_BASED: Final = "SparkSizeBasedClusteringPlanStrategy"
RECENT_DAYS: Final = "SparkRecentDaysClusteringPlanStrategy"
SELECTED: Final = "SparkSelectedPartitionsClusteringPlanStrategy"
SINGLE_FILE: Final = "SparkSingleFileSortPlanStrategy"
RESIZING: Final = "SparkConsistentBucketClusteringPlanStrategy"
BASE_FILES: Final = "SparkStreamCopyClusteringPlanStrategy"
_STRATEGIES: Final = (SIZE_BASED, RECENT_DAYS, SELECTED, SINGLE_FILE, BASE_FILES, RESIZING)

REJECT: Final = "SparkRejectUpdateStrategy"
ALLOW: Final = "SparkAllowUpdateStrategy"
DUAL_WRITE: Final = "SparkConsistentBucketDuplicateUpdateStrategy"
_UPDATE_STRATEGIES: Final = (REJECT, ALLOW, DUAL_WRITE)


class PartitionFilter(StrEnum):
    """Which partitions a clustering plan considers."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class Layout(StrEnum):
    """How rows are sorted by the sort columns."""

    LINEAR = "LINEAR"
    ZORDER = "ZORDER"
    HILBERT = "HILBERT"


@dataclass(frozen=True, slots=True)
class Clustering:
    """Settings of clustering.

    Attributes:
        inline, inline_commits: whether a write clusters the table when due, and after how many commits it is.
        background, background_commits: the same for clustering by a thread of the writer's process.
        schedule_inline: whether a write only plans a clustering, for another process to run.
        plan_strategy: Hudi's plan strategy class; None for the one that fits the table.
        partition_filter: one of `PartitionFilter`.
        partitions: the only partitions to cluster; empty for all.
        partition_pattern: regular expression that partition paths have to match.
        begin_partition, end_partition: range of SELECTED_PARTITIONS, both inclusive.
        lookback_partitions, skipped_partitions: of RECENT_DAYS, the number of partitions to cluster, and the
            number of newest partitions to skip before them.
        clusters_below_bytes: size below which the base file of a file group is clustered.
        target_file_bytes: target size of a new base file.
        group_bytes_max: largest size of a clustering group.
        groups_max: largest number of clustering groups of a plan.
        single_groups: whether a group of a single file group is clustered.
        cluster_by: sort columns.
        layout: one of `Layout`.
        curve_method: `DIRECT` for a curve through values, `SAMPLE` for one through their ranks.
        split_threshold, merge_threshold: of consistent hashing, the sizes above which a bucket is split and
            below which buckets are merged, as fractions of the target size of base files.
        buckets_max, buckets_min: bounds on the number of buckets of a partition; None for its initial number.
        split_policy: `MIDDLE` splits the bucket's hash range in half, `EVEN` its records.
        updates_strategy: Hudi's class that decides on writes to file groups in a pending clustering; None for
            the one that fits the index.
        rolls_back_on_conflict: whether such a write rolls back the pending clustering.
    """

    inline: bool
    inline_commits: int
    background: bool
    background_commits: int
    schedule_inline: bool
    plan_strategy: str | None
    partition_filter: str
    partitions: tuple[str, ...]
    partition_pattern: str | None
    begin_partition: str | None
    end_partition: str | None
    lookback_partitions: int
    skipped_partitions: int
    clusters_below_bytes: int
    target_file_bytes: int
    group_bytes_max: int
    groups_max: int
    single_groups: bool
    cluster_by: tuple[str, ...]
    layout: str
    curve_method: str
    split_threshold: float
    merge_threshold: float
    buckets_max: int | None
    buckets_min: int | None
    split_policy: str
    updates_strategy: str | None
    rolls_back_on_conflict: bool

    @classmethod
    def take(cls, fields: dict[str, Any]) -> Self:
        """Remove the settings from the fields of parsed options, and return them."""
        names = [option.field for option in CLUSTERING_OPTIONS]
        return cls(**{name.removeprefix(_CLUSTERING_FIELD_PREFIX): fields.pop(name) for name in names})

    @property
    def allows_updates(self) -> bool:
        """Whether file groups in a pending clustering may be written to."""
        return bool(self.updates_strategy) and simple_class_name(self.updates_strategy) == ALLOW

    @property
    def rejects_updates(self) -> bool:
        """Whether such writes are explicitly rejected, even if the index would allow them."""
        return simple_class_name(self.updates_strategy) == REJECT


_CLUSTERING_FIELD_PREFIX: Final = "clustering_"
_ONE: Final = "hoodie.clustering.plan.strategy."

CLUSTERING_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clustering.inline",
        "Whether a write clusters the table when a clustering is due.",
        kind=Kind.FLAG,
        default=False,
        alternatives=("hoodie.datasource.clustering.inline.enable",),
        field="clustering_inline",
    ),
    Option(
        "hoodie.clustering.inline.max.commits",
        "Commits after which an inline clustering is due.",
        kind=Kind.NUMBER,
        default=4,
        field="clustering_inline_commits",
    ),
    Option(
        "hoodie.clustering.async.enabled",
        "Whether a write, when a clustering is due, runs it in a thread of its process; see"
        " `hoodie.datasource.compaction.async.enable`.",
        kind=Kind.FLAG,
        default=False,
        alternatives=("hoodie.datasource.clustering.async.enable",),
        field="clustering_background",
    ),
    Option(
        "hoodie.clustering.async.max.commits",
        "Commits after which a clustering in a thread is due.",
        kind=Kind.NUMBER,
        default=4,
        field="clustering_background_commits",
    ),
    Option(
        "hoodie.clustering.schedule.inline",
        "Whether a write, when a clustering is due, only plans it; another process runs the plan.",
        kind=Kind.FLAG,
        default=False,
        field="clustering_schedule_inline",
    ),
    Option(
        f"{_ONE}class",
        "Which file groups a clustering rewrites: small ones of a partition together; each one separately;"
        " small base files by copying (StreamCopy); or the buckets of a consistent hashing index. By default"
        " the strategy that fits the table.",
        choices=class_names(_PLANS, _STRATEGIES),
        field="clustering_plan_strategy",
    ),
    Option(
        "hoodie.clustering.plan.partition.filter.mode",
        "Which partitions are clustered: all, the latest, a range, or a different 24th every hour.",
        default=PartitionFilter.NONE.value,
        choices=tuple(PartitionFilter),
        field="clustering_partition_filter",
    ),
    Option(
        f"{_ONE}partition.selected",
        "Partition paths to cluster; all when not given.",
        kind=Kind.LIST,
        default=(),
        field="clustering_partitions",
    ),
    Option(
        f"{_ONE}partition.regex.pattern",
        "Regular expression that the paths of the partitions to cluster have to match.",
        field="clustering_partition_pattern",
    ),
    Option(
        f"{_ONE}cluster.begin.partition",
        "First partition path of SELECTED_PARTITIONS.",
        field="clustering_begin_partition",
    ),
    Option(
        f"{_ONE}cluster.end.partition",
        "Last partition path of SELECTED_PARTITIONS.",
        field="clustering_end_partition",
    ),
    Option(
        f"{_ONE}daybased.lookback.partitions",
        "Number of latest partitions that RECENT_DAYS clusters.",
        kind=Kind.NUMBER,
        default=2,
        field="clustering_lookback_partitions",
    ),
    Option(
        f"{_ONE}daybased.skipfromlatest.partitions",
        "Number of newest partitions that RECENT_DAYS skips.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="clustering_skipped_partitions",
    ),
    Option(
        f"{_ONE}small.file.limit",
        "Size below which the base file of a file group is clustered, bytes.",
        kind=Kind.NUMBER,
        default=300 * MIB,
        minimum=0,
        field="clustering_clusters_below_bytes",
    ),
    Option(
        f"{_ONE}target.file.max.bytes",
        "Target size of a base file that clustering writes, bytes.",
        kind=Kind.NUMBER,
        default=1024 * MIB,
        field="clustering_target_file_bytes",
    ),
    Option(
        f"{_ONE}max.bytes.per.group",
        "Largest size of a clustering group, bytes of base files.",
        kind=Kind.NUMBER,
        default=2048 * MIB,
        field="clustering_group_bytes_max",
    ),
    Option(
        f"{_ONE}max.num.groups",
        "Largest number of clustering groups in a plan.",
        kind=Kind.NUMBER,
        default=30,
        field="clustering_groups_max",
    ),
    Option(
        f"{_ONE}single.group.clustering.enabled",
        "Whether a clustering group of a single file group is clustered.",
        kind=Kind.FLAG,
        default=True,
        field="clustering_single_groups",
    ),
    Option(
        f"{_ONE}sort.columns",
        "Columns by which clustering sorts rows.",
        kind=Kind.LIST,
        default=(),
        field="clustering_cluster_by",
    ),
    Option(
        "hoodie.layout.optimize.strategy",
        "How rows are sorted by the sort columns: column by column, or along a space-filling curve.",
        default=Layout.LINEAR.value,
        choices=tuple(Layout),
        spellings=(("Z-ORDER", Layout.ZORDER.value),),
        field="clustering_layout",
    ),
    Option(
        "hoodie.layout.optimize.curve.build.method",
        "Whether the curve uses the values of the columns, or their ranks in a sample.",
        default="DIRECT",
        choices=("DIRECT", "SAMPLE"),
        field="clustering_curve_method",
    ),
    Option(
        "hoodie.bucket.index.split.threshold",
        "Fraction of hoodie.parquet.max.file.size above which clustering splits a consistent hashing bucket.",
        kind=Kind.FRACTION,
        default=2.0,
        field="clustering_split_threshold",
    ),
    Option(
        "hoodie.bucket.index.merge.threshold",
        "Fraction of hoodie.parquet.max.file.size below which clustering merges consistent hashing buckets.",
        kind=Kind.FRACTION,
        default=0.2,
        field="clustering_merge_threshold",
    ),
    Option(
        "hoodie.bucket.index.max.num.buckets",
        "Largest number of buckets of a partition after splits; its initial number when not given.",
        kind=Kind.NUMBER,
        field="clustering_buckets_max",
    ),
    Option(
        "hoodie.bucket.index.min.num.buckets",
        "Smallest number of buckets of a partition after merges; its initial number when not given.",
        kind=Kind.NUMBER,
        field="clustering_buckets_min",
    ),
    Option(
        "drawstring.bucket.split.policy",
        "Where a bucket is split: in the middle of its hash range, or so that both halves have equally many"
        " records.",
        default="MIDDLE",
        choices=("MIDDLE", "EVEN"),
        field="clustering_split_policy",
    ),
    Option(
        "hoodie.clustering.updates.strategy",
        "Whether writes to file groups in a pending clustering are rejected or allowed. With a consistent"
        " hashing index they are by default allowed and go to both the old and the new file group.",
        choices=class_names(_UPDATES, _UPDATE_STRATEGIES),
        field="clustering_updates_strategy",
    ),
    Option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "Whether an allowed write to a file group in a pending clustering rolls that clustering back.",
        kind=Kind.FLAG,
        default=False,
        field="clustering_rolls_back_on_conflict",
    ),
)


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
        " `table.services.wait()` before the process ends, otherwise the compaction may remain pending.",
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


@dataclass(frozen=True, slots=True)
class PartitionTtl:
    """Settings of the partition TTL.

    Attributes:
        inline: whether every write drops expired partitions.
        strategy: `KEEP_BY_TIME` counts the age from the last write to a partition, `KEEP_BY_CREATION_TIME`
            from the first.
        days: age at which a partition expires; -1 for never.
        selected: partition paths that may expire; empty for all.
        partitions_max: largest number of partitions dropped at once.
    """

    inline: bool
    strategy: str
    days: int
    selected: tuple[str, ...]
    partitions_max: int

    def __post_init__(self) -> None:
        if self.inline and self.days < 0:
            raise InvalidError(
                "hoodie.partition.ttl.inline drops partitions by age, but no age is set. Set"
                " hoodie.partition.ttl.strategy.days.retain."
            )


TTL_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.partition.ttl.inline",
        "Whether a write drops expired partitions after its commit, and `table.services.run` does so, too.",
        kind=Kind.FLAG,
        default=False,
        field="inline",
    ),
    Option(
        "hoodie.partition.ttl.management.strategy.type",
        "Whether the age of a partition counts from the last write to it, or from the first.",
        default="KEEP_BY_TIME",
        choices=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME", "CUSTOM"),
        only=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"),
        field="strategy",
    ),
    Option(
        "hoodie.partition.ttl.strategy.days.retain",
        "Days after which a partition expires; -1 for never. With 0, writes and `CALL run_ttl` drop nothing,"
        " as in Hudi; a call that asks for it drops all.",
        kind=Kind.NUMBER,
        default=-1,
        minimum=-1,
        field="days",
    ),
    Option(
        "hoodie.partition.ttl.strategy.partition.selected",
        "Partitions that may expire; all when not given.",
        kind=Kind.LIST,
        default=(),
        field="selected",
    ),
    Option(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        "Largest number of partitions dropped at once, in the order of their paths.",
        kind=Kind.NUMBER,
        default=1000,
        field="partitions_max",
    ),
)
