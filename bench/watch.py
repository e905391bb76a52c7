"""Peak memory and processor time of a process and all below it, seen from outside while it runs.

Python workers of Spark share pages with the process that forked them, so resident sizes (RSS) count
some pages several times. Their proportional sizes (PSS) do not, but are dear to ask for: they are
read only when the sum of the resident sizes has grown. Without /proc the sum of RSS has to do.
"""

from __future__ import annotations

import threading

from bench.processes import below, command_line, processes, proportional_bytes
from bench.processor import ProcessorTime, Seen, steady

INTERVAL_SECONDS = 0.1
_GROWTH = 1.02


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
        self._looking = threading.Lock()
        self._measuring = threading.Lock()
        self._resident_peak = 0
        self._peak = 0
        self._processor = ProcessorTime(pid)
        self._began_seconds: float | None = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Forget the peak and the processor time: a step begins."""
        self._began_seconds = self._used_seconds()
        with self._measuring:
            self._resident_peak = self._peak = 0
        self._sample()

    def processor_seconds(self) -> float | None:
        """Return the processor time used since the step began, None where nobody knows."""
        used = self._used_seconds()
        if used is None or self._began_seconds is None:
            return None
        return round(max(0.0, used - self._began_seconds), 3)

    def peak_mb(self) -> int:
        """Return the peak since the step began, in megabytes."""
        self._sample()
        with self._measuring:
            return self._peak // 1_000_000

    def stop(self) -> None:
        """End the sampling."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            self._sample()

    def _used_seconds(self) -> float | None:
        with self._looking:
            return self._processor.see(steady(self._pid))

    def _sample(self) -> None:
        with self._looking:
            running = processes()
            self._processor.see(running)
        with self._measuring:
            resident = self._watched(running)
            total = sum(resident.values())
            if total > self._resident_peak * _GROWTH:
                self._resident_peak = total
                measured = sum(proportional_bytes(pid, size) for pid, size in resident.items())
                self._peak = max(self._peak, measured)

    def _watched(self, running: Seen) -> dict[int, int]:
        """Return the resident bytes of the processes whose memory counts."""
        resident = {pid: running[pid].resident_bytes for pid in below({self._pid}, running)}
        if not self._task:
            return resident
        tasks = {pid: size for pid, size in resident.items() if self._task in command_line(pid)}
        return dict(sorted(tasks.items(), key=lambda each: each[1])[-1:])
