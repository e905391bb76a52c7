from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.timeline.timeline import as_instant_time, instant_time, next_time


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("20240131100000123", "20240131100000123"),
        ("20240131100000", "20240131100000"),
        ("2024-01-31", "20240131000000000"),
        ("2024-01-31 10:00:00", "20240131100000999"),
        ("2024-01-31 10:00:00.123", "20240131100000123"),
        ("2024-01-31T10:00:00.123456", "20240131100000123"),
        ("2024-01-31T10:00:00Z", "20240131100000999"),
        ("2024-01-31T10:00:00+02:00", "20240131080000999"),
        ("2024-01-31 10:00", "20240131100000000"),
        ("1706695200", "20240131100000000"),
        (1706695200123, "20240131100000123"),
        (" 2024-01-31 ", "20240131000000000"),
        ("earliest", "000"),
        ("0", "000"),
        ("000", "000"),
        (date(2024, 1, 31), "20240131000000000"),
        (datetime(2024, 1, 31, 10, 0, 0, 5999), "20240131100000005"),
        (datetime(2024, 1, 31, 10, tzinfo=timezone(timedelta(hours=-3))), "20240131130000000"),
    ],
)
def test_times_as_users_write_them(value: str | date | datetime, expected: str) -> None:
    assert as_instant_time(value) == expected


@pytest.mark.parametrize(
    "value", ["", "yesterday", "2024-13-01", "20241301000000", "2024", "20240131100000 ago"]
)
def test_what_is_no_time_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(InvalidError, match="20240131100000000"):
        as_instant_time(value)


def test_times_with_an_offset_go_to_the_zone_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert as_instant_time("2024-01-31T10:00:00Z", "LOCAL") == "20240131190000999"
        assert as_instant_time("2024-01-31 10:00:00", "LOCAL") == "20240131100000999"
        assert as_instant_time(1_706_695_200, "LOCAL") == "20240131190000000"
        assert instant_time(1_706_695_200_123, "LOCAL") == "20240131190000123"
        assert instant_time(1_706_695_200_123, "UTC") == "20240131100000123"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("epoch_ms", [0, 1, 999, 1_700_000_000_001, 4_102_444_799_999])
def test_milliseconds_are_exact(epoch_ms: int) -> None:
    text = instant_time(epoch_ms, "UTC")
    moment = datetime.strptime(text + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
    assert round(moment.timestamp() * 1000) == epoch_ms


@pytest.mark.parametrize(
    ("last", "now", "expected"),
    [
        (None, "20240131100000000", "20240131100000000"),
        ("20240131095959999", "20240131100000000", "20240131100000000"),
        ("20240131100000000", "20240131100000000", "20240131100000001"),
        ("20241231235959999", "20240131100000000", "20250101000000000"),
        ("20240131100000", "20240131095900000", "20240131100001000"),
    ],
)
def test_the_next_time_is_after_the_last_one(last: str | None, now: str, expected: str) -> None:
    assert next_time(last, now) == expected


def test_a_last_time_that_is_no_date_is_reported() -> None:
    with pytest.raises(CorruptTableError, match="99999999999999999"):
        next_time("99999999999999999", "20240131100000000")
