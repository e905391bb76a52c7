"""How many buckets a partition has, where the partition path tells it (RFC-89).

    .hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config     JSON

    expressions           pattern,count;pattern,count    the first pattern found in the path counts
    defaultBucketNumber   of partitions that no pattern is found in

Every file holds from its instant on; the first one has the instant of zeros.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BUCKETS_MAX
from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnsupportedError
from drawstring.base.java_patterns import found_in, linear_pattern
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.storage.protocol import Storage

FOLDER: Final = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_ENDING: Final = ".hashing_config"
_FIRST: Final = "00000000000000"
_RULE: Final = "regex"
_VERSION: Final = 1
_RULES_MAX: Final = 1_000

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Numbers of buckets by partition path.

    Attributes:
        default: of partitions that no rule is for.
        expressions: the rules as texts, empty for none.
    """

    default: int
    expressions: str = ""

    @property
    def most(self) -> int:
        """The largest number that a partition can have."""
        return max([self.default, *(count for _, count in _rules(self.expressions))])

    def of(self, partition: str) -> int:
        """Return the number of buckets of a partition."""
        return (
            int(self._of_paths(pa.array([partition], pa.string()))[0]) if self.expressions else self.default
        )

    def of_each(self, partitions: pa.Array) -> Numbers | int:
        """Return the numbers of buckets of rows' partitions, one number where all have the same."""
        if not self.expressions:
            return self.default
        encoded = pc.dictionary_encode(partitions)
        counts = self._of_paths(encoded.dictionary)
        return np.asarray(counts[encoded.indices.to_numpy(zero_copy_only=False)])

    def check(self) -> BucketCounts:
        """Return the counts, having made sure that they and the rules make sense.

        Raises:
            InvalidError: they do not.
            UnsupportedError: a pattern needs what RE2 lacks, or there are too many buckets.
        """
        try:
            rules = _rules(self.expressions)
        except ValueError as error:
            raise InvalidError(
                f"{EXPRESSIONS} is {self.expressions[:100]!r}: give pattern,count;pattern,count ({error})"
            ) from error
        if max([self.default, *(count for _, count in rules)]) > BUCKETS_MAX:
            raise UnsupportedError(f"A partition with more than {BUCKETS_MAX} buckets cannot be read.")
        return self

    def _of_paths(self, paths: pa.Array) -> Numbers:
        counts = np.full(len(paths), self.default, np.int64)
        for pattern, count in reversed(_rules(self.expressions)):
            counts[found_in(pattern, paths).to_numpy(zero_copy_only=False)] = count
        return counts


@lru_cache(maxsize=16)
def _rules(expressions: str) -> tuple[tuple[str, int], ...]:
    """Return patterns and counts, the first that is found counts.

    Raises:
        UnsupportedError: a pattern needs what RE2 lacks.
        ValueError: the rules make no sense.
    """
    rules = []
    texts = list(filter(None, expressions.split(";")))
    if len(texts) > _RULES_MAX:
        raise ValueError(f"there are {len(texts)} rules, {_RULES_MAX} can be read")
    for text in texts:
        pattern, comma, count = (part.strip() for part in text.partition(","))
        if not (comma and pattern and count.isdecimal() and int(count)):
            raise ValueError(f"{text!r} is no pattern and count")
        rules.append((_linear(pattern), int(count)))
    return tuple(rules)


def _linear(pattern: str) -> str:
    try:
        return linear_pattern(pattern)
    except InvalidError as error:
        raise ValueError(f"{pattern!r}: {error.message}") from error
    except UnsupportedError as error:
        raise UnsupportedError(
            f"The rule {pattern!r} of the table's buckets cannot be read. {error.message}"
        ) from error


def encode_counts(counts: BucketCounts) -> tuple[str, bytes]:
    """Return path and content of the file that says the counts of a new table."""
    content = {
        "expressions": counts.expressions,
        "defaultBucketNumber": counts.default,
        "rule": _RULE,
        "version": _VERSION,
        "instant": _FIRST,
    }
    return f"{FOLDER}/{_FIRST}{_ENDING}", json.dumps(content, indent=2).encode()


def stored_counts(
    storage: Storage, counts_at: Callable[[str], bool], otherwise: BucketCounts | None = None
) -> BucketCounts | None:
    """Return the counts that a table says.

    Args:
        storage: the table's files.
        counts_at: tells whether what an instant did counts: one may be pending, or too late.
        otherwise: what to return for a table that says none; None when it says some, all of which do not
            count.

    Raises:
        CorruptTableError: the file is damaged.
        UnsupportedError: rules of another kind, or patterns that need what RE2 lacks.
    """
    names = [status.name for status in storage.list_files(FOLDER) if status.name.endswith(_ENDING)]
    times = [time for name in names if counts_at(time := name.removesuffix(_ENDING))]
    if not times:
        return None if names else otherwise
    path = f"{FOLDER}/{max(times)}{_ENDING}"
    try:
        return _decoded(storage.read(path))
    except UnsupportedError as error:
        raise error.at(path=path) from error.__cause__
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError, InvalidError) as error:
        raise CorruptTableError(
            f"the bucket counts of the table are damaged ({error}); to repair the file, {REPAIR}", path=path
        ) from error


def _decoded(data: bytes) -> BucketCounts:
    content = json.loads(data)
    rule = content.get("rule", _RULE)
    if rule.lower() != _RULE:
        raise UnsupportedError(f"bucket counts by {rule} rules cannot be read: {_RULE} ones can")
    return BucketCounts(int(content["defaultBucketNumber"]), content["expressions"] or "").check()
