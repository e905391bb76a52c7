"""Lifecycle of the stored index files of a table, for code that does not know its index.

Partition drops, rollbacks and restores get no index, and many tables do not declare theirs, so the stored
files decide.
"""

from __future__ import annotations

from typing import Final

from drawstring.index.consistent.rings import RingLifecycle
from drawstring.index.lifecycle import IndexLifecycle

STORED_INDEX: Final[IndexLifecycle] = RingLifecycle()
"""Hashing metadata is the only kind of index files; without any, the hooks do nothing."""
