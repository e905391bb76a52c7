"""A query's result, lazy: nothing is read before it is asked for.

plan ── tasks ──> worker threads, each its own task ── bounded queues ──> batches in task order
          └── few bytes on this machine ── one after the other ──> batches
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from drawstring.base.bounds import LITTLE_BYTES, worker_threads
from drawstring.base.errors import DrawstringError, InvalidError, OutrunError
from drawstring.engine.streams import stream
from drawstring.filegroups.read.cdc import read_task, task_bytes
from drawstring.query.facts import TableFacts
from drawstring.query.replanning import Draft, Replanning, Task
from drawstring.storage import is_object_store
from drawstring.timeline.change_detection import LOOKS_MAX, since

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")


class Scan:
    """Rows of a query.

    Args:
        schema: the columns of the result.
        plan: makes the tasks, when they are first needed.
        threads: tasks that run at once; None for as many as the tasks and the machine are good for.
        table: root of the table, for errors.
        again: makes the tasks from a new look at the table, for when files of the first ones were deleted;
            None where there is nothing to look at.
    """

    def __init__(
        self,
        schema: pa.Schema,
        plan: Callable[[], Sequence[Task]],
        threads: int | None = None,
        table: str | None = None,
        again: Callable[[], Sequence[Task]] | None = None,
    ) -> None:
        self._schema = schema
        self._plan = plan
        self._threads = threads
        self._table = table
        self._again = again
        self._tasks: list[Task] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._schema

    def tasks(self) -> list[Task]:
        """Return the tasks that make up the result, one a file slice; each can run anywhere."""
        if self._tasks is None:
            self._tasks = self._planned(self._plan)
        return self._tasks

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are read, file slice by file slice.

        Raises:
            UnavailableError: a file was deleted by a clean after rows of others had been yielded. Before that
                the query is planned again.
        """
        has_yielded = False
        for is_last in (*repeat(False, LOOKS_MAX), True):
            tasks = self.tasks()
            try:
                for batch in stream(tasks, read_task, self._threads or _threads_for(tasks)):
                    has_yielded = has_yielded or batch.num_rows > 0
                    yield batch
                return
            except OutrunError:
                if has_yielded or is_last or self._again is None:
                    raise
                self._tasks = self._planned(self._again)

    def use(self, take: Callable[[list[Task]], T]) -> T:
        """Hand the tasks to something that looks at their files; plan again where one was deleted.

        Args:
            take: uses the tasks; may be called several times.

        Raises:
            CorruptTableError: a file is lost.
        """
        for _ in range(LOOKS_MAX):
            tasks = self.tasks()
            first = tasks[0] if tasks else None
            try:
                if first is None:
                    return take(tasks)
                with since(first.storage, first.look):
                    return take(tasks)
            except OutrunError:
                if self._again is None:
                    raise
                self._tasks = self._planned(self._again)
        return take(self.tasks())

    def _planned(self, plan: Callable[[], Sequence[Task]]) -> list[Task]:
        try:
            return list(plan())
        except DrawstringError as error:
            raise error.at(table=self._table) from error.__cause__

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that other libraries read."""
        return pa.RecordBatchReader.from_batches(self._schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self._schema)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Return all rows as a pandas DataFrame.

        Args:
            options: of `pyarrow.Table.to_pandas`.

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
        """Hand the rows over through the Arrow C stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def scan_of_plan(
    schema: pa.Schema,
    facts: TableFacts,
    plan: Callable[[TableFacts], Draft[Task]],
    threads: int | None = None,
) -> Scan:
    """Return the scan of a query that is planned again where files of it are deleted.

    Args:
        schema: the columns of the result.
        facts: the first look at the table.
        plan: makes the tasks of a look.
        threads: tasks that run at once; None for as many as the tasks and the machine are good for.
    """
    planner = Replanning(facts, plan)
    return Scan(schema, planner.tasks, threads, facts.storage.spec.uri, planner.again)


def _threads_for(tasks: Sequence[Task]) -> int:
    """Return 1 for what is read sooner than threads begin; of an object store each file is waited for."""
    is_near = not any(is_object_store(task.storage.uri) for task in tasks[:1])
    is_little = sum(task_bytes(task) for task in tasks) <= LITTLE_BYTES
    return 1 if is_near and is_little else worker_threads()


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise InvalidError(
            f"to_{package} needs {package}, which is not installed: pip install {package}, or use to_arrow"
        )
