"""Key summaries in the footers of base files."""

from __future__ import annotations

import pyarrow as pa

from drawstring.formats.bloom_footer import KeySummary


def footer_of(*parts: pa.Array) -> dict[str, str]:
    """Return the footer entries that sum up keys, which come in parts."""
    summary = KeySummary()
    for part in parts:
        summary.add(part)
    return summary.footer()
