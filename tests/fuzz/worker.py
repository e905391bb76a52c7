"""Reads damaged files in a process of its own, which has little memory and little time for each.

    python -m tests.fuzz.worker decoders|tables SEED EXAMPLES FOLDER

The last line printed is the example that is being read, so that it is known when the process dies.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa

from drawstring.base.errors import DrawstringError, InternalError
from tests.fuzz.damage import damaged
from tests.fuzz.decoders import seeds
from tests.fuzz.tables import DamagedTables

SECONDS_MAX = 20
"""Of the processor."""

STANDS_STILL_SECONDS = 600
"""By the clock: far more than a busy machine makes of the seconds above."""

GROWTH_BYTES_MAX = 400 << 20

Example = Callable[[Random], None]


def main(what: str, seed: int, examples: int, folder: str) -> None:
    """Read examples; raise at the first that ends in neither rows nor an error for people."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    run = _decoders() if what == "decoders" else _tables(Path(folder))
    for warm_up in range(20):
        _one(run, warm_up, seed)
    _limit_memory()
    for number in range(examples):
        _one(run, number, seed)
    print("done")


def _one(run: Example, number: int, seed: int) -> None:
    print(f"example {number} of seed {seed}", flush=True)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    signal.alarm(STANDS_STILL_SECONDS)
    try:
        run(Random(f"{seed} {number}"))
    except InternalError:
        raise
    except DrawstringError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _decoders() -> Example:
    found = list(seeds())

    def run(rng: Random) -> None:
        name, decode, data = rng.choice(found)
        print(name, flush=True)
        decode(damaged(data, rng))

    return run


def _tables(folder: Path) -> Example:
    tables = DamagedTables(folder)

    def run(rng: Random) -> None:
        tables.query_one(rng)

    return run


def _limit_memory() -> None:
    """Let the process grow so much and no further, where the system tells how large it is."""
    size = Path("/proc/self/statm")
    if not size.exists():
        return
    pages = int(size.read_text().split()[0])
    limit = pages * resource.getpagesize() + GROWTH_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
