"""VECTOR, BLOB and VARIANT columns in SQL, and in DataFrames that name them by `hudi_type`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import drawstring
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.schema.logical_types import BLOB, VARIANT, vector_type
from drawstring.spark.sql.column_types import with_stand_ins
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

CREATE = (
    "CREATE TABLE docs (id INT, v VECTOR(3), d VECTOR(2, DOUBLE), i vector(4, int8) COMMENT 'small',"
    " b BLOB, x VARIANT, ts BIGINT) USING hudi"
    " TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = '{kind}')"
)
INLINE = "named_struct('type', 'INLINE', 'data', X'0102', 'reference', null)"
OUT_OF_LINE = (
    "named_struct('type', 'OUT_OF_LINE', 'data', null, 'reference', named_struct("
    "'external_path', '/lake/a', 'offset', 2L, 'length', 3L, 'managed', false))"
)
REFERENCE = "reference:struct<external_path:string,offset:bigint,length:bigint,managed:boolean>"


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_statements_store_and_change_each_type(sql: Ask, tmp_path: Path, kind: str) -> None:
    sql(CREATE.format(kind=kind))
    described = {row[0]: row[1:] for row in sql("DESCRIBE docs")}
    assert [described[name][0] for name in ("v", "d", "i", "x")] == [
        "array<float>",
        "array<double>",
        "array<tinyint>",
        "variant",
    ]
    assert described["b"][0] == f"struct<type:string,data:binary,{REFERENCE}>"
    assert described["i"][1] == "small"
    sql(
        "INSERT INTO docs VALUES (1, array(1.0, 2.0, 3.5), array(1, 2), array(1, 2, 3, -4),"
        f" {INLINE}, parse_json('[7]'), 1)"
    )
    sql(
        f"INSERT INTO docs VALUES (2, null, null, null, {OUT_OF_LINE}, null, 1),"
        " (3, null, null, null, null, null, 1)"
    )
    sql("UPDATE docs SET v = array(9, 9, 9), ts = 2 WHERE id = 2")
    sql(
        "MERGE INTO docs t USING (SELECT 3 AS id, array(4f, 5f, 6f) AS v, parse_json('{\"k\": 1.5}') AS x) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, x = s.x, ts = 5"
    )
    assert sql("SELECT id, v, d, i, to_json(x) FROM docs") == [
        (1, [1.0, 2.0, 3.5], [1.0, 2.0], [1, 2, 3, -4], "[7]"),
        (2, [9.0, 9.0, 9.0], None, None, None),
        (3, [4.0, 5.0, 6.0], None, None, '{"k":1.5}'),
    ]
    assert sql("SELECT id, b.type, b.data, b.reference.offset FROM docs WHERE b IS NOT NULL") == [
        (1, "INLINE", b"\x01\x02", None),
        (2, "OUT_OF_LINE", None, 2),
    ]
    assert sql("SELECT id FROM docs WHERE v[0] > 8 OR variant_get(x, '$.k', 'double') = 1.5") == [(2,), (3,)]
    with pytest.raises(InvalidError, match=r"'v' is VECTOR\(3\), but a row has 2 numbers"):
        sql("INSERT INTO docs VALUES (4, array(1f, 2f), null, null, null, null, 1)")
    with pytest.raises(PySparkException, match="NULL"):
        sql("INSERT INTO docs VALUES (4, array(1f, 2f, cast(null AS float)), null, null, null, null, 1)")
    with pytest.raises(InvalidError, match="'b' is a BLOB of type 'FILE'"):
        sql(f"INSERT INTO docs (id, b, ts) VALUES (4, {INLINE.replace('INLINE', 'FILE')}, 1)")
    sql("ALTER TABLE docs ADD COLUMNS (w VECTOR(2), c BLOB COMMENT 'clip')")
    sql("INSERT INTO docs (id, w, ts) VALUES (5, array(1f, 2f), 1)")
    sql("CREATE TABLE copied USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT * FROM docs")
    schema = drawstring.open(f"{tmp_path}/lake/copied").schema
    kinds = [vector_type(3), BLOB, VARIANT, vector_type(2), BLOB]
    assert [schema.field(name).type for name in ("v", "b", "x", "w", "c")] == kinds
    assert schema == drawstring.open(f"{tmp_path}/lake/docs").schema
    assert sql("SELECT id, w FROM copied WHERE w IS NOT NULL") == [(5, [1.0, 2.0])]
    shown = "id, v, d, i, b, to_json(x), ts, w, c"
    assert sql(f"SELECT {shown} FROM copied") == sql(f"SELECT {shown} FROM docs")


def test_types_that_there_are_not_are_refused(sql: Ask) -> None:
    for column in ("v VECTOR", "v VECTOR(0)", "v VECTOR(3, BIGINT)"):
        with pytest.raises(InvalidError, match="'v' has the Hudi type"):
            sql(f"CREATE TABLE docs (id INT, {column}) USING hudi")
    for column in ("s STRUCT<v: VECTOR(3)>", "s ARRAY<VECTOR(3)>"):
        with pytest.raises(InvalidError, match=r"VECTOR column 's.* is inside of a struct, list or map"):
            sql(f"CREATE TABLE docs (id INT, {column}) USING hudi")
    with pytest.raises(AnalysisException, match="BLOB"):
        sql("CREATE TABLE docs (id INT, b BLOB) USING parquet")


def test_blobs_are_in_structs_lists_and_maps(sql: Ask, tmp_path: Path) -> None:
    sql(
        "CREATE TABLE docs (id INT, blob BLOB, s STRUCT<n: INT, blob: BLOB>, l ARRAY<BLOB>,"
        " m MAP<STRING, BLOB>) USING hudi"
    )
    sql(
        f"INSERT INTO docs VALUES (1, null, named_struct('n', 1, 'blob', {INLINE}), array({INLINE}),"
        f" map('k', {OUT_OF_LINE}))"
    )
    assert sql("SELECT s.blob.data, l[0].type, m['k'].reference.length FROM docs") == [
        (b"\x01\x02", "INLINE", 3)
    ]
    schema = drawstring.open(f"{tmp_path}/lake/docs").schema
    assert schema.field("s").type.field("blob").type == BLOB
    assert schema.field("l").type.value_type == BLOB
    assert schema.field("m").type.item_type == BLOB


def test_only_types_of_columns_are_replaced_in_a_statement() -> None:
    names = "CREATE TABLE blob (blob INT, `vector` STRUCT<blob: INT>) USING hudi COMMENT 'BLOB' -- a BLOB"
    assert with_stand_ins(names) == names
    assert with_stand_ins("ALTER TABLE t ADD COLUMN v vector (3 , double)").count("`hudi VECTOR") == 1


ARRAY = T.ArrayType(T.FloatType(), containsNull=False)
KEYS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


def columns(kind: T.DataType, hudi_type: str | None = None) -> T.StructType:
    metadata = {"hudi_type": hudi_type} if hudi_type else None
    return T.StructType([T.StructField("id", T.IntegerType()), T.StructField("c", kind, metadata=metadata)])


def test_frames_name_the_type_of_a_column_in_its_metadata(session: SparkSession, tmp_path: Path) -> None:
    def saved(name: str, schema: T.StructType, rows: list[Any], mode: str = "overwrite") -> list[Any]:
        path = f"{tmp_path}/{name}"
        session.createDataFrame(rows, schema).write.format("hudi").options(**KEYS).mode(mode).save(path)
        return sorted(session.read.format("hudi").load(path).select("id", "c").collect())

    assert saved("v", columns(ARRAY, "VECTOR(3)"), [(1, [1.0, 2.0, 3.0]), (2, None)]) == [
        (1, [1.0, 2.0, 3.0]),
        (2, None),
    ]
    assert drawstring.open(tmp_path / "v").schema.field("c").type == vector_type(3)
    shown = session.read.format("hudi").load(f"{tmp_path}/v").schema["c"]
    assert (shown.dataType, shown.metadata["hudi_type"]) == (ARRAY, "VECTOR(3)")
    doubles = columns(T.ArrayType(T.DoubleType()))
    assert saved("v", doubles, [(2, [4.0, 5.0, 6.0])], "append") == [
        (1, [1.0, 2.0, 3.0]),
        (2, [4.0, 5.0, 6.0]),
    ]
    with pytest.raises(InvalidError, match=r"'c' is VECTOR\(3\) in the table and VECTOR\(2\) in the records"):
        saved("v", columns(ARRAY, "VECTOR(2)"), [(2, [4.0, 5.0])], "append")
    with pytest.raises(InvalidError, match=r"'c' is VECTOR\(3\) by its entry 'hudi_type', but has type list"):
        saved("w", columns(T.ArrayType(T.DoubleType()), "VECTOR(3)"), [(2, [4.0, 5.0])])
    shape = T.StructType(
        [
            T.StructField("type", T.StringType()),
            T.StructField("data", T.BinaryType()),
            T.StructField("reference", T.StructType.fromDDL(REFERENCE[17:-1].replace(":", " "))),
        ]
    )
    value = ("OUT_OF_LINE", None, ("/lake/a", None, None, True))
    assert saved("b", columns(shape, "BLOB"), [(1, value)]) == [(1, value)]
    assert drawstring.open(tmp_path / "b").schema.field("c").type == BLOB


def test_the_nearest_vectors_are_found(sql: Ask) -> None:
    sql(
        "CREATE TABLE docs (id INT, v VECTOR(3), i VECTOR(2, INT8), ts BIGINT) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id')"
    )
    sql(
        "INSERT INTO docs VALUES (1, array(9, 9, 9), array(1, 2), 1), (2, array(4, 5, 6), null, 1),"
        " (3, null, null, 1)"
    )

    def found(arguments: str, columns: str = "id, _hudi_distance") -> list[Any]:
        return sql(f"SELECT {columns} FROM hudi_vector_search('docs', {arguments})")

    # The distances are those that Hudi 1.2.0 returned.
    near = pytest.approx(0.0014760155646609263), pytest.approx(0.02210972275899392)
    assert found("'v', array(9f, 9f, 8f), 2") == [(1, near[0]), (2, near[1])]
    assert found("'V', array(9, 9, 8), 1, 'l2'") == [(1, 1.0)]
    assert found("'v', array(9, 9, 8), 9, 'l2', 'brute_force', 'id > 1'") == [
        (2, pytest.approx(6.708203932499369))
    ]
    assert found("'v', array(9, 9, 8), 9, 'dot_product', null, null, -200") == [(1, -234.0)]
    assert found("'i', array(1, 2), 5, 'cosine'", "id, v") == [(1, [9.0, 9.0, 9.0])]
    sql(
        "CREATE TEMPORARY VIEW asked AS SELECT 7 AS id, array(4f, 5f, 6f) AS q"
        " UNION ALL SELECT 8, array(9f, 9f, 9f)"
    )
    batch = "hudi_vector_search_batch('docs', 'v', 'asked', 'q', 1, 'l2')"
    assert sql(f"SELECT _hudi_query_id, id, _hudi_distance FROM {batch}") == [(7, 2, 0.0), (8, 1, 0.0)]
    for arguments, error in (
        ("'v', array(1, 2), 1", "has 2 numbers, those of column v have 3"),
        ("'v', array(1, 2, 3), 0", "k is how many vectors are wanted"),
        ("'v', array(1, 2, 3), 1, 'manhattan'", "There is no metric"),
        ("'v', array(1, 2, 3), 1, 'l2', null, null, 'abc'", "greatest distance is a number, not 'abc'"),
        ("'ts', array(1, 2, 3), 1", "Column ts is bigint"),
        ("'i', array(1, 2.5), 1", "2.5 is none of them"),
    ):
        with pytest.raises(InvalidError, match=error):
            found(arguments)


def test_the_bytes_of_blobs_are_read_wherever_they_are(sql: Ask, tmp_path: Path) -> None:
    (tmp_path / "clip.bin").write_bytes(b"0123456789")
    sql("CREATE TABLE docs (id INT, b BLOB) USING hudi TBLPROPERTIES (primaryKey = 'id')")

    def out_of_line(path: str, offset: str, length: str) -> str:
        place = f"'external_path', '{path}', 'offset', {offset}, 'length', {length}, 'managed', false"
        return f"named_struct('type', 'OUT_OF_LINE', 'data', null, 'reference', named_struct({place}))"

    def read(blob: str) -> list[Any]:
        sql(f"INSERT OVERWRITE docs VALUES (1, {blob})")
        return [row[0] for row in sql("SELECT read_blob(b) FROM docs")]

    assert read(INLINE) == [b"\x01\x02"]
    assert read("null") == [None]
    assert read(out_of_line(f"{tmp_path}/clip.bin", "2L", "3L")) == [b"234"]
    assert read(out_of_line(f"file:{tmp_path}/clip.bin", "null", "null")) == [b"0123456789"]
    for blob, error in (
        (INLINE.replace("X'0102'", "null"), "A BLOB is INLINE, but has no data"),
        (out_of_line("", "null", "null"), "its reference has no external_path"),
        (out_of_line(f"{tmp_path}/clip.bin", "2L", "null"), "Give both, or neither"),
        (out_of_line(f"{tmp_path}/clip.bin", "8L", "3L"), "the file ends before"),
    ):
        with pytest.raises(DrawstringError, match=error):
            read(blob)


def test_a_table_like_another_one_keeps_types_comments_and_backslashes(sql: Ask, tmp_path: Path) -> None:
    sql(
        "CREATE TABLE docs (id INT COMMENT 'it''s', v VECTOR(3) COMMENT 'small', b BLOB, x VARIANT)"
        r" USING hudi TBLPROPERTIES (primaryKey = 'id', 'hoodie.clean.partition.filter.regex' = 'a\\d\'b')"
    )
    sql("CREATE TABLE twin LIKE docs")
    assert sql("DESCRIBE twin") == sql("DESCRIBE docs")
    key = "hoodie.clean.partition.filter.regex"
    assert sql(f"SHOW TBLPROPERTIES twin ('{key}')") == sql(f"SHOW TBLPROPERTIES docs ('{key}')")
    sql("INSERT INTO twin VALUES (1, array(1f, 2f, 3f), null, null)")
    own, like = (drawstring.open(f"{tmp_path}/lake/{name}").schema for name in ("docs", "twin"))
    assert like == own


def test_a_query_may_have_columns_with_the_names_of_types(sql: Ask) -> None:
    source = "(SELECT 1 AS id, 'b' AS blob, 'v' AS vector, 'x' AS variant)"
    sql(f"CREATE TABLE kept USING hudi AS SELECT id, blob, vector, variant FROM {source} ORDER BY id, blob")
    sql(f"CREATE OR REPLACE TABLE again USING hudi AS (SELECT DISTINCT blob, vector v FROM {source} blob)")
    assert sql("SELECT blob, vector, variant FROM kept") == [("b", "v", "x")]
    assert sql("SELECT * FROM again") == [("b", "v")]
