"""Errors of readers of other formats: damage of a file is an error of the table, with the file's path."""

from __future__ import annotations

import struct
import zlib

import pytest

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.errors import about_file

RAISED = [
    KeyError("x"),
    ValueError("x"),
    EOFError(),
    RuntimeError("x"),
    ZeroDivisionError(),
    struct.error(),
    zlib.error(),
]


@pytest.mark.parametrize("raised", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_reader_of_a_damaged_file_raises_names_the_file(raised: Exception) -> None:
    with (
        pytest.raises(CorruptTableError, match="The Vortex file is damaged") as caught,
        about_file("a/b.vortex", "Vortex"),
    ):
        raise raised
    assert caught.value.path == "a/b.vortex"


def test_a_reader_may_lack_a_feature() -> None:
    with pytest.raises(UnsupportedError, match="Use another engine"), about_file("a/b.vortex", "Vortex"):
        raise NotImplementedError("nested maps")


def test_a_defect_beside_parquet_files_is_none_of_the_table() -> None:
    with pytest.raises(ValueError, match="no damage"), about_file("a/b.parquet"):
        raise ValueError("no damage")
