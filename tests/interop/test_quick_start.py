"""A script with the operations of Hudi's quick start comes to the same on Hudi's bundle and on drawstring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import jdk
from tests.support.referee import NEWEST_JDK, PYTHON, ROOT, bundle

HERE = Path(__file__).parent
Answers = list[tuple[str, Any]]


def answers(python: str, set_up: str, folder: Path, **environment: str) -> Answers:
    """Run the script with the session that a folder sets up."""
    found = folder / "answers.json"
    path = os.pathsep.join([str(HERE / set_up), str(ROOT / "src")])
    home = jdk.find(newest=NEWEST_JDK)
    if home is None:
        pytest.skip(jdk.advice(newest=NEWEST_JDK))
    done = subprocess.run(
        [python, str(HERE / "quick_start.py"), str(folder), str(found)],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "PYSPARK_PYTHON": python,
            "JAVA_HOME": home,
            "TZ": "UTC",
            **environment,
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return [tuple(each) for each in json.loads(found.read_text())]


@pytest.mark.long
def test_the_quick_start_comes_to_the_same(tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("no .venv-referee: run `make interop`, which makes it")
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    theirs = answers(str(PYTHON), "set_up_hudi", tmp_path / "theirs", HUDI_BUNDLE_JAR=bundle())
    ours = answers(sys.executable, "set_up_drawstring", tmp_path / "ours")
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    for (name, found), (_, expected) in zip(ours, theirs, strict=True):
        assert found == expected, name
