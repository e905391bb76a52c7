"""How many buckets a partition has, where the partition path tells it (RFC-89).

    .hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config     JSON

    expressions           pattern,count;pattern,count    the first pattern found in the path counts
    defaultBucketNumber   of partitions that no pattern is found in

Every file holds from its instant on; the first one has the instant of zeros.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.index_keys import EXPRESSIONS
from drawstring.storage.protocol import Storage

FOLDER: Final = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_ENDING: Final = ".hashing_config"
_FIRST: Final = "00000000000000"
_RULE: Final = "regex"
_VERSION: Final = 1


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
        return max([self.default, *(count for _, count in self._rules())])

    def of(self, partition: str) -> int:
        """Return the number of buckets of a partition."""
        return next((count for rule, count in self._rules() if rule.search(partition)), self.default)

    def of_each(self, partitions: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]] | int:
        """Return the numbers of buckets of rows' partitions, one number where all have the same."""
        if not self.expressions:
            return self.default
        encoded = pc.dictionary_encode(partitions)
        counts = np.array([self.of(path) for path in encoded.dictionary.to_pylist()], dtype=np.int64)
        return np.asarray(counts[encoded.indices.to_numpy(zero_copy_only=False)])

    def check(self) -> BucketCounts:
        """Return the counts, having made sure that the rules make sense.

        Raises:
            InvalidError: they do not.
        """
        try:
            self._rules()
        except (ValueError, re.error) as error:
            raise InvalidError(
                f"{EXPRESSIONS} is {self.expressions!r}: give pattern,count;pattern,count ({error})"
            ) from error
        return self

    def _rules(self) -> list[tuple[re.Pattern[str], int]]:
        rules = []
        for text in filter(None, self.expressions.split(";")):
            pattern, comma, count = (part.strip() for part in text.partition(","))
            if not (comma and pattern and count.isdecimal() and int(count)):
                raise ValueError(f"{text!r} is no pattern and count")
            rules.append((re.compile(pattern), int(count)))
        return rules


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
        UnsupportedError: rules of another kind.
    """
    names = [status.name for status in storage.list_files(FOLDER) if status.name.endswith(_ENDING)]
    times = [time for name in names if counts_at(time := name.removesuffix(_ENDING))]
    if not times:
        return None if names else otherwise
    path = f"{FOLDER}/{max(times)}{_ENDING}"
    try:
        return _decoded(storage.read(path))
    except (ValueError, LookupError, TypeError, AttributeError, InvalidError) as error:
        raise CorruptTableError(
            f"the bucket counts of the table are damaged ({error}); to repair the file, {REPAIR}", path=path
        ) from error


def _decoded(data: bytes) -> BucketCounts:
    content = json.loads(data)
    rule = content.get("rule", _RULE)
    if rule.lower() != _RULE:
        raise UnsupportedError(f"bucket counts by {rule} rules cannot be read: {_RULE} ones can")
    return BucketCounts(int(content["defaultBucketNumber"]), content["expressions"] or "").check()
