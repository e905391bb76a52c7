"""Which allocator Arrow has in processes that use drawstring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring

needs_both = pytest.mark.skipif(
    pa.supported_memory_backends()[:2] != ["mimalloc", "jemalloc"],
    reason="pyarrow has other allocators here",
)

USE = """
import pyarrow as pa
found = pa.default_memory_pool().backend_name
import drawstring
table = drawstring.create({folder!r}, pa.schema([("id", pa.int64())]), record_key="id")
table.upsert(pa.table({{"id": range(1000)}}))
drawstring.open({folder!r}).scan().to_arrow()
assert pa.default_memory_pool().backend_name == found
print("unchanged")
"""
CHOOSE = """
import pyarrow as pa, drawstring
{before}
assert drawstring.use_allocator({name!r}) == pa.default_memory_pool().backend_name
{after}
print(pa.default_memory_pool().backend_name)
"""
COMMAND = """
import sys, pyarrow as pa
from drawstring.cli import app
app.run = lambda arguments: print(pa.default_memory_pool().backend_name) or 0
app.main([])
"""
MERGE = """
import pyarrow as pa, drawstring
from drawstring.base.resources import releasing_memory
delays = []
pa.jemalloc_set_decay_ms = delays.append
{choose}
for size_bytes in (1000, 5 << 30):
    with releasing_memory(size_bytes):
        delays.append("merged")
print(delays)
"""
MINE = "pa.set_memory_pool(pa.system_memory_pool())"


def printed(program: str, environment: str | None = None) -> str:
    """Return what a process of its own prints."""
    chosen = {} if environment is None else {"ARROW_DEFAULT_MEMORY_POOL": environment}
    kept = {name: text for name, text in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**kept, **chosen}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def chosen(*, name: str | None = None, before: str = "", after: str = "", environment: str = "") -> str:
    """Return what a process allocates with that called `use_allocator`."""
    return printed(CHOOSE.format(name=name, before=before, after=after), environment or None)


def test_importing_opening_and_writing_leave_the_pool_alone(tmp_path: Path) -> None:
    assert printed(USE.format(folder=str(tmp_path / "table"))) == "unchanged"


@needs_both
def test_a_program_that_asks_for_it_allocates_with_jemalloc() -> None:
    assert chosen() == "jemalloc"
    assert chosen(name="jemalloc", environment="mimalloc") == "jemalloc"
    assert chosen(name="system") == "system"


@needs_both
def test_the_command_line_allocates_with_jemalloc() -> None:
    assert printed(COMMAND) == "jemalloc"
    assert printed(COMMAND, environment="mimalloc") == "mimalloc"


@needs_both
def test_what_the_user_chose_stands() -> None:
    assert chosen(environment="mimalloc") == "mimalloc"
    assert chosen(before=MINE) == "system"
    assert chosen(after=MINE) == "system"


def test_an_allocator_that_is_not_there_is_refused() -> None:
    before = pa.default_memory_pool().backend_name
    with pytest.raises(drawstring.InvalidError, match="no allocator 'tcmalloc'"):
        drawstring.use_allocator("tcmalloc")
    assert pa.default_memory_pool().backend_name == before


@needs_both
@pytest.mark.parametrize(
    ("choose", "expected"),
    [
        ("drawstring.use_allocator()", "[100, 'merged', 0, 'merged', 100]"),
        ("drawstring.use_allocator('jemalloc')", "['merged', 'merged']"),
        ("", "['merged', 'merged']"),
    ],
)
def test_freed_memory_is_returned_at_once_while_large_files_merge_if_drawstring_chose(
    choose: str, expected: str
) -> None:
    assert printed(MERGE.format(choose=choose)) == expected
