"""Text files as they are opened: uncompressed, by their endings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from drawstring.storage.protocol import Storage

_CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[pa.NativeFile]:
    """Open a file to read it once, from its beginning."""
    codec = next((codec for ending, codec in _CODECS.items() if path.endswith(ending)), None)
    with storage.open(path) as file:
        if codec is None:
            yield file
            return
        with pa.CompressedInputStream(file, codec) as plain:
            yield plain
