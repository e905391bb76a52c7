"""Completing an instant: once, by its own writer or for it (`claims` says who decides).

    claim ──> completed file, by put-if-absent ──> claim deleted

A writer may stand still at any of these steps, and go on when others have finished its instant, and even
archived it. So one that was slow looks around before and after it puts the completed file.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.config.table.config import TableConfig
from drawstring.model.instant import Action, Instant, State, time_of
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.claims import Claim, Claims, Fence
from drawstring.timeline.layout import file_name, parse_instant
from drawstring.timeline.timeline import Timeline

_STOOD_STILL_MS: Final = 10_000
"""A writer that took longer than this to complete an instant looks whether others went on without it."""

_log: Final = logging.getLogger("drawstring")


class TimelineFiles(Protocol):
    """The files of the active timeline."""

    def load(self) -> Timeline:
        """List them."""

    def path(self, instant: Instant) -> str:
        """Return the path of the file of an instant's state."""

    def new_time(self, timeline: Timeline) -> str:
        """Return a time after every time on the timeline."""


class TimelineGuard(Protocol):
    """What else is to change when an instant does."""

    def requesting(self, instant: Instant) -> None:
        """Hear of an instant that this process puts on the timeline."""
        ...

    def completing(self, instant: Instant, content: bytes) -> AbstractContextManager[None]:
        """Do what goes right before and after the put of a completed file."""
        ...

    def removing(self, instant: Instant) -> None:
        """Do what goes before a pending instant leaves the timeline."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """What completing an instant takes.

    Attributes:
        storage: the table's files.
        config: the table's layout.
        clock: tells whether this process stood still.
        claims: decide.
        files: of the active timeline.
        guard: told of what takes effect; None for a look only.
    """

    storage: Storage
    config: TableConfig
    clock: Clock
    claims: Claims
    files: TimelineFiles
    guard: TimelineGuard | None = None

    def complete(self, instant: Instant, content: bytes, fence: Fence | None = None) -> Instant:
        """Bring an inflight instant to completed: what it wrote takes effect at once.

        Args:
            instant: the pending instant.
            content: its metadata.
            fence: what `fence` gave, for an instant that another process began.

        Raises:
            ConflictError: another process completed it, is about to, or rolled it back.
        """
        began_ms = self.clock.now_ms()
        completed, decided, timeline = self._decided(instant, content, fence)
        if not self._is_archived(timeline, instant, completed):
            self._put_completed(completed, instant, content, decided)
        if self.clock.now_ms() - began_ms > _STOOD_STILL_MS:
            self._take_back_if_archived(completed)
        self._give_back(instant)
        return completed

    def fence(self, instant: Instant) -> Fence | Instant:
        """Make sure that only this process can complete a pending instant that another one began.

        A writer that stood still may have been about to complete it: then it is completed, in its words.

        Args:
            instant: pending; the caller holds the table lock.

        Returns:
            What `complete` needs, or the instant as it is completed now.

        Raises:
            ConflictError: another process takes the instant over at this moment.
        """
        found = self.claims.take(instant)
        if isinstance(found, Claim):
            return self._complete_for(instant, found)
        return self._completed_before(instant) or found

    def bar(self, instant: Instant) -> Instant | None:
        """Make sure that nobody completes a pending write any more, as `fence` does, with fewer requests.

        Returns:
            The write as it is completed now, if its writer had decided that it is.
        """
        claim = self.claims.bar(instant)
        return self._completed_before(instant) if claim is None else self._complete_for(instant, claim)

    def complete_decided(self, instant: Instant) -> None:
        """Complete a pending instant if its process had decided that it completes."""
        claim = self.claims.committing(instant)
        if claim is not None:
            self._complete_for(instant, claim)

    def _completed_before(self, instant: Instant) -> Instant | None:
        """Return an instant as its writer completed it just before its claim was taken; None otherwise.

        That writer has deleted its claim, so that there was none to be found. Its completed file came first.
        """
        for known in self.files.load().completed_of(instant.action.completed_action):
            if known.requested == instant.requested:
                self._give_back(instant)
                return known
        return None

    def _put(self, completed: Instant, content: bytes) -> bool:
        with self.guard.completing(completed, content) if self.guard else nullcontext():
            return self.storage.put_if_absent(self.files.path(completed), content)

    def _sync(self) -> None:
        self.storage.sync([self.config.timeline_folder])

    def _give_back(self, instant: Instant) -> None:
        """Delete the claim of an instant that is settled; if that fails, the next writer does it."""
        try:
            self.claims.give_back(instant)
        except (DrawstringError, OSError) as error:
            _log.warning("The claim of the settled %s stays for now: %s", instant.requested, error)

    def _decided(
        self, instant: Instant, content: bytes, fence: Fence | None
    ) -> tuple[Instant, Fence, Timeline]:
        """Claim the completion of an instant.

        Returns:
            The instant as it will be, what takes the decision back, and the timeline after the claim.

        Raises:
            ConflictError: another process completed it, or rolled it back.
        """
        timeline = Timeline((instant,))
        while True:
            completed = self._completed(timeline, instant)
            name = file_name(completed, self.config.layout)
            decided = self.claims.commit(instant, name, content, fence)
            if decided is None:
                raise _lost(instant, "another process completed it, or rolled it back")
            timeline = self.files.load()
            if not _is_inflight(timeline, instant) or not _is_outrun(timeline, completed):
                return completed, decided, timeline
            # The clock is behind that of another process: completion times rise all the same.
            fence = self.claims.abort(instant, decided)
            if fence is None:
                raise _lost(instant, "another process rolled it back")

    def _is_archived(self, timeline: Timeline, pending: Instant, completed: Instant) -> bool:
        """Tell whether others completed a claimed instant for its writer, and archived it meanwhile.

        Raises:
            ConflictError: they rolled it back, or completed it in other words.
        """
        reason = _obstacle(timeline, pending, completed)
        if reason is None:
            return False
        archived = open_archive(self.storage, self.config).completed("")
        if any((each.requested, each.action) == (completed.requested, completed.action) for each in archived):
            return True
        self._give_back(pending)
        raise _lost(pending, reason)

    def _put_completed(self, completed: Instant, pending: Instant, content: bytes, decided: Fence) -> None:
        """Put the completed file of an instant whose claim says that it completes.

        Raises:
            ConflictError: the file is there, in the words of another process.
        """
        path = self.files.path(completed)
        try:
            is_ours = self._put(completed, content) or self.storage.read(path) == content
        except (DrawstringError, OSError):
            is_ours = False
            with suppress(DrawstringError, OSError):
                is_ours = self._is_put_after_all(path, pending, decided)
            if not is_ours:
                raise
        if not is_ours:
            self._give_back(pending)
            raise _lost(pending, "another process completed it")
        self._sync()

    def _is_put_after_all(self, path: str, pending: Instant, decided: Fence) -> bool:
        """Find out about a put that failed; take the decision back if nobody acted on it."""
        if self.storage.exists(path):
            return True
        self.claims.abort(pending, decided)
        return self.storage.exists(path)

    def _complete_for(self, instant: Instant, claim: Claim) -> Instant:
        """Put the completed file for the writer that claimed it."""
        _log.info(
            "Completing the %s %s: its process had decided that, and died or stands still.",
            instant.action,
            instant.requested,
        )
        completed = parse_instant(claim.file_name, self.config.layout)
        assert completed is not None, claim.file_name
        self._put(completed, claim.content)
        self._sync()
        self._give_back(instant)
        return completed

    def _take_back_if_archived(self, completed: Instant) -> None:
        """Delete a completed file that was put once more after others had archived the instant."""
        if not self._is_begun(completed):
            self.storage.delete([self.files.path(completed)])

    def _is_begun(self, completed: Instant) -> bool:
        """Tell whether an instant has its inflight file: archiving takes it away first."""
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


def _is_outrun(timeline: Timeline, completed: Instant) -> bool:
    """Tell whether another instant completed at the time that an instant is about to have, or later."""
    others = (time_of(each) for each in timeline.instants if each.requested != completed.requested)
    return completed.completed is not None and max(others, default="") >= completed.completed


def _obstacle(timeline: Timeline, instant: Instant, completed: Instant) -> str | None:
    """Say why an instant cannot be completed, None when it can.

    Args:
        timeline: as it is.
        instant: inflight, for all that its process knows.
        completed: as this process is completing it; another one may have done so in its place.
    """
    for known in timeline.instants:
        if known.requested != instant.requested or known.action.completed_action is not (
            instant.action.completed_action
        ):
            continue
        if known.is_completed:
            return None if known == completed else "another process completed it"
        return None if known.state is State.INFLIGHT else "its inflight file was taken away"
    return "it was rolled back"


def _lost(instant: Instant, reason: str) -> ConflictError:
    return ConflictError(
        f"This {instant.action} cannot be completed: {reason}; retry the write.", instant=instant.requested
    )
