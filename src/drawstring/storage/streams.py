"""Python file objects that storages wrap as Arrow files."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

READ_AHEAD_BYTES: Final = 1 << 20


class Upload(Protocol):
    """What takes the bytes of an upload."""

    def write(self, data: Any, /) -> int:
        """Append bytes."""
        ...

    def close(self) -> None:
        """Make the file appear."""
        ...


class WholeFile(io.RawIOBase):
    """Gathers what is written and hands it over when closed.

    Args:
        done: receives all bytes.
    """

    def __init__(self, done: Callable[[bytes], None]) -> None:
        super().__init__()
        self._parts = io.BytesIO()
        self._done = done

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._parts.tell()

    def write(self, data: Any) -> int:
        return self._parts.write(data)

    def close(self) -> None:
        if not self.closed:
            self._done(self._parts.getvalue())
        super().close()


class RangeFile(io.RawIOBase):
    """Reads a remote file by ranges, each request at least `READ_AHEAD_BYTES` long.

    Args:
        fetch: returns the bytes from a start to an end (exclusive).
        size_bytes: of the file.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size_bytes: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size_bytes
        self._at = 0
        self._held_from = 0
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        data = self._take(self._at, self._at + wanted)
        self._at += len(data)
        return data

    def _take(self, start: int, end: int) -> bytes:
        held_end = self._held_from + len(self._held)
        if not (self._held_from <= start and end <= held_end):
            if end - start >= READ_AHEAD_BYTES:
                return self._fetch(start, end)
            self._held_from = start
            self._held = memoryview(self._fetch(start, min(self._size, start + READ_AHEAD_BYTES)))
        return bytes(self._held[start - self._held_from : end - self._held_from])


class UploadFile(io.RawIOBase):
    """Passes what is written to an upload, whose errors get translated.

    Args:
        writer: has `write` and `close`.
        translated: makes the context in which the writer is called.
    """

    def __init__(self, writer: Upload, translated: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._writer = writer
        self._translated = translated
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        # The upload holds on to what it is given, and Arrow uses its buffers again.
        octets = bytes(data)
        with self._translated():
            self._writer.write(octets)
        self._written += len(octets)
        return len(octets)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._translated():
                self._writer.close()
