"""Options of clustering: when it is due, which file groups it rewrites, and how it sorts their rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from drawstring.config.keys.sizing import MIB
from drawstring.config.options.option import Kind, Option

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
        return cls(**{name.removeprefix(_PREFIX): fields.pop(name) for name in names})

    @property
    def allows_updates(self) -> bool:
        """Whether file groups in a pending clustering may be written to."""
        return bool(self.updates_strategy) and bare(self.updates_strategy) == ALLOW

    @property
    def rejects_updates(self) -> bool:
        """Whether such writes are explicitly rejected, even if the index would allow them."""
        return bare(self.updates_strategy) == REJECT


def bare(name: str | None) -> str:
    """Return the name of a class without its package."""
    return (name or "").rpartition(".")[2]


def _classes(package: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names for prefix in (package, ""))


_PREFIX: Final = "clustering_"
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
        choices=_classes(_PLANS, _STRATEGIES),
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
        choices=_classes(_UPDATES, _UPDATE_STRATEGIES),
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
