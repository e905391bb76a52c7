"""Report as one HTML page what a table has, what its commits wrote, and which table services are due.

`load_report` reads the facts of the report, and `page` renders them as HTML without scripts. Charts are SVG
text: bars, with a title that a browser shows for each. `due_services` says which table services are due,
and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from drawstring.config.options.write_options import WriteOptions
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.model.result import size_text
from drawstring.query.planner import latest_slices
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.services.clustering import commits_since_clustering
from drawstring.services.compaction import deltas_since_compaction, is_due
from drawstring.timeline.timeline import instant_time, seconds_between
from drawstring.txn.table_context import TableContext

_WIDTH: Final = 920
_HEIGHT: Final = 150
_LEFT: Final = 70
_BOTTOM: Final = 22


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart.

    Attributes:
        value: its height.
        label: below the bar; empty for none.
        title: what a browser shows when the pointer is on it.
        kind: class of its colour.
    """

    value: float
    label: str
    title: str
    kind: str = "write"


def bars(name: str, values: Sequence[Bar], text: Callable[[float], str]) -> str:
    """Return a bar chart.

    Args:
        name: what it shows, for those who cannot see it.
        values: the bars, from left to right.
        text: returns a height as text, for the axis.
    """
    if not values:
        return '<p class="none">nothing yet</p>'
    top = max(each.value for each in values) or 1
    wide = (_WIDTH - _LEFT) / len(values)
    gap = min(3.0, wide / 5)
    drawn = "".join(_bar(each, _LEFT + number * wide, wide, gap, top) for number, each in enumerate(values))
    axis = (
        f'<text x="{_LEFT - 6}" y="12" class="axis">{escape(text(top))}</text>'
        f'<text x="{_LEFT - 6}" y="{_HEIGHT}" class="axis">0</text>'
        f'<line x1="{_LEFT}" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}"/>'
    )
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT + _BOTTOM}"'
    return f'<svg role="img" aria-label="{escape(name)}" {size}>{axis}{drawn}</svg>'


def _bar(bar: Bar, x: float, wide: float, gap: float, top: float) -> str:
    high = max(bar.value / top * (_HEIGHT - 4), 1.0 if bar.value else 0.0)
    label = (
        f'<text x="{x + wide / 2:.1f}" y="{_HEIGHT + 15}" class="label">{escape(bar.label)}</text>'
        if bar.label
        else ""
    )
    return (
        f'<rect class="{bar.kind}" x="{x + gap / 2:.1f}" y="{_HEIGHT - high:.1f}"'
        f' width="{wide - gap:.1f}" height="{high:.1f}"><title>{escape(bar.title)}</title></rect>{label}'
    )


@dataclass(frozen=True, slots=True)
class DueService:
    """A service of a table.

    Attributes:
        service: its name.
        is_due: whether it would do something now, or is planned and not done.
        why: the figures that say so.
    """

    service: str
    is_due: bool
    why: str


def due_services(
    facts: TableFacts, slices: Sequence[FileSlice], options: WriteOptions, now: str
) -> tuple[DueService, ...]:
    """Return the services of a table.

    Args:
        facts: the table.
        slices: its latest slices.
        options: say when services are due.
        now: the instant time of the question.
    """
    return (*_of_options(facts, slices, options, now), *_pending(facts))


def _of_options(
    facts: TableFacts, slices: Sequence[FileSlice], options: WriteOptions, now: str
) -> Iterator[DueService]:
    timeline, writes = facts.timeline, len(facts.timeline.writes())
    if facts.config.is_merge_on_read:
        deltas = len(deltas_since_compaction(timeline))
        logs = sum(len(each.logs) for each in slices)
        due_at = options.compaction.commits
        why = f"{deltas} delta commits since the last one, due at {due_at}; {logs} log files"
        yield DueService("compaction", bool(logs) and is_due(timeline, options.compaction, now), why)
    retained = options.cleaning.commits_retained
    yield DueService("clean", writes > retained, f"{writes} commits, {retained} are retained")
    most = options.archiving.commits_max
    yield DueService("archive", writes > most, f"{writes} commits in the active timeline, at most {most}")
    since = commits_since_clustering(facts.store)
    is_asked = options.clustering.inline or options.clustering.background
    after = (
        options.clustering.inline_commits
        if options.clustering.inline
        else options.clustering.background_commits
    )
    asked = f"due at {after}" if is_asked else "not asked for by the options"
    yield DueService(
        "clustering", is_asked and since >= after, f"{since} commits since the last one, {asked}"
    )
    small = options.sizing.small_file_limit_bytes
    bases = [each.base.status.size_bytes for each in slices if each.base]
    few = sum(size < small for size in bases)
    partitions = {each.partition for each in slices if each.base and each.base.status.size_bytes < small}
    why = f"{few} of {len(bases)} base files in {len(partitions)} partitions are below {small >> 20} MiB"
    yield DueService("merge of small files", few > len(partitions), why)


