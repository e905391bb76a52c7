"""Golden tables in another version: every query gives what real Hudi read from them before."""

from __future__ import annotations

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SystemClock
from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.query.facts import load_facts
from drawstring.storage import open_storage
from tests.golden.cases import ENCODED_IN_INCREMENTAL, NAMES, TABLES, Case, cases_of, expected
from tests.golden.compare import in_order, rows_of

TARGETS = {6: (8, 9), 8: (6, 9), 9: (6, 8)}
OF_COMPACTION = ("_hoodie_file_name",)
"""Compaction writes records to another file."""


def version_of(name: str) -> int:
    return int(name[1])


def unpacked(name: str, to: Path) -> str:
    with zipfile.ZipFile(TABLES / f"{name}.zip") as packed:
        packed.extractall(to)
    return str(to / name)
