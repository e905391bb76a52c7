"""Table-valued functions: the timeline, the files and the changes of a table as tables."""


def main(spark, folder, answer):
    spark.sql(
        """
        CREATE TABLE seats (id INT, guest STRING, ts BIGINT, hall STRING) USING hudi PARTITIONED BY (hall)
        TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts',
        'hoodie.metadata.enable' = 'true')
        """
    )
    spark.sql("INSERT INTO seats VALUES (1, 'ann', 1, 'a'), (2, 'bob', 1, 'a'), (3, 'cai', 1, 'b')")
    spark.sql("UPDATE seats SET guest = 'dee', ts = 2 WHERE id = 2")
    timeline = "SELECT action, state FROM hudi_query_timeline('seats')"
    answer("timeline", spark.sql(timeline))
    view = "SELECT DISTINCT partition_path, base_file_size > 0 FROM hudi_filesystem_view('seats', '{}')"
    answer("files", spark.sql(view.format("*")))
    answer("files of a hall", spark.sql(view.format("hall=a")))
    answer("metadata", spark.sql("SELECT key, type FROM hudi_metadata('seats') WHERE type IN (1, 2)"))
    latest = "SELECT id, guest FROM hudi_table_changes('seats', 'latest_state', 'earliest')"
    answer("latest", spark.sql(latest))
    optimized = "SELECT id, guest FROM hudi_query('seats', 'read_optimized')"
    answer("read optimized", spark.sql(optimized))
