"""The lifecycle of the index files that a table has, for code that does not know its index.

Drops, rollbacks and restores are told no index, and many tables do not name theirs: what lies in the table
decides.
"""

from __future__ import annotations

from typing import Final

from drawstring.index.consistent.rings import RingLifecycle
from drawstring.index.lifecycle import IndexLifecycle

STORED_INDEX: Final[IndexLifecycle] = RingLifecycle()
"""Hashing metadata is the only kind of files that an index keeps; without any the hooks do nothing."""
