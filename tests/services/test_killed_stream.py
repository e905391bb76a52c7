"""A stream without Spark that is killed at any moment: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from tests.support.processes import ROOT

KILLS = int(os.environ.get("STREAM_KILLS", "100"))
INSERT = {"hoodie.datasource.write.operation": "insert"}
PROGRAM = """
import sys
import pyarrow as pa
import drawstring

def numbers(position):
    first = int(position or 0)
    while True:
        yield pa.table({"id": [first, first + 1, first + 2], "ts": [1] * 3}), str(first + 3)
        first += 3

options = {"hoodie.datasource.write.operation": "insert", "hoodie.compact.inline.max.delta.commits": "3"}
drawstring.open(sys.argv[1]).stream("numbers", options=options).run(numbers)
"""


@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.long)])
def test_a_stream_that_is_killed_again_and_again(tmp_path: Path, kills: int) -> None:
    drawn = random.Random(int(os.environ.get("STREAM_SEED", "7")))
    schema = pa.schema({"id": pa.int64(), "ts": pa.int64()})
    table = drawstring.create(tmp_path / "t", schema, table_type="MERGE_ON_READ", record_key="id")
    for _ in range(kills):
        before = table.stream("numbers", options=INSERT).position
        with subprocess.Popen([sys.executable, "-c", PROGRAM, table.uri], cwd=ROOT) as process:
            while process.poll() is None and table.stream("numbers").position == before:
                time.sleep(0.2)
            time.sleep(drawn.uniform(0, 0.7))
            assert process.poll() is None
            process.kill()
    stream = table.stream("numbers", options=INSERT)
    end = int(stream.position or 0)
    assert end > 3 * kills
    stream.write(pa.table({"id": [end], "ts": [1]}), str(end + 1))
    found = sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert found == list(range(end + 1))
    assert not table.services.validate().findings
