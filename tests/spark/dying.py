"""Workers that die on purpose, once: the first who makes the marker file is the one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def die_once(marker: str, *, executor: bool = False) -> None:
    """Kill this Python worker, or with it the executor that it works for, unless one died before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if executor:
        os.kill(executor_pid(), signal.SIGKILL)
    os._exit(17)


def executor_pid() -> int:
    """Return the process id of the Java process that started this worker."""
    pid = os.getpid()
    while b"java" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
        if pid <= 1:
            raise RuntimeError("no Java process above this one")
    return pid


def install() -> None:
    """Make a task die after the first file that it wrote, when the environment says so; in workers."""
    folder = os.environ.get("DRAWSTRING_TEST_DEATHS")
    if not folder:
        return
    from drawstring.write.placement import PlaceGroups

    place = PlaceGroups.__call__

    def place_and_die(*arguments: Any) -> Iterator[Any]:
        for stat in place(*arguments):
            yield stat
            for kind in ("worker", "executor"):
                if os.path.exists(f"{folder}/kill-{kind}"):
                    die_once(f"{folder}/died-{kind}", executor=kind == "executor")

    PlaceGroups.__call__ = place_and_die  # type: ignore[method-assign]
