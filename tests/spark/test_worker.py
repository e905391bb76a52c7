"""What drawstring's functions do to the Python worker that they run in."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

PROGRAM = """
import pyarrow as pa
from drawstring.spark.workers.tasks import work
with work():
    print(pa.default_memory_pool().backend_name)
"""


def allocator(**environment: str) -> str:
    given = {name: text for name, text in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", PROGRAM]
    env = {**given, "PYTHONPATH": paths, **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif("jemalloc" not in pa.supported_memory_backends(), reason="pyarrow came without jemalloc")
def test_a_task_allocates_with_jemalloc_unless_the_user_says_otherwise() -> None:
    assert allocator() == "jemalloc"
    assert allocator(ARROW_DEFAULT_MEMORY_POOL="system") == "system"
