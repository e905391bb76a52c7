"""Real Hudi and drawstring read tables with a random history, at every instant, and agree.

`HISTORIES` says how many (`make interop HISTORIES=50`), `FIRST_HISTORY` which seed comes first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.model.instant import Instant, time_of
from tests.interop.random_histories import Draw
from tests.support.golden_rows import in_order, rows_of
from tests.support.referee import Referee, RefereeError

FIRST = int(os.environ.get("FIRST_HISTORY", "1"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("HISTORIES", "3")))

QUERY = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
CLEANED = "were cleaned away"

Read = Callable[[], pa.Table]


@pytest.mark.parametrize("seed", SEEDS)
def test_both_read_the_same_at_every_instant(referee: Referee, tmp_path: Path, seed: int) -> None:
    history = Draw(referee, tmp_path / "rides", seed)
    history.run()
    print(*history.story, sep="\n")
    table = drawstring.open(tmp_path / "rides")
    verdicts = [agree(*each) for each in questions(referee, table, str(tmp_path / "rides"))]
    differences = [each for each in verdicts if isinstance(each, str)]
    assert not differences, "\n".join(differences)
    assert verdicts.count(True) >= 3, "real Hudi refused nearly everything: the history shows nothing"


def questions(referee: Referee, table: drawstring.Table, path: str) -> list[tuple[str, Read, Read]]:
    """Return what both are asked: a name, and a way to ask each."""
    asked: list[tuple[str, Read, Read]] = [
        ("snapshot", lambda: referee.read(path), lambda: table.scan().to_arrow())
    ]
    if table.config.is_merge_on_read:
        asked.append(
            (
                "read optimised",
                lambda: referee.read(path, {QUERY: "read_optimized"}),
                lambda: table.scan(read_optimized=True).to_arrow(),
            )
        )
    for instant in table.timeline.writes():
        asked += [_time_travel(referee, table, path, instant), _incremental(referee, table, path, instant)]
    return asked


def _time_travel(
    referee: Referee, table: drawstring.Table, path: str, instant: Instant
) -> tuple[str, Read, Read]:
    time = instant.requested
    return (
        f"as of {time}",
        lambda: referee.read(path, {"as.of.instant": time}),
        lambda: table.scan(as_of=time).to_arrow(),
    )


def _incremental(
    referee: Referee, table: drawstring.Table, path: str, instant: Instant
) -> tuple[str, Read, Read]:
    time = time_of(instant)
    return (
        f"changes after {time}",
        lambda: referee.read(path, {QUERY: "incremental", BEGIN: time}),
        lambda: table.incremental(time).to_arrow(),
    )


def agree(what: str, theirs: Read, ours: Read) -> bool | str:
    """Compare the two answers.

    Returns:
        True when they are equal, else what differs; False when real Hudi has no answer, or the
        files of the time are gone.
    """
    try:
        expected = in_order(rows_of(theirs()))
    except RefereeError as error:
        print(f"{what}: real Hudi fails: {str(error)[:200]}")
        return False
    try:
        found = in_order(rows_of(ours()))
    except InvalidError as error:
        print(f"{what}: {error}")
        return False if CLEANED in str(error) else f"{what}: {error}"
    except DrawstringError as error:
        return f"{what}: {error}"
    if found == expected:
        return True
    only_ours = [each for each in found if each not in expected]
    only_theirs = [each for each in expected if each not in found]
    return (
        f"{what}: {len(found)} rows, real Hudi has {len(expected)};"
        f" {len(only_ours)} only here, {only_ours[:1]}; {len(only_theirs)} only there, {only_theirs[:1]}"
    )
