"""One stream over many sources, read in parallel and returned in the sources' order.

sources ──> worker threads, each takes the next source ── bounded queues ──> batches
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Full, Queue, SimpleQueue
from threading import Event, Thread
from typing import Any, Final, TypeVar

import pyarrow as pa

T = TypeVar("T")

SOURCES_AHEAD: Final = 2
"""Sources for each thread that are read, or wait for their consumer: no thread waits for a slower one."""

BATCHES_AHEAD_MAX: Final = 4
"""Batches that a source may read ahead of its consumer."""

_POLL_SECONDS: Final = 0.1


def stream(
    sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], threads: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all sources in the sources' order, reading several sources at a time.

    Args:
        sources: the sources.
        read: reads one source.
        threads: sources read at the same time; with 1 the consumer's thread reads.
    """
    if threads == 1 or len(sources) == 1:
        for only in sources:
            yield from read(only)
        return
    running: deque[_Run] = deque()
    waiting = iter(sources)
    workers = _Workers(read, min(threads, len(sources)))
    try:
        while True:
            while len(running) < SOURCES_AHEAD * threads and (source := next(waiting, None)) is not None:
                running.append(workers.begin(source))
            if not running:
                return
            yield from running[0].batches()
            running.popleft()
    finally:
        workers.end()


class _Workers:
    """Threads that read sources one after the other.

    Args:
        read: reads one source.
        threads: their number.
    """

    def __init__(self, read: Callable[[Any], Iterator[pa.RecordBatch]], threads: int) -> None:
        self._read = read
        self._stop = Event()
        self._todo: SimpleQueue[_Run | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._work, daemon=True, name="drawstring-read") for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, source: Any) -> _Run:
        """Have a source read by the next thread that is free."""
        run = _Run(source, self._stop)
        self._todo.put(run)
        return run

    def end(self) -> None:
        """Stop the threads, and wait for them."""
        self._stop.set()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (run := self._todo.get()) is not None and not self._stop.is_set():
            run.work(self._read)


class _Run:
    """The reading of one source, ahead of its consumer by a bounded number of batches."""

    def __init__(self, source: Any, stop: Event) -> None:
        self._source = source
        self._stop = stop
        self._queue: Queue[pa.RecordBatch | BaseException | None] = Queue(BATCHES_AHEAD_MAX)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, as they are read."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def work(self, read: Callable[[Any], Iterator[pa.RecordBatch]]) -> None:
        """Read the source; what goes wrong is raised by `batches`."""
        last: BaseException | None = None
        try:
            for batch in read(self._source):
                if not self._put(batch):
                    return
        except BaseException as error:
            last = error
        if last is not None:
            self._put(last)
        self._put(None)

    def _put(self, item: pa.RecordBatch | BaseException | None) -> bool:
        """Queue an item; False when the consumer has stopped."""
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
                return True
            except Full:
                continue
        return False
