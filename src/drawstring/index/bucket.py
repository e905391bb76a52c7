"""Find the file group of a record by the hash of its key: the simple bucket index.

    bucket = (java.util.List.hashCode(values) & 0x7fffffff) % bucket count
    file id = bucket number, 8 digits, then the tail of a random UUID, then -0; under non-blocking
              concurrency control the tail is zeros, so that all writers begin one file group (RFC-66)

The values are taken from the text of the record key: the whole key, or for `field:value,field:value` the
values of the hash fields (RFC-29; hashes as in Apache Hudi 1.2.0).

Bucket counts that depend on the partition path (RFC-89):

    .hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config     JSON

    expressions           pattern,count;pattern,count    the first pattern found in the path applies
    defaultBucketNumber   count of partitions without a matching pattern

Every file is valid from its instant on; the first one has the instant of zeros.

Compound record keys in one form are hashed straight from their bytes (`hash_compound_columns`):

    bytes   order:7,line:1 order:8,line:2 ...   colons and commas: one search each
    sums    one running sum over a block of keys; the hash of a value is the difference of two places

Keys have one form if each has as many colons and commas as the first one, at the places where the same field
names end. `compound_hashes` hashes other keys, and values that stand for null or an empty text, one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids
from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnsupportedError
from drawstring.base.java_compat import (
    Array,
    Powers,
    blocks,
    found_in,
    hashes_of_parts,
    linear_pattern,
    running_sums,
    string_hash,
    utf8_parts,
)
from drawstring.base.resources import BUCKETS_MAX
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.index.existing_writes import ExistingWrites
from drawstring.index.protocol import HashingIndex, Location
from drawstring.model.files import FileSlice, bucket_of, file_id_of, has_bucket
from drawstring.storage.protocol import Storage, folders_above

NULL, EMPTY = "__null__", "__empty__"

_COLON, _COMMA, _UNDERSCORE = (ord(letter) for letter in ":,_")
_FIRST_NOT_ASCII: Final = 0x80


@dataclass(frozen=True, slots=True)
class _KeyForm:
    """The form of compound keys.

    Attributes:
        names: the fields, each with its colon, in their order.
        hashed: places of those that are hashed.
    """

    names: Sequence[bytes]
    hashed: Sequence[int]


def hash_compound_columns(keys: pa.Array, hash_fields: Sequence[str]) -> Array | None:
    """Return the hash of the list of values that each compound key has in the hash fields.

    Args:
        keys: record keys (string).
        hash_fields: names of fields.

    Returns:
        uint32, one for each key; None if the keys are not alike, or not compound.
    """
    form = _form_of(keys[0].as_py(), hash_fields) if len(keys) and not keys.null_count else None
    if form is None:
        return None
    offsets, data = utf8_parts(keys)
    hashes, tables = np.empty(len(keys), np.uint32), Powers()
    for first, last in blocks(offsets):
        bounds = offsets[first : last + 1] - offsets[first]
        found = _of_block(data[offsets[first] : offsets[last]], bounds, form, tables)
        if found is None:
            return None
        hashes[first:last] = found
    return hashes


def _form_of(key: str, hash_fields: Sequence[str]) -> _KeyForm | None:
    """Return the form of a key; None if it is not compound, or has none of the hash fields."""
    pairs = [pair.partition(":") for pair in key.split(",")]
    hashed = [place for place, (name, _, _) in enumerate(pairs) if name in hash_fields]
    if len(pairs) < 2 or not hashed or not all(colon for _, colon, _ in pairs):
        return None
    return _KeyForm([f"{name}:".encode() for name, _, _ in pairs], hashed)


def _of_block(text: Array, bounds: Array, form: _KeyForm, tables: Powers) -> Array | None:
    """Return the hashes of some keys; None if they are not alike."""
    rows, fields = len(bounds) - 1, len(form.names)
    colons, commas = (np.flatnonzero(text == letter) for letter in (_COLON, _COMMA))
    if len(colons) != rows * fields or len(commas) != rows * (fields - 1) or text.max() >= _FIRST_NOT_ASCII:
        return None
    between = commas.reshape(rows, fields - 1)
    starts = np.column_stack([bounds[:-1], between + 1])
    ends = np.column_stack([between, bounds[1:]])
    values = colons.reshape(rows, fields) + 1
    if not _have_names(text, starts, values, form.names) or (values > ends).any():
        return None
    sums = running_sums(text, tables)
    total = np.ones(rows, np.uint32)
    for place in form.hashed:
        first, last = values[:, place], ends[:, place]
        if _may_be_special(text, first, last):
            return None
        total *= np.uint32(31)
        total += hashes_of_parts(sums, first, last, tables)
    return total


def _have_names(text: Array, starts: Array, values: Array, names: Sequence[bytes]) -> bool:
    """Return whether each field of each key begins with its name and a colon."""
    for place, name in enumerate(names):
        if (values[:, place] - starts[:, place] != len(name)).any():
            return False
        texts = np.ndarray(len(text) - len(name) + 1, f"S{len(name)}", text, 0, (1,))
        if (texts[starts[:, place]] != name).any():
            return False
    return True


def _may_be_special(text: Array, starts: Array, ends: Array) -> bool:
    """Return whether a value may stand for null or an empty text."""
    lengths = ends - starts
    places = starts[(lengths == len(NULL)) | (lengths == len(EMPTY))]
    return bool((text[places] == _UNDERSCORE).any())


FOLDER: Final = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_ARCHIVE: Final = ".hoodie/.bucket_index/partition_bucket_index_meta/archive"
"""Where Apache Hudi moves counts that are older than the active timeline."""

_ENDING: Final = ".hashing_config"
_FIRST: Final = "00000000000000"
_RULE: Final = "regex"
_VERSION: Final = 1
_RULES_MAX: Final = 1_000
_FIXED_TAIL: Final = "-0000-0000-0000-000000000000"

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Bucket counts by partition path.

    Attributes:
        default: count of partitions without a matching rule.
        expressions: text of the rules, empty for none.
    """

    default: int
    expressions: str = ""

    @property
    def most(self) -> int:
        """The largest count of any partition."""
        return max([self.default, *(count for _, count in _rules(self.expressions))])

    def of(self, partition: str) -> int:
        """Return the number of buckets of a partition."""
        return (
            int(self._of_paths(pa.array([partition], pa.string()))[0]) if self.expressions else self.default
        )

    def of_each(self, partitions: pa.Array) -> Numbers | int:
        """Return the bucket count for the partition of each row; a single number if all are equal."""
        if not self.expressions:
            return self.default
        encoded = pc.dictionary_encode(partitions)
        counts = self._of_paths(encoded.dictionary)
        return np.asarray(counts[encoded.indices.to_numpy(zero_copy_only=False)])

    def check(self) -> BucketCounts:
        """Validate the counts and the rules, and return them.

        Raises:
            InvalidError: they are invalid.
            UnsupportedError: a pattern needs a feature that RE2 lacks, or there are too many buckets.
        """
        try:
            rules = _rules(self.expressions)
        except ValueError as error:
            raise InvalidError(
                f"{EXPRESSIONS} is {self.expressions[:100]!r}, which is invalid: {error}."
                " Set it to pattern,count;pattern,count."
            ) from error
        if max([self.default, *(count for _, count in rules)]) > BUCKETS_MAX:
            raise UnsupportedError(
                f"A partition has more than {BUCKETS_MAX} buckets, which this release cannot read."
                " Lower its bucket count."
            )
        return self

    def _of_paths(self, paths: pa.Array) -> Numbers:
        counts = np.full(len(paths), self.default, np.int64)
        for pattern, count in reversed(_rules(self.expressions)):
            counts[found_in(pattern, paths).to_numpy(zero_copy_only=False)] = count
        return counts


