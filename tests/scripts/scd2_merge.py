"""A dimension that keeps its history, by one MERGE of a source that has each changed row twice."""


def main(spark, folder, answer):
    spark.sql(
        """
        CREATE TABLE employees (sk STRING, id INT, dept STRING, since INT, until INT, is_current BOOLEAN,
        ts BIGINT) USING hudi TBLPROPERTIES (type = 'cow', primaryKey = 'sk', preCombineField = 'ts')
        """
    )
    spark.sql(
        "INSERT INTO employees VALUES ('1-0', 1, 'ops', 0, NULL, true, 1), ('2-0', 2, 'hr', 0, NULL, true, 1)"
    )
    spark.createDataFrame(
        [(1, "dev", 7), (3, "ops", 7)], "id int, dept string, day int"
    ).createOrReplaceTempView("moves")
    changes = spark.sql(
        """
        SELECT concat(id, '-', day) AS sk, id, dept, day FROM moves
        UNION ALL
        SELECT e.sk, m.id, e.dept, m.day FROM moves m JOIN employees e ON m.id = e.id
        WHERE e.is_current AND e.dept <> m.dept
        """
    )
    spark.createDataFrame(changes.collect(), changes.schema).createOrReplaceTempView("versions")
    spark.sql(
        """
        MERGE INTO employees t USING versions s ON t.sk = s.sk
        WHEN MATCHED THEN UPDATE SET until = s.day, is_current = false, ts = s.day
        WHEN NOT MATCHED THEN INSERT (sk, id, dept, since, until, is_current, ts)
        VALUES (s.sk, s.id, s.dept, s.day, NULL, true, s.day)
        """
    )
    answer("history", spark.sql("SELECT sk, id, dept, since, until, is_current FROM employees"))
    answer("current", spark.sql("SELECT id, dept FROM employees WHERE is_current"))
