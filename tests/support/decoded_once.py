"""Log files of lists of files are decoded once in a process, however many copies of a table have them.

What comes out of a file depends on its bytes alone. Tests of deaths and races copy a table over and over, and
for what remembers decoded files each copy is a table of its own.
"""

from __future__ import annotations

from collections import OrderedDict

import pyarrow as pa
import pytest

from drawstring.metadata.stored.rows import DecodedBlock, SliceRows
from drawstring.model.files import LogFile

FILES_MAX = 2000
BYTES_MAX = 16 << 10
"""How many files are remembered, and of which size."""


def decode_once(patched: pytest.MonkeyPatch) -> None:
    """Remember by their content what small log files in memory hold; each is opened and read as before."""
    decode = SliceRows._decode_blocks
    known: OrderedDict[bytes, list[DecodedBlock]] = OrderedDict()

    def decoded(rows: SliceRows, log: LogFile, file: pa.NativeFile) -> list[DecodedBlock]:
        if not isinstance(file, pa.BufferReader) or file.size() > BYTES_MAX:
            return decode(rows, log, file)
        content = file.read()
        if content not in known:
            file.seek(0)
            known[content] = decode(rows, log, file)
            if len(known) > FILES_MAX:
                known.popitem(last=False)
        return known[content]

    patched.setattr(SliceRows, "_decode_blocks", decoded)
