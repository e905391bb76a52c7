"""Peak memory of a process and all below it, sampled from outside while it runs.

Python workers of Spark share pages with the process that forked them, so resident sizes (RSS) count
some pages several times. Their proportional sizes (PSS) do not, but are dear to ask for: they are
read only when the sum of the resident sizes has grown. Without /proc the sum of RSS has to do.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

INTERVAL_SECONDS = 0.1
_GROWTH = 1.02
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Samples a process tree in a thread until it is stopped."""

    def __init__(self, pid: int, task: str = "") -> None:
        """Begin to watch.

        Args:
            pid: the process.
            task: text in the command lines of processes: the peak is that of the largest of these alone.
        """
        self._pid = pid
        self._task = task
        self._lock = threading.Lock()
        self._resident_peak = 0
        self._peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Forget the peak: a step begins."""
        with self._lock:
            self._resident_peak = self._peak = 0
        self._sample()

    def peak_mb(self) -> int:
        """Return the peak since the step began, in megabytes."""
        self._sample()
        with self._lock:
            return self._peak // 1_000_000

    def stop(self) -> None:
        """End the sampling."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            self._sample()

    def _sample(self) -> None:
        resident = tree(self._pid)
        if self._task:
            tasks = {pid: size for pid, size in resident.items() if self._task in command_line(pid)}
            resident = dict(sorted(tasks.items(), key=lambda each: each[1])[-1:])
        total = sum(resident.values())
        with self._lock:
            if total <= self._resident_peak * _GROWTH:
                return
            self._resident_peak = total
        measured = sum(proportional(pid, size) for pid, size in resident.items())
        with self._lock:
            self._peak = max(self._peak, measured)


def tree(pid: int) -> dict[int, int]:
    """Return the resident bytes of a process and of all below it, by process id."""
    parents, resident = _processes()
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    found, todo = {}, [pid]
    while todo:
        at = todo.pop()
        if at in resident:
            found[at] = resident[at]
        todo += children.get(at, [])
    return found


def proportional(pid: int, resident: int) -> int:
    """Return the proportional bytes of a process, its resident bytes where they cannot be had."""
    try:
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return resident


def command_line(pid: int) -> str:
    """Return the words of a process, empty when it is gone."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """Return the parent and the resident bytes of every process."""
    if not (_PROC / "self" / "stat").exists():
        return _processes_by_ps()
    parents, resident = {}, {}
    for name in os.listdir(_PROC):
        if name.isdigit():
            try:
                # The name in parentheses may have blanks; the fields after it are state and parent, and
                # the 22nd is the resident size in pages.
                fields = (_PROC / name / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(name)], resident[int(name)] = int(fields[1]), int(fields[21]) * _PAGE
    return parents, resident


def _processes_by_ps() -> tuple[dict[int, int], dict[int, int]]:
    told = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in told.stdout.splitlines()]
    return {pid: parent for pid, parent, _ in rows}, {pid: size * 1024 for pid, _, size in rows}
