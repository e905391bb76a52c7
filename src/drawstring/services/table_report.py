"""Report what a table has, what its commits wrote, and which table services are due.

`load_report` reads the facts of a report. `due_services` says which table services are due, and why. Plug-ins
of the group `drawstring.reports` show reports to people:

    html      a `ReportPage` renders one as a page
    server    a `ReportServerProvider` makes a web server of several
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Protocol, Self

from drawstring.base.plugins import load_plugin
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.query.planner import latest_slices
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.services.clustering import commits_since_clustering
from drawstring.services.compaction import deltas_since_compaction, is_due
from drawstring.timeline.timeline import instant_time, seconds_between
from drawstring.txn.table_context import TableContext

_GROUP: Final = "drawstring.reports"


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


@dataclass(frozen=True, slots=True)
class Report:
    """A report about a table; a notebook shows it as its page.

    Attributes:
        facts: what it says.
    """

    facts: TableReport

    def to_html(self) -> str:
        """Return it as one HTML page that stands alone, without scripts."""
        page: ReportPage = load_plugin(_GROUP, "html", "pages of reports")
        return page(self.facts)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" width="100%" height="800"></iframe>'


class ReportPage(Protocol):
    """Renders reports."""

    def __call__(self, report: TableReport, /) -> str:
        """Return a report as one HTML page that stands alone."""
        ...


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A table of a server.

    Attributes:
        uri: its root.
        load: makes the facts of its report.
    """

    uri: str
    load: Callable[[], TableReport]


class ReportServer(Protocol):
    """Listens, as a context manager."""

    @property
    def address(self) -> str:
        """The address that a browser opens."""
        ...

    def serve_forever(self) -> None:
        """Answer requests until the process is interrupted."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...


class ReportServerProvider(Protocol):
    """Makes servers of reports."""

    def __call__(
        self, tables: Sequence[ServedTable], refresh_seconds: int, host: str, port: int, /
    ) -> ReportServer:
        """Return a server; see `report_server`."""
        ...


def report_server(tables: Sequence[ServedTable], refresh_seconds: int, host: str, port: int) -> ReportServer:
    """Return a web server of the reports of tables, which listens already.

    Args:
        tables: the tables, in the order of their list.
        refresh_seconds: after how many seconds a page asks again.
        host, port: where it listens; port 0 for a free one.

    Raises:
        UnavailableError: it cannot listen there.
        UnsupportedError: the plug-in is missing.
    """
    provider: ReportServerProvider = load_plugin(_GROUP, "server", "a server of reports")
    return provider(tables, refresh_seconds, host, port)
