"""Pending compactions run by a thread of this process, one thread a table.

A writer calls `run_in_background` after each commit that planned one; a thread that runs already takes
the new plan too. The thread is a daemon: what a process that ends leaves undone stays on the timeline, and
whoever runs it next begins anew.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from drawstring.base.errors import DrawstringError
from drawstring.config.options import WriteOptions
from drawstring.services.compaction import run_pending
from drawstring.txn.state import TableState

_mutex: Final = threading.Lock()
_runners: Final[dict[str, _Runner]] = {}
_log: Final = logging.getLogger("drawstring")


def run_in_background(state: TableState, options: WriteOptions) -> None:
    """Have the pending compactions of a table run, and return at once."""
    with _mutex:
        runner = _runners.get(state.storage.spec.uri)
        if runner is None or not runner.take_more():
            runner = _Runner(state, options)
            _runners[state.storage.spec.uri] = runner
            runner.start()


def wait_for_background(uri: str, timeout: float | None = None) -> bool:
    """Wait until no compaction of a table runs in the background of this process.

    Args:
        uri: root of the table.
        timeout: seconds to wait at most, None for no bound.

    Returns:
        Whether none runs any more.
    """
    with _mutex:
        runner = _runners.get(uri)
    if runner is None:
        return True
    runner.join(timeout)
    return not runner.is_alive()


class _Runner(threading.Thread):
    """Runs what is pending, until nobody asked for more."""

    def __init__(self, state: TableState, options: WriteOptions) -> None:
        super().__init__(name="drawstring-compaction", daemon=True)
        self._state = state
        self._options = options
        self._rounds = 1
        self._guard = threading.Lock()

    def take_more(self) -> bool:
        """Ask for one more round; False when the thread is about to end."""
        with self._guard:
            if self._rounds == 0 or not self.is_alive():
                return False
            self._rounds += 1
            return True

    def run(self) -> None:
        """Run the pending compactions, round by round."""
        while True:
            asked = self._rounds
            try:
                run_pending(self._state, self._options)
            except (DrawstringError, OSError) as error:
                _log.warning("a compaction in the background failed; run it again: %s", error)
            with self._guard:
                self._rounds -= asked
                if self._rounds == 0:
                    break
        with _mutex:
            if _runners.get(self._state.storage.spec.uri) is self:
                del _runners[self._state.storage.spec.uri]