@lru_cache(maxsize=16)
def _rules(expressions: str) -> tuple[tuple[str, int], ...]:
    """Return the rules as patterns and counts; the first matching pattern applies.

    Raises:
        UnsupportedError: a pattern needs a feature that RE2 lacks.
        ValueError: the rules are invalid.
    """
    rules = []
    texts = list(filter(None, expressions.split(";")))
    if len(texts) > _RULES_MAX:
        raise ValueError(f"there are {len(texts)} rules, more than the maximum of {_RULES_MAX}")
    for text in texts:
        pattern, comma, count = (part.strip() for part in text.partition(","))
        if not (comma and pattern and count.isdecimal() and int(count)):
            raise ValueError(f"{text!r} is not pattern,count")
        rules.append((_linear(pattern), int(count)))
    return tuple(rules)


def _linear(pattern: str) -> str:
    try:
        return linear_pattern(pattern)
    except InvalidError as error:
        raise ValueError(f"{pattern!r}: {error.message}") from error
    except UnsupportedError as error:
        raise UnsupportedError(
            f"This release cannot read the bucket rule {pattern!r} of the table. {error.message}"
        ) from error


def encode_counts(counts: BucketCounts, instant: str = _FIRST) -> tuple[str, bytes]:
    """Return path and content of the file with the bucket counts of a table.

    Args:
        counts: the counts.
        instant: from which on they are valid; by default they are those of a new table.
    """
    content = {
        "expressions": counts.expressions,
        "defaultBucketNumber": counts.default,
        "rule": _RULE,
        "version": _VERSION,
        "instant": instant,
    }
    return f"{FOLDER}/{instant}{_ENDING}", json.dumps(content, indent=2).encode()


