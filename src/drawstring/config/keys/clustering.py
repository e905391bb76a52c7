"""Options about clustering: which file groups come together, in which order their rows, and when."""

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
    """Which partitions a plan looks at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class Layout(StrEnum):
    """How the sort columns order rows."""

    LINEAR = "LINEAR"
    ZORDER = "ZORDER"
    HILBERT = "HILBERT"


@dataclass(frozen=True, slots=True)
class Clustering:
    """What clustering was told.

    Attributes:
        inline, inline_commits: whether and when a write clusters the table after itself.
        background, background_commits: whether and when it has a thread of its process do so.
        schedule_inline: whether it leaves a plan, which somebody else runs.
        plan_strategy: class of Hudi's that says what comes together; None for what suits the table.
        partition_filter: which partitions are looked at.
        partitions: only these; empty for all.
        partition_pattern: regular expression that partition paths have to match.
        begin_partition, end_partition: of SELECTED_PARTITIONS, both inclusive.
        lookback_partitions, skipped_partitions: of RECENT_DAYS: how many, after leaving how many out.
        clusters_below_bytes: file groups with smaller base files are clustered.
        target_file_bytes: size that a new base file aims at.
        group_bytes_max: bytes that come together in one group.
        groups_max: groups of one plan.
        single_groups: whether a file group is clustered by itself.
        cluster_by: columns that the rows of a group are sorted by.
        layout: how these order rows.
        curve_method: `DIRECT` takes a curve through values, `SAMPLE` through their ranks.
        split_threshold, merge_threshold: sizes, as shares of the size that base files aim at, above which a
            bucket of a ring is split, and below which buckets are merged.
        buckets_max, buckets_min: how many buckets a partition may have; None for as many as it began with.
        split_policy: `MIDDLE` of the stretch of hashes, or `EVEN` by the hashes that are there.
        updates_strategy: what becomes of writes to file groups in a pending clustering; None for what suits
            the index.
        rolls_back_on_conflict: whether such a write takes the pending clustering off the timeline.
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
        """Return the settings among the fields of parsed options, which are taken out of them."""
        names = [option.field for option in CLUSTERING_OPTIONS]
        return cls(**{name.removeprefix(_PREFIX): fields.pop(name) for name in names})

    @property
    def allows_updates(self) -> bool:
        """Whether file groups in a pending clustering may be written to."""
        return bool(self.updates_strategy) and bare(self.updates_strategy) == ALLOW

    @property
    def rejects_updates(self) -> bool:
        """Whether a write asks to be refused, where its index would let it go on."""
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
        "Whether a write clusters the table when due.",
        kind=Kind.FLAG,
        default=False,
        alternatives=("hoodie.datasource.clustering.inline.enable",),
        field="clustering_inline",
    ),
    Option(
        "hoodie.clustering.inline.max.commits",
        "Commits after which clustering is due.",
        kind=Kind.NUMBER,
        default=4,
        field="clustering_inline_commits",
    ),
    Option(
        "hoodie.clustering.async.enabled",
        "Whether a write has the table clustered, when due, by a thread of its process; see"
        " `hoodie.datasource.compaction.async.enable`.",
        kind=Kind.FLAG,
        default=False,
        alternatives=("hoodie.datasource.clustering.async.enable",),
        field="clustering_background",
    ),
    Option(
        "hoodie.clustering.async.max.commits",
        "Commits after which clustering in a thread is due.",
        kind=Kind.NUMBER,
        default=4,
        field="clustering_background_commits",
    ),
    Option(
        "hoodie.clustering.schedule.inline",
        "Whether a write leaves the plan of a clustering when due, which somebody else runs.",
        kind=Kind.FLAG,
        default=False,
        field="clustering_schedule_inline",
    ),
    Option(
        f"{_ONE}class",
        "Which file groups come together: small ones of a partition; each by itself; small base files, copied"
        " (StreamCopy); or the buckets of a ring. By default what suits the table.",
        choices=_classes(_PLANS, _STRATEGIES),
        field="clustering_plan_strategy",
    ),
    Option(
        "hoodie.clustering.plan.partition.filter.mode",
        "Which partitions are clustered: all, the latest, those from one to another, or a 24th each hour.",
        default=PartitionFilter.NONE.value,
        choices=tuple(PartitionFilter),
        field="clustering_partition_filter",
    ),
    Option(
        f"{_ONE}partition.selected",
        "Partition paths to cluster, all when not given.",
        kind=Kind.LIST,
        default=(),
        field="clustering_partitions",
    ),
    Option(
        f"{_ONE}partition.regex.pattern",
        "Regular expression that the paths of partitions to cluster match.",
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
        "How many of the latest partitions RECENT_DAYS takes.",
        kind=Kind.NUMBER,
        default=2,
        field="clustering_lookback_partitions",
    ),
    Option(
        f"{_ONE}daybased.skipfromlatest.partitions",
        "How many of the very latest partitions RECENT_DAYS leaves out.",
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
        "Size that a base file made by clustering aims at, bytes.",
        kind=Kind.NUMBER,
        default=1024 * MIB,
        field="clustering_target_file_bytes",
    ),
    Option(
        f"{_ONE}max.bytes.per.group",
        "Bytes of base files that come together in one group.",
        kind=Kind.NUMBER,
        default=2048 * MIB,
        field="clustering_group_bytes_max",
    ),
    Option(
        f"{_ONE}max.num.groups",
        "Groups of one plan.",
        kind=Kind.NUMBER,
        default=30,
        field="clustering_groups_max",
    ),
    Option(
        f"{_ONE}single.group.clustering.enabled",
        "Whether a file group that nothing goes together with is clustered by itself.",
        kind=Kind.FLAG,
        default=True,
        field="clustering_single_groups",
    ),
    Option(
        f"{_ONE}sort.columns",
        "Columns that clustering sorts rows by.",
        kind=Kind.LIST,
        default=(),
        field="clustering_cluster_by",
    ),
    Option(
        "hoodie.layout.optimize.strategy",
        "How the sort columns order rows: one after the other, or along a curve through all of them.",
        default=Layout.LINEAR.value,
        choices=tuple(Layout),
        field="clustering_layout",
    ),
    Option(
        "hoodie.layout.optimize.curve.build.method",
        "Whether a curve goes through the values of columns, or through their ranks as a sample tells them.",
        default="DIRECT",
        choices=("DIRECT", "SAMPLE"),
        field="clustering_curve_method",
    ),
    Option(
        "hoodie.bucket.index.split.threshold",
        "Share of hoodie.parquet.max.file.size above which clustering splits a bucket of a ring.",
        kind=Kind.FRACTION,
        default=2.0,
        field="clustering_split_threshold",
    ),
    Option(
        "hoodie.bucket.index.merge.threshold",
        "Share of hoodie.parquet.max.file.size below which clustering merges buckets of a ring.",
        kind=Kind.FRACTION,
        default=0.2,
        field="clustering_merge_threshold",
    ),
    Option(
        "hoodie.bucket.index.max.num.buckets",
        "Most buckets that a partition may be split into; those that it began with when not given.",
        kind=Kind.NUMBER,
        field="clustering_buckets_max",
    ),
    Option(
        "hoodie.bucket.index.min.num.buckets",
        "Fewest buckets that a partition may be merged into; those that it began with when not given.",
        kind=Kind.NUMBER,
        field="clustering_buckets_min",
    ),
    Option(
        "drawstring.bucket.split.policy",
        "Where a bucket is split: in the middle of its hashes, or so that as many records go to either side.",
        default="MIDDLE",
        choices=("MIDDLE", "EVEN"),
        field="clustering_split_policy",
    ),
    Option(
        "hoodie.clustering.updates.strategy",
        "What becomes of writes to file groups in a pending clustering: refused, or let through. With a"
        " consistent hashing index records go to the old and the new file group where nothing else is said.",
        choices=_classes(_UPDATES, _UPDATE_STRATEGIES),
        field="clustering_updates_strategy",
    ),
    Option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "Whether a write that is let through takes the pending clustering off the timeline.",
        kind=Kind.FLAG,
        default=False,
        field="clustering_rolls_back_on_conflict",
    ),
)
