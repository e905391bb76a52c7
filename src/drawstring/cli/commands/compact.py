"""`drawstring compact`, `log-compact` and `compact-base-files`: the compactions of a table."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.counted import counted
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.cli.planned import PlannedCall, Words
from drawstring.model.explanation import size_text
from drawstring.model.result import CommitResult

Schedule = Annotated[
    bool,
    Parameter(negative="", help="Only plan a compaction, for another process to run."),
]
Instant = Annotated[
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
SmallFileBytes = Annotated[
    int | None,
    Parameter(validator=Number(gte=0), help="Base files below this size are combined; 100 MiB by default."),
]
TargetFileBytes = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Size of new base files; 120 MiB by default.")
]


def compact(
    path: TablePath,
    *,
    schedule: Schedule = False,
    instant: Instant = None,
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
    call = PlannedCall(table.schedule_compaction, table.compact, given, _WORDS)
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def log_compact(
    path: TablePath,
    *,
    schedule: Schedule = False,
    instant: Instant = None,
    min_blocks: MinBlocks = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Combine the log files of each slice in a MERGE_ON_READ table into one; keep the base files."""
    table = open_table(path, storage_option)
    given = {"min_blocks": min_blocks, "options": named_values(option)}
    call = PlannedCall(table.schedule_log_compaction, table.log_compact, given, _WORDS)
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def compact_base_files(
    path: TablePath,
    *,
    schedule: Schedule = False,
    instant: Instant = None,
    small_file_bytes: SmallFileBytes = None,
    target_file_bytes: TargetFileBytes = None,
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
    call = PlannedCall(table.schedule_base_file_compaction, table.compact_base_files, given, _WORDS)
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def _told(result: CommitResult) -> str:
    kind = "log file" if result.operation == "log_compact" else "base file"
    size = size_text(result.bytes_written)
    written = f"{counted(result.records_written, 'row')} into {counted(result.files, kind)} ({size})"
    return f"compacted {written} in {result.seconds:.1f} s, at instant {result.instant}"


_WORDS: Final = Words("compacting", "nothing to compact", _told)
