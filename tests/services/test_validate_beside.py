"""Validation of a table that others clean and archive meanwhile."""

from __future__ import annotations

import pytest

from drawstring.model.result import Severity
from drawstring.storage.protocol import Storage
from tests.support.concurrent_changes import Race, races
from tests.support.concurrent_writers import ALL, changed_table, table_on
from tests.support.tables import COW, MOR


@pytest.mark.parametrize(("table_type", "version"), [(COW, 6), (MOR, 9)])
def test_what_is_cleaned_during_a_validation_is_no_damage(table_type: str, version: int) -> None:
    def read(storage: Storage, race: Race) -> None:
        findings = table_on(storage).services.validate().findings
        assert [each for each in findings if each.severity is Severity.ERROR] == [], race

    assert list(races(changed_table(table_type, version), ALL, read, 4))
