"""Options of ingestions that are misspelled are errors; real ones without effect are told once."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.cli import app


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("hoodie.streamer.source.dfs.rot", "hoodie.streamer.source.dfs.root"),
        ("hoodie.deltastreamer.source.dfs.rooot", "hoodie.deltastreamer.source.dfs.root"),
        ("hoodie.streamer.csv.hedaer", "hoodie.streamer.csv.header"),
        ("hoodie.streamer.ingestion.tablesToBeIngestd", "hoodie.streamer.ingestion.tablestobeingested"),
        ("hoodie.errortable.enabled", "hoodie.errortable.enable"),
        ("drawstring.ingest.files.min_age", "drawstring.ingest.files.min_age_ms"),
    ],
)
def test_misspelled_options_are_errors_that_name_the_meant_one(
    tmp_path: Path, given: str, meant: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        drawstring.ingest(tmp_path / "t", "json", options={given: "1"})
    assert given in str(caught.value)
    assert meant in str(caught.value) or given.startswith("drawstring.")


def test_real_options_without_effect_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    names = [
        "hoodie.streamer.schemaprovider.registry.baseUrl",
        "hoodie.streamer.source.dfs.datepartitioned.selector.depth",
    ]
    options = [f"--option={name}=1" for name in names]
    root = f"--option=hoodie.streamer.source.dfs.root={tmp_path / 'in'}"
    assert app.run(["ingest", str(tmp_path / "t"), "--source", "json", root, *options]) == 0
    told = [each.getMessage() for each in caplog.records if "no effect" in each.getMessage()]
    assert len(told) == 1
    assert all(name in told[0] for name in names)
    assert "nothing new" in capsys.readouterr().out
