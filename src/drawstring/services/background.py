"""Pending compactions and clusterings run by threads of this process, one thread a table and service.

A writer calls `run_in_background` after each commit that planned one; a thread that runs already takes
the new plan too. The thread is a daemon, for a process that ends has no threads to give it: what is undone
then stays on the timeline, a warning says so, and whoever runs it next begins anew.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from drawstring.base.errors import DrawstringError
from drawstring.config.options.write_options import WriteOptions
from drawstring.txn.table_context import TableContext

RunPending: TypeAlias = Callable[[TableContext, WriteOptions], object]
"""Runs what is pending of a service."""

_mutex: Final = threading.Lock()
_runners: Final[dict[tuple[str, RunPending], _Runner]] = {}
_log: Final = logging.getLogger("drawstring")
_CUT_SHORT: Final = (
    "this process ends while a table service of %s runs in its background: what it did not finish stays on"
    " the timeline for whoever runs services next. Call wait_for_services() before a process ends"
)


def run_in_background(state: TableContext, options: WriteOptions, run_pending: RunPending) -> None:
    """Have what is pending of a service run, and return at once.

    Args:
        state: the table.
        options: of the write.
        run_pending: the service.
    """
    key = (state.storage.spec.uri, run_pending)
    with _mutex:
        runner = _runners.get(key)
        if runner is None or not runner.take_more():
            runner = _Runner(state, options, run_pending)
            _runners[key] = runner
            runner.start()


def wait_for_background(uri: str, timeout: float | None = None) -> bool:
    """Wait until no service of a table runs in the background of this process.

    Args:
        uri: root of the table.
        timeout: seconds to wait at most for each service, None for no bound.

    Returns:
        Whether none runs any more.
    """
    with _mutex:
        runners = [runner for (place, _), runner in _runners.items() if place == uri]
    for runner in runners:
        runner.join(timeout)
    return not any(runner.is_alive() for runner in runners)


@atexit.register
def _warn_of_runners() -> None:
    """Say which tables have a service cut short by the end of this process."""
    with _mutex:
        uris = sorted({uri for (uri, _), runner in _runners.items() if runner.is_alive()})
    for uri in uris:
        _log.warning(_CUT_SHORT, uri)


class _Runner(threading.Thread):
    """Runs what is pending, until nobody asked for more."""

    def __init__(self, state: TableContext, options: WriteOptions, run_pending: RunPending) -> None:
        super().__init__(name="drawstring-service", daemon=True)
        self._run_pending = run_pending
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
                self._run_pending(self._state, self._options)
            except Exception as error:  # whatever it was, this thread goes on to the next round
                self._tell(error)
            with self._guard:
                self._rounds -= asked
                if self._rounds == 0:
                    break
        with _mutex:
            key = (self._state.storage.spec.uri, self._run_pending)
            if _runners.get(key) is self:
                del _runners[key]

    def _tell(self, error: Exception) -> None:
        if not threading.main_thread().is_alive():
            # The process ends, and pools of threads take no more work.
            _log.warning(_CUT_SHORT, self._state.storage.spec.uri)
        elif isinstance(error, DrawstringError | OSError):
            _log.warning("a table service in the background failed; run it again: %s", error)
        else:
            _log.error(
                "a table service in the background failed unexpectedly; run it again: %s: %s",
                type(error).__name__,
                error,
                exc_info=error,
            )
