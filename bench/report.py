"""The tables: seconds, processor time, ratios and memory, in Markdown that also reads well in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import cores, curves, lakeloader, lives, merges, peers, streams, writers
from bench.results import LARGE_WRITES, Measured, Results
from bench.tables import markdown

TIMELINE_STEPS = ("open", "plan", "recent", "upsert", "plan_clean", "schedule")
METADATA_STEPS = (
    "plan_listed", "plan_first", "plan_named", "tasks_named", "point_named", "s3_named", "s3_point",
    "s3_listed", "load_plain", "load_files",
    "load_indexes", "change_plain", "change_files", "change_indexes", "find_plain", "find_indexes",
    "keys_simple", "keys_bloom", "keys_record_index", "keys_bucket", "narrow_unsorted", "narrow_clustered",
    "calls_plain", "calls_files", "points_plain", "points_files", "make_keys", "build_index", "look_keys_up",
    "change_index",
)  # fmt: skip
_FINDING = ("narrow_unsorted", "narrow_clustered", "s3_named", "s3_point", "s3_listed", "build_index")
LINEITEM_STEPS = (
    "base_3_columns", "columns_3", "columns_all", "q1", "q3", "q6", "key", "range",
    "compacted_3_columns", "compacted_q1", "compacted_q6",
)  # fmt: skip
STEPS = (
    "bulk_insert", "bulk_insert_bare", "scan_base", "upsert", "late", "delete", "snapshot", "snapshot_2",
    "snapshot_all", "project", "point", "incremental", "compact", "snapshot_compacted", "stream_base",
    "stream_merged", "stream_3_columns", "new_rows", "groups_10", "groups_100", "groups_1000", "commits_10",
    "commits_100", "commits_500",
    *(f"{when}_{step}" for when in ("active", "archived") for step in TIMELINE_STEPS), "archive",
    *METADATA_STEPS,
    *LINEITEM_STEPS,
    *lakeloader.STEPS,
    *merges.STEPS,
    "scan_flat", "cluster", "scan_clustered", "append_files", "compact_files", "write_group",
    "lookup", "between_keys", "merge_all", "merge_3_columns", "log_compact", "compact_group",
)  # fmt: skip
OURS = {
    ("embedded", "mor"): peers.LOCAL_MOR,
    ("embedded", "cow"): peers.LOCAL_COW,
    ("spark", "mor"): peers.SPARK_MOR,
    ("spark", "cow"): peers.SPARK_COW,
    ("slice", "mor"): peers.LARGE_SLICE,
    ("scaling", "mor"): peers.SCALING_MOR,
    ("scaling", "cow"): peers.SCALING_COW,
    ("indexes", "mor"): peers.INDEXES,
    ("indexes", "cow"): peers.INDEXES,
    ("indexes-spark", "mor"): peers.INDEXES_SPARK,
    ("indexes-spark", "cow"): peers.INDEXES_SPARK,
    ("timeline", "mor"): peers.TIMELINE,
    ("metadata", "cow"): peers.METADATA,
    ("metadata-spark", "cow"): peers.METADATA_SPARK,
    ("metadata-keys", "cow"): peers.METADATA_KEYS,
    ("services", "mor"): peers.SERVICES,
    ("tpch", "mor"): peers.TPCH_MOR,
    ("tpch", "cow"): peers.TPCH_COW,
    ("tpch-spark", "mor"): peers.TPCH_SPARK_MOR,
    ("tpch-spark", "cow"): peers.TPCH_SPARK_COW,
    ("loads", "mor"): peers.LOADS_MOR,
    ("loads", "cow"): peers.LOADS_COW,
    ("loads-spark", "mor"): peers.LOADS_SPARK_MOR,
    ("loads-spark", "cow"): peers.LOADS_SPARK_COW,
    ("merges", "mor"): peers.MERGES_MOR,
    ("merges", "cow"): peers.MERGES_COW,
    ("files", "cow"): peers.FILES,
    ("group", "mor"): peers.LARGE_GROUP,
    ("lsm", "mor"): f"layout-{peers.LAYOUTS[0]}",
}
HEADS = {
    "embedded": "Without Spark",
    "spark": "On Spark",
    "slice": "One large slice",
    "scaling": "Upsert of 1,000 rows",
    "indexes": "Indexes, embedded",
    "indexes-spark": "Indexes, on Spark",
    "indexes-hudi": "Apache Hudi, on Spark",
    "memory": "Large writes",
    "timeline": "10,000 instants",
    "metadata": "Metadata table, embedded",
    "metadata-spark": "Metadata table, on Spark",
    "metadata-keys": "A large record index",
    "tpch": "Lineitem, embedded",
    "tpch-spark": "Lineitem, on Spark",
    "loads": "LakeLoader, embedded",
    "loads-spark": "LakeLoader, on Spark",
    "merges": "Micro-merges",
    "services": "Services, on Spark",
    "files": "Small files, embedded",
    "group": "One file group",
    "lsm": "Layouts of log files",
}
RIDES_NOTE = (
    "Seconds; in parentheses seconds of the processor (cpu), and how many times drawstring's seconds for the "
    "same kind of\ntable on the same engine: mor puts changes beside the rows, cow writes files anew. "
    "`upsert` is the median of the batches."
)
_INDEXES_NOTE = (
    "Seconds, medians of the batches; in parentheses those of the processor, and how many times the first "
    "column's."
)
_SERVICES_NOTE = (
    "Seconds, in parentheses those of the processor, and how many times drawstring's; the peak is that of the"
    " steps in the table, of each by itself."
)
_LINEITEM_NOTE = (
    "Seconds, in parentheses those of the processor, and how many times drawstring's for the same kind of"
    " table; the median of\nthree of what is read after the upsert."
)
_LOADS_NOTE = (
    "Seconds, in parentheses those of the processor, and how many times drawstring's for the same kind of"
    " table; medians of rounds and\nreads. `small`: as many changes in a table with a quarter of the rows;"
    " `written`: by a round, and how many times the Parquet file of\nits rows."
)
_METADATA_NOTE = (
    "Seconds, in parentheses those of the processor, and how many times drawstring's; medians of what is done"
    " several times."
)
NOTES = {
    "scaling": "Seconds of one upsert, in parentheses those of the processor; medians of three.",
    "indexes": _INDEXES_NOTE,
    "indexes-spark": _INDEXES_NOTE,
    "indexes-hudi": "Hudi's are compared with drawstring's of the same index.",
    "services": _SERVICES_NOTE,
    "files": _SERVICES_NOTE,
    "group": _SERVICES_NOTE,
    "lsm": (
        "Seconds, in parentheses those of the processor, and how many times the first column's; `upsert`,"
        " `lookup`, `between_keys` and\n`merge_*` are medians. `log_compact` and `compact_group` run in"
        " processes of their own. Hudi and Paimon run on Spark."
    ),
    "writers": (
        "Each process upserts batches into one table, or into one of its own (apart: what the machine"
        " allows); seconds are\nthose of a commit. `run again`: attempts that lost against another writer,"
        " `errors`: commits that the caller had\nto ask for once more."
    ),
    "metadata": _METADATA_NOTE,
    "metadata-spark": _METADATA_NOTE,
    "metadata-keys": _METADATA_NOTE,
    "timeline": "Seconds, in parentheses those of the processor; medians of three, `archive` once.",
    "tpch": _LINEITEM_NOTE,
    "tpch-spark": _LINEITEM_NOTE,
    "cores": (
        "`one thread`: the share of the time on two cores in which one thread runs or none; for 4 and 8 cores"
        " the time on one\ncore over what there would be if all else were spread over them."
    ),
    "loads": _LOADS_NOTE,
    "loads-spark": _LOADS_NOTE,
    "merges": (
        "Seconds, in parentheses those of the processor, and how many times drawstring's for the same kind of"
        " table; medians of three.\n`merge_1%` merges one per cent of the rows, `read_1%` reads three columns"
        " after it, `written_1%` is what it wrote."
    ),
    "streams": (
        "Seconds of a micro-batch of 1,000 rows, the first one apart, and of all of them; then of what comes"
        " from a Kafka topic. In\nparentheses seconds of the processor, without the broker's."
    ),
    "soak": "Files are those in the table's folder, all of them; a snapshot is read after every 20th batch.",
    "memory": (
        "Seconds, those of the processor, the peak, and the files written, those of the hot partition in "
        "parentheses. The peak is\nthat of the process, on Spark that of its largest Python worker."
    ),
}


def text(results: Results) -> str:
    """Return the tables, with what to know to read them."""
    parts = [table(results, engine) for engine in HEADS]
    if skipped := _skipped(results):
        parts.append(markdown(("step", "peer", "found"), skipped))
    if soak := results.soak():
        parts.append(markdown(curves.head(soak), curves.rows(soak)))
    if told := results.lives():
        parts.append(markdown(lives.head(told), lives.rows(told)))
    parts.append(streams.table(results))
    parts += [cores.table(results, kind) for kind in ("mor", "cow")]
    parts += [writers.table(results, name) for name in results.peers()]
    notes = dict.fromkeys(NOTES.get(peers.BY_NAME[name].engine, RIDES_NOTE) for name in results.peers())
    return "\n\n".join([*(part for part in parts if part), *notes])


def put_into(page: Path, shown: str, marks: str) -> None:
    """Put the tables between the marks of a page, or where there are none make them the page."""
    old = page.read_text() if page.exists() else ""
    before, begin, rest = old.partition(f"<!-- {marks} -->")
    _, end, after = rest.partition(f"<!-- end of {marks} -->")
    page.write_text(f"{before}{begin}\n\n{shown}\n\n{end}{after}" if begin and end else f"{shown}\n")


def table(results: Results, engine: str) -> str:
    """Return the table of the peers of one engine; empty when none of them ran."""
    ran = [name for name in results.peers() if peers.BY_NAME[name].engine == engine]
    if not ran:
        return ""
    rows = [[step, *(_cell(results, name, step) for name in ran)] for step in (*STEPS, *LARGE_WRITES)]
    rows = [row for row in rows if any(row[1:])]
    if engine in ("loads", "loads-spark"):
        rows += lakeloader.rows(results, ran)
    if engine == "merges":
        rows += merges.rows(results, ran)
    if any(results.size(name) for name in ran):
        rows.append(["size, MB", *(_size(results, name, "mb") for name in ran)])
        rows.append(["files", *(_size(results, name, "files") for name in ran)])
    rows.append(["peak memory, MB", *(f"{results.peak_mb(name):,}" for name in ran)])
    if engine == "lsm":
        rows += [
            [f"peak of {step}, MB", *(_peak(results, name, step) for name in ran)]
            for step in ("merge_all", "log_compact", "compact_group")
        ]
    head = [HEADS[engine], *map(_head, ran)]
    return markdown(head, rows)


def _head(peer: str) -> str:
    """Return a peer's name, and its kind unless the name says it."""
    kind = peers.BY_NAME[peer].kind
    return peer if kind in peer else f"{peer} ({kind})"


