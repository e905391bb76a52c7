"""Run table services: the commands that archive, clean, cluster, compact and expire.

    drawstring services archive                move old instants into the archived timeline
    drawstring services clean                  delete old versions of files
    drawstring services cluster                combine small file groups and sort their rows
    drawstring services compact, log-compact,  the compactions of a table
        compact-base-files
    drawstring services expire-partitions      delete expired partitions
    drawstring services rescale-buckets        change the number of buckets
    drawstring services run                    run the due table services of many tables, once or continuously

The compaction and clustering commands plan the service or run it, and print the result (`PlannedCall`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

import pyarrow as pa
from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.clock import SystemClock
from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError
from drawstring.base.text_format import pluralize
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    DryRun,
    HudiOptions,
    StorageOptions,
    TablePath,
    column_names,
    named_values,
    open_table,
)
from drawstring.cli.output import progress_bar
from drawstring.model.instant import Instant
from drawstring.model.plans import CleanPlan
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult, size_text
from drawstring.services.table_services import TaskOutcome

MinCommits = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Newest writes to retain; 20 by default.")
]
MaxCommits = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=1), help="Number of active writes that triggers archiving; 30 by default."
    ),
]


def archive(
    path: TablePath,
    *,
    min_commits: MinCommits = None,
    max_commits: MaxCommits = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Move old instants to the archived timeline; by default above 30 writes, and 20 are retained."""
    table = open_table(path, storage_option)
    given = named_values(option)
    if dry_run:
        plan = table.services.plan_archive(min_commits=min_commits, max_commits=max_commits, options=given)
        _show_archive(plan, as_json)
        return
    result = table.services.archive(min_commits=min_commits, max_commits=max_commits, options=given)
    if as_json:
        output.print_result(result)
    elif not result:
        output.print_line("nothing to archive")
    else:
        span = f"{output.instant_text(result.first)} to {output.instant_text(result.last)}"
        text = f"archived {pluralize(result.instants, 'instant')} of {span}, in {result.seconds:.1f} s"
        output.print_line(text)


def _show_archive(instants: list[Instant], as_json: bool) -> None:
    if as_json:
        output.print_json([{"requested": each.requested, "action": str(each.action)} for each in instants])
        return
    if instants:
        rows = [(each.requested, str(each.action), output.instant_text(each.requested)) for each in instants]
        output.print_grid(("instant to archive", "action", "requested"), rows)
    output.print_line(f"{pluralize(len(instants), 'instant')}; nothing was archived")


RetainCommits = Annotated[
    int | None,
    Parameter(validator=Number(gte=1), help="Newest commits whose files are retained; 10 by default."),
]
RetainVersions = Annotated[
    int | None,
    Parameter(validator=Number(gte=1), help="Newest versions of each file group to retain instead."),
]
RetainHours = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Hours for which files are retained instead.")
]


Kept = Annotated[
    bool, Parameter(name="--kept", negative="", help="With --dry-run: name the files that stay, and why.")
]


