"""The options that Apache Hudi 1.2 has: facts from its classes, as `scripts/hudi_options.py` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class HudiOption:
    """An option of Hudi.

    Attributes:
        owner: simple name of the class that defines it.
        key: the key, in lower case.
        default: text of its default, None if it has none.
        alternatives: alternative keys, in lower case.
    """

    owner: str
    key: str
    default: str | None
    alternatives: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The key and its alternatives."""
        return (self.key, *self.alternatives)


@cache
def hudi_options() -> tuple[HudiOption, ...]:
    """Return the options of Hudi, by class and key."""
    text = resources.files(__package__).joinpath("hudi_options.tsv").read_text(encoding="utf-8")
    return tuple(_option(line) for line in text.splitlines())


def _option(line: str) -> HudiOption:
    owner, key, default, others = [*line.split("\t"), "", ""][:4]
    alternatives = tuple(each.lower() for each in others.split(",") if each)
    return HudiOption(owner, key.lower(), default[1:] if default else None, alternatives)
