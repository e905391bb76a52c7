"""What drawstring wants to be: so many times as fast as what else there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench import lakeloader, merges, peers, writers
from bench.report import STEPS
from bench.results import Results
from bench.tables import markdown

SPARK_PEERS = ("delta-dv", "iceberg-mor", "paimon")
METADATA_PEERS = ("metadata-hudi", "metadata-delta", "metadata-iceberg")
MERGES_PEERS = tuple(f"merges-{name}" for name in ("delta-rs", "pyiceberg", "lance", "pypaimon"))
SERVICES_PEERS = ("delta", "iceberg", "paimon")


@dataclass(frozen=True, slots=True)
class Aim:
    """In a step, our time times `factor` is at most the other's; `fastest of` when there are several."""

    ours: str
    step: str
    others: tuple[str, ...]
    factor: float


def aims() -> Iterator[Aim]:
    """Yield the aims."""
    for step in ("bulk_insert", "upsert"):
        yield Aim(peers.SPARK_MOR, step, ("hudi-mor-bucket",), 5.0)
        yield Aim(peers.SPARK_COW, step, ("hudi-cow-bloom",), 5.0)
    yield Aim(peers.SPARK_MOR, "snapshot", ("hudi-mor-bucket",), 3.0)
    yield Aim(peers.SPARK_MOR, "snapshot_all", ("hudi-mor-bucket",), 1.0)
    yield Aim(peers.SPARK_MOR, "incremental", ("hudi-mor-bucket",), 1.0)
    for step in STEPS:
        yield Aim(peers.SPARK_MOR, step, SPARK_PEERS, 1.0)
    yield Aim(peers.LOCAL_MOR, "bulk_insert", ("pyarrow-mor",), 1 / 1.5)
    yield Aim(peers.LOCAL_COW, "bulk_insert", ("pyarrow-cow",), 1 / 1.5)
    yield Aim(peers.LOCAL_MOR, "upsert", ("delta-rs",), 3.0)
    for step in STEPS:
        yield Aim(peers.LOCAL_COW, step, ("delta-rs",), 1.0)
    for step in ("bulk_insert", "scan_base", "upsert", "late", "snapshot"):
        yield Aim(peers.LOCAL_MOR, step, ("hudi-rs-rc-mor",), 1.0)
        yield Aim(peers.LOCAL_COW, step, ("hudi-rs-rc-cow",), 1.0)
    for step in ("snapshot", "snapshot_all", "incremental"):
        yield Aim(peers.LOCAL_MOR, step, (peers.READ_ONLY,), 1.0)
    for ours, hudi in ((peers.SCALING_MOR, "hudi-bucket-mor"), ("drawstring-bloom-cow", "hudi-bloom-cow")):
        for step in STEPS:
            yield Aim(ours, step, (hudi,), 5.0)
    for step in STEPS:
        yield Aim(peers.SCALING_COW, step, ("delta-rs-merge",), 1.0)
    for index, kind in peers.HUDI_INDEXES:
        for step in ("bulk_insert", "upsert", "new_rows", "delete"):
            yield Aim(peers.on_spark(index, kind), step, (peers.of_hudi(index, kind),), 5.0)
    for step in ("find_indexes", "load_files", "change_files", "keys_simple", "narrow_clustered"):
        yield Aim(peers.METADATA_SPARK, step, METADATA_PEERS, 1.0)
        yield Aim(peers.METADATA, step, ("metadata-delta-rs",), 1.0)
    for step, peak in (("compact", 4.0), ("cluster", 1.0)):
        yield Aim(peers.SERVICES, step, ("services-hudi",), 5.0)
        yield Aim(peers.SERVICES, f"peak memory of {step}", ("services-hudi",), peak)
        yield Aim(peers.SERVICES, step, tuple(f"services-{name}" for name in SERVICES_PEERS), 1.0)
    for scenario in ("disjoint", "overlap"):
        for processes in writers.PROCESSES:
            others = (peers.WRITERS_DELTA, peers.WRITERS_ICEBERG)
            yield Aim(peers.WRITERS_COW, f"{scenario}_{processes}", others, 1.0)
    yield Aim(peers.FILES, "compact_files", ("small-files-delta-rs",), 1.0)
    yield from _layout_aims()
    yield from _pipeline_aims()
    yield from _lineitem_aims()
    for workload in lakeloader.WORKLOADS:
        step = f"{workload}_large_{lakeloader.UPSERT}"
        yield Aim(peers.LOADS_SPARK_MOR, step, tuple(f"loads-{name}" for name in peers.JVM_SYSTEMS), 1.0)
        for ours in (peers.LOADS_MOR, peers.LOADS_COW):
            yield Aim(ours, step, ("loads-delta-rs",), 1.0)
    for share in merges.SHARES:
        yield Aim(peers.MERGES_MOR, f"{merges.MERGE}_{share}%", MERGES_PEERS, 1.0)
        yield Aim(peers.MERGES_COW, f"{merges.MERGE}_{share}%", ("merges-delta-rs", "merges-pyiceberg"), 1.0)
    for ours in (peers.LOCAL_MOR, peers.LOCAL_COW):
        yield Aim(ours, "peak memory", ("delta-rs", "hudi-rs-rc-mor", "hudi-rs-rc-cow"), 1.0)


