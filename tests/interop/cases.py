"""The kinds of table that are compared with real Hudi; the short runs take every second one or so."""

from __future__ import annotations

import pytest

from tests.histories import CASES, Case

SHORT = {
    "v6-mor-avro-event-time",
    "v8-mor-parquet-event-time",
    "v9-cow-event-time",
    "v9-mor-parquet-event-time",
    "v9-mor-parquet-commit-time",
}


def _parameter(case: Case) -> object:
    marks = [] if str(case) in SHORT else [pytest.mark.long]
    return pytest.param(case, id=str(case), marks=marks)


all_cases = pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
merge_on_read_cases = pytest.mark.parametrize("case", [_parameter(case) for case in CASES if case.is_mor])
