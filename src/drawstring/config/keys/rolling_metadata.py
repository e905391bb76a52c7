"""Options of entries of commits that each commit takes over from earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class RollingMetadata:
    """Which entries a commit takes over.

    Attributes:
        keys: of the entries.
        lookback: newest writes in which they are looked for.
    """

    keys: tuple[str, ...] = ()
    lookback: int = 10


NO_ROLLING: Final = RollingMetadata()

ROLLING_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.write.rolling.metadata.keys",
        "Entries of the metadata of commits that each write and service takes over from earlier ones, unless"
        " it sets them itself: they stay on the timeline when old commits are archived.",
        kind=Kind.LIST,
        default=(),
        field="keys",
    ),
    Option(
        "hoodie.write.rolling.metadata.timeline.lookback.commits",
        "Newest commits in which these are looked for.",
        kind=Kind.NUMBER,
        default=10,
        minimum=0,
        field="lookback",
    ),
)