def _layout_aims() -> Iterator[Aim]:
    """Yield the aims of sorted files: against Avro log files, and against Paimon in every step."""
    yield Aim(peers.LAYOUT_LSM, "upsert", (f"layout-{peers.LAYOUTS[0]}",), 1.0)
    yield Aim(peers.LAYOUT_LSM, "lookup", (f"layout-{peers.LAYOUTS[0]}",), 10.0)
    for step in ("merge_all", "merge_3_columns", "compact_group"):
        yield Aim(peers.LAYOUT_LSM, step, (f"layout-{peers.LAYOUTS[0]}",), 5.0)
    for step in (
        "bulk_insert", "upsert", "lookup", "between_keys", "merge_all", "merge_3_columns", "compact_group"
    ):  # fmt: skip
        yield Aim(peers.LAYOUT_LSM, step, (peers.LAYOUT_PAIMON, peers.LAYOUT_PYPAIMON), 1.0)


def _pipeline_aims() -> Iterator[Aim]:
    """Yield the aims of loads, merged reads and copy-on-write upserts in the workload of rides."""
    for ours in (peers.SPARK_MOR, peers.SPARK_COW):
        yield Aim(ours, "bulk_insert", ("iceberg-mor",), 1.3)
    yield Aim(peers.SPARK_MOR, "snapshot", (peers.SPARK_COW,), 1 / 1.5)
    for ours in (peers.LOCAL_MOR, peers.LOCAL_COW):
        yield Aim(ours, "bulk_insert", ("delta-rs",), 1 / 1.3)
    yield Aim(peers.LOCAL_COW, "upsert", ("delta-rs",), 1.3)


def _lineitem_aims() -> Iterator[Aim]:
    """Yield the aims of the suite `tpch`, with and without Spark."""
    iceberg, delta_rs = ("lineitem-iceberg",), ("lineitem-delta-rs",)
    for ours in (peers.TPCH_SPARK_MOR, peers.TPCH_SPARK_COW):
        yield Aim(ours, "bulk_insert", iceberg, 1.3)
    yield Aim(peers.TPCH_SPARK_MOR, "columns_3", (peers.TPCH_SPARK_COW,), 1 / 1.5)
    for step in ("q1", "q3", "q6", "key", "range"):
        yield Aim(peers.TPCH_SPARK_MOR, step, iceberg, 1.0)
    jvm = tuple(f"lineitem-{system}" for system in peers.JVM_SYSTEMS)
    for step in ("upsert", "compact"):
        yield Aim(peers.TPCH_SPARK_MOR, step, jvm, 1.0)
    for ours in (peers.TPCH_MOR, peers.TPCH_COW):
        yield Aim(ours, "bulk_insert", delta_rs, 1 / 1.3)
        yield Aim(ours, "peak memory of bulk_insert", delta_rs, 1.0)
    yield Aim(peers.TPCH_COW, "upsert", delta_rs, 1.3)
    yield Aim(peers.TPCH_MOR, "columns_3", (peers.TPCH_COW,), 1 / 1.5)


def text(results: Results) -> str:
    """Return the aims that this run can tell about; empty when there are none."""
    rows = [row for aim in aims() if (row := _row(results, aim))]
    head = ("aim", "step", "drawstring", "other", "times", "of cpu", "wanted", "met")
    return markdown(head, rows) if rows else ""


def _row(results: Results, aim: Aim) -> tuple[str, ...] | None:
    ours = _value(results, aim.ours, aim.step)
    others = {name: value for name in aim.others if (value := _value(results, name, aim.step)) is not None}
    if ours is None or not others:
        return None
    best = min(others, key=lambda name: others[name])
    times = others[best] / max(ours, 0.001)
    return (
        f"{aim.ours} against {best}",
        aim.step,
        f"{ours:,.2f}",
        f"{others[best]:,.2f}",
        f"{times:.1f}",
        _processor_times(results, aim, best),
        f"{aim.factor:.1f}",
        "yes" if times >= aim.factor else "no",
    )


def _processor_times(results: Results, aim: Aim, other: str) -> str:
    """Return how many times our processor seconds the other's are; empty where there are none."""
    ours, theirs = (results.processor_seconds(peer, aim.step) for peer in (aim.ours, other))
    return "" if ours is None or theirs is None else f"{theirs / max(ours, 0.001):.1f}"


def _value(results: Results, peer: str, step: str) -> float | None:
    what, _, of_step = step.partition(" of ")
    if what == "peak memory":
        return results.peak_mb(peer, of_step)
    return results.seconds(peer, step)