def clean(
    path: TablePath,
    *,
    retain_commits: RetainCommits = None,
    retain_versions: RetainVersions = None,
    retain_hours: RetainHours = None,
    dry_run: DryRun = False,
    kept: Kept = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Delete old versions of files; by default the files of the newest 10 commits are retained."""
    given = {
        "--retain-commits": retain_commits,
        "--retain-versions": retain_versions,
        "--retain-hours": retain_hours,
    }
    flags = [flag for flag, number in given.items() if number is not None]
    if len(flags) > 1:
        raise InvalidError(f"{' and '.join(flags)} exclude each other. Give one of them.")
    if kept and not dry_run:
        raise InvalidError("--kept shows what a clean would leave. Give --dry-run with it.")
    services, bounds = (
        open_table(path, storage_option).services,
        dict(zip(_BOUNDS, given.values(), strict=True)),
    )
    options = named_values(option)
    if dry_run:
        found = services.kept_files(**bounds, options=options)
        _show_clean(services.plan_clean(**bounds, options=options), found, as_json=as_json, has_files=kept)
        return
    result = services.clean(**bounds, options=options)
    if as_json:
        output.print_result(result)
    else:
        nothing = "nothing to clean; --dry-run tells why files stay"
        output.print_line(_clean_message(result) if result else nothing)


_BOUNDS: Final = ("retain_commits", "retain_versions", "retain_hours")


def _show_clean(plan: CleanPlan | None, kept: pa.Table, *, as_json: bool, has_files: bool) -> None:
    reasons = kept.group_by(["reason", "instant", "name"], use_threads=False)
    counts = reasons.aggregate([("file", "count"), ("size_bytes", "sum")]).to_pylist()
    if as_json:
        kept_by = [
            {"reason": each["reason"], "instant": each["instant"], "name": each["name"]}
            | {"files": each["file_count"], "size_bytes": each["size_bytes_sum"]}
            for each in counts
        ]
        fields = asdict(plan) if plan else {"files": {}}
        output.print_json(fields | {"kept_by": kept_by} | ({"kept": kept.to_pylist()} if has_files else {}))
        return
    _show_plan(plan)
    shown = [
        (
            *(each[name] for name in ("reason", "instant", "name", "file_count")),
            size_text(each["size_bytes_sum"]),
        )
        for each in counts
    ]
    output.print_grid(("kept by", "instant", "name", "files", "size"), shown)
    if has_files:
        columns = ["partition", "file", "reason", "instant", "name"]
        rows = (tuple(row.values()) for row in kept.select(columns).to_pylist())
        output.print_grid(("partition", "file that stays", "kept by", "instant", "name"), rows)


def _show_plan(plan: CleanPlan | None) -> None:
    if plan is None or not plan.files:
        output.print_line("nothing to clean")
        return
    rows = [(place, path.rpartition("/")[2]) for place, paths in plan.files.items() for path in paths]
    output.print_grid(("partition", "file to delete"), rows)
    since = f"; files since {plan.earliest.requested} stay" if plan.earliest else ""
    gone = f", {len(plan.partitions_to_delete)} of them whole" if plan.partitions_to_delete else ""
    found = f"{pluralize(len(rows), 'file')} in {pluralize(len(plan.files), 'partition')}"
    output.print_line(f"{found}{gone}{since}; nothing was deleted")


def _clean_message(result: CleanResult) -> str:
    dropped = result.partitions_deleted
    gone = f", {pluralize(dropped, 'partition')} with them" if dropped else ""
    kept = f"; files since {result.earliest_retained} stay" if result.earliest_retained else ""
    deleted = f"{pluralize(result.files, 'file')} in {pluralize(result.partitions, 'partition')}"
    return f"deleted {deleted}{gone}{kept}, {result.seconds:.1f} s"


_DAYS: Final = "hoodie.partition.ttl.strategy.days.retain"

RetainDays = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=0),
        help=f"Days to retain a partition after its last write; by default the value of --option {_DAYS}.",
    ),
]
Partitions = Annotated[
    tuple[str, ...], Parameter(negative="", help="Check only this partition path; may be repeated.")
]


def expire_partitions(
    path: TablePath,
    *,
    retain_days: RetainDays = None,
    partitions: Partitions = (),
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Delete the partitions without writes for a number of days, in one commit."""
    table, given = open_table(path, storage_option), named_values(option)
    if retain_days is None and _DAYS not in given:
        raise InvalidError("The retention is missing. Give a number of days, for example --retain-days 30.")
    only = list(partitions) or None
    if dry_run:
        found = table.services.plan_expiry(retain_days=retain_days, partitions=only, options=given)
        if as_json:
            output.print_json(found)
            return
        if found:
            output.print_grid(("partition to drop",), [(each,) for each in found])
        output.print_line(f"{pluralize(len(found), 'partition')}; nothing was dropped")
        return
    result = table.services.expire_partitions(retain_days=retain_days, partitions=only, options=given)
    if as_json:
        output.print_result(result)
    else:
        text = f"dropped old partitions at instant {result.instant}" if result else "no partition is that old"
        output.print_line(text)


Buckets = Annotated[int, Parameter(validator=Number(gte=1), help="Number of buckets of each partition.")]
Rescaled = Annotated[
    tuple[str, ...],
    Parameter(
        name="--partitions",
        negative="",
        help="Partition path, in which * matches any text; may be repeated. By default all, also later ones.",
    ),
]


def rescale_buckets(
    path: TablePath,
    buckets: Buckets,
    /,
    *,
    partitions: Rescaled = (),
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Give partitions of a table with a simple bucket index another number of buckets, in one commit."""
    table, given = open_table(path, storage_option), named_values(option)
    result = table.services.rescale_buckets(buckets, list(partitions) or None, options=given)
    if as_json:
        output.print_result(result)
    elif result:
        output.print_line(f"rewrote the partitions in {pluralize(buckets, 'bucket')} at {result.instant}")
    else:
        output.print_line(f"the partitions have {pluralize(buckets, 'bucket')} already")


_log: Final = logging.getLogger("drawstring")

Paths = Annotated[str, Parameter(help="Roots of the tables.")]
Watch = Annotated[bool, Parameter(negative="", help="Repeat until interrupted.")]
Every = Annotated[
    float, Parameter(validator=Number(gte=1), help="Seconds between the rounds of --watch, at least 1.")
]


def run_services(
    *paths: Paths,
    watch: Watch = False,
    every: Every = 60.0,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Run the due table services (compact, cluster, expire, clean, archive) and the scheduled plans.

    Partitions expire if hoodie.partition.ttl.inline is set. A failure is reported and retried in the next
    round; without --watch, the exit code is 2. With --json each round prints one list, which is empty if
    nothing was due.
    """
    if not paths:
        raise InvalidError("No tables were given. Give their paths: drawstring services run PATH...")
    given = named_values(option)

    def run_round() -> int:
        outcomes = []
        for path in paths:
            idle = not watch
            for done in _outcomes(path, given, storage_option):
                idle = False
                outcomes.append((path, done))
                if not as_json:
                    _print_text(f"{path}: {done.task}: {_services_message(done)}")
            if idle and not as_json:
                _print_text(f"{path}: nothing was due")
        if as_json:
            output.print_json([_fields(path, done) for path, done in outcomes])
        return sum(done.error is not None for _, done in outcomes)

    if watch:
        if not as_json:
            _print_text(
                f"running services of {pluralize(len(paths), 'table')} every {every:g} s, until interrupted"
            )
        _repeat(run_round, every)
    elif failures := run_round():
        raise UnavailableError(f"{pluralize(failures, 'service')} failed. See the error of each above.")


def _repeat(work: Callable[[], int], every: float) -> None:
    clock = SystemClock()
    try:
        while True:
            work()
            clock.sleep(every)
    except KeyboardInterrupt:
        return


def _outcomes(path: str, given: dict[str, str], storage_option: tuple[str, ...]) -> Iterator[TaskOutcome]:
    """Run the due services of one table, with a progress bar on standard error if that is a terminal."""
    with progress_bar(path) as began:
        try:
            table = open_table(path, storage_option)
            yield from table.services.run(progress=lambda task: began(f"{task} of {path}"), options=given)
        except (DrawstringError, OSError) as error:
            yield TaskOutcome("open", error=error)
        except Exception as error:  # of any kind: the other tables must not wait for it
            _log.exception("The services of %s failed unexpectedly.", path)
            yield TaskOutcome("open", error=error)


def _fields(path: str, done: TaskOutcome) -> dict[str, output.Value]:
    return {
        "table": path,
        "service": done.task,
        "result": output.result_fields(done.result) if done.result else None,
        "error": output.error_fields(done.error) if done.error else None,
        "instant": done.instant,
        "left_to": done.left_to,
    }


def _print_text(text: str) -> None:
    output.print_line(text)


def _services_message(done: TaskOutcome) -> str:
    if done.left_to is not None:
        return f"{done.instant} is left to another process, which runs it ({done.left_to})"
    match done.result:
        case None:
            return f"failed: {_reason(done.error)}"
        case CommitResult(operation="delete_partition"):
            return f"old partitions dropped at instant {done.result.instant}"
        case CleanResult():
            return f"{pluralize(done.result.files, 'file')} deleted in {done.result.seconds:.1f} s"
        case ArchiveResult():
            return f"{pluralize(done.result.instants, 'instant')} in {done.result.seconds:.1f} s"
        case result:
            size = size_text(result.bytes_written)
            written = f"{pluralize(result.records_written, 'row')} in {pluralize(result.files, 'file')}"
            return f"{written} ({size}), {result.seconds:.1f} s"


def _reason(error: Exception | None) -> str:
    """Return the message of an error, with the class name for unexpected errors."""
    expected = isinstance(error, DrawstringError | OSError)
    return str(error) if expected else f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a service in its output.

    Attributes:
        running: title of the progress bar, before the name of the table.
        nothing: line when there is nothing to do.
        done: returns the line for a result.
    """

    running: str
    nothing: str
    done: Callable[[CommitResult], str]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of a service that can be planned and run.

    Attributes:
        plan: plans it.
        run: runs a plan, or plans and runs.
        given: keyword arguments of `plan` and `run`.
        words: words of the service.
    """

    plan: Callable[..., str | None]
    run: Callable[..., CommitResult]
    given: Mapping[str, Any]
    words: Words

    def carry_out(self, table_name: str, instant: str | None, *, schedule: bool, as_json: bool) -> None:
        """Plan or run the service, and print the result.

        Args:
            table_name: name of the table.
            instant: requested time of the plan to run; None for all.
            schedule: whether to plan only.
            as_json: whether to print JSON.

        Raises:
            InvalidError: both --schedule and --instant were given.
        """
        if schedule and instant:
            raise InvalidError(
                "--schedule and --instant exclude each other. Give one of them, or none to schedule and run."
            )
        if schedule:
            self._print_plan(self.plan(**self.given), as_json)
            return
        with progress_bar(table_name) as began:
            result = self.run(instant, progress=began(f"{self.words.running} {table_name}"), **self.given)
        if as_json:
            output.print_result(result)
        else:
            output.print_line(self.words.done(result) if result else self.words.nothing)

    def _print_plan(self, planned: str | None, as_json: bool) -> None:
        if as_json:
            output.print_json({"instant": planned})
        else:
            output.print_line(f"scheduled {planned}" if planned else self.words.nothing)


ScheduleClustering = Annotated[
    bool, Parameter(negative="", help="Only plan a clustering, for another process to run.")
]
ClusteringInstant = Annotated[
    str | None, Parameter(help="Run the clustering that was scheduled under this instant, and nothing else.")
]
SortBy = Annotated[
    tuple[str, ...],
    Parameter(negative="", help="Columns to sort rows by, separated by commas; may be repeated."),
]
Layout = Annotated[
    Literal["LINEAR", "ZORDER", "HILBERT"] | None,
    Parameter(help="How the sort columns order rows; LINEAR by default."),
]
ClusteringPartitions = Annotated[
    tuple[str, ...], Parameter(negative="", help="Cluster only this partition path; may be repeated.")
]
SmallFileBytes = Annotated[
    int | None,
    Parameter(validator=Number(gte=0), help="Base files below this size are clustered; 300 MiB by default."),
]
TargetFileBytes = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Size of new base files; 1 GiB by default.")
]


def cluster(
    path: TablePath,
    *,
    schedule: ScheduleClustering = False,
    instant: ClusteringInstant = None,
    sort_by: SortBy = (),
    layout: Layout = None,
    partitions: ClusteringPartitions = (),
    small_file_bytes: SmallFileBytes = None,
    target_file_bytes: TargetFileBytes = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Cluster a table: combine its small file groups and sort their rows.

    By default, run the scheduled clusterings, then cluster the remaining file groups.
    """
    table = open_table(path, storage_option)
    given: dict[str, Any] = {
        "sort_by": column_names(sort_by, "--sort-by"),
        "layout": layout,
        "partitions": list(partitions) or None,
        "small_file_bytes": small_file_bytes,
        "target_file_bytes": target_file_bytes,
        "options": named_values(option),
    }
    call = PlannedCall(table.services.schedule_clustering, table.services.cluster, given, _CLUSTERING_WORDS)
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def _cluster_message(result: CommitResult) -> str:
    size = size_text(result.bytes_written)
    written = (
        f"{pluralize(result.records_written, 'row')} into {pluralize(result.files, 'base file')} ({size})"
    )
    return f"clustered {written} in {result.seconds:.1f} s, at instant {result.instant}"


_CLUSTERING_WORDS: Final = Words("clustering", "nothing to cluster", _cluster_message)


ScheduleCompaction = Annotated[
    bool,
    Parameter(negative="", help="Only plan a compaction, for another process to run."),
]
CompactionInstant = Annotated[
    str | None, Parameter(help="Run the compaction that was scheduled under this instant, and nothing else.")
]
Strategy = Annotated[
    tuple[str, ...],
    Parameter(negative="", help="Hudi's strategy that selects the file groups; may be repeated."),
]
Hybrid = Annotated[
    bool,
    Parameter(
        negative="", help="Write a base file, one log file of the newest ones, or nothing, by their sizes."
    ),
]
MinBlocks = Annotated[
    int | None,
    Parameter(validator=Number(gte=2), help="Log blocks that trigger a log compaction; 5 by default."),
]
CompactionSmallFileBytes = Annotated[
    int | None,
    Parameter(validator=Number(gte=0), help="Base files below this size are combined; 100 MiB by default."),
]
CompactionTargetFileBytes = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Size of new base files; 120 MiB by default.")
]


def compact(
    path: TablePath,
    *,
    schedule: ScheduleCompaction = False,
    instant: CompactionInstant = None,
    strategy: Strategy = (),
    hybrid: Hybrid = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Compact a MERGE_ON_READ table: merge its log files into new base files.

    By default, run the scheduled compactions, then compact the remaining file groups.
    """
    table = open_table(path, storage_option)
    given = {"strategy": list(strategy) or None, "hybrid": hybrid or None, "options": named_values(option)}
    call = PlannedCall(table.services.schedule_compaction, table.services.compact, given, _COMPACTION_WORDS)
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def log_compact(
    path: TablePath,
    *,
    schedule: ScheduleCompaction = False,
    instant: CompactionInstant = None,
    min_blocks: MinBlocks = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Combine the log files of each slice in a MERGE_ON_READ table into one; keep the base files."""
    table = open_table(path, storage_option)
    given = {"min_blocks": min_blocks, "options": named_values(option)}
    call = PlannedCall(
        table.services.schedule_log_compaction, table.services.log_compact, given, _COMPACTION_WORDS
    )
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def compact_base_files(
    path: TablePath,
    *,
    schedule: ScheduleCompaction = False,
    instant: CompactionInstant = None,
    small_file_bytes: CompactionSmallFileBytes = None,
    target_file_bytes: CompactionTargetFileBytes = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Combine small base files of each partition, in a table of either type; keep the log files."""
    table = open_table(path, storage_option)
    given = {
        "small_file_bytes": small_file_bytes,
        "target_file_bytes": target_file_bytes,
        "options": named_values(option),
    }
    call = PlannedCall(
        table.services.schedule_base_file_compaction,
        table.services.compact_base_files,
        given,
        _COMPACTION_WORDS,
    )
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def _compact_message(result: CommitResult) -> str:
    kind = "log file" if result.operation == "log_compact" else "base file"
    size = size_text(result.bytes_written)
    written = f"{pluralize(result.records_written, 'row')} into {pluralize(result.files, kind)} ({size})"
    return f"compacted {written} in {result.seconds:.1f} s, at instant {result.instant}"


_COMPACTION_WORDS: Final = Words("compacting", "nothing to compact", _compact_message)
