"""Background threads that run pending compactions and clusterings, one thread per table and service.

A writer calls `run_in_background` after each commit that planned one; a running thread picks up the new plan
as well. The threads are daemons and end with the process: unfinished plans stay on the timeline, a warning
says so, and the next runner starts them again.
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
"""Runs the pending plans of a service."""

_mutex: Final = threading.Lock()
_runners: Final[dict[tuple[str, RunPending], _Runner]] = {}
_log: Final = logging.getLogger("drawstring")
_INTERRUPTED: Final = (
    "This process ends while a table service of %s runs in its background. Unfinished plans stay on the"
    " timeline until services run again. Call table.services.wait() before the process ends."
)


def run_in_background(context: TableContext, options: WriteOptions, run_pending: RunPending) -> None:
    """Run the pending plans of a service in a background thread, and return at once.

    Args:
        context: the open table.
        options: of the write.
        run_pending: runs the pending plans.
    """
    key = (context.storage.spec.uri, run_pending)
    with _mutex:
        runner = _runners.get(key)
        if runner is None or not runner.take_more():
            runner = _Runner(context, options, run_pending)
            _runners[key] = runner
            runner.start()


def wait_for_background(uri: str, timeout: float | None = None) -> bool:
    """Wait until no service of a table runs in the background of this process.

    Args:
        uri: root of the table.
        timeout: greatest number of seconds to wait for each service, None for no limit.

    Returns:
        Whether all have ended.
    """
    with _mutex:
        runners = [runner for (key_uri, _), runner in _runners.items() if key_uri == uri]
    for runner in runners:
        runner.join(timeout)
    return not any(runner.is_alive() for runner in runners)


@atexit.register
def _warn_of_runners() -> None:
    """Warn about table services that the end of this process interrupts."""
    with _mutex:
        uris = sorted({uri for (uri, _), runner in _runners.items() if runner.is_alive()})
    for uri in uris:
        _log.warning(_INTERRUPTED, uri)


class _Runner(threading.Thread):
    """Runs pending plans until no more rounds are requested."""

    def __init__(self, context: TableContext, options: WriteOptions, run_pending: RunPending) -> None:
        super().__init__(name="drawstring-service", daemon=True)
        self._run_pending = run_pending
        self._context = context
        self._options = options
        self._rounds = 1
        self._guard = threading.Lock()

    def take_more(self) -> bool:
        """Request one more round; return False if the thread is about to end."""
        with self._guard:
            if self._rounds == 0 or not self.is_alive():
                return False
            self._rounds += 1
            return True

    def run(self) -> None:
        """Run the pending plans, round by round."""
        while True:
            rounds = self._rounds
            try:
                self._run_pending(self._context, self._options)
            except Exception as error:  # any failure is reported: the thread goes on to the next round
                self._report(error)
            with self._guard:
                self._rounds -= rounds
                if self._rounds == 0:
                    break
        with _mutex:
            key = (self._context.storage.spec.uri, self._run_pending)
            if _runners.get(key) is self:
                del _runners[key]

    def _report(self, error: Exception) -> None:
        if not threading.main_thread().is_alive():
            # The process is ending, so thread pools accept no more work.
            _log.warning(_INTERRUPTED, self._context.storage.spec.uri)
        elif isinstance(error, DrawstringError | OSError):
            _log.warning("A table service in the background failed. Run it again. Cause: %s", error)
        else:
            _log.error(
                "A table service in the background failed unexpectedly. Run it again. Cause: %s: %s",
                type(error).__name__,
                error,
                exc_info=error,
            )
