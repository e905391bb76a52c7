"""SQL on tables of Spark's catalog: `CREATE TABLE ... USING hudi`, writes, `CALL`, by Spark's own parser."""