def save_counts(storage: Storage, counts: BucketCounts, instant: str) -> None:
    """Write the bucket counts of a rescaling, which are valid once that instant completed."""
    path, content = encode_counts(counts, instant)
    storage.put(path, content)
    storage.sync(folders_above([path]))


def remove_counts(storage: Storage, instant: str) -> None:
    """Delete the bucket counts of an instant that is rolled back: the earlier ones are valid again."""
    to_delete = [each.path for each in storage.list_files(FOLDER) if each.name == f"{instant}{_ENDING}"]
    storage.delete(to_delete)
    storage.sync(folders_above(to_delete))


def all_counts(storage: Storage) -> Iterator[tuple[str, BucketCounts]]:
    """Yield the instants and bucket counts that a table stores, the oldest first."""
    for folder in (FOLDER, _ARCHIVE):
        for each in sorted(storage.list_files(folder), key=lambda each: each.name):
            if each.name.endswith(_ENDING):
                yield each.name.removesuffix(_ENDING), _read_counts(storage, each.path)


def stored_counts(
    storage: Storage, counts_at: Callable[[str], bool], otherwise: BucketCounts | None = None
) -> BucketCounts | None:
    """Return the bucket counts that a table stores.

    Args:
        storage: storage of the table.
        counts_at: returns whether the file of an instant is valid: an instant may be pending or too late.
        otherwise: result for a table that stores no counts; the result is None if all stored counts are
            invalid.

    Raises:
        CorruptTableError: the file is damaged.
        UnsupportedError: rules of another kind, or patterns that need what RE2 lacks.
    """
    names = [status.name for status in storage.list_files(FOLDER) if status.name.endswith(_ENDING)]
    times = [time for name in names if counts_at(time := name.removesuffix(_ENDING))]
    if not times:
        return None if names else otherwise
    return _read_counts(storage, f"{FOLDER}/{max(times)}{_ENDING}")


def _read_counts(storage: Storage, path: str) -> BucketCounts:
    """Return the bucket counts in a file; raises as `stored_counts`."""
    try:
        return _decoded(storage.read(path))
    except UnsupportedError as error:
        raise error.at(path=path) from error.__cause__
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError, InvalidError) as error:
        raise CorruptTableError(
            f"The bucket counts of the table are damaged: {error}. To repair the file, {REPAIR}.", path=path
        ) from error


