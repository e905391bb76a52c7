"""What the peers measured, and whether they all came to the same results."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import curves, lakeloader, lives, merges
from bench.peers import BY_NAME, SOAK

SAME_TOTALS = ("snapshot", "snapshot_2", "snapshot_compacted")
FLAT_SCANS = ("scan_flat", "scan_clustered")
CHECKED = ("scan_base", "project", "point", "merged_totals")
STREAMS = ("stream_base", "stream_merged", "stream_3_columns")
SLICE_COPIES = 10
PEAK_MB_MAX = 1073
"""What reading a large slice may take, and a large write besides its batch: 1 GiB."""
MEDIANS = (
    "upsert", "new_rows", "lookup", "columns_3", "q1", "q3", "q6", "key", "range", "compacted_3_columns",
    "compacted_q1", "compacted_q6", "between_keys", "merge_all", "merge_3_columns", *lakeloader.MEDIANS,
    *merges.MEDIANS,
)  # fmt: skip
"""Steps that are done several times, with a number after the name."""
LINEITEM_ENGINES = {"tpch", "tpch-spark", "cores"}
"""Those whose peers go through the steps of lineitem."""
LARGE_WRITES = ("update_all_files", "hot_bulk_insert", "hot_insert", "hot_upsert_cow", "hot_upsert_bucket")


@dataclass(frozen=True, slots=True)
class Measured:
    """One step of one peer.

    Attributes:
        seconds: by the clock.
        peak_mb: memory of its processes, in megabytes.
        result: what it returned.
        processor_seconds: of all its processes; None where nobody knows.
    """

    peer: str
    step: str
    seconds: float
    peak_mb: int
    result: Any
    processor_seconds: float | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped because it took too long."""
        return isinstance(self.result, dict) and "stopped_s" in self.result


@dataclass
class Results:
    """All that was measured in a run.

    Attributes:
        expected: results by step, computed from the input files.
        steps: in the order in which they were done.
    """

    expected: dict[str, Any]
    steps: list[Measured] = field(default_factory=list)

    def peers(self) -> list[str]:
        """Return the names of the peers that did anything."""
        return list(dict.fromkeys(step.peer for step in self.steps))

    def seconds(self, peer: str, step: str) -> float | None:
        """Return how long a step took, the median if it was done several times; None if it was not ended."""
        times = [one.seconds for one in self._all_of(peer, step) if not one.is_stopped]
        return statistics.median(times) if times else None

    def processor_seconds(self, peer: str, step: str) -> float | None:
        """Return the processor time of a step like its seconds; None where it is not known."""
        times = [one.processor_seconds for one in self._all_of(peer, step)]
        known = [seconds for seconds in times if seconds is not None]
        return statistics.median(known) if known and len(known) == len(times) else None

    def _all_of(self, peer: str, step: str) -> list[Measured]:
        """Return a step as often as it was done; those of `MEDIANS` have numbers."""
        of_peer = [one for one in self.steps if one.peer == peer]
        if step in MEDIANS:
            return [one for one in of_peer if one.step.startswith(f"{step}_")]
        return [one for one in of_peer if one.step == step]

    def peak_mb(self, peer: str, step: str = "") -> int | None:
        """Return the peak of a peer's step, or the largest of all its steps."""
        of_peer = self._all_of(peer, step) if step else [one for one in self.steps if one.peer == peer]
        return max((one.peak_mb for one in of_peer), default=None)

    def large_write(self, peer: str, step: str) -> Measured | None:
        """Return a step of the suite of memory."""
        found = (one for one in self.steps if (one.peer, one.step) == (peer, step))
        return next(found, None) if step in LARGE_WRITES else None

    def soak(self) -> curves.Curves | None:
        """Return what was seen of a table that was written again and again."""
        return next((one.result for one in self.steps if one.step == SOAK), None)

    def lives(self) -> lives.Lives:
        """Return, by peer, what there was of a table of the suite of layouts after each upsert."""
        return {one.peer: one.result for one in self.steps if one.step == lives.LIFE}

    def size(self, peer: str) -> dict[str, float] | None:
        """Return megabytes and number of the files that a peer left."""
        return next((one.result for one in self.steps if (one.peer, one.step) == (peer, "size")), None)

    def wrong(self, peer: str) -> list[str]:
        """Return what a peer got wrong, a line each."""
        did = {one.step for one in self.steps if one.peer == peer}
        found = []
        for one in self.steps:
            expected = self._expected(one, did) if one.peer == peer else None
            if expected is not None and not _agree(_told(one), expected):
                found.append(f"{peer} {one.step}: {one.result} instead of {expected}")
            if (one.peer, one.step) == (peer, SOAK):
                found += [f"{peer} {growing}" for growing in curves.grown(one.result)]
            if one.peer == peer and (bound := _peak_mb_max(one)) is not None and one.peak_mb > bound:
                found.append(f"{peer} {one.step}: peak of {one.peak_mb} MB, above {bound} MB")
        return found

    def _expected(self, one: Measured, did: set[str]) -> Any:
        """Return what a step must return, None if any result will do; hudi-rs 0.6 cannot delete yet."""
        if BY_NAME[one.peer].engine in LINEITEM_ENGINES:
            lineitem = self.expected["lineitem"]
            return lineitem.get(one.step, lineitem.get(one.step.rpartition("_")[0]))
        if "lakeloader" in self.expected and BY_NAME[one.peer].engine in ("loads", "loads-spark"):
            return lakeloader.expected_of(one.step, self.expected["lakeloader"])
        if BY_NAME[one.peer].engine == "merges":
            return self.expected["merges"].get(one.step)
        if one.step in SAME_TOTALS:
            writes = any(name.startswith("upsert_") for name in did)
            return self.expected["snapshot" if "delete" in did or not writes else "snapshot_undeleted"]
        if one.step == "snapshot_all":
            return None if one.result is None else self.expected["snapshot"][0]
        if one.step in FLAT_SCANS:
            return [self.expected["flat"]]
        if one.step in STREAMS:
            return self.expected["scan_base"][0] * SLICE_COPIES
        if one.step == "incremental":
            return self.expected[f"incremental_{BY_NAME[one.peer].kind}"]
        return self.expected[one.step] if one.step in CHECKED else None

    def save(self, file: Path, failed: Collection[str] = ()) -> None:
        """Write the steps as JSON lines, without those of peers that failed."""
        steps = (step for step in self.steps if step.peer not in failed)
        file.write_text("".join(json.dumps(asdict(step)) + "\n" for step in steps))

    def load(self, file: Path) -> None:
        """Take over the steps that were saved there; no file, no steps."""
        if file.exists():
            self.steps += [Measured(**json.loads(line)) for line in file.read_text().splitlines()]


def _peak_mb_max(one: Measured) -> int | None:
    """Return what a step may take, None for any amount."""
    if one.step in LARGE_WRITES:
        return PEAK_MB_MAX + int(one.result["batch_mb"])
    is_ours = not BY_NAME[one.peer].jars
    return PEAK_MB_MAX if is_ours and one.step in (*STREAMS, "compact_group") else None


def _told(one: Measured) -> Any:
    """Return what is expected of a result: of scans of rides without updates their number alone."""
    is_number = one.step in FLAT_SCANS and isinstance(one.result, list)
    return one.result[:1] if is_number else one.result


def _agree(one: Any, other: Any) -> bool:
    """Compare results; sums of floating-point numbers depend on the order."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_agree(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= max(0.05, 1e-6 * abs(other)) if isinstance(other, float) else one == other
    return bool(one == other)
