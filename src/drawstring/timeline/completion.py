"""Completion of an instant: once, by its own writer or on behalf of it (`timeline.claims` decides).

    claim ──> completed file, by put-if-absent ──> claim deleted

A writer may stall at any of these steps, and resume after others have finished its instant, or even archived
it. So a slow writer checks the timeline before and after it puts the completed file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, DecidedError, DrawstringError, TakenOverError
from drawstring.config.table.config import TableConfig
from drawstring.model.instant import Action, Instant, State, time_of
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.claims import Claim, Claims, Fence, claim_path
from drawstring.timeline.instants import file_name, parse_instant
from drawstring.timeline.timeline import Timeline

_STALLED_MS: Final = 10_000
"""A writer that took longer than this to complete an instant checks whether others archived it meanwhile."""
_DONE: Final = "another process completed it"
"""Why an instant cannot be completed that has been."""

Defer = Callable[[Callable[[], None]], None]
"""Takes work that may be done later."""

_log: Final = logging.getLogger("drawstring")


def do_now(task: Callable[[], None]) -> None:
    """Defer nothing."""
    task()


class TimelineFiles(Protocol):
    """The files of the active timeline."""

    def load(self) -> Timeline:
        """List the files and return the timeline."""

    def path(self, instant: Instant) -> str:
        """Return the path of the file of an instant's state."""

    def new_time(self, timeline: Timeline) -> str:
        """Return a time after every time on the timeline."""


