"""Where a table is for Spark: its storage options, and whether Spark's own readers get there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import UnsupportedError
from drawstring.config.keys.storage import is_storage_key

_HADOOP_KEYS: Final = (
    "fs.s3a.endpoint",
    "fs.s3a.endpoint.region",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.path.style.access",
    "fs.s3a.connection.ssl.enabled",
)
_PREFIXES: Final = ("fs.s3a.", "spark.hadoop.fs.s3a.", "aws_")
_GLOB: Final = frozenset("*?[]{}\\")


def storage_options(
    spark: SparkSession, path: str, options: Mapping[str, Any], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the options that open a table's storage.

    Args:
        spark: Hadoop's S3A settings of the session come first.
        path: the table's root.
        options: options of the read or write; `fs.s3a.*` and `aws_*` among them come next, with
            `drawstring.storage.*`, which local files have as well.
        given: storage options of their own; they win.

    Raises:
        UnsupportedError: the table is in this process's memory, where executors cannot see it.
    """
    if path.startswith("memory:"):
        raise UnsupportedError(
            "Spark's executors cannot see a memory:// table: use a folder, s3://, or the embedded engine",
            table=path,
        )
    if not path.startswith(("s3:", "s3a:", "s3n:")):
        return {**{key: str(value) for key, value in options.items() if is_storage_key(key)}, **(given or {})}
    # Hadoop's own defaults (an empty endpoint among them) say nothing.
    found = {key: value for key in _HADOOP_KEYS if (value := _set_by_user(spark, key))}
    found |= {key: str(value) for key, value in options.items() if is_storage_option(key)}
    return {**found, **(given or {})}


def is_storage_option(key: str) -> bool:
    """Tell whether an option of a read or write is about the storage."""
    return key.lower().startswith(_PREFIXES) or is_storage_key(key)


def _set_by_user(spark: SparkSession, key: str) -> str | None:
    value = spark.sparkContext.getConf().get(f"spark.hadoop.{key}")
    return value or None


def spark_path(spark: SparkSession, uri: str) -> str | None:
    """Return the path by which Spark's own readers open a file, None when they cannot.

    Args:
        spark: the session; its Hadoop libraries decide about object stores.
        uri: the file's address, unescaped, as `Storage.full_uri` gives it.
    """
    scheme = uri.partition("://")[0]
    if _GLOB.intersection(uri):
        return None
    if scheme == "file":
        return uri
    return uri if _has_file_system(spark, scheme) else None


def _has_file_system(spark: SparkSession, scheme: str) -> bool:
    jvm: Any = spark.sparkContext._jvm
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    try:
        getattr(jvm, "org.apache.hadoop.fs.FileSystem").getFileSystemClass(scheme, hadoop)
    except Exception:
        return False
    return True
