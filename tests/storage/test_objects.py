"""What is particular to object stores, against a real server process."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.storage import Storage, open_storage
from drawstring.storage.objects import ObjectStorage
from drawstring.storage.s3_options import normalised
from drawstring.storage.streams import READ_AHEAD_BYTES, RangeFile
from tests.support.races import rounds_won
from tests.support.s3_server import S3Server

_numbers = itertools.count()


@pytest.fixture
def impatient(s3: S3Server) -> Storage:
    """A storage that repeats nothing."""
    return open_storage(f"s3://lake/impatient/{next(_numbers)}", {**s3.options, "retries": "0"})


def test_put_if_absent_has_one_winner_among_processes(bucket: Storage) -> None:
    won = rounds_won(bucket.spec, processes=3, rounds=10)
    assert sorted(itertools.chain(*won)) == list(range(10))


def test_a_busy_server_is_asked_again(bucket: Storage, s3: S3Server) -> None:
    s3.fail("busy", "busy")
    bucket.put("f", b"data")
    s3.fail("busy")
    assert bucket.read("f") == b"data"


@pytest.mark.parametrize("storage_name", ["bucket", "impatient"])
def test_a_put_whose_answer_got_lost_counts_as_done(
    storage_name: str, s3: S3Server, request: pytest.FixtureRequest
) -> None:
    storage: Storage = request.getfixturevalue(storage_name)
    s3.fail("lost")
    assert storage.put_if_absent("t/1.commit", b"mine")
    assert not storage.put_if_absent("t/1.commit", b"mine")
    version = storage.read_versioned("t/1.commit")
    assert version is not None
    s3.fail("lost")
    assert storage.put_if_match("t/1.commit", b"mine again", version[1])
    assert storage.read("t/1.commit") == b"mine again"


def test_a_server_that_stays_busy_is_unavailable(impatient: Storage, s3: S3Server) -> None:
    for action in (
        lambda: impatient.put("f", b""),
        lambda: impatient.put_if_absent("f", b""),
        lambda: impatient.read("f"),
        lambda: impatient.list_tree(""),
        lambda: impatient.delete(["f"]),
    ):
        s3.fail("busy", "busy")
        with pytest.raises(UnavailableError, match="try again"):
            action()
    s3.fail()


def test_refused_credentials_are_the_users_to_fix(impatient: Storage, s3: S3Server) -> None:
    s3.fail("refuse")
    with pytest.raises(InvalidError, match="access_key_id") as caught:
        impatient.read("f")
    assert caught.value.path == "f"


def test_a_server_that_is_not_there_is_unavailable() -> None:
    options = {
        "endpoint": "http://127.0.0.1:9",
        "access_key_id": "k",
        "secret_access_key": "s",
        "retries": "0",
    }
    with pytest.raises(UnavailableError, match="Check endpoint"):
        open_storage("s3://lake/x", options).read("f")


def test_a_missing_bucket_is_the_users_to_fix(s3: S3Server) -> None:
    storage = open_storage("s3://no-such-bucket/x", s3.options)
    for action in (
        lambda: storage.put("f", b""),
        lambda: storage.put_if_absent("f", b""),
        lambda: storage.list_files(""),
        lambda: storage.list_tree(""),
        lambda: storage.read("f"),
    ):
        with pytest.raises(InvalidError, match="no bucket 'no-such-bucket'"):
            action()


def test_a_failed_upload_says_so(impatient: Storage, s3: S3Server) -> None:
    file = impatient.create("p/f")
    file.write(b"data")
    s3.fail("busy", "busy")
    with pytest.raises(UnavailableError):
        file.close()
    s3.fail()
    assert not impatient.exists("p/f")


def test_empty_objects_in_place_of_folders_are_not_listed(bucket: Storage, s3: S3Server) -> None:
    inside = bucket.full_uri("").removeprefix("s3a://")
    bucket.put("p/f", b"data")
    for marker in ("", "p/"):
        s3.put(f"{inside}/{marker}")
    assert [status.path for status in bucket.list_files("")] == []
    assert bucket.list_folders("") == ["p"]
    assert [status.path for status in bucket.list_files("p")] == ["p/f"]
    assert [status.path for status in bucket.list_tree("")] == ["p/f"]


def test_spark_opens_files_by_the_s3a_scheme(s3: S3Server) -> None:
    for uri in ("s3://lake/a/b", "s3a://lake/a/b/", "s3n://lake//a//b"):
        storage = open_storage(uri, s3.options)
        assert storage.full_uri("p=1/f") == "s3a://lake/a/b/p=1/f"
        assert storage.local_path("p=1/f") is None
    assert open_storage("s3://lake", s3.options).full_uri("f") == "s3a://lake/f"


def test_a_table_can_be_a_whole_bucket(s3: S3Server) -> None:
    s3.make_bucket("whole")
    storage = open_storage("s3://whole", s3.options)
    storage.put("a/b", b"1")
    assert storage.list_folders("") == ["a"]
    storage.delete_tree("")
    assert storage.list_tree("") == []


def test_options_go_by_the_names_of_other_clients() -> None:
    assert normalised(
        {
            "aws_endpoint": "http://e",
            "AWS_REGION": "r",
            "fs.s3a.access.key": "k",
            "spark.hadoop.fs.s3a.secret.key": "s",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "aws_session_token": "t",
        }
    ) == {
        "endpoint": "http://e",
        "region": "r",
        "access_key_id": "k",
        "secret_access_key": "s",
        "virtual_hosted_style_request": "false",
        "allow_http": "true",
        "session_token": "t",
    }


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"endpont": "x"}, "Did you mean 'endpoint'"),
        ({"colour": "blue"}, "The options are endpoint"),
        ({"timeout_seconds": "soon"}, "not negative"),
        ({"allow_http": "maybe"}, "true or false"),
    ],
)
def test_an_option_that_makes_no_sense_says_what_would(options: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidError, match=text):
        ObjectStorage("s3://lake/x", options)


def test_small_reads_next_to_each_other_are_one_request() -> None:
    data = bytes(range(256)) * (READ_AHEAD_BYTES // 64)
    requests: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        requests.append((start, end))
        return data[start:end]

    file = pa.PythonFile(RangeFile(fetch, len(data)), mode="r")
    assert b"".join(file.read(1000) for _ in range(50)) == data[:50_000]
    assert requests == [(0, READ_AHEAD_BYTES)]
    file.seek(10)
    assert file.read(2 * READ_AHEAD_BYTES) == data[10 : 10 + 2 * READ_AHEAD_BYTES]
    assert requests[1:] == [(10, 10 + 2 * READ_AHEAD_BYTES)]
