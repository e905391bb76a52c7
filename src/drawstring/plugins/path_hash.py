"""The hash by which Hudi's implicit lock providers name the lock of a table: XXH64 of its address."""

from __future__ import annotations

import re

from drawstring.metadata.table import xxh64


def address_hash(uri: str) -> str:
    """Return the hash of a table's address, 16 digits in upper case; s3a:// and s3:// are the same.

    Hudi seeds it as it seeds the keys of the metadata table.

    Args:
        uri: address of the table, written as the other writers write it.
    """
    address = re.sub(r"^s3a://", "s3://", uri, flags=re.IGNORECASE)
    return f"{xxh64(address.encode()):016X}"
