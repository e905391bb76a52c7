"""The memory allocator that Arrow uses in this process.

mimalloc, the default of pyarrow's wheels, asks the kernel for pages of 2 MB, each of which is filled with
zeros at its first touch: a third of the processor time of the first bulk insert of a process. jemalloc, which
the same wheels have, does not. drawstring chooses it in its own processes alone: the command line and Spark's
Python workers. In a program the choice is the program's (`use_allocator`), since it affects all columns and
limits of memory there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from drawstring.base.errors import InvalidError

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
def keeping_no_memory(size_bytes: int) -> Iterator[None]:
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
