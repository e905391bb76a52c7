"""Declarative pipelines, whose sessions are those of Spark Connect, write to tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from tests.support.processes import ROOT
from tests.support.spark import JVM

pytestmark = pytest.mark.spark
EXAMPLE = "/tmp/stream/pipeline"


def arrive(folder: Path, name: str, *rows: tuple[str, str, int]) -> None:
    lines = [json.dumps(dict(zip(("id", "city", "ts"), row, strict=True))) for row in rows]
    (folder / "arriving" / name).write_text("\n".join(lines))


def run(folder: Path) -> None:
    """Run the example of `demo/declarative`, with its files in a folder of the test.

    When the flows are done, PySpark 4.3 receives empty profiles of the processes of a Python data source,
    whichever it is, which its client takes for an unknown response.
    """
    program = Path(sys.executable).with_name("spark-pipelines")
    quick = {"JDK_JAVA_OPTIONS": JVM, "SPARK_LAUNCHER_OPTS": JVM}
    env = {**os.environ, **quick, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    words = [str(program), "run", "--spec", str(folder / "pipeline/spark-pipeline.yml")]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert "Flow arriving has COMPLETED" in told, told[-4000:]
    assert done.returncode == 0 or "UNKNOWN_RESPONSE" in told, told[-4000:]


def table(folder: Path) -> list[tuple[str, str]]:
    rows: pa.Table = drawstring.open(folder / "table").scan(columns=["id", "city"]).to_arrow()
    return sorted(zip(rows["id"].to_pylist(), rows["city"].to_pylist(), strict=True))


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_example_upserts_what_arrives_once(tmp_path: Path, again: bool) -> None:
    pytest.importorskip("pyspark.pipelines", reason="pipelines need PySpark 4.1")
    pytest.importorskip("grpc", reason="pipelines need pyspark[pipelines]")
    shutil.copytree(ROOT / "demo/declarative", tmp_path / "pipeline")
    for file in ("spark-pipeline.yml", "transformations/rides.py"):
        path = tmp_path / "pipeline" / file
        path.write_text(path.read_text().replace(EXAMPLE, str(tmp_path)))
    (tmp_path / "arriving").mkdir()
    arrive(tmp_path, "1.json", ("a", "oslo", 1), ("b", "rome", 1))
    run(tmp_path)
    assert table(tmp_path) == [("a", "oslo"), ("b", "rome")]
    if not again:
        return
    arrive(tmp_path, "2.json", ("b", "lima", 2), ("c", "bonn", 2))
    run(tmp_path)
    assert table(tmp_path) == [("a", "oslo"), ("b", "lima"), ("c", "bonn")]
    assert len(drawstring.open(tmp_path / "table").timeline.writes()) == 2, "no file was written twice"
