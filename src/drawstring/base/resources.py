"""Limit the memory, rows and threads of a step; choose Arrow's allocator; make temporary folders.

The constants are the limits; `worker_threads` is the number of tasks that the local engine runs at once.

Allocator: mimalloc, the default of pyarrow's wheels, asks the kernel for pages of 2 MB, and the kernel fills
each page with zeros at its first touch: a third of the processor time of the first bulk insert of a process.
jemalloc, which the same wheels have, does not. drawstring chooses it in its own processes alone: the command
line and Spark's Python workers. A program that uses the library calls `use_allocator` itself, since the
choice affects all columns and limits of memory there.

Temporary folders of this machine, for files outside of a table: rows that spill, files of Lance.

    drawstring-temporary-*    in the temporary folder of the machine, locked (`flock`) while its process lives

A killed process leaves its folders. The next process that makes a folder deletes those that are old and not
locked. The name is long because a user's table, a clone of the repository or the folder of a benchmark may
well be called drawstring-something.

`this_process` names this process to others, in lock files and messages.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import socket
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Final, TypeVar

import pyarrow as pa

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import InvalidError

BATCH_ROWS: Final = 65_536
"""Rows in a record batch that one step hands to the next."""

ROW_GROUP_ROWS: Final = 250_000
"""Rows in a row group of a base file."""

ROW_GROUP_BYTES_MAX: Final = 128 << 20
"""Bytes in memory of a row group of a base file."""

SORTED_ROW_GROUP_ROWS: Final = 32_768
"""Rows in a row group of a file that is sorted by record key: a look-up reads one."""

SORTED_ROW_GROUP_BYTES: Final = 16 << 20
"""Bytes in memory of a row group of such a base file."""

SORTED_LOG_GROUP_BYTES: Final = 4 << 20
"""Bytes in memory of a row group of a sorted log file: a merge holds some of each log file."""

HFILE_KEY_BYTES_MAX: Final = (1 << 15) - 1
"""Bytes of a key of an HFile, whose length is a signed number of 16 bits."""

VALUE_BYTES: Final = 16
"""Bytes in memory of a value, on an average, where nothing else tells."""

ONE_THREAD_BYTES_MAX: Final = 256 << 10
"""Bytes of local files that one thread reads in less time than it takes to start several threads."""

EXCHANGE_BYTES_MAX: Final = 512 << 20
"""Bytes that an exchange of the local engine keeps in memory before it spills to disk."""

HEADER_ENTRIES_MAX: Final = 64
"""Entries in the header of a log block that a reader accepts."""

PLAIN_BYTES_MAX: Final = 64 << 20
"""Bytes that a block of metadata or of an HFile may always decompress to."""

EXPANSION_MAX: Final = 32
"""Largest ratio of decompressed to stored bytes of a block beyond `PLAIN_BYTES_MAX`."""

BUCKETS_MAX: Final = 1_000_000
"""Buckets of a partition that a reader accepts: each batch of rows holds a name for every bucket."""

AVRO_TYPES_MAX: Final = 50_000
"""Types in an Avro schema that a reader accepts; each use of a named type counts."""


def worker_threads() -> int:
    """Return how many tasks the local engine runs at once."""
    return max(2, min(16, os.cpu_count() or 2))


CHOSEN_BY_USER: Final = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable with which users of pyarrow choose an allocator."""

_SLOW: Final = "mimalloc"
_FAST: Final = "jemalloc"
_DECAY_MS: Final = 100
"""How long jemalloc keeps freed memory, a tenth of its default: the peak of a compaction falls by a tenth."""

_LARGE_BYTES: Final = 1 << 30
"""Bytes of files from which on freed memory is not kept while they are merged."""

_tuned: Final[set[str]] = set()
"""The allocator whose settings are drawstring's, once it chose one."""

_POOLS: Final[Mapping[str, Callable[[], pa.MemoryPool]]] = {
    "jemalloc": pa.jemalloc_memory_pool,
    "mimalloc": pa.mimalloc_memory_pool,
    "system": pa.system_memory_pool,
}


