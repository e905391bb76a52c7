"""The engines that indexes are checked on."""

from tests.engine.conftest import started

__all__ = ["started"]
