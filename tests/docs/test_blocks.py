"""Every code block that readers may copy from README and the pages works; see `blocks`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.blocks import FOLDER, RUN, S3, Block, blocks_of, run_block
from tests.support.s3_server import s3_server
from tests.support.spark import settings_kept, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
GENERATED = {"options.md"}
RECORDS = {"format-notes.md", "benchmarks.md", "architecture.md"}
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "adr" and page.name not in GENERATED | RECORDS
    ),
]
BLOCKS = {page: blocks_of(page) for page in PAGES}
LANGUAGES = RUN | {"text", "sql"}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_blocks(*, spark: bool) -> list[Path]:
    return [
        page
        for page, blocks in BLOCKS.items()
        if any(block.is_run and block.needs_spark == spark for block in blocks)
    ]


@pytest.fixture(scope="module")
def s3_places() -> Iterator[dict[str, str]]:
    with s3_server("lake") as server:
        yield {S3: server.endpoint}


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    found = {FOLDER: f"{tmp_path}/"}
    page = request.node.callspec.params["page"]
    if any(block.is_run and S3 in block.code for block in BLOCKS[page]):
        found |= request.getfixturevalue("s3_places")
    return found


@pytest.fixture(scope="module")
def session() -> SparkSession:
    return spark_session()


@pytest.mark.parametrize("page", with_blocks(spark=False), ids=named)
def test_blocks_of_a_page_work(page: Path, places: dict[str, str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCKS[page]:
        if block.is_run and not block.needs_spark:
            run_block(block, names, places)


@pytest.mark.spark
@pytest.mark.parametrize("page", with_blocks(spark=True), ids=named)
def test_blocks_of_a_page_work_with_spark(page: Path, places: dict[str, str], session: SparkSession) -> None:
    names: dict[str, Any] = {"__name__": "__main__", "spark": session}
    try:
        with settings_kept(session):
            for block in BLOCKS[page]:
                if block.is_run:
                    run_block(block, names, places)
    finally:
        # Other tests share the session.
        for query in session.streams.active:
            query.stop()
        for view in session.sql("show views").collect():
            if view.isTemporary:
                session.catalog.dropTempView(view.viewName)


def test_blocks_that_are_not_run_say_why() -> None:
    silent = [
        f"{named(block.page)}:{block.line} {block.language or 'no language'}"
        for blocks in BLOCKS.values()
        for block in blocks
        if block.language not in LANGUAGES and not block.language.startswith("{")
    ]
    assert silent == []


def test_a_block_is_found_with_its_line_reason_and_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n"
        "<!-- not run: it needs a network -->\n```bash\ncurl x\n```\n"
    )
    assert blocks_of(page) == [
        Block(page, 4, "python", "print(1)\n", None, "1\n"),
        Block(page, 8, "text", "1\n"),
        Block(page, 13, "bash", "curl x\n", "it needs a network"),
    ]


def test_a_block_that_prints_something_else_fails(tmp_path: Path) -> None:
    block = Block(tmp_path / "page.md", 1, "python", "print('2 rows')\n", None, "... rows\n")
    run_block(block, {}, {})
    with pytest.raises(AssertionError, match="prints\n2 rows"):
        run_block(Block(block.page, 1, "python", block.code, None, "3 rows\n"), {}, {})


def test_a_command_that_fails_fails_the_test(tmp_path: Path) -> None:
    block = Block(tmp_path / "page.md", 1, "bash", f"drawstring show {tmp_path}/none  # a comment\n")
    with pytest.raises(AssertionError, match="show"):
        run_block(block, {}, {})
    with pytest.raises(AssertionError, match="only drawstring is run"):
        run_block(Block(block.page, 1, "bash", "ls\n"), {}, {})


def test_an_error_of_a_block_names_the_line_of_the_page(tmp_path: Path) -> None:
    block = Block(tmp_path / "page.md", 12, "python", "x = 1\ny = z\n")
    with pytest.raises(NameError) as caught:
        run_block(block, {}, {})
    assert caught.traceback[-1].lineno == 12  # counted from 0


def test_pages_are_where_readers_find_them() -> None:
    assert ROOT / "docs/index.md" in PAGES
    assert len(PAGES) > 15