def _pending(facts: TableFacts) -> Iterator[DueService]:
    for instant in facts.timeline.pending():
        if instant.action is not Action.SAVEPOINT:
            state = instant.state.name.lower()
            yield DueService(str(instant.action), True, f"{state} at {instant.requested} and not completed")


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """A completed write or service.

    Attributes:
        requested, completed: its times; without a completion time in version 6.
        action, operation: what it was.
        is_service: whether it only rewrote records.
        inserts, updates, deletes: records that it changed.
        rows_written: records in its files, those that were copied unchanged included.
        bytes_written, files: size and number of its files.
        seconds: from its request to its completion; None where that is not known.
    """

    requested: str
    completed: str | None
    action: str
    operation: str
    is_service: bool
    inserts: int
    updates: int
    deletes: int
    rows_written: int
    bytes_written: int
    files: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """The latest slice of a file group: sizes in bytes."""

    partition: str
    file_id: str
    base_bytes: int
    log_bytes: int
    logs: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition.

    Attributes:
        path: its path.
        file_groups, small_files: numbers of file groups, and of those with a small base file.
        size_bytes: size of the latest slices.
        last_write: requested time of the newest slice or log file that is known.
        age_days: days since then.
    """

    path: str
    file_groups: int
    small_files: int
    size_bytes: int
    last_write: str
    age_days: float


@dataclass(frozen=True, slots=True)
class TableReport:
    """The facts of a report.

    Attributes:
        name, uri, table_type, version, record_key, partition_by: of the table.
        made_at: time of the report.
        commits: completed writes and services of the active timeline, oldest first.
        slices: latest slices of all file groups.
        partitions: all partitions, the largest first.
        small_file_bytes: size below which a base file is small.
        write_amplification: bytes that all commits wrote, for each byte of commits that changed records.
        rows_rewritten: records in the files of commits, for each record that was changed.
        read_amplification: bytes that a query of everything reads, for each byte of base files.
        due: services that are due or pending.
    """

    name: str
    uri: str
    table_type: str
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    made_at: str
    commits: tuple[CommitFacts, ...]
    slices: tuple[SliceFacts, ...]
    partitions: tuple[PartitionFacts, ...]
    small_file_bytes: int
    write_amplification: float | None
    rows_rewritten: float | None
    read_amplification: float | None
    due: tuple[DueService, ...]


def load_report(context: TableContext, options: WriteOptions) -> TableReport:
    """Load the facts of a report; writes nothing.

    Args:
        context: the table.
        options: say when services are due, and which files are small.

    Raises:
        CorruptTableError: the table is damaged.
    """
    facts = load_facts(context.storage, context.clock, context.uses_metadata)
    now = instant_time(context.clock.now_ms(), facts.config.timezone)
    slices = latest_slices(facts)
    commits = tuple(
        _commit(instant, facts.store.commit_metadata(instant)) for instant in facts.timeline.writes()
    )
    small = options.sizing.small_file_limit_bytes
    config = facts.config
    return TableReport(
        config.name,
        context.storage.spec.uri,
        str(config.table_type),
        config.version,
        tuple(config.record_key_fields),
        tuple(config.partition_fields),
        now,
        commits,
        tuple(_slice(each) for each in slices),
        _partitions(slices, facts, now, small),
        small,
        _ratio(
            sum(each.bytes_written for each in commits),
            sum(each.bytes_written for each in commits if not each.is_service),
        ),
        _ratio(
            sum(each.rows_written for each in commits),
            sum(each.inserts + each.updates + each.deletes for each in commits if not each.is_service),
        ),
        _ratio(sum(each.size_bytes for each in slices), sum(_base_bytes(each) for each in slices)),
        due_services(facts, slices, options, now),
    )


def _commit(instant: Instant, commit: CommitMetadata) -> CommitFacts:
    stats = commit.stats
    completed = instant.completed
    return CommitFacts(
        instant.requested,
        completed,
        str(instant.action),
        str(commit.operation).lower(),
        not commit.changes_records,
        sum(stat.num_inserts for stat in stats),
        sum(stat.num_updates for stat in stats),
        sum(stat.num_deletes for stat in stats),
        sum(stat.num_writes for stat in stats),
        sum(stat.size_bytes for stat in stats),
        len(stats),
        None if completed is None else seconds_between(instant.requested, completed),
    )


def _slice(each: FileSlice) -> SliceFacts:
    base = _base_bytes(each)
    return SliceFacts(each.partition, each.file_id, base, each.size_bytes - base, len(each.logs))


def _base_bytes(each: FileSlice) -> int:
    return each.base.status.size_bytes if each.base else 0


def _partitions(
    slices: Sequence[FileSlice], facts: TableFacts, now: str, small_bytes: int
) -> tuple[PartitionFacts, ...]:
    written = {
        stat.partition: instant.requested
        for instant in facts.timeline.writes()
        for stat in facts.store.commit_metadata(instant).stats
    }
    groups: dict[str, list[FileSlice]] = {}
    for each in slices:
        groups.setdefault(each.partition, []).append(each)
    found = []
    for path, inside in groups.items():
        last = written.get(path) or max(each.base_instant for each in inside)
        small = sum(each.base is not None and _base_bytes(each) < small_bytes for each in inside)
        size = sum(each.size_bytes for each in inside)
        age = max(0.0, seconds_between(last, now) / 86_400)
        found.append(PartitionFacts(path, len(inside), small, size, last, round(age, 3)))
    return tuple(sorted(found, key=lambda each: (-each.size_bytes, each.path)))


def _ratio(whole: int, part: int) -> float | None:
    return round(whole / part, 3) if part else None


_SHOWN: Final = 100
"""Commits in a chart and partitions in a list."""

_SIZES: Final = (1 << 20, 8 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 1 << 30)
_LOGS: Final = (0, 1, 2, 3, 5, 10, 20)
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 980px; margin: 2em auto; color: #222 }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25em .8em .25em 0 }
th { border-bottom: 1px solid #999; font-weight: 600 } td { border-bottom: 1px solid #ddd }
svg { width: 100%; height: auto } line { stroke: #999 } text { font-size: 12px; fill: #555 }
rect.write { fill: #2b6cb0 } rect.service { fill: #b7791f } rect.due { fill: #c53030 }
.axis { text-anchor: end } .label { text-anchor: middle }
.due td:first-child { font-weight: 600; color: #c53030 } .none { color: #777 }
.key span { margin-right: 1.5em }
"""


