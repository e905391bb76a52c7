"""Which allocator Arrow has in a process that opens a table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

pytestmark = pytest.mark.skipif(
    pa.supported_memory_backends()[:2] != ["mimalloc", "jemalloc"],
    reason="pyarrow has other allocators here",
)

OPEN = """
import pyarrow as pa, drawstring
{before}
drawstring.create({folder!r}, pa.schema([("id", pa.int64())]), record_key="id")
{after}
drawstring.open({folder!r})
print(pa.default_memory_pool().backend_name)
"""
MINE = "pa.set_memory_pool(pa.system_memory_pool())"


def allocator(folder: Path, *, before: str = "", after: str = "", environment: str | None = None) -> str:
    """Return what a process of its own allocates with after it opened a table."""
    chosen = {} if environment is None else {"ARROW_DEFAULT_MEMORY_POOL": environment}
    kept = {name: text for name, text in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    program = OPEN.format(folder=str(folder / "table"), before=before, after=after)
    done = subprocess.run(
        [sys.executable, "-c", program], env={**kept, **chosen}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_process_that_opens_a_table_allocates_with_jemalloc(tmp_path: Path) -> None:
    assert allocator(tmp_path) == "jemalloc"


def test_what_the_user_chose_stands(tmp_path: Path) -> None:
    assert allocator(tmp_path, environment="mimalloc") == "mimalloc"
    assert allocator(tmp_path / "before", before=MINE) == "system"
    assert allocator(tmp_path / "after", after=MINE) == "system"
