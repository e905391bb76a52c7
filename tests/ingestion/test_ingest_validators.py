"""Pre-commit validators look at the commits of an ingestion, too."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.ingestion.job import IngestResult

_VALIDATORS = "hoodie.precommit.validators"
CHECKS = {
    _VALIDATORS: "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    f"{_VALIDATORS}.single.value.sql.queries": "select count(*) from <TABLE_NAME> where fare < 0#0",
}


def arrive(folder: Path, name: str, second: int, **fares: float) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join(json.dumps({"id": key, "fare": fare}) for key, fare in fares.items()))
    os.utime(path, (second, second))


def ingest(tmp_path: Path, checks: dict[str, str] = CHECKS) -> IngestResult:
    options = {
        "hoodie.streamer.source.dfs.root": str(tmp_path / "in"),
        "hoodie.datasource.write.recordkey.field": "id",
        **checks,
    }
    return drawstring.ingest(tmp_path / "t", "json", options=options)


def test_a_batch_that_a_validator_refuses_leaves_table_and_checkpoint_as_they_were(tmp_path: Path) -> None:
    arrive(tmp_path / "in", "a.json", 1, a=1.0)
    assert ingest(tmp_path).checkpoint == "1000"
    arrive(tmp_path / "in", "b.json", 2, b=-1.0, c=2.0)
    for _ in range(2):
        with pytest.raises(InvalidError, match="SqlQuerySingleResultPreCommitValidator fails"):
            ingest(tmp_path)
    assert drawstring.open(tmp_path / "t").scan("id").to_arrow()["id"].to_pylist() == ["a"]
    arrive(tmp_path / "in", "b.json", 2, b=1.0, c=2.0)
    result = ingest(tmp_path)
    assert (result.rows, result.checkpoint) == (2, "2000"), "the same file is read from the same checkpoint"
    assert sorted(drawstring.open(tmp_path / "t").scan("id").to_arrow()["id"].to_pylist()) == ["a", "b", "c"]
