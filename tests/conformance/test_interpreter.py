"""The interpreter of Scala judges cases as a Scala compiler and ScalaTest would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from tests.conformance.__main__ import ACCEPTS, DIFFERS, PARTLY, UNTRANSLATED, UPSTREAM, judged
from tests.conformance.interpreter import Case, Interpreter
from tests.conformance.scala_values import is_function

ROWS = {"select id": [Row(1), Row(2)], "select name": [Row("ada")]}


class Rows:
    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def collect(self) -> list[Row]:
        return self.rows


class Spark:
    """A session that knows two queries, and refuses statements that say `wrong`."""

    version = "4.3.0"

    def __init__(self) -> None:
        self.statements: list[str] = []

    def sql(self, statement: str) -> Rows:
        self.statements.append(statement)
        if "wrong" in statement:
            raise ValueError("wrong statement")
        return Rows(ROWS.get(statement, []))


@pytest.fixture
def spark() -> Spark:
    return Spark()


def run(spark: Spark, folder: Path, body: str) -> dict[str, Case]:
    source = folder / "TestSome.scala"
    source.write_text(f"class TestSome extends Base {{\n\n{body}\n}}\n")
    interpreter = Interpreter(spark, str(folder))
    return {name: interpreter.run(name, test) for name, test in interpreter.cases(source)}


def result(case: Case) -> str:
    facts: dict[str, Any] = {
        "checks": case.checks,
        "ended": case.ended,
        "statements": case.statements,
        "untranslated": case.untranslated,
    }
    return judged(facts)


def test_each_round_of_a_loop_defines_a_case(spark: Spark, tmp_path: Path) -> None:
    cases = run(
        spark,
        tmp_path,
        """
  Seq("cow", "mor").foreach { kind =>
    test(s"create a $kind table") {
      spark.sql(
        s\"\"\"
           |create table t
           |type = '${kind.toUpperCase}'
           |\"\"\".stripMargin)
      checkAnswer("select id")(Seq(2), Seq(1))
    }
  }
""",
    )
    assert {name: result(case) for name, case in cases.items()} == {
        "create a cow table": UPSTREAM,
        "create a mor table": UPSTREAM,
    }
    assert "type = 'COW'" in spark.statements[0]


def test_results_are_told_apart(spark: Spark, tmp_path: Path) -> None:
    cases = run(
        spark,
        tmp_path,
        """
  private def twice(name: String, times: Int = 2): String = name * times

  test("other rows") {
    checkAnswer("select id")(Seq(3))
  }

  test("accepted") {
    checkExceptionContain("select name")("no such column")
  }

  test("refused as upstream") {
    checkExceptionContain("wrong")("any text")
  }

  test("partly translated") {
    val unknown = SomeClass.call(1)
    assertResult(unknown)(2)
    checkAnswer("select name")(Seq("ada"))
  }

  test("not translated") {
    HoodieWriter.of(1).write()
  }
""",
    )
    assert {name: result(case) for name, case in cases.items()} == {
        "other rows": DIFFERS,
        "accepted": ACCEPTS,
        "refused as upstream": UPSTREAM,
        "partly translated": PARTLY,
        "not translated": UNTRANSLATED,
    }


def test_expressions_have_the_values_that_scala_gives_them(spark: Spark, tmp_path: Path) -> None:
    cases = run(
        spark,
        tmp_path,
        """
  case class Pair(left: Int, right: Int = 5)

  test("values") {
    var total = 0
    for (i <- 1 to 3; j <- Seq(10, 20)) { total += i * j }
    while (total > 100) { total = total - 50 }
    assertResult(80)(total)
    assertResult(Map("a" -> 1, "b" -> 2).map { case (k, v) => s"$k$v" }.mkString(","))("a1,b2")
    assertResult(Seq(2, 4))(Seq(1, 2).map(_ * 2))
    assertResult("other")(3 match { case 1 | 2 => "small" case n if n > 5 => "large" case _ => "other" })
    assertResult(6)(Pair(1).right + 1)
    assertEquals(true, "abc".contains("b") && !Seq(1).isEmpty)
    intercept[Exception] { spark.sql("wrong") }
  }
""",
    )
    case = cases["values"]
    assert not is_function(Row(1)), "PySpark makes rows of another form by calling a row"
    assert case.untranslated == []
    assert [check for check in case.checks if check["kind"] not in ("right", "refused")] == []
    assert len(case.checks) == 7
