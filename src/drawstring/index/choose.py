"""Which index a write uses."""

from __future__ import annotations

from drawstring.base.errors import UnsupportedError
from drawstring.index.bucket import BucketIndex
from drawstring.index.protocol import Index
from drawstring.index.simple import SimpleIndex


def choose_index(kind: str, bucket_count: int, hash_fields: tuple[str, ...]) -> Index:
    """Return the index of a kind.

    Args:
        kind: `hoodie.index.type`, SIMPLE or BUCKET.
        bucket_count: buckets in a partition, for BUCKET.
        hash_fields: fields of the key that are hashed, for BUCKET.

    Raises:
        UnsupportedError: a kind that this release does not have.
    """
    if kind == "BUCKET":
        return BucketIndex(bucket_count, hash_fields)
    if kind == "SIMPLE":
        return SimpleIndex()
    raise UnsupportedError(f"index type {kind} is not available yet: use SIMPLE or BUCKET")
