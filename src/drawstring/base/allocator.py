"""What Arrow allocates columns with (decision 35)."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

import pyarrow as pa

CHOSEN_BY_USER: Final = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable by which pyarrow lets users choose."""

_SLOW_BACKEND: Final = "mimalloc"
_BACKEND: Final = "jemalloc"


@cache
def choose_allocator() -> None:
    """Let Arrow allocate with jemalloc in this process, where it would with mimalloc and nobody said so.

    The first call decides: a pool that the process sets later stays.
    """
    found = pa.supported_memory_backends()
    if CHOSEN_BY_USER in os.environ or _BACKEND not in found or found[0] != _SLOW_BACKEND:
        return
    if pa.default_memory_pool().backend_name == found[0]:
        pa.set_memory_pool(pa.jemalloc_memory_pool())
