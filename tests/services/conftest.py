"""Fixtures of tests of services."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.storages import count_listings


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often folders are listed, by folder."""
    return count_listings(monkeypatch)
