"""Read and write Apache Hudi tables from Python, with or without Spark.

import drawstring

table = drawstring.open("/lake/flights")
table.upsert(batch)
table.scan(where="month = 7").to_pandas()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drawstring.base.errors import (
        ConflictError,
        CorruptTableError,
        DrawstringError,
        InternalError,
        InvalidError,
        UnavailableError,
        UnsupportedError,
    )
    from drawstring.base.resources import use_allocator
    from drawstring.bootstrapping import bootstrap
    from drawstring.catalogs import TableCatalog, catalog
    from drawstring.config.keys.ingest import register_validator
    from drawstring.config.table_types import register_key_generator, register_merger
    from drawstring.creation import create
    from drawstring.entry import open
    from drawstring.ingestion.ingest import ingest
    from drawstring.ingestion.job import IngestProgress, IngestResult
    from drawstring.model.result import CommitResult, Event
    from drawstring.query.scan import Scan
    from drawstring.services.metrics import MeterListener
    from drawstring.table import Table
    from drawstring.txn.events import add_listener, remove_listener

__version__ = "0.1.0"

__all__ = [
    "CommitResult",
    "ConflictError",
    "CorruptTableError",
    "DrawstringError",
    "Event",
    "IngestProgress",
    "IngestResult",
    "InternalError",
    "InvalidError",
    "MeterListener",
    "Scan",
    "Table",
    "TableCatalog",
    "UnavailableError",
    "UnsupportedError",
    "add_listener",
    "bootstrap",
    "catalog",
    "create",
    "ingest",
    "open",
    "register_key_generator",
    "register_merger",
    "register_validator",
    "remove_listener",
    "use_allocator",
]

_ROOMS = {
    "CommitResult": "model.result",
    "ConflictError": "base.errors",
    "CorruptTableError": "base.errors",
    "DrawstringError": "base.errors",
    "Event": "model.result",
    "IngestProgress": "ingestion.job",
    "IngestResult": "ingestion.job",
    "InternalError": "base.errors",
    "InvalidError": "base.errors",
    "MeterListener": "services.metrics",
    "Scan": "query.scan",
    "Table": "table",
    "TableCatalog": "catalogs",
    "UnavailableError": "base.errors",
    "UnsupportedError": "base.errors",
    "add_listener": "txn.events",
    "bootstrap": "bootstrapping",
    "catalog": "catalogs",
    "create": "creation",
    "ingest": "ingestion.ingest",
    "open": "entry",
    "register_key_generator": "config.table_types",
    "register_merger": "config.table_types",
    "register_validator": "config.keys.ingest",
    "remove_listener": "txn.events",
    "use_allocator": "base.resources",
}


if not TYPE_CHECKING:  # A checker that saw this would take every misspelt name for one of ours.

    def __getattr__(name: str) -> Any:
        """Import what is asked for; a Python worker of Spark, which comes by for its task, asks nothing."""
        if name not in _ROOMS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
