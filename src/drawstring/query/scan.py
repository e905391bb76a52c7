"""Define `Scan`, the lazy result of a query, and run its tasks.

    plan ── tasks ──> worker threads, one task each ── bounded queues ──> batches in task order
              └── small local files ── one task after the other ──> batches

`narrowed` prunes columns and pushes a condition down into a planned query, for an engine's optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError, FilesCleanedError, not_installed
from drawstring.base.resources import ONE_THREAD_BYTES_MAX, worker_threads
from drawstring.base.text_format import Grid
from drawstring.engine.local import stream
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.filegroups.read_task import ReadTask
from drawstring.formats.predicate_bounds import partitions_that_match
from drawstring.metadata.column_ranges import PARTITION_STATS
from drawstring.model.result import SLICES, Explanation, Step
from drawstring.query.bucket_detection import found_buckets
from drawstring.query.data_skipping import DataSkipping
from drawstring.query.partition_pruning import BucketFacts, Candidate, Partition, bucket_pruning, stored_keys
from drawstring.query.replanning import Draft, Replanning, Skips, Task
from drawstring.query.table_state import TableFacts
from drawstring.storage import is_object_store, open_spec
from drawstring.timeline.change_detection import ATTEMPTS_MAX, since

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")
_ROWS_SHOWN: Final = 10


class Scan:
    """The rows of a query, read on demand. A notebook shows the first ones, a terminal the columns.

    Args:
        schema: the columns of the result.
        plan: makes the tasks when they are first needed.
        threads: number of tasks that run at once; None to choose by the tasks and the machine.
        table: root of the table, for error messages.
        again: makes the tasks from a fresh load of the table when files of the first tasks were deleted;
            None if the table cannot be loaded again.
        explained: returns what tasks read and what their plan left out; None if that is not known.
        skips: rules out tasks for a further condition; None if nothing can.
    """

    def __init__(
        self,
        schema: pa.Schema,
        plan: Callable[[], Sequence[Task]],
        threads: int | None = None,
        table: str | None = None,
        again: Callable[[], Sequence[Task]] | None = None,
        explained: Callable[[Sequence[Task]], Explanation] | None = None,
        skips: Skips | None = None,
    ) -> None:
        self._schema = schema
        self._plan = plan
        self._threads = threads
        self._table = table
        self._again = again
        self._explained = explained
        self._skips = skips
        self._tasks: Sequence[Task] | None = None

    def __repr__(self) -> str:
        rows = [(field.name, str(field.type)) for field in self._schema]
        return Grid(f"Scan of {self._table or 'rows'}, read when asked for", ("column", "type"), rows).text()

    def _repr_html_(self) -> str:
        first = self._first(_ROWS_SHOWN + 1)
        rows = first.slice(0, _ROWS_SHOWN)
        cells = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        note = f"the first {_ROWS_SHOWN} rows" if first.num_rows > _ROWS_SHOWN else ""
        return Grid(f"Scan of {self._table or 'rows'}", self._schema.names, cells, note).html()

    def _first(self, count: int) -> pa.Table:
        """Return the first rows, and read little more than these."""
        found: list[pa.RecordBatch] = []
        for batch in self.to_batches():
            found.append(batch.slice(0, count))
            count -= found[-1].num_rows
            if count == 0:
                break
        return pa.Table.from_batches(found, self._schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._schema

    def tasks(self) -> Sequence[Task]:
        """Return the tasks of the result, one per file slice; each can run in any process.

        Of many file slices each task is made when it is asked for.
        """
        if self._tasks is None:
            self._tasks = self._planned(self._plan)
        return self._tasks

    def explain(self) -> Explanation:
        """Return what the query reads, what it skips, and why; it reads no rows.

        Example:
            >>> scan = drawstring.open("memory://rides").scan(where="fare > 15")
            >>> scan.explain().file_slices
            1
        """
        tasks = self.tasks()
        assert self._explained is not None
        return self._explained(tasks)

    @property
    def skips(self) -> Skips | None:
        """What rules out tasks for a condition that an engine pushes down; None if nothing can."""
        return self._skips

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are read, file slice by file slice.

        Raises:
            UnavailableError: a clean deleted a file after rows had been yielded. Before the first row the
                query is planned again instead.
        """
        has_yielded = False
        for is_last in (*repeat(False, ATTEMPTS_MAX), True):
            tasks = self.tasks()
            try:
                for batch in stream(tasks, read_task, self._threads or _threads_for(tasks)):
                    has_yielded = has_yielded or batch.num_rows > 0
                    yield batch
                return
            except FilesCleanedError:
                if has_yielded or is_last or self._again is None:
                    raise
                self._tasks = self._planned(self._again)

    def use(self, take: Callable[[Sequence[Task]], T]) -> T:
        """Call a function that reads files of the tasks; plan again if a file was deleted.

        Args:
            take: receives the tasks; may be called several times.

        Returns:
            The result of the last call.

        Raises:
            CorruptTableError: a file is lost.
        """
        for _ in range(ATTEMPTS_MAX):
            tasks = self.tasks()
            first = tasks[0] if tasks else None
            try:
                if first is None:
                    return take(tasks)
                with since(first.storage, first.timeline_digest):
                    return take(tasks)
            except FilesCleanedError:
                if self._again is None:
                    raise
                self._tasks = self._planned(self._again)
        return take(self.tasks())

    def _planned(self, plan: Callable[[], Sequence[Task]]) -> Sequence[Task]:
        try:
            return plan()
        except DrawstringError as error:
            raise error.at(table=self._table) from error.__cause__

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as an Arrow record batch reader, which other libraries accept."""
        return pa.RecordBatchReader.from_batches(self._schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self._schema)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame.

        Args:
            options: keyword arguments of `pyarrow.Table.to_pandas`.

        Raises:
            InvalidError: pandas is not installed.
        """
        _check_installed("pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """Return all rows as a polars DataFrame.

        Raises:
            InvalidError: polars is not installed.
        """
        _check_installed("polars")
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows through the Arrow C stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def scan_of_plan(
    schema: pa.Schema,
    facts: TableFacts,
    plan: Callable[[TableFacts], Draft[Task]],
    threads: int | None = None,
) -> Scan:
    """Return the scan of a query that is planned again when files of it are deleted.

    Args:
        schema: the columns of the result.
        facts: the table as it was first loaded.
        plan: makes the plan for a loaded table.
        threads: number of tasks that run at once; None to choose by the tasks and the machine.
    """
    planner = Replanning(facts, plan)
    uri, again = facts.storage.spec.uri, planner.again
    return Scan(schema, planner.tasks, threads, uri, again, planner.explained, planner.skipping)


def _threads_for(tasks: Sequence[Task]) -> int:
    """Return 1 for small local files, which are read before threads would start, else the default."""
    is_local = not any(is_object_store(task.storage.uri) for task in tasks[:1])
    sizes = accumulate(task.size_bytes for task in tasks)
    is_large = any(size_bytes > ONE_THREAD_BYTES_MAX for size_bytes in sizes)
    return worker_threads() if is_large or not is_local else 1


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise not_installed(f"to_{package} needs {package}", package)


def narrowed(tasks: Sequence[Task], columns: Sequence[str], where: pc.Expression | None) -> list[Task]:
    """Return the tasks that are still needed, with fewer columns and a stricter condition.

    The tasks of change queries are returned unchanged.

    Args:
        tasks: tasks of one query.
        columns: columns of the query to yield, in order.
        where: condition that rows must fulfil besides that of the query; None for none.
    """
    slices = [task for task in tasks if isinstance(task, ReadTask)]
    if not slices or len(slices) < len(tasks):
        return list(tasks)
    if where is None:
        return [replace(task, columns=tuple(columns)) for task in slices]
    both = where if slices[0].where is None else slices[0].where & where
    keys = stored_keys(both, slices[0].config, slices[0].schema)
    left = _matching(slices, where, keys)
    return [replace(task, columns=tuple(columns), where=both, keys=keys) for task in left]


def without_skipped(
    tasks: Sequence[Task], skips: Skips | None, where: pc.Expression | None, sql: str | None
) -> tuple[list[Task], list[Step]]:
    """Return the tasks that can hold rows of a condition by the metadata table, and what was left out.

    Args:
        tasks: tasks of one query.
        skips: of this query; None if nothing can be left out.
        where: condition that rows must fulfil besides that of the query; None for none that is known.
        sql: conditions in SQL that rows must fulfil, for expression indexes; None for none.
    """
    left = [task for task in tasks if isinstance(task, ReadTask)]
    if skips is None or not left or len(left) < len(tasks) or (where is None and sql is None):
        return list(tasks), []
    skipping = skips(pc.scalar(True) if where is None else where, sql)
    if skipping is None:
        return list(tasks), []
    candidates = {id(task): _candidate(task) for task in left}
    steps: list[Step] = []
    rules: dict[str, Callable[[Sequence[Candidate]], Any]] = {
        PARTITION_STATS: partial(_in_partitions, skipping),
        **skipping.rules(),
    }
    for name, rule in rules.items():
        matches = rule([candidates[id(task)] for task in left])
        kept = [task for task, is_match in zip(left, matches, strict=True) if is_match]
        steps.append(Step(SLICES, name, len(left) - len(kept), len(kept)))
        left = kept
    steps += [Step(SLICES, name, 0, len(left), why) for name, why in skipping.unused.items()]
    return list(left), [step for step in steps if step.skipped or step.note]


def _in_partitions(skipping: DataSkipping, candidates: Sequence[Candidate]) -> Sequence[bool]:
    """Return for each of some file slices whether its partition may match, by `partition_stats`."""
    if not skipping.is_current:
        return [True] * len(candidates)
    by_path = {each.partition.path: each.partition for each in candidates}
    kept = {each.path for each in skipping.partitions(list(by_path.values()))}
    return [each.partition.path in kept for each in candidates]


def _candidate(task: ReadTask) -> Candidate:
    also = None if task.whole_slice is None else task.whole_slice.file_slice
    return Candidate(Partition(task.file_slice.partition, dict(task.partition_values)), task.file_slice, also)


def _matching(
    tasks: Sequence[ReadTask], where: pc.Expression, keys: tuple[str, ...] | None
) -> list[ReadTask]:
    first, schema = tasks[0], tasks[0].schema
    table = BucketFacts(open_spec(first.storage), first.config, first.instants)
    buckets = bucket_pruning(where, schema, table) or found_buckets(
        keys,
        table,
        [(task.file_slice.partition, task.file_slice.file_id) for task in tasks],
        lambda place: tasks[place].file_slice,
    )
    matches = partitions_that_match(where, schema, [task.partition_values for task in tasks])
    return [
        task
        for task, matches_partition in zip(tasks, matches, strict=True)
        if matches_partition
        and (buckets is None or buckets.may_hold(task.file_slice.partition, task.file_slice.file_id))
    ]
