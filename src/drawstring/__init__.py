"""Read and write Apache Hudi tables from Python, with or without Spark.

import drawstring

table = drawstring.open("/lake/flights")
table.upsert(batch)
table.scan(where="month = 7").to_pandas()
"""

from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    DrawstringError,
    InternalError,
    InvalidError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.bootstrapping import bootstrap
from drawstring.config.key_generators import register_key_generator
from drawstring.config.mergers import register_merger
from drawstring.entry import create, open
from drawstring.model.event import Event
from drawstring.model.result import CommitResult
from drawstring.query.scan import Scan
from drawstring.services.events import add_listener, remove_listener
from drawstring.services.metrics import MeterListener
from drawstring.table import Table

__version__ = "0.1.0"

__all__ = [
    "CommitResult",
    "ConflictError",
    "CorruptTableError",
    "DrawstringError",
    "Event",
    "InternalError",
    "InvalidError",
    "MeterListener",
    "Scan",
    "Table",
    "UnavailableError",
    "UnsupportedError",
    "add_listener",
    "bootstrap",
    "create",
    "open",
    "register_key_generator",
    "register_merger",
    "remove_listener",
]
