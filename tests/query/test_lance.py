"""Tables with Lance base files, which Apache Hudi 1.2.0 wrote; they are of the test data of hudi-rs.

What is expected is what hudi-rs's own tests expect, and the values of the statements that made the tables.
"""

from __future__ import annotations

import sys
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.formats.data_file import Selection, base_schema, read_base
from drawstring.storage import open_storage
from drawstring.table import Table

DATA = Path(__file__).parent / "data"
PAYMENTS, FEATURES, TRIPS = "v9_lance_txns_simple", "v9_lance_nonpartitioned", "v9_trips_lance"


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(DATA / f"{name}.zip") as file:
        file.extractall(folder)
    return folder / name


def opened(name: str, folder: Path) -> Table:
    return drawstring.open(unpacked(name, folder))


def test_rows_of_all_types_are_those_that_hudi_wrote(tmp_path: Path) -> None:
    rows = opened(PAYMENTS, tmp_path).scan().to_arrow()
    found = {row["txn_id"]: row for row in rows.to_pylist()}
    assert sorted(found) == [f"TXN-{number:03}" for number in (1, 3, 4, *range(6, 17))]
    one = {name: value for name, value in found["TXN-001"].items() if not name.startswith("_hoodie")}
    assert one == {
        "txn_id": "TXN-001",
        "account_id": "ACC-A",
        "txn_ts": 1700100000001,
        "txn_datetime": datetime(2024, 1, 15, 10, 30, tzinfo=UTC),
        "txn_date": date(2024, 1, 15),
        "amount": Decimal("1250.00"),
        "currency": "USD",
        "txn_type": "reversal",
        "merchant_name": "Amazon",
        "is_international": False,
        "fee_amount": Decimal("0.00"),
        "txn_metadata": '{"category":"retail","mcc":"5411","risk_score":0.05}',
        "region": "us",
    }
    assert found["TXN-003"]["merchant_name"] is None


def test_lists_and_an_earlier_time_are_read(tmp_path: Path) -> None:
    table = opened(FEATURES, tmp_path)
    rows = {row["id"]: row for row in table.scan(["id", "score", "tags"]).to_arrow().to_pylist()}
    assert sorted(rows) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert rows[1] == {"id": 1, "score": 0.96, "tags": ["cnn", "resnet", "imagenet"]}
    first = table.scan(["id"], as_of=table.timeline.writes()[0].requested).to_arrow()
    assert sorted(first["id"].to_pylist()) == list(range(1, 9))


def test_log_files_are_merged_with_lance_base_files(tmp_path: Path) -> None:
    rows = opened(TRIPS, tmp_path).scan(["rider", "fare", "ts"]).to_arrow().to_pylist()
    found = {row["rider"]: row for row in rows}
    assert "".join(sorted(rider.removeprefix("rider-") for rider in found)) == "ACDEFGIJMNOP"
    assert found["rider-A"] == {"rider": "rider-A", "fare": 0.0, "ts": 1695200000000}
    assert found["rider-C"]["fare"] == 27.7


def test_conditions_and_increments_are_answered(tmp_path: Path) -> None:
    table = opened(PAYMENTS, tmp_path)
    dear = table.scan(["txn_id"], where="amount > 4000 AND region = 'apac'").to_arrow()
    assert sorted(dear["txn_id"].to_pylist()) == ["TXN-007", "TXN-015"]
    *_, before, _ = table.timeline.writes()
    assert sorted(table.incremental(before.completed).to_arrow()["txn_id"].to_pylist()) == [
        "TXN-015",
        "TXN-016",
    ]


@pytest.mark.parametrize("name", [PAYMENTS, FEATURES, TRIPS])
def test_such_a_table_is_sound_and_written_to(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    assert table.services.validate().is_sound
    before = table.scan().to_arrow()
    own = [column for column in before.column_names if not column.startswith("_hoodie")]
    (key,) = table.config.record_key_fields
    table.upsert(before.select(own).slice(0, 2))
    table.delete(before.select(own).slice(2, 1))
    if table.config.is_merge_on_read:
        assert table.services.compact()
    after = table.scan(own).to_arrow().sort_by(key)
    gone = before[key][2].as_py()
    assert after.equals(before.select(own).filter(pc.field(key) != gone).sort_by(key))
    assert table.services.validate().is_sound
    (file_slice, *_) = table.inspect.files()
    assert file_slice.base is not None
    assert file_slice.base.status.name.endswith(".lance")


def test_a_file_of_an_object_store_is_read(tmp_path: Path) -> None:
    root = unpacked(TRIPS, tmp_path)
    path = next(root.glob("city=chennai/*.lance"))
    storage = open_storage("memory://lance")
    storage.put("p/a.lance", path.read_bytes())
    (batch,) = read_base(storage, "p/a.lance", Selection(["rider", "fare", "none"]))
    assert batch.schema.names == ["rider", "fare"] == [*base_schema(storage, "p/a.lance").names[7:10:2]]
    (counted,) = read_base(storage, "p/a.lance", Selection([]))
    assert (counted.num_rows, counted.num_columns) == (len(batch), 0)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped"])
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    root = unpacked(TRIPS, tmp_path)
    path = next(root.glob("city=sao_paulo/*.lance"))
    content = path.read_bytes()
    flipped = content[:100] + bytes(255 ^ byte for byte in content[100:300]) + content[300:]
    damaged = {"empty": b"", "cut": content[: len(content) // 2], "flipped": flipped}
    path.write_bytes(damaged[damage])
    with pytest.raises(CorruptTableError, match="Lance file is damaged") as error:
        drawstring.open(root).scan().to_arrow()
    assert error.value.path == f"city=sao_paulo/{path.name}"
    path.unlink()
    with pytest.raises(CorruptTableError, match="missing"):
        drawstring.open(root).scan().to_arrow()


def test_who_lacks_the_package_is_told_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lance.file", None)
    with pytest.raises(InvalidError, match=r"pip install 'drawstring\[lance\]'"):
        opened(TRIPS, tmp_path).scan().to_arrow()
