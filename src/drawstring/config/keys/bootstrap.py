"""Options of the bootstrap operation, which turns a folder of Parquet files into a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Kind, Option
from drawstring.model.table_version import VERSION_RULES

BASE_PATH: Final = "hoodie.bootstrap.base.path"
_SELECTORS: Final = "org.apache.hudi.client.bootstrap.selector."
_TRANSLATORS: Final = "org.apache.hudi.client.bootstrap.translator."
_DECODED: Final = "DecodedBootstrapPartitionPathTranslator"
_INDEX_CLASS: Final = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_OLD_INDEX_CLASS: Final = "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex"
_PROVIDER: Final = "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider"


class BootstrapMode(StrEnum):
    """How a folder of the source is bootstrapped."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"

    @property
    def other(self) -> BootstrapMode:
        """The other mode."""
        is_full = self is BootstrapMode.FULL_RECORD
        return BootstrapMode.METADATA_ONLY if is_full else BootstrapMode.FULL_RECORD


_MODES: Final = {
    "MetadataOnlyBootstrapModeSelector": BootstrapMode.METADATA_ONLY,
    "FullRecordBootstrapModeSelector": BootstrapMode.FULL_RECORD,
    "BootstrapRegexModeSelector": None,
}
_REGEX_KEY: Final = "hoodie.bootstrap.mode.selector.regex"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Settings of a bootstrap.

    Attributes:
        source: address of the source folder.
        selector: Hudi's mode selector class.
        regex, regex_mode: for BootstrapRegexModeSelector, the pattern and the mode of the folders that match
            it; the others get the other mode.
        translator: Hudi's class that translates folder names to partition paths; None for the class that
            fits the table's URL-encoding.
    """

    source: str | None
    selector: str
    regex: str
    regex_mode: str
    translator: str | None
    has_index: bool

    def decodes(self, *, url_encode: bool) -> bool:
        """Return whether escaped characters in folder names are decoded in partition paths.

        Args:
            url_encode: whether the table URL-encodes partition paths.
        """
        return not url_encode if self.translator is None else self.translator.endswith(_DECODED)

    def mode_of(self, folder: str) -> BootstrapMode:
        """Return the bootstrap mode of a folder.

        Args:
            folder: path relative to the source's root.

        Raises:
            InvalidError: the pattern is not a regular expression.
        """
        fixed = _MODES[self.selector.rpartition(".")[2]]
        if fixed is not None:
            return fixed
        try:
            matches = re.fullmatch(self.regex, folder)
        except re.error as error:
            raise InvalidError(
                f"{_REGEX_KEY} is {self.regex!r}, which is not a regular expression ({error}). Correct it."
            ) from error
        mode = BootstrapMode(self.regex_mode)
        return mode if matches else mode.other


def _classes(package: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names for prefix in (package, ""))


BOOTSTRAP_OPTIONS: Final[tuple[Option, ...]] = (
    Option(BASE_PATH, "Folder of Parquet files that the bootstrap operation reads.", field="source"),
    Option(
        "hoodie.bootstrap.mode.selector",
        "Hudi's class that selects the bootstrap mode: leave the rows in the source files, copy them into the"
        " table, or decide by folder.",
        default=f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
        choices=_classes(_SELECTORS, _MODES),
        field="selector",
    ),
    Option(
        _REGEX_KEY,
        "With BootstrapRegexModeSelector, the regular expression that the whole path of a folder below the"
        " source has to match.",
        default=".*",
        field="regex",
    ),
    Option(
        f"{_REGEX_KEY}.mode",
        "Bootstrap mode of the folders that match; the others get the other mode.",
        default=BootstrapMode.METADATA_ONLY.value,
        choices=tuple(BootstrapMode),
        field="regex_mode",
    ),
    Option(
        "hoodie.bootstrap.partitionpath.translator.class",
        "Hudi's class that translates folder names to partition paths, unchanged or decoded; by default the"
        " one that fits the table's URL-encoding.",
        choices=_classes(_TRANSLATORS, ("IdentityBootstrapPartitionPathTranslator", _DECODED)),
        field="translator",
    ),
    Option(
        "hoodie.bootstrap.index.enable",
        "Whether there is an index of the source files, without which this release does not bootstrap.",
        kind=Kind.FLAG,
        default=True,
        field="has_index",
    ),
)
"""Options of the bootstrap operation."""

CHECKED_BOOTSTRAP_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.bootstrap.index.class",
        "Hudi's class of that index.",
        only=(_INDEX_CLASS.upper(), _OLD_INDEX_CLASS.upper()),
    ),
    Option("hoodie.bootstrap.index.type", "Type of that index.", only=("HFILE",)),
    Option(
        "hoodie.bootstrap.full.input.provider",
        "Hudi's class that reads the rows to copy into the table.",
        only=(_PROVIDER.upper(),),
    ),
)
"""Options that are accepted with one value only."""


def bootstrap_properties(source: str, version: int, *, has_index: bool = True) -> dict[str, str]:
    """Return the table properties of a bootstrapped table.

    Args:
        source: address of the source's root.
        version: table version.
        has_index: whether base files may refer to source files.
    """
    stored = {BASE_PATH: source, "hoodie.bootstrap.index.enable": str(has_index).lower()}
    if not VERSION_RULES[version].stores_bootstrap_index_type:
        return {**stored, "hoodie.bootstrap.index.class": _INDEX_CLASS}
    return {**stored, "hoodie.bootstrap.index.type": "HFILE"}
