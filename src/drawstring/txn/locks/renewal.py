"""A thread that renews a lease or a heartbeat until it is told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("drawstring")


class Renewal:
    """Renews something at intervals, after each `start` until `stop`.

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
        self._stopped = threading.Event()
        threading.Thread(target=self._run, args=(self._stopped,), daemon=True, name="renewal").start()

    def stop(self) -> None:
        """Stop before the next renewal."""
        self._stopped.set()

    def _run(self, stopped: threading.Event) -> None:
        goes_on = True
        while goes_on and not stopped.wait(self._seconds):
            try:
                goes_on = self._renew()
            except Exception as error:  # any failure is transient here: the next round tries again
                _log.warning("%s; will retry: %s", self._failure, error)