@dataclass(frozen=True, slots=True)
class Report:
    """A report about a table; a notebook shows it as its page.

    Attributes:
        facts: what it says.
    """

    facts: TableReport

    def to_html(self) -> str:
        """Return it as one HTML page that stands alone, without scripts."""
        return page(self.facts)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" width="100%" height="800"></iframe>'


def page(report: TableReport, *, top: str = "", refresh_seconds: int | None = None) -> str:
    """Return the HTML page of a report.

    Args:
        report: the facts.
        top: HTML above it.
        refresh_seconds: see `document`.
    """
    body = "\n".join(
        (
            f"{top}<h1>{escape(report.name)}</h1><p>{escape(report.uri)}</p>",
            _facts(report),
            "<h2>Services</h2>",
            _due(report),
            "<h2>Timeline: rows changed by each commit</h2>",
            '<p class="key"><span>blue: writes</span><span>brown: table services, by rows written</span></p>',
            bars("rows changed by each commit", [_rows(each) for each in report.commits[-_SHOWN:]], _count),
            "<h2>Timeline: seconds of each commit</h2>",
            bars("seconds of each commit", [_seconds(each) for each in report.commits[-_SHOWN:]], _decimal),
            "<h2>File groups by size of the base file</h2>",
            bars("file groups by size", _by_size(report), _count),
            "<h2>File groups by number of log files</h2>",
            bars("file groups by log files", _by_logs(report.slices), _count),
            "<h2>Partitions</h2>",
            _partition_rows(report),
        )
    )
    title = f"{report.name}: report of {moment(report.made_at)}"
    return document(title, body, refresh_seconds=refresh_seconds)


