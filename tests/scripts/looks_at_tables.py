"""Statements that describe tables, and further ways to insert: by name, from queries, into partitions."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE films (id INT COMMENT 'number', title STRING, rating DOUBLE, ts BIGINT, genre STRING,"
        " year INT) USING hudi PARTITIONED BY (genre, year) COMMENT 'of the archive'"
        " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql(
        "INSERT INTO films VALUES (1, 'fog', 6.5, 1, 'horror', 1980), (2, 'jaws', 8.0, 1, 'horror', 1975)"
    )
    spark.sql(
        "INSERT INTO films (genre, year, title, id, ts, rating) VALUES ('drama', 1999, 'magnolia', 3, 1, 8.0)"
    )
    spark.sql("INSERT INTO films PARTITION (genre = 'drama', year) SELECT 4, 'heat', 8.3, 1, 1995")
    spark.sql("INSERT INTO films PARTITION (genre = 'drama', year = 1995) SELECT 5, 'casino', 8.2, 1")
    spark.sql(
        "WITH more AS (SELECT id + 10 AS id, title, rating, ts + 1 AS ts, genre, year FROM films WHERE id = 1"
        ") INSERT INTO films SELECT * FROM more"
    )
    answer("rows", spark.sql("SELECT id, title, rating, genre, year FROM films"))
    answer("partitions", spark.sql("SHOW PARTITIONS films"))
    answer("some partitions", spark.sql("SHOW PARTITIONS films PARTITION (genre = 'drama')"))
    own = "col_name NOT LIKE '\\\\_hoodie%' AND col_name NOT LIKE '#%' AND col_name <> ''"
    columns = spark.sql("DESCRIBE films").where(own).selectExpr("col_name", "data_type").distinct()
    answer("columns", columns)
    told = spark.sql("DESCRIBE EXTENDED films").where(
        "col_name IN ('Database', 'Table', 'Provider', 'Comment')"
    )
    answer("table", told.select("col_name", "data_type"))
    answer("tables", spark.sql("SHOW TABLES LIKE 'fil*'").select("tableName", "isTemporary"))
    answer("columns shown", spark.sql("SHOW COLUMNS IN films").where("col_name NOT LIKE '\\\\_hoodie%'"))
    spark.sql("ANALYZE TABLE films COMPUTE STATISTICS")
    answer("analysed", spark.sql("SELECT count(*), sum(rating) FROM films"))
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW best AS"
        " SELECT genre, max(rating) AS rating FROM films GROUP BY genre"
    )
    answer(
        "joined",
        spark.sql("SELECT f.title FROM films f JOIN best b ON f.genre = b.genre AND f.rating = b.rating"),
    )
    answer(
        "ranked",
        spark.sql("SELECT title, rank() OVER (PARTITION BY genre ORDER BY rating DESC) AS place FROM films"),
    )
    spark.sql("INSERT OVERWRITE films PARTITION (genre = 'horror', year = 1975) SELECT 20, 'carrie', 7.4, 3")
    answer("overwritten", spark.sql("SELECT id, title FROM films WHERE genre = 'horror'"))
    spark.sql("ALTER TABLE films DROP PARTITION (genre = 'drama', year = 1995)")
    answer("dropped partition", spark.sql("SELECT id FROM films WHERE genre = 'drama'"))
    spark.sql("DROP TABLE films")
    answer("dropped", spark.sql("SHOW TABLES LIKE 'fil*'").select("tableName"))
