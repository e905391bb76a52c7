"""Hudi tables in PySpark, with no bundle jar.

import drawstring.spark

drawstring.spark.register(spark)
df.write.format("hudi").options(**options).mode("append").save("/lake/flights")
spark.read.format("hudi").load("/lake/flights").show()
"""

try:
    import pyspark  # noqa: F401 - says early that it is missing
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise ModuleNotFoundError(
        "drawstring.spark needs PySpark 4.0 to 4.3: pip install 'drawstring[spark]'", name="pyspark"
    ) from None

from drawstring.spark.engine import SparkEngine
from drawstring.spark.functions import read, write
from drawstring.spark.takeover import register

__all__ = ["SparkEngine", "read", "register", "write"]