def _decoded(data: bytes) -> BucketCounts:
    content = json.loads(data)
    rule = content.get("rule", _RULE)
    if rule.lower() != _RULE:
        raise UnsupportedError(f"This release cannot read bucket counts by {rule} rules. Use {_RULE} rules.")
    return BucketCounts(int(content["defaultBucketNumber"]), content["expressions"] or "").check()


Combine = Callable[[list[pa.Array]], "np.ndarray[Any, np.dtype[np.int64]]"]


@dataclass(frozen=True, slots=True)
class BucketIndex(HashingIndex):
    """Index that determines the file group by the hash of the record key.

    Attributes:
        bucket_count: buckets per partition; must be the same for all writers of the table.
        hash_fields: the fields of a compound key that are hashed.
        expressions: rules for partitions with other bucket counts.
        has_fixed_ids: whether all writers give the file group of a bucket the same id.
    """

    bucket_count: int
    hash_fields: tuple[str, ...]
    expressions: str = ""
    has_fixed_ids: bool = False

    @property
    def counts(self) -> BucketCounts:
        """The bucket counts by partition."""
        return BucketCounts(self.bucket_count, self.expressions)

    def locations(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return bucket numbers as texts of eight digits."""
        counts = self.counts
        numbers = bucket_numbers(keys, counts.of_each(partitions), self.hash_fields)
        names = pa.array([f"{number:08d}" for number in range(counts.most)])
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names).cast(pa.string())

    def slice_for(self, location: Location, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice whose file id begins with the bucket number.

        Args:
            location: the bucket.
            slices: slices of the partition, sorted by file id; the last one shows whether a bucket number is
                too large.
        """
        if slices:
            self._check(slices[-1])
        return next((each for each in slices if each.file_id[:8] == location.value), None)

    def owns_keys(self, file_slice: FileSlice, keys: pa.Array) -> Array:
        """Return which keys are in the bucket of a slice."""
        numbers = bucket_numbers(keys, self.counts.of(file_slice.partition), self.hash_fields)
        return np.asarray(numbers == bucket_of(file_slice.file_id))

    def check_table(self, table: ExistingWrites) -> None:
        """Compare the buckets of stored keys with their file groups, if the table stores no bucket count.

        Raises:
            InvalidError: the table was written with another index or another number of buckets.
        """
        table.refuse_rings()
        knows_counts = table.config.bucket_count is not None or bool(self.expressions)
        for key, stat in () if knows_counts else table.known_keys():
            numbers = bucket_numbers(pa.array([key]), self.counts.of(stat.partition), self.hash_fields)
            if int(numbers[0]) != bucket_of(stat.file_id):
                _check_has_bucket(stat.file_id, stat.path)
                raise InvalidError(
                    f"Record key {key} hashes to bucket {numbers[0]}, but is in file group {stat.file_id}."
                    " Set hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field as in the"
                    " earlier writes.",
                    path=stat.path,
                )

    def _check(self, file_slice: FileSlice) -> None:
        _check_has_bucket(file_slice.file_id, file_slice.partition)
        bucket = bucket_of(file_slice.file_id)
        count = self.counts.of(file_slice.partition)
        if bucket is None or bucket >= count:
            raise InvalidError(
                f"File group {file_slice.file_id} is not one of {count} buckets, because the table was"
                " written with another index or another hoodie.bucket.index.num.buckets. Use the index"
                " settings of the earlier writes.",
                path=file_slice.partition,
            )

    def shared_file_id(self, location: Location) -> str | None:
        """Return the id that all writers give the file group of a bucket; None if each makes its own."""
        return file_id_of(f"{location.value}{_FIXED_TAIL}") if self.has_fixed_ids else None

    def new_file_id(self, location: Location, ids: Ids) -> str:
        """Return a new file id for a bucket."""
        return file_id_of(f"{location.value}{ids.uuid()[8:]}")


def _check_has_bucket(file_id: str, path: str) -> None:
    if not has_bucket(file_id):
        raise InvalidError(
            f"The table has no buckets: file group {file_id} is in none. Drop the option"
            " hoodie.index.type=BUCKET.",
            path=path,
        )


def bucket_numbers(
    keys: pa.Array, bucket_count: int | Numbers, hash_fields: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the bucket of every record key.

    Args:
        keys: record keys (string).
        bucket_count: buckets per partition, or for the partition of each key.
        hash_fields: hash fields of a compound key.

    Returns:
        int64, one per key, in `[0, bucket_count)`.
    """
    seems_compound = len(keys) > 0 and "," in (keys[0].as_py() or "")
    hashes = hash_compound_columns(keys, hash_fields) if seems_compound else None
    if hashes is None:
        hashes = _hashes(keys, hash_fields)
    return np.asarray((hashes & np.uint32(0x7FFFFFFF)) % bucket_count, np.int64)


def _hashes(keys: pa.Array, hash_fields: Sequence[str]) -> Array:
    """Return the hash of every record key, whatever its form."""
    hashes = string_hash(keys).view(np.uint32) + np.uint32(31)
    rows = np.flatnonzero(is_compound(keys))
    if len(rows):
        hashes[rows] = compound_hashes(keys.take(pa.array(rows)), tuple(hash_fields), _list_hash)
    return hashes


def is_compound(keys: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which keys are parsed into fields and values."""
    if not all(_contains_byte(letter, keys) for letter in ",:"):
        return np.zeros(len(keys), np.bool_)
    compound = pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":"))
    return np.asarray(compound.to_numpy(zero_copy_only=False))


