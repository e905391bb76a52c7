"""Files of lists of files are decoded once in a process, however many copies of a table have them.

What comes out of a file depends on its bytes alone. Tests of deaths and races copy a table over and over, and
for what remembers decoded files each copy is a table of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from drawstring.metadata.reader import DecodedBlock, SliceRows
from drawstring.model.files import LogFile

FILES_MAX = 2000
BYTES_MAX = 16 << 10
"""How many files are remembered, and up to which size."""

OF_THIS_MACHINE = (pa.BufferReader, pa.MemoryMappedFile, pa.OSFile)

Decode = Callable[[], Sequence[Any]]


def decode_once(patched: pytest.MonkeyPatch) -> None:
    """Remember by their content what small files hold that are not in a store; each is opened as before."""
    known: OrderedDict[bytes, Sequence[Any]] = OrderedDict()
    decode_blocks, decode_base = SliceRows._decode_blocks, SliceRows._decode_base

    def decoded(rows: SliceRows, file: pa.NativeFile, decode: Decode) -> Sequence[Any]:
        is_list = rows.decoded is not None and rows.lookup is None
        if not is_list or not isinstance(file, OF_THIS_MACHINE) or file.size() > BYTES_MAX:
            return decode()
        content = file.read()
        if content not in known:
            file.seek(0)
            known[content] = decode()
            if len(known) > FILES_MAX:
                known.popitem(last=False)
        return known[content]

    def blocks(rows: SliceRows, log: LogFile, file: pa.NativeFile) -> Sequence[DecodedBlock]:
        return decoded(rows, file, lambda: decode_blocks(rows, log, file))

    def base(rows: SliceRows, file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        yield from decoded(rows, file, lambda: list(decode_base(rows, file)))

    patched.setattr(SliceRows, "_decode_blocks", blocks)
    patched.setattr(SliceRows, "_decode_base", base)
