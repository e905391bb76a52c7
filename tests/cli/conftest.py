from __future__ import annotations

from typing import Any

import pytest

from drawstring.cli import app


@pytest.fixture
def text(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command that must succeed and return what it prints."""

    def run(*arguments: str) -> str:
        assert app.run(list(arguments)) == 0
        return capsys.readouterr().out

    return run
