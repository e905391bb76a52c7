"""Scripts as users of Hudi write them show the same on Hudi's bundle and on drawstring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts import jdk
from tests.interop.scripts_compared import SHORT, expected, scripts
from tests.support.referee import NEWEST_JDK, PYTHON, ROOT, bundle

HERE = Path(__file__).parent
PARTS = 3
"""Parts of the long run, which several processes share."""

Answers = dict[str, list[tuple[str, Any]]]


def answers(python: str, set_up: str, folder: Path, chosen: Sequence[Path], **environment: str) -> Answers:
    """Run scripts in one session, which a folder sets up, and return what they show."""
    folder.mkdir()
    found = folder / "answers.json"
    home = jdk.find(newest=NEWEST_JDK)
    if home is None:
        pytest.skip(jdk.advice(newest=NEWEST_JDK))
    path = os.pathsep.join([str(HERE / set_up), str(ROOT / "src")])
    own = {"PYTHONPATH": path, "PYSPARK_PYTHON": python, "JAVA_HOME": home, "TZ": "UTC"}
    done = subprocess.run(
        [python, str(HERE / "run_scripts.py"), str(folder), str(found), *map(str, chosen)],
        env={**os.environ, **own, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return {name: [tuple(each) for each in rows] for name, rows in json.loads(found.read_text()).items()}


def check(tmp_path: Path, chosen: Sequence[Path]) -> None:
    """Run scripts on both, and compare what they show at each step."""
    if not PYTHON.exists():
        pytest.skip("no .venv-referee: run `make interop`, which makes it")
    hudi = {"HUDI_BUNDLE_JAR": bundle(), "HUDI_CONF_DIR": str(HERE / "set_up_hudi")}
    theirs = answers(str(PYTHON), "set_up_hudi", tmp_path / "theirs", chosen, **hudi)
    ours = answers(sys.executable, "set_up_drawstring", tmp_path / "ours", chosen)
    failed = {
        script: rows[-1][1]
        for found in (theirs, ours)
        for script, rows in found.items()
        if rows[-1][0] == "failed"
    }
    assert failed == {}
    differing = {}
    for script, rows in ours.items():
        assert [name for name, _ in rows] == [name for name, _ in theirs[script]]
        pairs = zip(rows, theirs[script], strict=True)
        differing |= {(script, name): (found, hudi) for (name, found), (_, hudi) in pairs if found != hudi}
    known = {(script, name) for script, name in expected() if script in ours}
    assert {step: rows for step, rows in differing.items() if step not in known} == {}
    assert known <= differing.keys(), "a difference that is gone is taken out of DIFFERENCES"


def test_some_scripts_show_the_same(tmp_path: Path) -> None:
    check(tmp_path, [each for each in scripts() if each.stem in SHORT])


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_the_other_scripts_show_the_same(tmp_path: Path, part: int) -> None:
    check(tmp_path, [each for each in scripts() if each.stem not in SHORT][part::PARTS])
