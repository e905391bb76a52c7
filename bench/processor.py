"""Processor time of a process and of all below it, those that ended included.

A process that ended is in the time of its parent once that has waited for it. Two kinds are not: children
of a process that ignores their end, as PySpark's daemon ignores that of its workers, and those whose parent
ended first. Their time is remembered as it was last seen, so that what they did after that is lost: at
most what is between two looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.processes import Process, below, ignores_children, processes

_ATTEMPTS = 5

Seen = Mapping[int, Process]


class ProcessorTime:
    """Adds up the processor time of a tree of processes from one look at them to the next."""

    def __init__(self, root: int, ignores: Callable[[int], bool] = ignores_children) -> None:
        """Begin with a process.

        Args:
            root: its id.
            ignores: tells whether a process ignores that its children end.
        """
        self._root = root
        self._ignores = ignores
        self._known: dict[int, Process] = {}
        self._unwaited_seconds = 0.0

    def see(self, running: Seen) -> float | None:
        """Take a look; return the seconds used since the first process started, None where nobody knows."""
        known = {pid for pid, process in self._known.items() if _is_same(running.get(pid), process)}
        tree = {pid: running[pid] for pid in below(known or {self._root}, running)}
        for pid in self._known.keys() - known:
            ended = self._known[pid]
            if ended.parent not in self._known or (ended.parent in known and self._ignores(ended.parent)):
                self._unwaited_seconds += ended.used_seconds or 0.0
        self._known = tree
        used = [process.used_seconds for process in tree.values()]
        if None in used:
            return None
        return self._unwaited_seconds + sum(seconds for seconds in used if seconds is not None)


def steady(root: int, look: Callable[[], Seen] = processes) -> Seen:
    """Return the processes at a moment at which none below `root` was ending.

    Processes are read one after the other. One that ends meanwhile would count twice, or not at all, if its
    parent is read on the other side of its end. Those that are still there in a second look were there when
    the first one was over.
    """
    first = look()
    for _ in range(_ATTEMPTS):
        second = look()
        if below({root}, first) <= second.keys():
            break
        first = second
    return first


def _is_same(now: Process | None, then: Process) -> bool:
    return now is not None and now.started == then.started
