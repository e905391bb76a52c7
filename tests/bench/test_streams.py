"""The suite of streams: it runs without Spark, and tells what micro-batches and a topic took."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import run, streams
from bench.results import Measured, Results
from scripts import kafka_broker


@pytest.mark.long
def test_micro_batches_and_a_topic_are_written_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BATCHES", 3)
    words = ["--suite", "streams", "--peers", "streams", "--rows", "1000", "--work", str(tmp_path)]
    assert run.main(words) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| streams ")]
    filled = [bool(cell.strip()) for cell in row.split("|")[2:-1]]
    has_kafka = kafka_broker.reason_not_to_run() is None
    assert filled == [True] * 4 + [has_kafka] * 4


def test_the_first_micro_batch_stands_apart_and_a_peer_without_kafka_has_no_speed() -> None:
    told = Results(
        {},
        [
            Measured("streams", streams.MICRO, 9.0, 1, [5.0, 1.0, 3.0, 2.0]),
            Measured("streams", "kafka_upsert", 4.0, 1, 6000, 2.5),
            Measured("streams-delta", streams.MICRO, 9.0, 1, [7.0, 2.0, 4.0]),
        ],
    )
    ours, delta = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in streams.table(told).splitlines()[2:]
    )
    assert ours == ["streams", "5.00", "2.00", "3.00", "9.0", "4.0 (2.5 cpu)", "1,500", "", ""]
    assert delta == ["streams-delta", "7.00", "3.00", "4.00", "9.0", "", "", "", ""]
