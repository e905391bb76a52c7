"""A thread that renews a lease until it is told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("drawstring")


class Renewal:
    """Renews a lease at intervals.

    Args:
        renew: renews the lease, and returns whether it is still held.
        seconds: between two renewals.
    """

    def __init__(self, renew: Callable[[], bool], seconds: float) -> None:
        self._renew = renew
        self._seconds = seconds
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to renew."""
        threading.Thread(target=self._run, daemon=True, name="table-lease").start()

    def stop(self) -> None:
        """Stop before the next renewal."""
        self._stopped.set()

    def _run(self) -> None:
        is_held = True
        while is_held and not self._stopped.wait(self._seconds):
            try:
                is_held = self._renew()
            except Exception as error:  # any failure is transient here: the next round tries again
                _log.warning("The lock of the table could not be renewed; will retry: %s", error)