def use_allocator(name: str | None = None) -> str:
    """Choose the allocator that Arrow takes memory from, for the whole process.

    drawstring does not call this for you: importing it, opening a table and writing leave Arrow's memory pool
    alone. The `drawstring` command and the Python workers of Spark, which are drawstring's own processes,
    call it without an argument. Call it once, at the start of a program; columns that exist already stay
    valid. jemalloc makes the first writes of a process about a third faster than mimalloc, which pyarrow's
    wheels use by default.

    Args:
        name: `jemalloc`, `mimalloc` or `system`. None for what suits drawstring: jemalloc in place of
            mimalloc, if pyarrow has it, unless the environment variable `ARROW_DEFAULT_MEMORY_POOL` or an
            earlier `pyarrow.set_memory_pool` says otherwise.

    Returns:
        The name of the allocator that Arrow uses now.

    Raises:
        InvalidError: this build of pyarrow has no such allocator.

    Example:
        >>> drawstring.use_allocator("system")
        'system'
    """
    if name is not None:
        pa.set_memory_pool(_pool(name))
    elif _uses_the_slow_default():
        pa.set_memory_pool(_POOLS[_FAST]())
        pa.jemalloc_set_decay_ms(_DECAY_MS)
        _tuned.add(_FAST)
    return str(pa.default_memory_pool().backend_name)


@contextmanager
def releasing_memory(size_bytes: int) -> Iterator[None]:
    """Return freed memory to the system at once while large files are merged.

    Such a stream frees and takes its few windows many times in the time that jemalloc keeps what is free, and
    would hold them twice. Where the program chose the allocator, its settings stand.

    Args:
        size_bytes: size of the files.
    """
    if size_bytes < _LARGE_BYTES or pa.default_memory_pool().backend_name not in _tuned:
        yield
        return
    pa.jemalloc_set_decay_ms(0)
    try:
        yield
    finally:
        pa.jemalloc_set_decay_ms(_DECAY_MS)


def _pool(name: str) -> pa.MemoryPool:
    known = pa.supported_memory_backends()
    if name not in known or name not in _POOLS:
        raise InvalidError(f"This build of pyarrow has no allocator {name!r}. Use one of {', '.join(known)}.")
    return _POOLS[name]()


def _uses_the_slow_default() -> bool:
    """Tell whether the process has the default pool of pyarrow's wheels, and a faster one to choose."""
    found = pa.supported_memory_backends()
    return (
        CHOSEN_BY_USER not in os.environ
        and found[0] == _SLOW
        and _FAST in found
        and pa.default_memory_pool().backend_name == _SLOW
    )


_PREFIX: Final = "drawstring-temporary-"
_AGE_S: Final = 600
"""Least age of a folder that is taken for abandoned."""

_folders_checked: Final[set[str]] = set()
"""The temporary folders that this process has looked at."""


class TemporaryFolder:
    """An empty folder, which is deleted with this object at the latest.

    Attributes:
        path: absolute path.
        drop: deletes it.

    Args:
        purpose: part of its name.
        above: the folder that it is in; None for the one of the machine.
    """

    path: str
    drop: Callable[[], object]

    def __init__(self, purpose: str, above: str | None = None) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-", dir=above)
        self.drop = weakref.finalize(self, _delete, self.path, _locked(self.path))
        parent = os.path.dirname(self.path)
        if parent not in _folders_checked:
            _folders_checked.add(parent)
            _delete_stale_folders(parent, os.stat(self.path).st_mtime)


def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _lock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _locked(path: str) -> int:
    descriptor = _opened(path)
    with suppress(OSError):  # without support for locks only the age shows that the process lives
        _lock(descriptor)
    return descriptor


def _delete(path: str, descriptor: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)


def _delete_stale_folders(above: str, now_s: float) -> None:
    """Delete the folders that killed processes left; those of other users stay."""
    for name in os.listdir(above):
        path = os.path.join(above, name)
        with suppress(OSError):
            if name.startswith(_PREFIX) and os.lstat(path).st_mtime < now_s - _AGE_S:
                _drop_unless_locked(path)


def _drop_unless_locked(path: str) -> None:
    descriptor = _opened(path)
    try:
        _lock(descriptor)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def this_process() -> str:
    """Return the id of this process and the name of its host, as text for people."""
    return f"process {os.getpid()} on {socket.gethostname()}"