def _contains_byte(letter: str, keys: pa.Array) -> bool:
    """Return whether a key may contain a character, by one scan of all key bytes."""
    offsets, data = utf8_parts(keys)
    return bool((data[offsets[0] : offsets[-1]] == ord(letter)).any())


def compound_hashes(
    keys: pa.Array, fields: tuple[str, ...], combine: Combine
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Hash `field:value,...` keys: by columns if all have the form of the first key, else one by one.

    Args:
        keys: record keys (string), at least one.
        fields: the hash fields.
        combine: hashes the values of the fields.
    """
    order = [pair.partition(":")[0] for pair in keys[0].as_py().split(",")]
    groups = (f"{re.escape(name)}:(?P<f{number}>[^,:]*)" for number, name in enumerate(order))
    parts = pc.extract_regex(keys, f"^{','.join(groups)}$")
    plain = pc.is_valid(parts).to_numpy(zero_copy_only=False)
    hashes = np.zeros(len(keys), dtype=np.int64)
    hashed = [number for number, name in enumerate(order) if name in fields]
    if plain.any() and hashed:
        alike = parts.filter(pa.array(plain))
        hashes[plain] = combine([alike.field(number) for number in hashed])
    else:
        plain = np.zeros(len(keys), dtype=bool)
    for row in np.flatnonzero(~plain):
        hashes[row] = _exact_hash(keys[int(row)].as_py(), fields, combine)
    return hashes


def _list_hash(values: list[pa.Array]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    total = np.ones(len(values[0]), dtype=np.int64)
    for column in values:
        column = pc.if_else(pc.equal(column, EMPTY), "", column)
        hashed = string_hash(column).astype(np.int64)
        hashed[pc.equal(column, NULL).to_numpy(zero_copy_only=False)] = 0
        total = (31 * total + hashed) & 0xFFFFFFFF
    return total


def _exact_hash(key: str, fields: tuple[str, ...], combine: Combine) -> int:
    """Hash one key whose values contain commas or colons: a pair ends at the last `,` before a `:`."""
    pairs = re.split(r",(?=[^,:]*:)", key)
    values = [value for name, _, value in (pair.partition(":") for pair in pairs) if name in fields]
    columns = [pa.array([value], pa.string()) for value in values or [key]]
    return int(combine(columns)[0])
