"""Evaluation of Arrow expressions on rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero


def evaluated(rows: pa.Table, expressions: list[pc.Expression], names: list[str]) -> pa.Table:
    """Return the values of expressions on rows, in the rows' order."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(rows))
    project = acero.Declaration("project", acero.ProjectNodeOptions(expressions, names))
    return acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)
