"""The file-system provider: Hudi's `FileSystemBasedLockProvider`, a file that is there while it is held.

    .hoodie/lock     {"lockCreateTime":...,"lockStacksInfo":[],"lockThreadName":...}

Whoever creates the file holds the lock; deleting it releases the lock. Of a process that died the file stays;
it counts as left behind once it was not modified for `hoodie.write.lock.filesystem.expire` minutes (0:
never).

**It is not safe beside the JVM.** Hudi deletes the file without a look at who made it, twice at each release,
and its create on a local disk looks first and writes then. We look who made the file before we delete
it, create it exclusively, touch it while we hold it, and notice when it is gone (`check`). So drawstring's
processes exclude each other; a JVM may take the lock while we hold it, and the write then fails.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError
from drawstring.base.process import this_process
from drawstring.base.threads import Renewal
from drawstring.config.keys.locks import LOCK_PROVIDER, LockSettings
from drawstring.storage.protocol import Storage

FILE_NAME: Final = "lock"
_FOLDER: Final = ".hoodie"
_TOUCHES: Final = 4
"""How often a held file is touched before it would expire."""


class HudiFileLock:
    """A lock file.

    Args:
        path: absolute path of the file.
        clock: for the age of the file, as long as it is young by it.
        ids: names the owner.
        expire_minutes: age from which the file counts as left behind; 0 for never.
    """

    def __init__(self, path: str, clock: Clock, ids: Ids, expire_minutes: int) -> None:
        self._path = path
        self._clock = clock
        self._ids = ids
        self._expire_seconds = expire_minutes * 60
        self._content = b""
        self._renewal = Renewal(self._touch, (self._expire_seconds or 1) / _TOUCHES)

    def try_acquire(self) -> bool:
        """Create the file, if there is none or an expired one.

        Raises:
            UnavailableError: the folder cannot be written to.
        """
        content = self._new_content()
        try:
            self._drop_expired()
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return False
        except OSError as error:
            raise UnavailableError(
                f"The lock file cannot be made ({error.strerror}). Check the permissions of its folder.",
                path=self._path,
            ) from error
        with open(descriptor, "wb") as file:
            file.write(content)
        self._content = content
        if self._expire_seconds:
            self._renewal.start()
        return True

    def is_held(self) -> bool:
        """Return whether there is a file that has not expired."""
        try:
            return not self._seems_expired(os.stat(self._path))
        except OSError:
            return False

    def check(self) -> None:
        """Make sure that the file is there and ours.

        Raises:
            ConflictError: another process deleted or replaced it.
        """
        if not self._is_ours():
            raise ConflictError(
                "The lock file of the table was deleted or replaced by another process. Retry the write.",
                path=self._path,
            )

    def release(self) -> None:
        """Delete the file, if it is ours."""
        self._renewal.stop()
        if self._is_ours():
            with suppress(FileNotFoundError):
                os.unlink(self._path)
        self._content = b""

    def holder(self) -> str:
        """Return who the file says has made it; Hudi's own file is empty."""
        name = None
        with suppress(OSError, ValueError, AttributeError):
            name = json.loads(_read(self._path)).get("lockThreadName")
        return f"{name or 'a process that left no name'}, by the file {self._path}"

    def _new_content(self) -> bytes:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        fields = {
            "lockCreateTime": now.isoformat(" ", "milliseconds").removesuffix("+00:00"),
            "lockStacksInfo": [],
            "lockThreadName": f"{this_process()}, {self._ids.uuid()}",
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    def _is_ours(self) -> bool:
        try:
            return bool(self._content) and _read(self._path) == self._content
        except OSError:
            return False

    def _touch(self) -> bool:
        is_ours = self._is_ours()
        if is_ours:
            os.utime(self._path)  # the time of the file system, as of a new file
        return is_ours

    def _seems_expired(self, status: os.stat_result) -> bool:
        age = self._clock.now_ms() / 1000 - status.st_mtime
        return self._expire_seconds > 0 and age > self._expire_seconds

    def _is_expired(self, status: os.stat_result) -> bool:
        """Return whether a file has expired by the clock of its file system, which a new file shows."""
        if not self._seems_expired(status):
            return False
        new = f"{self._path}.{self._ids.uuid()}"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            return os.fstat(descriptor).st_mtime - status.st_mtime > self._expire_seconds
        finally:
            os.close(descriptor)
            os.unlink(new)

    def _drop_expired(self) -> None:
        """Delete an expired file; of two processes that see it neither deletes the other's new one."""
        aside = f"{self._path}.{self._ids.uuid()}"
        with suppress(FileNotFoundError):
            expired = os.stat(self._path)
            if not self._is_expired(expired):
                return
            os.rename(self._path, aside)
            if not self._is_expired(os.stat(aside)):
                with suppress(FileExistsError):
                    os.link(aside, self._path)
            os.unlink(aside)


def hudi_file_lock(storage: Storage, clock: Clock, ids: Ids, settings: LockSettings) -> HudiFileLock:
    """Return the lock in the table's folder, or in the one that the options name.

    Raises:
        InvalidError: the folder is in an object store, which cannot create files atomically as Hudi needs it.
    """
    folder = settings.folder.removeprefix("file://") or storage.local_path(_FOLDER)
    if folder is None or "://" in folder:
        raise InvalidError(
            f"{LOCK_PROVIDER}={settings.provider} needs a local folder, but {settings.folder or 'the table'}"
            " is in an object store. Use the provider storage.",
            table=storage.spec.uri,
        )
    return HudiFileLock(f"{folder}/{FILE_NAME}", clock, ids, settings.expire_minutes)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(10_000)
