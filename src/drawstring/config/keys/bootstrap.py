"""Options about making a table of a folder of Parquet files."""

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
    """What becomes of the rows of a folder."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"

    @property
    def other(self) -> BootstrapMode:
        """The other one of the two."""
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
    """What a bootstrap was told.

    Attributes:
        source: address of the folder.
        selector: class of Hudi's that says what becomes of rows.
        regex, regex_mode: with the class that goes by a pattern, the pattern and what becomes of the folders
            that match it; of the others becomes the other thing.
        translator: class of Hudi's that makes partition paths of folders; None for what the table calls for.
    """

    source: str | None
    selector: str
    regex: str
    regex_mode: str
    translator: str | None

    def decodes(self, *, url_encode: bool) -> bool:
        """Tell whether escaped characters in the names of folders are plain in partition paths.

        Args:
            url_encode: whether the table escapes them.
        """
        return not url_encode if self.translator is None else self.translator.endswith(_DECODED)

    def mode_of(self, folder: str) -> BootstrapMode:
        """Return what becomes of the rows of a folder.

        Args:
            folder: relative to the source's root.

        Raises:
            InvalidError: the pattern is none.
        """
        fixed = _MODES[self.selector.rpartition(".")[2]]
        if fixed is not None:
            return fixed
        try:
            matches = re.fullmatch(self.regex, folder)
        except re.error as error:
            raise InvalidError(f"{_REGEX_KEY} is {self.regex!r}, which is no pattern: {error}") from error
        mode = BootstrapMode(self.regex_mode)
        return mode if matches else mode.other


def _classes(package: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names for prefix in (package, ""))


BOOTSTRAP_OPTIONS: Final[tuple[Option, ...]] = (
    Option(BASE_PATH, "Folder of Parquet files that operation bootstrap makes a table of.", field="source"),
    Option(
        "hoodie.bootstrap.mode.selector",
        "Hudi's class that says what operation bootstrap does with rows: leave them where they are, write"
        " them to the table, or one or the other by the folder.",
        default=f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
        choices=_classes(_SELECTORS, _MODES),
        field="selector",
    ),
    Option(
        _REGEX_KEY,
        "With BootstrapRegexModeSelector, a pattern of folders, which has to match all of the path below"
        " the source.",
        default=".*",
        field="regex",
    ),
    Option(
        f"{_REGEX_KEY}.mode",
        "What becomes of the folders that match; of the others becomes the other thing.",
        default=BootstrapMode.METADATA_ONLY.value,
        choices=tuple(BootstrapMode),
        field="regex_mode",
    ),
    Option(
        "hoodie.bootstrap.partitionpath.translator.class",
        "Hudi's class that makes partition paths of folders: their names as they are, or without escapes;"
        " what the table's URL-encoding calls for when not given.",
        choices=_classes(_TRANSLATORS, ("IdentityBootstrapPartitionPathTranslator", _DECODED)),
        field="translator",
    ),
)
"""Options that a bootstrap acts on."""

CHECKED_BOOTSTRAP_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.bootstrap.index.enable",
        "Whether there is an index of the files that rows were left in.",
        kind=Kind.FLAG,
        only=("TRUE",),
    ),
    Option(
        "hoodie.bootstrap.index.class",
        "Hudi's class of that index.",
        only=(_INDEX_CLASS.upper(), _OLD_INDEX_CLASS.upper()),
    ),
    Option("hoodie.bootstrap.index.type", "The same by its name.", only=("HFILE",)),
    Option(
        "hoodie.bootstrap.full.input.provider",
        "Hudi's class that reads rows which are written to the table.",
        only=(_PROVIDER.upper(),),
    ),
)
"""Options that only one value goes with."""


def bootstrap_properties(source: str, version: int) -> dict[str, str]:
    """Return what a bootstrapped table stores about it.

    Args:
        source: address of the source's root.
        version: table version.
    """
    stored = {BASE_PATH: source, "hoodie.bootstrap.index.enable": "true"}
    if not VERSION_RULES[version].stores_bootstrap_index_type:
        return {**stored, "hoodie.bootstrap.index.class": _INDEX_CLASS}
    return {**stored, "hoodie.bootstrap.index.type": "HFILE"}
