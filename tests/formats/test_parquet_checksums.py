"""Pages of Parquet files are held to their checksums."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats.parquet import ParquetQuery, read_parquet, read_parquet_bytes
from drawstring.storage.local import LocalStorage


@pytest.mark.parametrize("codec", ["snappy", "none"])
@pytest.mark.parametrize("where", [None, pc.field("a") >= 0])
def test_a_flipped_bit_in_a_page_with_a_checksum_is_damage(
    codec: str, where: pc.Expression | None, tmp_path: Path
) -> None:
    values = [number * 0x9E3779B97F4A7C15 % 2**63 for number in range(1000)]
    numbers = pa.table({"a": pa.array(values, pa.int64())})
    path = tmp_path / "f.parquet"
    pq.write_table(numbers, path, compression=codec, use_dictionary=False, write_page_checksum=True)
    storage = LocalStorage(tmp_path)
    assert (
        sum(batch.num_rows for batch in read_parquet(storage, "f.parquet", ParquetQuery(where=where))) == 1000
    )
    data = bytearray(path.read_bytes())
    data[data.index(values[500].to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)

    with pytest.raises(CorruptTableError, match="CRC") as caught:
        list(read_parquet(storage, "f.parquet", ParquetQuery(where=where)))
    assert caught.value.path == "f.parquet"
    with pytest.raises(CorruptTableError, match="CRC"):
        list(read_parquet_bytes(bytes(data)))