class TransitionHooks(Protocol):
    """Actions around changes of instants, such as switching a stale metadata table off."""

    def requesting(self, instant: Instant) -> None:
        """Take note of an instant that this process puts on the timeline."""
        ...

    def completing(self, instant: Instant, content: bytes) -> AbstractContextManager[None]:
        """Return a context that surrounds the put of a completed file."""
        ...

    def removing(self, instant: Instant) -> None:
        """Act before a pending instant leaves the timeline."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion of instants of one table.

    Attributes:
        storage: the table's files.
        config: the table's layout.
        clock: measures whether this process stalled.
        claims: decide who completes an instant.
        files: the files of the active timeline.
        hooks: called around changes; None for none.
    """

    storage: Storage
    config: TableConfig
    clock: Clock
    claims: Claims
    files: TimelineFiles
    hooks: TransitionHooks | None = None

    def complete(
        self, instant: Instant, content: bytes, fence: Fence | None = None, defer: Defer = do_now
    ) -> Instant:
        """Move an inflight instant to completed: everything that it wrote takes effect at once.

        Args:
            instant: the pending instant.
            content: its metadata.
            fence: the result of `fence`, for an instant that another process began.
            defer: takes the flush of the completed file and the deletion of the claim, which may come later,
                but before the change is acknowledged.

        Raises:
            TakenOverError: another process is about to complete it with this metadata.
            DecidedError: it left the timeline after this process had decided to complete it: others completed
                it, and a restore may have undone it.
            ConflictError: another process rolled it back before that, or completed it with other metadata.
        """
        began_ms = self.clock.now_ms()
        try:
            completed, decided, timeline = self._claim_completion(instant, content, fence)
            if not self._is_archived(timeline, instant, completed):
                self._put_completed(completed, instant, content, decided)
                defer(self._sync)
        except ConflictError as error:
            # Others may have completed it for this process, which only seemed to have stalled, or be about to
            # complete it: they delete the claim last.
            claim = self.claims.committing(instant)
            known = self._completed_before(instant)
            if known is not None and self.storage.read(self.files.path(known)) == content:
                return known
            if claim is not None and claim.content == content:
                raise _taken_over(instant) from error
            raise
        if self.clock.now_ms() - began_ms > _STALLED_MS:
            self._delete_if_archived(completed)
        defer(lambda: self._delete_claim(instant))
        return completed

    def fence(self, instant: Instant) -> Fence | Instant:
        """Make sure that only this process can complete a pending instant that another one began.

        If a stalled writer had already claimed the completion, the instant is completed with its metadata.

        Args:
            instant: pending; the caller holds the table lock.

        Returns:
            The fence to pass to `complete`, or the completed instant.

        Raises:
            ConflictError: another process is taking the instant over at this moment.
        """
        taken = self.claims.take(instant)
        if isinstance(taken, Claim):
            return self._complete_for(instant, taken)
        return self._completed_before(instant) or taken

    def prevent_completion(self, instant: Instant) -> Instant | None:
        """Make sure that a pending write never completes, as `fence` does but with fewer requests.

        Returns:
            None; or the completed write, if its writer had already claimed the completion.
        """
        claim = self.claims.prevent_completion(instant)
        return self._completed_before(instant) if claim is None else self._complete_for(instant, claim)

    def bar_stalled(self, pending: Sequence[Instant], listed: Collection[str] | None = None) -> bool:
        """Settle pending writes that were about to commit under a lock that their processes lost.

        Those that their writers had decided to complete are completed; the others cannot complete any more.

        Args:
            pending: writes of others.
            listed: paths of the files in the folder of the claims, listed later; None to list them.

        Returns:
            Whether there were any.
        """
        return bool(pending) and self._bar_claimed(
            pending, self.claims.listed() if listed is None else listed
        )

    def load_barred(self, own: str, listed: Collection[str] | None = None) -> Timeline:
        """Return the timeline with the pending writes of others settled as by `bar_stalled`.

        The claims are listed first. A write whose claim is gone by then has completed, and one that has no
        claim yet is that of a process that will notice that it lost the table lock.

        Args:
            own: requested time of the write of this process, which holds the lock.
            listed: paths of the files in the folder of the claims, listed just now; None to list them.
        """
        claimed = self.claims.listed() if listed is None else listed
        now = self.files.load()
        others = [each for each in now.pending_writes() if each.requested != own]
        return self.files.load() if self._bar_claimed(others, claimed) else now

    def _bar_claimed(self, pending: Sequence[Instant], claimed: Collection[str]) -> bool:
        announced = [each for each in pending if claim_path(each) in claimed]
        for instant, claim in self.claims.bar_stalled(announced):
            self._complete_for(instant, claim)
        return bool(announced)

    def _completed_before(self, instant: Instant) -> Instant | None:
        """Return an instant that its writer completed just before its claim was taken; None otherwise.

        That writer had put the completed file and deleted its claim, so that there was no claim to find.
        """
        for known in self.files.load().completed_of(instant.action.completed_action):
            if known.requested == instant.requested:
                self._delete_claim(instant)
                return known
        return None

    def _put(self, completed: Instant, content: bytes) -> bool:
        with self.hooks.completing(completed, content) if self.hooks else nullcontext():
            return self.storage.put_if_absent(self.files.path(completed), content)

    def _sync(self) -> None:
        self.storage.sync([self.config.timeline_folder])

    def _delete_claim(self, instant: Instant) -> None:
        """Delete the claim of a completed or rolled back instant; if that fails, the next writer does it."""
        try:
            self.claims.give_back(instant)
        except (DrawstringError, OSError) as error:
            _log.warning(
                "The claim of %s could not be deleted and stays for now: %s", instant.requested, error
            )

    def _claim_completion(
        self, instant: Instant, content: bytes, fence: Fence | None
    ) -> tuple[Instant, Fence, Timeline]:
        """Claim the completion of an instant.

        Returns:
            The completed instant to be, the fence that revokes the claim, and the timeline after the claim.

        Raises:
            ConflictError: another process completed it, or rolled it back.
        """
        timeline = Timeline((instant,))
        while True:
            completed = self._completed(timeline, instant)
            name = file_name(completed, self.config.layout)
            decided = self.claims.commit(instant, name, content, fence)
            if decided is None:
                is_done = self._completed_before(instant) is not None
                raise _lost(instant, _DONE if is_done else "another process took it over, as to roll it back")
            timeline = self.files.load()
            if not _is_inflight(timeline, instant) or not _is_overtaken(timeline, completed):
                return completed, decided, timeline
            # The clock is behind that of another process: a new completion time must be the greatest.
            fence = self.claims.abort(instant, decided)
            if fence is None and self.claims.committing(instant) is not None:
                return completed, decided, timeline  # another process is completing it at that time
            if fence is None:
                raise _lost(instant, "another process settled it", DecidedError)

    def _is_archived(self, timeline: Timeline, pending: Instant, completed: Instant) -> bool:
        """Return whether other processes completed a claimed instant for its writer and archived it.

        Raises:
            DecidedError: they completed it at another time, or a restore has undone it since.
        """
        reason = _obstacle(timeline, pending, completed)
        if reason is None:
            return False
        archived = open_archive(self.storage, self.config).completed("")
        if any((each.requested, each.action) == (completed.requested, completed.action) for each in archived):
            return True
        self._delete_claim(pending)
        raise _lost(pending, reason, DecidedError)

    def _put_completed(self, completed: Instant, pending: Instant, content: bytes, decided: Fence) -> None:
        """Put the completed file of an instant whose completion is claimed.

        Raises:
            DecidedError: the file exists with the content of another process, or this one lost the table lock
                and another one settled the instant.
        """
        path = self.files.path(completed)
        try:
            is_ours = self._put(completed, content) or self.storage.read(path) == content
        except (DrawstringError, OSError) as error:
            is_ours = is_revoked = False
            with suppress(DrawstringError, OSError):
                is_ours = self.storage.exists(path)
                is_revoked = not is_ours and self.claims.abort(pending, decided) is not None
                is_ours = is_ours or self.storage.exists(path)
            if not is_ours and not is_revoked and isinstance(error, ConflictError):
                raise _lost(pending, "another process settled it", DecidedError) from error
            if not is_ours:
                raise
        if not is_ours:
            self._delete_claim(pending)
            raise _lost(pending, _DONE, DecidedError)

    def _complete_for(self, instant: Instant, claim: Claim) -> Instant:
        """Put the completed file on behalf of the writer that claimed the completion."""
        _log.info(
            "Completing the %s %s: its process had claimed the completion, and died or stalled.",
            instant.action,
            instant.requested,
        )
        completed = parse_instant(claim.file_name, self.config.layout)
        assert completed is not None, claim.file_name
        self._put(completed, claim.content)
        self._sync()
        self._delete_claim(instant)
        return completed

    def _delete_if_archived(self, completed: Instant) -> None:
        """Delete a completed file that was put again after others had archived the instant."""
        if not self._is_begun(completed):
            self.storage.delete([self.files.path(completed)])

    def _is_begun(self, completed: Instant) -> bool:
        """Return whether an instant has its inflight file, which archiving removes first."""
        pending = (action for action in Action if action.completed_action is completed.action)
        return any(
            self.storage.exists(self.files.path(Instant(completed.requested, action, State.INFLIGHT)))
            for action in pending
        )

    def _completed(self, timeline: Timeline, instant: Instant) -> Instant:
        has_time = self.config.layout.has_completion_times
        completion = self.files.new_time(timeline) if has_time else None
        return Instant(instant.requested, instant.action.completed_action, State.COMPLETED, completion)


