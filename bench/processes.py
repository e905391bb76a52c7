"""The processes of this machine: who started whom, their memory, and the processor time that they used.

Without /proc, `ps` has to do, which knows no processor time of children that ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One process.

    Attributes:
        parent: id of the process that started it, or that took it over when that one ended.
        resident_bytes: its memory (RSS), pages that it shares included.
        started: when, in ticks since the machine started; tells processes apart that got the same id.
        used_seconds: of the processor, by all its threads and by the children that it waited for; None
            where nobody knows.
    """

    parent: int
    resident_bytes: int
    started: int = 0
    used_seconds: float | None = None


def processes() -> dict[int, Process]:
    """Return all processes by their ids."""
    if not (_PROC / "self" / "stat").exists():
        return _by_ps()
    found = {}
    for name in os.listdir(_PROC):
        if name.isdigit():
            try:
                found[int(name)] = _parsed((_PROC / name / "stat").read_text())
            except OSError:
                continue
    return found


def below(roots: Collection[int], running: Mapping[int, Process]) -> set[int]:
    """Return the ids of some processes and of all below them, those that are running."""
    children: dict[int, list[int]] = {}
    for pid, process in running.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo += children.get(at, [])
    return found & running.keys()


def ignores_children(pid: int) -> bool:
    """Tell whether a process ignores that children end: their processor time is not added to its own."""
    try:
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    except (OSError, ValueError):
        pass
    return False


def proportional_bytes(pid: int, resident_bytes: int) -> int:
    """Return the proportional memory of a process (PSS), its resident one where that cannot be had."""
    try:
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return resident_bytes


def command_line(pid: int) -> str:
    """Return the words of a process, empty when it is gone."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _parsed(stat: str) -> Process:
    """Parse /proc/PID/stat.

    The name in parentheses may have blanks. Of the fields after it the first is the state; 11 to 14 are the
    ticks in user and in kernel mode, of the process and of children that it waited for.
    """
    fields = stat.rpartition(")")[2].split()
    used = sum(map(int, fields[11:15])) / _TICKS
    return Process(int(fields[1]), int(fields[21]) * _PAGE, int(fields[19]), used)


def _by_ps() -> dict[int, Process]:
    told = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in told.stdout.splitlines()]
    return {pid: Process(parent, size * 1024) for pid, parent, size in rows}
