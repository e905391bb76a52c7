"""Claims: the conditional put that decides whether a pending instant completes.

    .hoodie/.locks/<T>.claim       one JSON line, followed by the content of the completed file

    absent ── commit ──> committing ── the completed file is put ──> deleted
       │                     └── its writer stalls: the next process adopts it, puts the completed file
       └───── take ────> taken ── commit, by the process that took it ──> committing

A stalled writer (a stopped process, a paused virtual machine) may resume at any time after others took its
lock. It cannot check in one step that it still may complete its instant and complete it, since these are two
files. So the claim decides. A process that rolls an instant back or runs it again takes the claim first; a
commit replaces only the claim that its writer knows. If the commit came first, the instant is as good as
completed: any process that finds the claim puts the completed file, with the name and content that the writer
stored in the claim. It replaces the claim by its own first, so that the writer can no longer revoke it to
choose a later completion time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError, UnavailableError
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import CLAIM_SUFFIX, LOCK_FOLDER, Storage
from drawstring.timeline.timeline import Timeline


class ClaimState(StrEnum):
    """The outcome that a claim decides for its instant."""

    TAKEN = "taken"
    COMMITTING = "committing"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as stored.

    Attributes:
        state: taken, or committing.
        owner: unique to the process and moment of the put.
        file_name: name of the completed file of a committing instant.
        content: content of that file.
    """

    state: ClaimState
    owner: str
    file_name: str = ""
    content: bytes = b""

    def encode(self) -> bytes:
        """Return the content of the claim's file."""
        digest = hashlib.sha256(self.content).hexdigest()
        header = {
            "state": self.state.value,
            "owner": self.owner,
            "file": self.file_name,
            "sha256": digest,
        }
        return json.dumps(header, separators=(",", ":")).encode() + b"\n" + self.content

    @staticmethod
    def decode(data: bytes) -> Claim:
        """Decode a claim; a truncated one (after a power cut) counts as taken, so that no process commits."""
        header, _, content = data.partition(b"\n")
        try:
            fields = json.loads(header)
            if fields["sha256"] != hashlib.sha256(content).hexdigest():
                raise ValueError("cut short")
            return Claim(ClaimState(fields["state"]), str(fields["owner"]), str(fields["file"]), content)
        except (ValueError, KeyError, TypeError):
            return Claim(ClaimState.TAKEN, "")


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to complete an instant that another process began.

    Attributes:
        owner: of the claim; if the claim has another owner, the right is lost.
    """

    owner: str


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a table.

    Attributes:
        storage: the table's files.
        ids: names the owners of claims.
        decided: the claims by which this process decided to complete an instant, by requested time; the put
            of such a claim may have failed.
    """

    storage: Storage
    ids: Ids
    decided: dict[str, Fence] = field(default_factory=dict)

    def take(self, instant: Instant) -> Fence | Claim:
        """Make sure that no other process can complete a pending instant any more.

        Returns:
            The fence; or the claim of a writer that had already begun to complete the instant.

        Raises:
            ConflictError: another process is taking the claim at this moment.
        """
        self._abort_own(instant)
        claim, version = self._read(instant)
        while claim is not None and claim.state is ClaimState.COMMITTING:
            if self._adopt(instant, claim, version):
                return claim
            claim, version = self._read(instant)
        taken = Claim(ClaimState.TAKEN, self.ids.uuid())
        if not self._replace(instant, taken, version):
            raise ConflictError(
                f"Another process is about to complete the {instant.action} {instant.requested}, to roll it"
                " back or to run it again. Try again.",
                instant=instant.requested,
            )
        return Fence(taken.owner)

    def has_fence(self, instant: Instant, fence: Fence) -> bool:
        """Return whether the claim of an instant is still the one that this process took."""
        return self._version_of(instant, fence) is not None

    def announce(self, instant: Instant) -> Fence:
        """Claim an instant of this process that it is about to commit.

        Raises:
            ConflictError: another process took it, to roll it back.
        """
        taken = Claim(ClaimState.TAKEN, self.ids.uuid())
        if not self._replace(instant, taken, None):
            raise ConflictError(
                f"Another process rolled this write, the {instant.action} {instant.requested}, back: it took"
                " this process for dead, as after a pause. Nothing of it was committed. Retry the write.",
                instant=instant.requested,
            )
        return Fence(taken.owner)

    def listed(self) -> frozenset[str]:
        """Return the paths of the files in the folder of the claims."""
        return frozenset(status.path for status in self.storage.list_files(LOCK_FOLDER))

    def bar_stalled(self, announced: Sequence[Instant]) -> Iterator[tuple[Instant, Claim]]:
        """Make sure that no writer commits that had announced it under a lock that it lost.

        A writer without a claim may go on: it announces the commit before it checks that it holds the lock.

        Args:
            announced: instants of other processes with a claim; the caller holds the table lock.

        Yields:
            The instants that their writers had already begun to complete, with their claims.

        Raises:
            ConflictError: such a writer is at work at this moment.
        """
        for instant in announced:
            if isinstance(taken := self.take(instant), Claim):
                yield instant, taken

    def prevent_completion(self, instant: Instant) -> Claim | None:
        """Make sure that an instant that is not run again never completes.

        An empty file, which fits on a full disk too, takes the place of the claim that a writer announced: it
        may go on at any time.

        Returns:
            None; or the claim of a writer that had already begun to complete the instant.
        """
        self._abort_own(instant)
        path = claim_path(instant)
        while not self.storage.put_if_absent(path, b""):
            versioned = self.storage.read_versioned(path)
            if versioned is None:
                continue  # deleted since
            data, version = versioned
            if (claim := Claim.decode(data)).state is ClaimState.COMMITTING:
                if self._adopt(instant, claim, version):
                    return claim
            elif not data or self.storage.put_if_match(path, b"", version):
                break
        return None

    def committing(self, instant: Instant) -> Claim | None:
        """Return the claim of an instant whose process decided to complete it; None without one."""
        claim, _ = self._read(instant)
        return claim if claim is not None and claim.state is ClaimState.COMMITTING else None

    def commit(self, instant: Instant, file_name: str, content: bytes, fence: Fence | None) -> Fence | None:
        """Decide that an instant completes.

        Args:
            instant: pending, begun or taken over by this process.
            file_name: name of the completed file.
            content: content of that file.
            fence: the result of taking the instant over; None for an instant that this process began.

        Returns:
            The fence to pass to `abort`; None if another process took the instant.
        """
        claim = Claim(ClaimState.COMMITTING, self.ids.uuid(), file_name, content)
        decided = Fence(claim.owner)
        self.decided[instant.requested] = decided
        return decided if self._replace_own(instant, claim, fence) else None

    def abort(self, instant: Instant, fence: Fence) -> Fence | None:
        """Revoke the decision to complete an instant; return the new fence, None if that is not possible.

        On a full disk the claim cannot be replaced. A local table lock keeps other processes from acting on
        the claim while this process lives, so it can be deleted instead.
        """
        taken = Claim(ClaimState.TAKEN, self.ids.uuid())
        try:
            return Fence(taken.owner) if self._replace_own(instant, taken, fence) else None
        except UnavailableError:
            if self.storage.local_path(LOCK_FOLDER) is None:
                raise
            self.give_back(instant)
            return None

    def give_back(self, instant: Instant) -> None:
        """Delete the claim of an instant that is completed, or has left the timeline."""
        self.decided.pop(instant.requested, None)
        self.storage.delete([claim_path(instant)])

    def sweep(
        self, timeline: Timeline, check: Callable[[], None], listed: Collection[str] | None = None
    ) -> list[str]:
        """Delete the claims of instants that are neither pending nor recently rolled back.

        Args:
            timeline: as read under the table lock.
            check: makes sure that the lock is still held.
            listed: paths of the files there, listed since the lock was taken; None to list them.

        Returns:
            The paths of the other files in the folder of the claims.
        """
        live_claims = {claim_path(instant) for instant in timeline.pending()}
        live_claims |= {join_path(LOCK_FOLDER, f"{time}{CLAIM_SUFFIX}") for time in timeline.rolled_back}
        paths = sorted(self.listed() if listed is None else listed)
        obsolete = [path for path in paths if path.endswith(CLAIM_SUFFIX) and path not in live_claims]
        if obsolete:
            check()  # under the lock, the timeline that was read has all pending instants
            self.storage.delete(obsolete)
        return [path for path in paths if not path.endswith(CLAIM_SUFFIX)]

    def _abort_own(self, instant: Instant) -> None:
        """Revoke a decision that this process could not carry out: it is undoing the instant now."""
        fence = self.decided.pop(instant.requested, None)
        if fence is not None:
            self.abort(instant, fence)

    def _adopt(self, instant: Instant, claim: Claim, version: str | None) -> bool:
        """Make sure that the writer that decided to complete an instant cannot revoke the decision.

        Returns:
            Whether this came first; if not, the claim has to be read again.
        """
        return self._replace(instant, replace(claim, owner=self.ids.uuid()), version)

    def _read(self, instant: Instant) -> tuple[Claim | None, str | None]:
        """Return the claim of an instant and its storage version."""
        versioned = self.storage.read_versioned(claim_path(instant))
        return (None, None) if versioned is None else (Claim.decode(versioned[0]), versioned[1])

    def _replace_own(self, instant: Instant, claim: Claim, fence: Fence | None) -> bool:
        """Put a claim in place of this process's own one, or of none."""
        if fence is None:
            return self._replace(instant, claim, None)
        version = self._version_of(instant, fence)
        return version is not None and self._replace(instant, claim, version)

    def _version_of(self, instant: Instant, fence: Fence) -> str | None:
        """Return the storage version of a claim while it is that of a fence, else None."""
        claim, version = self._read(instant)
        return version if claim is not None and claim.owner == fence.owner else None

    def _replace(self, instant: Instant, claim: Claim, version: str | None) -> bool:
        path, data = claim_path(instant), claim.encode()
        if version is None:
            return self.storage.put_if_absent(path, data)
        return self.storage.put_if_match(path, data, version)


def are_claimed(storage: Storage, instants: Sequence[Instant]) -> bool:
    """Return whether the completion of any of some pending instants is claimed; none takes no request."""
    claimed = {status.path for status in storage.list_files(LOCK_FOLDER)} if instants else set()
    return any(claim_path(each) in claimed for each in instants)


def claim_path(instant: Instant) -> str:
    """Return the path of an instant's claim; a savepoint shares the requested time of its write."""
    kind = ".savepoint" if instant.action is Action.SAVEPOINT else ""
    return f"{LOCK_FOLDER}/{instant.requested}{kind}{CLAIM_SUFFIX}"
