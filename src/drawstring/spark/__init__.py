"""PySpark API for Hudi tables, without the Hudi bundle jar.

import drawstring.spark

drawstring.spark.register(spark)
df.write.format("hudi").options(**options).mode("append").save("/lake/flights")
spark.read.format("hudi").load("/lake/flights").show()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import pyspark
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise ModuleNotFoundError(
        "drawstring.spark needs PySpark 4.0 to 4.3. Run pip install 'drawstring[spark]'.", name="pyspark"
    ) from None

if int(pyspark.__version__.partition(".")[0]) < 4:
    raise ImportError(
        f"drawstring.spark needs PySpark 4.0 to 4.3, and this is {pyspark.__version__}. Run pip install"
        " 'drawstring[spark]'."
    )

if TYPE_CHECKING:
    from drawstring.spark.data_source import HudiSource
    from drawstring.spark.functions import SparkTable, changes, compact, read, table, write
    from drawstring.spark.session import SparkEngine, register
    from drawstring.spark.sql.tables import table_named

__all__ = [
    "HudiSource",
    "SparkEngine",
    "SparkTable",
    "changes",
    "compact",
    "read",
    "register",
    "table",
    "table_named",
    "write",
]

_MODULES = {
    "HudiSource": "data_source",
    "SparkEngine": "session",
    "SparkTable": "functions",
    "changes": "functions",
    "compact": "functions",
    "read": "functions",
    "register": "session",
    "table": "functions",
    "table_named": "sql.tables",
    "write": "functions",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use; Python workers import this package for their tasks and need no name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