def document(title: str, body: str, *, refresh_seconds: int | None = None) -> str:
    """Return a whole HTML page.

    Args:
        title: its title, as text.
        body: its HTML.
        refresh_seconds: after how many seconds a browser loads it again; None for never.
    """
    refresh = "" if refresh_seconds is None else f'<meta http-equiv="refresh" content="{refresh_seconds}">'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{refresh}'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _facts(report: TableReport) -> str:
    size = sum(each.base_bytes + each.log_bytes for each in report.slices)
    logs = sum(each.logs for each in report.slices)
    rows = (
        ("type, version", f"{report.table_type}, {report.version}"),
        ("record key", ", ".join(report.record_key) or "none"),
        ("partitioned by", ", ".join(report.partition_by) or "nothing"),
        ("size", f"{size_text(size)} in {len(report.slices)} file groups, {logs} log files"),
        ("partitions", f"{len(report.partitions)}"),
        ("commits in the active timeline", f"{len(report.commits)}"),
        ("bytes written for each byte of a write", _decimal(report.write_amplification)),
        ("rows written for each row changed", _decimal(report.rows_rewritten)),
        ("bytes read for each byte of base files", _decimal(report.read_amplification)),
        ("report of", moment(report.made_at)),
    )
    return _grid((), rows)


def _due(report: TableReport) -> str:
    rows = "".join(
        f'<tr class="{"due" if each.is_due else "idle"}"><td>{escape(each.service)}</td>'
        f"<td>{'due' if each.is_due else 'not due'}</td><td>{escape(each.why)}</td></tr>"
        for each in report.due
    )
    return f"<table><tr><th>service</th><th></th><th>why</th></tr>{rows}</table>"


def _partition_rows(report: TableReport) -> str:
    shown = report.partitions[:_SHOWN]
    rows = (
        (
            each.path or "(not partitioned)",
            size_text(each.size_bytes),
            f"{each.file_groups}",
            f"{each.small_files}",
            moment(each.last_write),
            _decimal(each.age_days),
        )
        for each in shown
    )
    left = len(report.partitions) - len(shown)
    more = f'<p class="none">and {left} smaller ones</p>' if left else ""
    small = f"small files (below {size_text(report.small_file_bytes)})"
    head = ("partition", "size", "file groups", small, "last write", "days since")
    return _grid(head, rows) + more


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "<tr>" + "".join(f"<th>{escape(each)}</th>" for each in head) + "</tr>" if head else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def _rows(commit: CommitFacts) -> Bar:
    changed = commit.inserts + commit.updates + commit.deletes
    value = commit.rows_written if commit.is_service else changed
    return Bar(value, "", _commit_title(commit), _kind(commit))


def _seconds(commit: CommitFacts) -> Bar:
    return Bar(commit.seconds or 0.0, "", _commit_title(commit), _kind(commit))


def _kind(commit: CommitFacts) -> str:
    return "service" if commit.is_service else "write"


def _commit_title(commit: CommitFacts) -> str:
    seconds = "" if commit.seconds is None else f", {commit.seconds:.1f} s"
    size = size_text(commit.bytes_written)
    return (
        f"{commit.operation} {moment(commit.requested)}: {commit.inserts} inserted, {commit.updates}"
        f" updated, {commit.deletes} deleted; {commit.rows_written} rows and {size} written in"
        f" {commit.files} files{seconds}"
    )


def _by_size(report: TableReport) -> list[Bar]:
    bounds = [0, *_SIZES]
    found = []
    for number, low in enumerate(bounds):
        high = bounds[number + 1] if number + 1 < len(bounds) else None
        count = sum(
            low <= each.base_bytes and (high is None or each.base_bytes < high) for each in report.slices
        )
        label = f"from {size_text(low)}" if high is None else f"below {size_text(high)}"
        is_small = high is not None and high <= report.small_file_bytes
        found.append(Bar(count, label, f"{count} file groups {label}", "due" if is_small else "write"))
    return found


def _by_logs(slices: Sequence[SliceFacts]) -> list[Bar]:
    found = []
    for number, low in enumerate(_LOGS):
        after = _LOGS[number + 1] if number + 1 < len(_LOGS) else None
        count = sum(low <= each.logs and (after is None or each.logs < after) for each in slices)
        last = None if after is None else after - 1
        label = f"{low}" if last == low else f"{low} or more" if last is None else f"{low} to {last}"
        found.append(Bar(count, label, f"{count} file groups with {label} log files"))
    return found


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _decimal(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.2f}"


def moment(instant: str) -> str:
    """Return an instant time as a date and a time of day; other texts unchanged."""
    if len(instant) < 14 or not instant.isdigit():
        return instant
    day = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}"
    return f"{day} {instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
