"""Every table that real Hudi wrote is sound: what validate calls an error is none of Hudi's ways."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.model.result import Severity
from tests.support.combinations import others_long
from tests.support.golden import NAMES, golden_storage, of_each_kind


@pytest.mark.parametrize("name", others_long(NAMES, of_each_kind(NAMES)))
def test_a_table_of_real_hudi_is_sound(name: str, tmp_path: Path) -> None:
    storage, _ = golden_storage(name, tmp_path)
    result = drawstring.open(storage.spec.uri).services.validate()
    assert result.is_sound
    warnings = [each.check for each in result.findings if each.severity is not Severity.NOTE]
    # Three have a write that died in a manner of speaking: its completed file was deleted.
    assert warnings == (["timeline"] if name.endswith("_mor_inflight") else [])
