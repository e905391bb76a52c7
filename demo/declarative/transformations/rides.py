"""A flow of a declarative pipeline, whose sink is a Hudi table: each file that arrives is upserted once."""

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

import drawstring.spark

spark = SparkSession.active()
spark.dataSource.register(drawstring.spark.HudiSource)

pipelines.create_sink(
    "rides",
    "hudi",
    {
        "path": "/tmp/stream/pipeline/table",
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
    },
)


@pipelines.append_flow(target="rides")
def arriving() -> DataFrame:
    """Return the files that arrive."""
    return spark.readStream.schema("id string, city string, ts long").json("/tmp/stream/pipeline/arriving")
