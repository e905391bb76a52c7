"""A table copied by procedures: into another table, and as a view."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE notes (id INT, name STRING, ts BIGINT) USING hudi"
        " TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql("INSERT INTO notes VALUES (1, 'a', 1), (2, 'b', 1)")
    spark.sql("UPDATE notes SET name = 'b+', ts = 2 WHERE id = 2")
    answer("copied", spark.sql("CALL copy_to_temp_view(table => 'notes', view_name => 'notes_view')"))
    answer("view", spark.sql("SELECT id, name FROM notes_view"))
    begin = spark.sql("SELECT min(_hoodie_commit_time) FROM notes").first()[0]
    end = spark.sql("SELECT max(_hoodie_commit_time) FROM notes").first()[0]
    spark.sql(
        "CALL copy_to_temp_view(table => 'notes', query_type => 'incremental', view_name => 'notes_new',"
        f" begin_instance_time => '{begin}', end_instance_time => '{end}', replace => true)"
    )
    answer("incremental view", spark.sql("SELECT id, name FROM notes_new"))
    answer("to a table", spark.sql("CALL copy_to_table(table => 'notes', new_table => 'notes_copy')"))
    answer("table", spark.sql("SELECT id, name FROM notes_copy"))
    spark.catalog.dropTempView("notes_view")
    spark.catalog.dropTempView("notes_new")
