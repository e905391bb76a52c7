"""The kinds of table that are compared with real Hudi; the short runs take every second one or so."""

from __future__ import annotations

import pytest

from tests.support.histories import CASES

SHORT = {
    "v6-mor-avro-event-time",
    "v8-mor-parquet-event-time",
    "v9-cow-event-time",
    "v9-mor-parquet-event-time",
    "v9-mor-parquet-commit-time",
}


WITHOUT_8 = {name for name in SHORT if not name.startswith("v8")}
"""For tests of what is alike in versions 8 and 9: all but the names of properties is."""


def _cases(short: set[str], *, only_mor: bool = False) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=str(case), marks=[] if str(case) in short else [pytest.mark.long])
            for case in CASES
            if case.is_mor or not only_mor
        ],
    )


all_cases = _cases(SHORT)
merge_on_read_cases = _cases(SHORT, only_mor=True)
all_cases_8_long = _cases(WITHOUT_8)
merge_on_read_cases_8_long = _cases(WITHOUT_8, only_mor=True)
