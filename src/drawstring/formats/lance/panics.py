"""Panics of Lance: it has them where a form of an array, or damage of a file, was not thought of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

_PANIC: Final = "PanicException"


@contextmanager
def panics_translated() -> Iterator[None]:
    """Translate panics, which are no subclass of `Exception`, into an error of Arrow.

    Raises:
        pa.ArrowInvalid: Lance panicked.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise pa.ArrowInvalid(str(error)) from error
