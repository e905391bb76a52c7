"""One stream over many sources, read in parallel and returned in the sources' order.

sources ──> worker threads, each its own source ── bounded queues ──> batches
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Final, TypeVar

import pyarrow as pa

T = TypeVar("T")

BATCHES_AHEAD_MAX: Final = 8
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
    stop = Event()
    running: deque[_Run] = deque()
    waiting = iter(sources)
    try:
        while True:
            while len(running) < threads and (source := next(waiting, None)) is not None:
                running.append(_Run(read, source, stop))
            if not running:
                return
            yield from running[0].batches()
            running.popleft()
    finally:
        stop.set()
        for run in running:
            run.join()


class _Run:
    """A source read by a thread of its own, ahead of its consumer by a bounded number of batches."""

    def __init__(self, read: Callable[[Any], Iterator[pa.RecordBatch]], source: Any, stop: Event) -> None:
        self._queue: Queue[pa.RecordBatch | BaseException | None] = Queue(BATCHES_AHEAD_MAX)
        self._stop = stop
        self._thread = Thread(target=self._work, args=(read, source), daemon=True, name="drawstring-read")
        self._thread.start()

    def batches(self) -> Iterator[pa.RecordBatch]:
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def join(self) -> None:
        self._thread.join()

    def _work(self, read: Callable[[Any], Iterator[pa.RecordBatch]], source: Any) -> None:
        last: BaseException | None = None
        try:
            for batch in read(source):
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
