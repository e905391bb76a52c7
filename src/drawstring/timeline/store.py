"""Load the files of the timeline, and make every change of them.

    request ── put-if-absent ──> requested ── start ──> inflight ── complete ──> completed
                                     └────────── remove_pending ──────┘

Every step creates one file by put-if-absent, so the second of two processes gets a `ConflictError`.
Completion needs more. In layout 2 the file name has the completion time, so two completions of one instant
would not collide by name. And put-if-absent cannot refuse a stalled writer whose instant another process
rolled back meanwhile. The claim of the instant decides both cases (`timeline.claims`).

`Completion` completes an instant once, by its own writer or on behalf of it:

    claim ──> completed file, by put-if-absent ──> claim deleted

A writer may stall at any of these steps, and resume after others have finished its instant, or even
archived it. So a slow writer checks the timeline before and after it puts the completed file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from drawstring.base.clock import Clock, Ids, SystemIds
from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    DecidedError,
    DrawstringError,
    MissingFileError,
    TakenOverError,
)
from drawstring.base.lazy import cached_property
from drawstring.config.table_config import TableConfig
from drawstring.formats.metadata.commit import decode_head, is_clustering
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant, State, time_of
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import ArchivedCompletionTimes, archived_commit, open_archive
from drawstring.timeline.claims import Claim, Claims, Fence, claim_path
from drawstring.timeline.migration import BootstrapSources
from drawstring.timeline.properties import load_config
from drawstring.timeline.timeline import (
    MOVED_MARKER,
    Timeline,
    file_name,
    instant_time,
    next_time,
    note_rolled_back,
    old_notes,
    parse_instant,
    pending_names,
    timeline_of,
)
from drawstring.timeline.version_change import VERSION_CHANGE, prevent_version_change

_STALLED_MS: Final = 10_000
"""A writer that took longer than this to complete an instant checks whether others archived it meanwhile."""
_DONE: Final = "another process completed it"
"""Why an instant cannot be completed that has been."""

Defer = Callable[[Callable[[], None]], None]
"""Takes work that may be done later."""

_log: Final = logging.getLogger("drawstring")


def run_immediately(task: Callable[[], None]) -> None:
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
        self, instant: Instant, content: bytes, fence: Fence | None = None, defer: Defer = run_immediately
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
                raise _completion_error(
                    instant, _DONE if is_done else "another process took it over, as to roll it back"
                )
            timeline = self.files.load()
            if not _is_inflight(timeline, instant) or not _is_overtaken(timeline, completed):
                return completed, decided, timeline
            # The clock is behind that of another process: a new completion time must be the greatest.
            fence = self.claims.abort(instant, decided)
            if fence is None and self.claims.committing(instant) is not None:
                return completed, decided, timeline  # another process is completing it at that time
            if fence is None:
                raise _completion_error(instant, "another process settled it", DecidedError)

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
        raise _completion_error(pending, reason, DecidedError)

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
                raise _completion_error(pending, "another process settled it", DecidedError) from error
            if not is_ours:
                raise
        if not is_ours:
            self._delete_claim(pending)
            raise _completion_error(pending, _DONE, DecidedError)

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


def _completion_error(
    instant: Instant, reason: str, kind: type[ConflictError] = ConflictError
) -> ConflictError:
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


_RECALLED_COMMITS = 64
_LOADS_MAX = 6
_END_OF_TIME = "9" * 17


class TimelineStore:
    """The active timeline of one table.

    Args:
        storage: the table's files.
        config: the table's layout, folder and time zone.
        clock: the source of instant times.
        ids: names the owners of claims.
        hooks: called around changes; None to read only.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        clock: Clock,
        ids: Ids | None = None,
        hooks: TransitionHooks | None = None,
    ) -> None:
        self._storage = storage
        self._hooks = hooks
        self._config = config
        self._clock = clock
        self._claims = Claims(storage, ids or SystemIds())
        self._last_time: str | None = None
        self._commits: dict[Instant, CommitMetadata] = {}
        self._heads: dict[Instant, CommitMetadata] = {}
        self._listed: list[str] | None = None
        self._timeline = Timeline()

    @cached_property
    def sources(self) -> BootstrapSources:
        """The source files of the base files that a bootstrap made without rows."""
        return BootstrapSources(self._storage, self._config)

    @cached_property
    def archived_completion_times(self) -> ArchivedCompletionTimes:
        """The completion times of archived writes."""
        return ArchivedCompletionTimes(self._storage, self._config)

    def load(self) -> Timeline:
        """List the timeline folder; files that are not instants are ignored.

        In layout 1 a pending clustering is named like an insert-overwrite; its plan is read to tell them
        apart, and it is returned as `Action.CLUSTERING`.

        Raises:
            ConflictError: the table's version changed since its properties were read.
            CorruptTableError: the plan of such an instant cannot be read, or a folder has the name of an
                instant's file.
        """
        missing_path: str | None = None
        for _ in range(_LOADS_MAX):
            try:
                return self._load()
            except MissingFileError as error:
                # The plan of a pending overwrite, archived or rolled back since the listing.
                if error.path == missing_path:
                    raise
                missing_path = error.path
        raise ConflictError("The timeline kept changing while it was read. Try again.")

    @property
    def loaded(self) -> Timeline:
        """The timeline as it was loaded last, without what changed since; an empty one at first."""
        return self._timeline

    def _load(self) -> Timeline:
        names = self._storage.list_names(self._config.timeline_folder)
        is_same = names == self._listed  # as mostly when it is listed twice under one lock
        timeline = self._timeline if is_same else timeline_of(tuple(names), self._config.layout)
        if MOVED_MARKER in names or not timeline.instants:
            self._check_layout()
        if not is_same:
            self._check_folders(names)
            self._timeline = self._with_clusterings(timeline)
            self._listed = names
        return self._timeline

    def _with_clusterings(self, timeline: Timeline) -> Timeline:
        """Return a timeline in which pending clusterings differ from pending overwrites."""
        if self._config.layout.has_own_clustering_action:
            return timeline
        pending = timeline.pending_of(Action.REPLACE_COMMIT)
        clusterings = {each.requested for each in pending if self._is_clustering(each, timeline.rolled_back)}
        return timeline if not clusterings else timeline.with_clusterings(clusterings)

    def _check_layout(self) -> None:
        """Make sure that the table still has this timeline layout."""
        if load_config(self._storage).timeline_folder != self._config.timeline_folder:
            raise ConflictError("The table's version changed while the table was read. Try again.")

    def _check_folders(self, names: Sequence[str]) -> None:
        """Refuse a folder with the name of an instant's file; object stores have no folders."""
        for name in [name for name in names if name[-1] == "/"]:
            if parse_instant(name[:-1], self._config.layout) is not None:
                raise CorruptTableError(
                    "A folder has the name of a timeline file. Restore the file from a backup.",
                    path=join_path(self._config.timeline_folder, name[:-1]),
                )

    def path(self, instant: Instant) -> str:
        """Return the path of the file of an instant's state."""
        return join_path(self._config.timeline_folder, file_name(instant, self._config.layout))

    def read(self, instant: Instant) -> bytes:
        """Return the content of the file of an instant's state.

        Raises:
            CorruptTableError: the file is gone.
        """
        path = self.path(instant)
        try:
            return self._storage.read(path)
        except FileNotFoundError:
            raise MissingFileError(
                "A timeline file is missing. Restore it from a backup.", instant=instant.requested, path=path
            ) from None

    def read_requested(self, instant: Instant) -> bytes:
        """Return the plan in an instant's requested file, whatever its state is now.

        Raises:
            CorruptTableError: the requested file is gone.
        """
        for action in pending_names(instant):
            try:
                return self._storage.read(self.path(_at(instant, action, State.REQUESTED)))
            except FileNotFoundError:
                continue
        raise MissingFileError(
            f"The requested file of this {instant.action} is missing. Restore it from a backup.",
            instant=instant.requested,
            path=self.path(_at(instant, pending_names(instant)[-1], State.REQUESTED)),
        )

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the commit metadata of a completed write.

        Raises:
            CorruptTableError: the file is gone, empty or damaged.
        """
        return self._commits.get(instant) or self._decoded(instant)

    def head(self, instant: Instant) -> CommitMetadata:
        """Return the commit metadata of a completed write, of a large one only `extra`."""
        return self._commits.get(instant) or self._heads.get(instant) or self._decoded(instant, whole=False)

    def _decoded(self, instant: Instant, *, whole: bool = True) -> CommitMetadata:
        try:
            data = self.read(instant)
        except MissingFileError:
            # An archiver takes it away: the archive had it before.
            if (archived := archived_commit(self._storage, self._config, instant)) is None:
                raise
            return archived
        try:
            if not data:
                raise CorruptTableError("This completed file is empty. Restore it from a backup.")
            commit, is_whole = decode_head(data, whole=whole)
        except DrawstringError as error:
            raise error.at(instant=instant.requested, path=self.path(instant)) from error
        (self._commits if is_whole else self._heads)[instant] = commit
        return commit

    def recall(self, earlier: TimelineStore) -> None:
        """Reuse commit metadata that an earlier store of the table decoded, since commits do not change.

        Keeps all replace commits, which every file listing needs, and the last few other commits.
        """
        commits = list(earlier._commits.items())
        replacing = {at: commit for at, commit in commits if at.action is Action.REPLACE_COMMIT}
        self._commits = replacing | dict(commits[-_RECALLED_COMMITS:]) | self._commits

    def new_time(self, timeline: Timeline) -> str:
        """Return a time after all that are on the timeline, were loaded or rolled back, or were returned."""
        loaded = () if timeline is self._timeline else (self._timeline,)
        known = [each.latest_time() or "" for each in (timeline, *loaded)]
        last = max(*known, self._last_time or "", *timeline.rolled_back) or None
        now = instant_time(self._clock.now_ms(), self._config.timezone)
        self._last_time = next_time(last, now, self._storage.spec.uri)
        return self._last_time

    def request(self, action: Action, time: str, content: bytes = b"", *, is_flushed: bool = True) -> Instant:
        """Put a new instant on the timeline; without `is_flushed` the caller calls `flush`.

        Args:
            action: the action under the name that it has while pending.
            time: requested time, from `new_time`.
            content: the plan, if the action has one.

        Raises:
            ConflictError: another writer has an instant with that time.
        """
        requested = self._add(Instant(time, action, State.REQUESTED), content)
        if content and is_flushed:  # without a plan nothing is lost if a power cut removes the file
            self.flush()
        if self._hooks is not None:
            self._hooks.requesting(requested)
        return requested

    def withdraw(self, instant: Instant) -> None:
        """Delete the only file of an instant: nothing else was done for it, or it had left the timeline."""
        self._storage.delete([self.path(instant)])
        self.flush()

    def start(self, instant: Instant, content: bytes = b"", *, is_flushed: bool = True) -> Instant:
        """Move a requested instant to inflight; without `is_flushed` the caller calls `flush`.

        Raises:
            ConflictError: another writer did.
        """
        started = self._add(_at(instant, instant.action, State.INFLIGHT), content)
        if is_flushed:
            self.flush()
        return started

    def flush(self) -> None:
        """Make instants survive a power cut; files of those before the timeline's start would count."""
        self._storage.sync([self._config.timeline_folder])

    def complete(
        self, instant: Instant, content: bytes, fence: Fence | None = None, defer: Defer = run_immediately
    ) -> Instant:
        """Move an inflight instant to completed: everything that it wrote takes effect at once.

        Args:
            instant: the pending instant.
            content: its metadata.
            fence: the result of `fence`, for an instant that another process began.
            defer: takes the flush of the completed file and the deletion of the claim; see `Completion`.

        Raises:
            ConflictError: another process completed it, is about to, or rolled it back.
        """
        return self._completion().complete(instant, content, fence, defer)

    def fence(self, instant: Instant) -> Fence | Instant:
        """Make sure that only this process can complete a pending instant that another one began.

        Args:
            instant: pending; the caller holds the table lock.

        Returns:
            The fence to pass to `complete`; or the completed instant, if its writer had already claimed the
            completion.

        Raises:
            ConflictError: another process is taking the instant over at this moment.
        """
        return self._completion().fence(instant)

    def has_fence(self, instant: Instant, fence: Fence) -> bool:
        """Return whether no other process has fenced an instant since this one did."""
        return self._claims.has_fence(instant, fence)

    def prevent_completion(self, instant: Instant) -> Instant | None:
        """Make sure that a pending write that stays on the timeline never completes.

        Returns:
            None; or the completed write, if its writer had already claimed the completion.
        """
        return self._completion().prevent_completion(instant)

    def announce(self, instant: Instant) -> Fence:
        """Claim an instant that is about to be committed, for the next holder of the table lock to see.

        Raises:
            ConflictError: another process rolled the instant back.
        """
        return self._claims.announce(instant)

    def bar_stalled(
        self, pending: Sequence[Instant], listed: Collection[str] | None = None
    ) -> Timeline | None:
        """Settle the pending writes of others as `Completion` does; None if that may have changed nothing."""
        return self.load() if self._completion().bar_stalled(pending, listed) else None

    def load_barred(self, own: str, listed: Collection[str] | None = None) -> Timeline:
        """Return the timeline after the pending writes other than an own one are settled in that way."""
        return self._completion().load_barred(own, listed)

    def note_rolled_back(self, instant: Instant) -> None:
        """Note that a fenced instant was rolled back and never completes, or that a restore undoes it."""
        now = instant_time(self._clock.now_ms(), self._config.timezone)
        note_rolled_back(self._storage, self._config, instant.requested, now)

    def forget_rolled_back(self, requested: str) -> None:
        """Allow the requested time of a rolled back instant to be used again."""
        for time, path in old_notes(self._storage, self._config, _END_OF_TIME):
            if time == requested:
                self._storage.delete([path])
        self._claims.give_back(Instant(requested, Action.COMMIT, State.REQUESTED))

    def revert_to_requested(self, instant: Instant) -> None:
        """Delete the inflight file of a dead attempt, so that the instant is requested again."""
        self._storage.delete([self.path(_at(instant, instant.action, State.INFLIGHT))])
        self.flush()

    def remove_pending(self, instant: Instant) -> None:
        """Take a pending instant off the timeline: its inflight file first, then its requested file."""
        if self._hooks is not None:
            self._hooks.removing(instant)
        self.revert_to_requested(instant)
        self._storage.delete([self.path(_at(instant, instant.action, State.REQUESTED))])
        self.flush()

    def forget_claim(self, instant: Instant) -> None:
        """Delete the claim of an instant that has left the timeline."""
        self._claims.give_back(instant)

    def sweep_claims(
        self, timeline: Timeline, check: Callable[[], None], listed: Collection[str] | None = None
    ) -> list[str]:
        """Delete the claims that protect nothing any more (`Claims.sweep`); the caller holds the table lock.

        Also bars an unfinished version change of another process from taking effect.
        """
        others = self._claims.sweep(timeline, check, listed)
        if VERSION_CHANGE in others:
            prevent_version_change(self._storage, self._clock)
        return others

    def _add(self, instant: Instant, content: bytes) -> Instant:
        path = self.path(instant)
        if not self._storage.put_if_absent(path, content):
            raise ConflictError(
                f"Another writer has this {instant.action}, {instant.requested}, at the same time. Retry the"
                " write.",
                instant=instant.requested,
                path=path,
            )
        return instant

    def _completion(self) -> Completion:
        return Completion(self._storage, self._config, self._clock, self._claims, self, self._hooks)

    def _is_clustering(self, instant: Instant, rolled_back: Collection[str]) -> bool:
        try:
            return is_clustering(self.read_requested(instant))
        except CorruptTableError as error:
            if instant.requested in rolled_back:  # its stalled writer resumed, and began it once more
                return False
            requested = _at(instant, instant.action, State.REQUESTED)
            raise error.at(instant=instant.requested, path=self.path(requested)) from error


def _at(instant: Instant, action: Action, state: State) -> Instant:
    return Instant(instant.requested, action, state)
