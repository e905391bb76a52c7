"""Damaged files end in rows or in an error for people, in bounded time and memory.

`FUZZ_EXAMPLES` and `FUZZ_SEED` say how many are tried and which; `make fuzz` tries many new ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
SEED = os.environ.get("FUZZ_SEED", "1")


@pytest.mark.parametrize(("what", "few"), [("decoders", 1500), ("tables", 60)])
def test_damaged_files_end_in_rows_or_a_clear_error(what: str, few: int, tmp_path: Path) -> None:
    examples = EXAMPLES if what == "decoders" else EXAMPLES // 20
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.worker", what, SEED, str(examples or few), str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )

    last = run.stdout.strip().splitlines()[-2:]
    assert run.returncode == 0, f"{last}: {run.stderr[-4000:]}"
    assert last[-1] == "done"
