"""Keyword arguments of the Python interface, and the options of Hudi's that they stand for.

The command line has a flag of the same name for each (`retain_commits` is `--retain-commits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Given, text_of
from drawstring.config.options.registry import OPTION_OF_KEY, check_is_given
from drawstring.model.plans import CleanPolicy


@dataclass(frozen=True, slots=True)
class Keyword:
    """What a keyword argument says in options.

    Attributes:
        key: the option that has its value.
        implied: further options that go with it, with their values.
    """

    key: str
    implied: Mapping[str, str] = field(default_factory=dict)


_CLUSTERING: Final = "hoodie.clustering.plan.strategy."
_TTL: Final = "hoodie.partition.ttl.strategy."
_NULLS: Final = Keyword("hoodie.write.set.null.for.missing.columns")
_COMPACTION: Final[Mapping[str, Keyword]] = {
    "strategy": Keyword("hoodie.compaction.strategy"),
    "hybrid": Keyword("drawstring.compaction.hybrid"),
}


def _retain(key: str, policy: CleanPolicy) -> Keyword:
    return Keyword(key, {"hoodie.clean.policy": policy.value})


KEYWORDS: Final[Mapping[str, Mapping[str, Keyword]]] = MappingProxyType(
    {
        "create": {
            "index": Keyword("hoodie.index.type"),
            "bucket_count": Keyword("hoodie.bucket.index.num.buckets"),
            "merge_mode": Keyword("hoodie.record.merge.mode"),
            "hive_style": Keyword("hoodie.datasource.write.hive_style_partitioning"),
            "cdc": Keyword("hoodie.table.cdc.enabled"),
        },
        "insert": {
            "duplicates": Keyword("hoodie.datasource.insert.dup.policy"),
            "null_for_missing": _NULLS,
        },
        "upsert": {
            "partial_update": Keyword("drawstring.write.partial_update"),
            "null_for_missing": _NULLS,
        },
        "bulk_insert": {
            "sort_by": Keyword("hoodie.bulkinsert.user.defined.partitioner.sort.columns"),
            "null_for_missing": _NULLS,
        },
        "append": {
            "merge_small_files": Keyword("drawstring.append.merge"),
            "null_for_missing": _NULLS,
        },
        "stream": {"operation": Keyword("hoodie.datasource.write.operation")},
        "insert_overwrite": {"null_for_missing": _NULLS},
        "insert_overwrite_table": {"null_for_missing": _NULLS},
        "compact": _COMPACTION,
        "log_compact": {"min_blocks": Keyword("hoodie.log.compaction.blocks.threshold")},
        "compact_base_files": {
            "small_file_bytes": Keyword("hoodie.parquet.small.file.limit"),
            "target_file_bytes": Keyword("hoodie.parquet.max.file.size"),
        },
        "cluster": {
            "sort_by": Keyword(f"{_CLUSTERING}sort.columns"),
            "layout": Keyword("hoodie.layout.optimize.strategy"),
            "partitions": Keyword(f"{_CLUSTERING}partition.selected"),
            "small_file_bytes": Keyword(f"{_CLUSTERING}small.file.limit"),
            "target_file_bytes": Keyword(f"{_CLUSTERING}target.file.max.bytes"),
        },
        "clean": {
            "retain_commits": _retain("hoodie.clean.commits.retained", CleanPolicy.COMMITS),
            "retain_versions": _retain("hoodie.clean.fileversions.retained", CleanPolicy.VERSIONS),
            "retain_hours": _retain("hoodie.clean.hours.retained", CleanPolicy.HOURS),
        },
        "expire_partitions": {
            "retain_days": Keyword(f"{_TTL}days.retain"),
            "partitions": Keyword(f"{_TTL}partition.selected"),
        },
        "archive": {
            "min_commits": Keyword("hoodie.keep.min.commits"),
            "max_commits": Keyword("hoodie.keep.max.commits"),
        },
    }
)
"""By verb, its keywords."""


def with_keywords(
    verb: str, options: Given | None, said: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return the options of a call, with what its keywords say among them.

    Args:
        verb: the method that was called, as in `KEYWORDS`.
        options: options by Hudi's keys, as the user gave them.
        said: values by keyword; None for those that were not given.

    Raises:
        InvalidError: the options are no dictionary, or two arguments contradict each other.
    """
    if options is not None:
        check_is_given(options)
    given = dict(options or {})
    sources: dict[str, str] = {name.lower(): name for name in given}
    for name, value in (said or {}).items():
        if value is None:
            continue
        keyword = KEYWORDS[verb][name]
        for key, text in {keyword.key: _plain(value), **keyword.implied}.items():
            _add(given, sources, name, key, text)
    return given


def with_defaults(defaults: Sequence[tuple[str, str]], given: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a call, with those of the open table for what the call does not say.

    Args:
        defaults: keys and values that the table was opened with.
        given: options of the call, under whatever keys.
    """
    said = {OPTION_OF_KEY.get(key.lower(), key.lower()) for key in given}
    return {key: value for key, value in defaults if OPTION_OF_KEY.get(key, key) not in said} | dict(given)


def _add(given: dict[str, object], sources: dict[str, str], name: str, key: str, value: object) -> None:
    """Add what a keyword says to options, unless they say something else already."""
    for spelled in OPTION_OF_KEY[key].keys:
        if spelled in sources:
            other = sources[spelled]
            earlier = given[other] if other in given else given[key]
            if (text_of(earlier) or "").lower() != (text_of(value) or "").lower():
                raise InvalidError(f"{name} and {other} contradict each other. Leave one of them out.")
            return
    given[key] = value
    sources[key] = name


def _plain(value: object) -> object:
    """Return a value as options take it: a sequence of columns as a list."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