def _is_inflight(timeline: Timeline, instant: Instant) -> bool:
    return Instant(instant.requested, instant.action, State.INFLIGHT) in timeline.instants


def _is_overtaken(timeline: Timeline, completed: Instant) -> bool:
    """Return whether another instant completed at or after the completion time of an instant."""
    others = (time_of(each) for each in timeline.instants if each.requested != completed.requested)
    return completed.completed is not None and max(others, default="") >= completed.completed


def _obstacle(timeline: Timeline, instant: Instant, completed: Instant) -> str | None:
    """Return the reason why an instant cannot be completed, None if it can.

    Args:
        timeline: the current timeline.
        instant: inflight, as far as its process knows.
        completed: the completed instant to be; another process may have completed it on behalf of this one.
    """
    for known in timeline.instants:
        if known.requested != instant.requested or known.action.completed_action is not (
            instant.action.completed_action
        ):
            continue
        if known.is_completed:
            return None if known == completed else _DONE
        return None if known.state is State.INFLIGHT else "its inflight file was removed"
    return "it was rolled back"


def _lost(instant: Instant, reason: str, kind: type[ConflictError] = ConflictError) -> ConflictError:
    if reason == _DONE:
        advice = "What that one committed counts."
    elif issubclass(kind, DecidedError):
        advice = "It was taken back since, as by a restore. Look at the timeline before you try again."
    else:
        advice = "Nothing was committed here. Try again."
    return kind(
        f"This {instant.action}, {instant.requested}, cannot be completed: {reason}, as after a long pause of"
        f" this process. {advice}",
        instant=instant.requested,
    )


def _taken_over(instant: Instant) -> TakenOverError:
    return TakenOverError(
        f"This process lost the table lock, as after a long pause, when it had decided to complete this"
        f" {instant.action}, {instant.requested}. The next holder of the lock completes it, or rolls it back"
        " if the decision could be taken back. Look whether it is on the timeline before you try again.",
        instant=instant.requested,
    )
