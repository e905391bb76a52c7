"""When a job waits, tries again, ends; and what it tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.cli import app
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.source_protocol import Reading, SourceBatch

KEY = {"hoodie.datasource.write.recordkey.field": "id"}


class Over(Exception):
    """The test has seen enough of a continuous job."""


@dataclass
class Counting:
    """A source of a user: whole numbers, of which more are there whenever the job looks."""

    there: list[int]
    fails: list[Exception] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    looks: int = -1
    is_closed: bool = False
    unit: str = "records"

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        self.looks += 1
        if self.fails:
            raise self.fails.pop(0)
        if self.looks >= len(self.there):
            raise Over
        first = int(checkpoint.key) if checkpoint else 0
        stop = min(self.there[self.looks], first + (limit or 1000))
        if stop == first:
            return None
        rows = partial(self._rows, first, stop)
        return SourceBatch(Checkpoint(str(stop)), stop - first, self.there[self.looks] - stop, rows)

    def committed(self, checkpoint: Checkpoint) -> None:
        self.done.append(checkpoint.key)

    def close(self) -> None:
        self.is_closed = True

    @staticmethod
    def _rows(first: int, stop: int, reading: Reading) -> pa.RecordBatchReader:
        return pa.table({"id": list(range(first, stop))}).to_reader()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[str]]:
    """Run a continuous job until its source says that it is over; return the checkpoints."""

    def until_over(source: Counting, **more: Any) -> list[str]:
        with pytest.raises(Over):
            drawstring.ingest(
                tmp_path / "t", source, options=KEY, continuous=True, clock=SteppingClock(), **more
            )
        assert source.is_closed
        return source.done

    return until_over


def test_a_continuous_job_waits_for_more(run: Callable[..., list[str]]) -> None:
    assert run(Counting([2, 2, 2, 5, 5])) == ["2", "5"]


def test_it_waits_until_a_batch_is_large_enough_or_old_enough(run: Callable[..., list[str]]) -> None:
    growing = Counting([1, 2, 5, 6, 6, 6, 6])
    assert run(growing, min_batch=4, max_wait_seconds=20, interval_seconds=10) == ["5", "6"]


def test_what_is_more_than_the_limit_is_not_waited_for(run: Callable[..., list[str]]) -> None:
    assert run(Counting([5, 5, 5, 5]), min_batch=4, source_limit=2, max_wait_seconds=1e9) == ["2", "4"]


def test_an_error_that_may_pass_is_tried_again(run: Callable[..., list[str]]) -> None:
    assert run(Counting([3, 3, 3, 3], fails=[UnavailableError("later"), UnavailableError("later")])) == ["3"]


def test_an_error_that_stays_ends_the_job(tmp_path: Path) -> None:
    source = Counting([3] * 9, fails=[UnavailableError("later")] * 9)
    with pytest.raises(UnavailableError, match="later"):
        drawstring.ingest(tmp_path / "t", source, options=KEY, retries=2, clock=SteppingClock())
    assert len(source.fails) == 6
    source = Counting([3] * 9, fails=[InvalidError("wrong")] * 9)
    with pytest.raises(InvalidError, match="wrong"):
        drawstring.ingest(tmp_path / "t", source, options=KEY)
    assert len(source.fails) == 8, "what the user has to correct is not tried again"


def test_a_job_ends_after_some_batches_and_tells_what_it_did(tmp_path: Path) -> None:
    told: list[drawstring.IngestProgress] = []
    result = drawstring.ingest(
        tmp_path / "t", Counting([9] * 9), options=KEY, source_limit=4, max_batches=2, on_progress=told.append
    )
    assert (result.batches, result.rows, result.checkpoint) == (2, 8, "8")
    assert [(each.batches, each.rows, each.size, each.left) for each in told] == [(1, 4, 4, 5), (2, 8, 4, 1)]
    with pytest.raises(InvalidError, match="max_batches is 0"):
        drawstring.ingest(tmp_path / "t", Counting([1]), options=KEY, max_batches=0)


def test_a_new_table_is_what_the_options_say(tmp_path: Path) -> None:
    options = KEY | {
        "hoodie.table.name": "numbers",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": 8,
    }
    drawstring.ingest(tmp_path / "t", Counting([1, 1]), options=options)
    config = drawstring.open(tmp_path / "t").config
    assert (config.name, config.table_type, config.version) == ("numbers", "MERGE_ON_READ", 8)


def test_the_command_ingests_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "in/a.parquet")
    (tmp_path / "p.properties").write_text(
        f"hoodie.deltastreamer.source.dfs.root={tmp_path / 'in'}\n"
        "hoodie.datasource.write.recordkey.field=id\n"
    )
    source = "org.apache.hudi.utilities.sources.ParquetDFSSource"
    command = ["ingest", str(tmp_path / "t"), "--source", source, "--props", str(tmp_path / "p.properties")]
    assert app.run(command) == 0
    assert capsys.readouterr().out.startswith("ingested 2 rows in 1 batch, ")
    assert app.run(command) == 0
    assert capsys.readouterr().out == "nothing new\n"
    pq.write_table(pa.table({"id": [3]}), tmp_path / "in/b.parquet")
    assert app.run([*command, "--json", "--transformer", "SELECT id + 10 AS id FROM <SRC>"]) == 0
    batch, end = capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")
    assert json.loads(batch)["commit"]["inserts"] == 1
    assert json.loads(end)["rows"] == 1
    assert sorted(drawstring.open(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 13]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--source", "nowhere"], "There is no source 'nowhere'"),
        (["--source", "csv"], "Set hoodie.streamer.source.dfs.root"),
        (["--source", "csv", "--props", "missing"], "There is no file missing"),
        (["--source", "csv", "--option", "hoodie.streamer.csv.header=maybe"], "Give true or false"),
    ],
)
def test_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert app.run(["ingest", str(tmp_path / "t"), *arguments]) == 2
    assert says in capsys.readouterr().err