T = TypeVar("T")
R = TypeVar("R")
_log = logging.getLogger("drawstring")


def map_in_threads(task: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Run a task for each item and return the results in the items' order.

    The calling thread takes part, so that a single item needs no other thread: often the work takes less
    time than starting one.

    Args:
        task: the function to run. After a failure no further task starts; the error of the first failed
            item is raised.
        items: the arguments of the tasks.
        threads: tasks that run at the same time, the calling thread included.
    """
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    numbers = iter(range(len(items)))

    def work() -> None:
        while not errors and (number := next(numbers, None)) is not None:
            try:
                results[number] = task(items[number])
            except BaseException as error:
                errors[number] = error

    others = [
        Thread(target=work, daemon=True, name="drawstring-task") for _ in range(min(threads, len(items)) - 1)
    ]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(items))]


class Renewal:
    """Renews a lease or a heartbeat at intervals on a thread, after each `start` until `stop`.

    Args:
        renew: does it, and returns whether to go on.
        seconds: between two renewals.
        failure: what to log when it fails, without what happens next.
    """

    def __init__(
        self,
        renew: Callable[[], bool],
        seconds: float,
        failure: str = "The lock of the table could not be renewed",
    ) -> None:
        self._renew = renew
        self._seconds = seconds
        self._failure = failure
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to renew."""
        self._stopped = stopped = threading.Event()
        _TIMER.add(_Delayed(stopped, self._seconds, lambda: self._run(stopped)))

    def stop(self) -> None:
        """Stop before the next renewal; one that is going on is not waited for."""
        self._stopped.set()
        _TIMER.drop(self._stopped)

    def _run(self, stopped: threading.Event) -> None:
        goes_on = not stopped.is_set()
        while goes_on:
            try:
                goes_on = self._renew()
            except Exception as error:  # any failure is transient here: the next round tries again
                _log.warning("%s; will retry: %s", self._failure, error)
            goes_on = goes_on and not stopped.wait(self._seconds)


@dataclass(frozen=True, slots=True)
class _Delayed:
    """Work for a thread of its own.

    Attributes:
        key: names it.
        seconds: how long its thread is put off.
        run: the work.
    """

    key: threading.Event
    seconds: float
    run: Callable[[], None]


class _Timer:
    """Puts the start of threads off until their work is due, on one thread for the whole process.

    Most writes end before their first heartbeat is due, and a thread takes longer to start on a busy machine
    than a small commit takes under the table lock. The work itself may block, so it gets its own thread. That
    of the timer ends when it wakes up and nothing is put off.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew in a forked process, which has neither the threads nor the duties of its parent."""
        self._changed = threading.Condition()
        self._watch = Stopwatch()
        self._waiting: dict[threading.Event, tuple[float, _Delayed]] = {}
        self._wakes_at: float | None = None  # None while there is no thread

    def add(self, delayed: _Delayed) -> None:
        """Put work off."""
        with self._changed:
            due = self._watch.seconds() + delayed.seconds
            if self._wakes_at is None:
                Thread(target=self._run, daemon=True, name="drawstring-timer").start()
                self._wakes_at = due
            elif due < self._wakes_at:
                self._changed.notify()
            self._waiting[delayed.key] = (due, delayed)

    def drop(self, key: threading.Event) -> None:
        """Take work back if it has not begun; the thread need not wake up for that."""
        with self._changed:
            self._waiting.pop(key, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = self._watch.seconds()
                ready = [delayed for due, delayed in self._waiting.values() if due <= now]
                for delayed in ready:
                    del self._waiting[delayed.key]
                if not ready:
                    self._wakes_at = min((due for due, _ in self._waiting.values()), default=None)
                    if self._wakes_at is None:
                        return
                    self._changed.wait(self._wakes_at - now)
            for delayed in ready:
                self._begin(delayed)

    def _begin(self, delayed: _Delayed) -> None:
        try:
            Thread(target=delayed.run, daemon=True, name="renewal").start()
        except RuntimeError as error:  # too many threads
            _log.warning("A thread could not be started; will retry: %s", error)
            self.add(delayed)


_TIMER: Final = _Timer()
os.register_at_fork(after_in_child=_TIMER.forget)