def _cell(results: Results, peer: str, step: str) -> str:
    seconds, used = results.seconds(peer, step), results.processor_seconds(peer, step)
    if seconds is None:
        return ""
    notes = [] if used is None else [f"{used:.{1 if used >= 10 else 2}f} cpu"]
    if large := results.large_write(peer, step):
        files = f"{large.result['files']} files ({large.result['hot']})"
        return f"{_noted(f'{seconds:.1f} s', notes)}, {large.peak_mb:,} MB, {files}"
    known = peers.BY_NAME[peer]
    ours = known.beside or OURS[known.engine, known.kind]
    base = results.seconds(ours, step)
    if base and peer != ours:
        notes.append(f"{seconds / base:.1f}x")
    return _noted(f"{seconds:.2f}", notes)


def _noted(text: str, notes: Sequence[str]) -> str:
    return f"{text} ({', '.join(notes)})" if notes else text


def _peak(results: Results, peer: str, step: str) -> str:
    """Return the peak of a step; empty where a peer does not do it."""
    peak = results.peak_mb(peer, step)
    return "" if peak is None else f"{peak:,}"


def _size(results: Results, peer: str, what: str) -> str:
    size = results.size(peer)
    return f"{size[what]:,.0f}" if size else ""


def _skipped(results: Results) -> list[tuple[str, str, str]]:
    """Return what steps of the suite of the metadata table read or made; empty if they were not run."""
    found = {(one.step, one.peer): one for one in results.steps if one.step in _FINDING}
    return [
        (step, peer, _found(one) if isinstance(one.result, dict) else str(one.result))
        for (step, peer), one in found.items()
        if isinstance(one.result, dict | str)
    ]


def _found(one: Measured) -> str:
    """Return the size of an index, and the memory that building it took."""
    return f"{one.result['keys']:,} keys, {one.result['bytes_a_key']} bytes a key, peak {one.peak_mb:,} MB"
