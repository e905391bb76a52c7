"""Claims: the one conditional put that decides whether a pending instant completes.

    .hoodie/.locks/<T>.claim       one JSON line, and behind it what the completed file is to say

    absent ── commit ──> committing ── the completed file is put ──> deleted
       │                     └── its writer stands still: whoever comes next puts the completed file
       └───── take ────> taken ── commit, by the process that took it ──> committing

A writer that stands still (a stopped process, a paused virtual machine) may go on at any time after others
took its lock. It cannot ask whether it still may complete its instant and complete it in one step: these are
two files. So the claim decides. Whoever rolls an instant back or runs it anew takes the claim first; a commit
replaces only the claim that its writer knows. If the commit was first, the instant is as good as completed:
its completed file is put by whoever finds the claim, in the words of its writer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError, UnavailableError
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline

CLAIM_FOLDER: Final = ".hoodie/.locks"
_SUFFIX: Final = ".claim"


class ClaimState(StrEnum):
    """What a claim says about its instant."""

    TAKEN = "taken"
    COMMITTING = "committing"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as it is stored.

    Attributes:
        state: what becomes of the instant.
        owner: unique to the process and moment that put it.
        file_name: of the completed file of a committing instant.
        content: of that file.
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
        """Read a claim; one that says nothing (a file cut short by a power cut) lets nobody commit."""
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
        owner: of the claim; another owner took the instant since.
    """

    owner: str


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a table.

    Attributes:
        storage: the table's files.
        ids: name who put a claim.
        decided: what this process decided to complete, by requested time, though the put may have failed.
    """

    storage: Storage
    ids: Ids
    decided: dict[str, Fence] = field(default_factory=dict)

    def take(self, instant: Instant) -> Fence | Claim:
        """Make sure that nobody else can complete a pending instant any more.

        Returns:
            The fence, or the claim of a writer that is completing the instant and was first.

        Raises:
            ConflictError: another process takes it at this moment.
        """
        self._abort_own(instant)
        found = self.storage.read_versioned(claim_path(instant))
        claim = None if found is None else Claim.decode(found[0])
        if claim is not None and claim.state is ClaimState.COMMITTING:
            return claim
        taken = Claim(ClaimState.TAKEN, self.ids.uuid())
        if not self._replace(instant, taken, found[1] if found else None):
            raise ConflictError(
                f"Another process is at work on this {instant.action}. Try again.", instant=instant.requested
            )
        return Fence(taken.owner)

    def bar(self, instant: Instant) -> Claim | None:
        """Make sure that nobody completes an instant that nobody runs again.

        Returns:
            The claim of a writer that is completing the instant and was first.
        """
        self._abort_own(instant)
        if self.storage.put_if_absent(claim_path(instant), b""):  # which a full disk has room for
            return None
        return self.committing(instant)

    def committing(self, instant: Instant) -> Claim | None:
        """Return the claim of an instant whose process decided that it completes; None without one."""
        found = self.storage.read_versioned(claim_path(instant))
        claim = None if found is None else Claim.decode(found[0])
        return claim if claim is not None and claim.state is ClaimState.COMMITTING else None

    def commit(self, instant: Instant, file_name: str, content: bytes, fence: Fence | None) -> Fence | None:
        """Decide that an instant completes.

        Args:
            instant: pending, ours.
            file_name: of the completed file.
            content: of that file.
            fence: what taking the instant over gave; None for an instant that this process began.

        Returns:
            The fence for `abort`, None when another process took the instant.
        """
        claim = Claim(ClaimState.COMMITTING, self.ids.uuid(), file_name, content)
        decided = Fence(claim.owner)
        self.decided[instant.requested] = decided
        return decided if self._replace_own(instant, claim, fence) else None

    def abort(self, instant: Instant, fence: Fence) -> Fence | None:
        """Take the decision to complete back; None when it cannot be any more.

        On a full disk the claim cannot be replaced. A local table lock keeps others from acting on it as long
        as this process lives, so there it can be deleted.
        """
        taken = Claim(ClaimState.TAKEN, self.ids.uuid())
        try:
            return Fence(taken.owner) if self._replace_own(instant, taken, fence) else None
        except UnavailableError:
            if self.storage.local_path(CLAIM_FOLDER) is None:
                raise
            self.give_back(instant)
            return None

    def give_back(self, instant: Instant) -> None:
        """Delete the claim of an instant that is settled."""
        self.decided.pop(instant.requested, None)
        self.storage.delete([claim_path(instant)])

    def sweep(self, timeline: Timeline, check: Callable[[], None]) -> list[str]:
        """Delete claims that protect nothing any more: of instants that are not pending.

        Those of instants that were rolled back not long ago stay.

        Args:
            timeline: as it was read under the table lock.
            check: makes sure that the lock is still held.

        Returns:
            The paths of the files beside the claims.
        """
        named = {claim_path(each) for each in timeline.pending()}
        named |= {join_path(CLAIM_FOLDER, f"{time}{_SUFFIX}") for time in timeline.rolled_back}
        found = [status.path for status in self.storage.list_files(CLAIM_FOLDER)]
        doomed = [path for path in found if path.endswith(_SUFFIX) and path not in named]
        if doomed:
            check()  # while the lock is held the timeline that was read knows all instants
            self.storage.delete(doomed)
        return [path for path in found if not path.endswith(_SUFFIX)]

    def _abort_own(self, instant: Instant) -> None:
        """Take back what this process decided and could not carry out: it is undoing it now."""
        fence = self.decided.pop(instant.requested, None)
        if fence is not None:
            self.abort(instant, fence)

    def _replace_own(self, instant: Instant, claim: Claim, fence: Fence | None) -> bool:
        """Put a claim in the place of our own, or of none."""
        if fence is None:
            return self._replace(instant, claim, None)
        found = self.storage.read_versioned(claim_path(instant))
        if found is None or Claim.decode(found[0]).owner != fence.owner:
            return False
        return self._replace(instant, claim, found[1])

    def _replace(self, instant: Instant, claim: Claim, version: str | None) -> bool:
        path, data = claim_path(instant), claim.encode()
        if version is None:
            return self.storage.put_if_absent(path, data)
        return self.storage.put_if_match(path, data, version)


def claim_path(instant: Instant) -> str:
    """Return the path of the claim of an instant; a savepoint has the requested time of a write."""
    kind = ".savepoint" if instant.action is Action.SAVEPOINT else ""
    return f"{CLAIM_FOLDER}/{instant.requested}{kind}{_SUFFIX}"
