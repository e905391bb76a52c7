"""Python file objects that object and memory storages wrap as Arrow files."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from drawstring.base import limits


class Upload(Protocol):
    """The receiver of the bytes of an upload."""

    def write(self, data: Any, /) -> int:
        """Append bytes."""
        ...

    def close(self) -> None:
        """Complete the upload: the file appears."""
        ...


class WholeFile(io.RawIOBase):
    """Buffers all bytes written and hands them over when closed.

    Args:
        done: called with all bytes on close.
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

    def __del__(self) -> None:
        """Drop a file that nobody closed: the one of `io` closes it, whenever garbage is collected."""


class RangeFile(io.RawIOBase):
    """Reads a remote file in ranges of at least `Limits.remote_read_bytes_min`.

    Args:
        fetch: returns the bytes from a start to an end (exclusive).
        size_bytes: size of the file.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size_bytes: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size_bytes
        self._at = 0
        self._buffer_start = 0
        self._buffer = memoryview(b"")

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
        remaining = max(0, self._size - self._at)
        length = remaining if size is None or size < 0 else min(size, remaining)
        if length == 0:
            return b""
        data = self._range(self._at, self._at + length)
        self._at += len(data)
        return data

    def _range(self, start: int, end: int) -> bytes:
        buffer_end = self._buffer_start + len(self._buffer)
        if not (self._buffer_start <= start and end <= buffer_end):
            if end - start >= limits.in_force.remote_read_bytes_min:
                return self._fetch(start, end)
            self._buffer_start = start
            self._buffer = memoryview(
                self._fetch(start, min(self._size, start + limits.in_force.remote_read_bytes_min))
            )
        return bytes(self._buffer[start - self._buffer_start : end - self._buffer_start])


class UploadFile(io.RawIOBase):
    """Forwards all bytes written to an upload and translates its errors.

    Args:
        writer: the upload.
        translated: returns the context manager that translates errors of the writer.
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
        # The upload keeps a reference to its argument, and Arrow reuses its buffers.
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
