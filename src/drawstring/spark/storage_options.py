"""Storage options of a table in a Spark session, and the paths that Spark's own readers can open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import UnsupportedError
from drawstring.config.keys.read import is_storage_key

_HADOOP: Final = "spark.hadoop."


@dataclass(frozen=True, slots=True)
class _Settings:
    """Where the storage options of a kind of store are looked for.

    Attributes:
        hadoop_keys: of Hadoop's settings in the session.
        prefixes: of the options of a read or write.
        is_by_account: whether the name of a storage account may follow a key.
    """

    hadoop_keys: tuple[str, ...]
    prefixes: tuple[str, ...]
    is_by_account: bool = False

    def has(self, key: str) -> bool:
        """Return whether a setting is for this kind of store."""
        by_account = self.is_by_account and key.startswith(tuple(f"{each}." for each in self.hadoop_keys))
        return by_account or key in self.hadoop_keys


_S3: Final = _Settings(
    (
        "fs.s3a.endpoint",
        "fs.s3a.endpoint.region",
        "fs.s3a.access.key",
        "fs.s3a.secret.key",
        "fs.s3a.session.token",
        "fs.s3a.path.style.access",
        "fs.s3a.connection.ssl.enabled",
    ),
    ("fs.s3a.", "aws_"),
)
_GCS: Final = _Settings(
    (
        "fs.gs.auth.service.account.json.keyfile",
        "google.cloud.auth.service.account.json.keyfile",
        "fs.gs.storage.root.url",
    ),
    ("fs.gs.", "google.cloud.", "google_"),
)
_AZURE: Final = _Settings(
    (
        "fs.azure.account.key",
        "fs.azure.sas.fixed.token",
        "fs.azure.account.oauth2.client.id",
        "fs.azure.account.oauth2.client.secret",
        "fs.azure.account.oauth2.client.endpoint",
        "fs.azure.account.oauth2.msi.tenant",
        "fs.azure.account.oauth2.msi.endpoint",
    ),
    ("fs.azure.", "azure_"),
    is_by_account=True,
)
_OF_SCHEMES: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    "gs": _GCS,
    **dict.fromkeys(("abfss", "abfs", "wasbs", "wasb", "az"), _AZURE),
}
_GLOB: Final = frozenset("*?[]{}\\")


def storage_options(
    spark: SparkSession, path: str, options: Mapping[str, Any], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the storage options of a table.

    Of several values for an option, that of the last source below applies.

    Args:
        spark: classic session; its settings for Hadoop's file system of the store are the first source.
        path: the table's root.
        options: options of the read or write; `fs.s3a.*`, `aws_*`, the like of other stores, and
            `drawstring.storage.*` among them are the second source. For local tables only
            `drawstring.storage.*` applies.
        given: explicit storage options, the third source.

    Raises:
        UnsupportedError: the table is in the memory of this process, which executors cannot read.
    """
    if path.startswith("memory:"):
        raise UnsupportedError(
            "Spark's executors cannot read a memory:// table. Use a folder, an object store, or the embedded"
            " engine.",
            table=path,
        )
    settings = settings_for(path, hadoop_settings(spark))
    settings |= {key: str(value) for key, value in options.items() if is_storage_option(key, path)}
    return {**settings, **(given or {})}


def is_storage_option(key: str, path: str) -> bool:
    """Return whether an option of a read or write of a table is a storage option."""
    store = _of_store(path)
    prefixes = store.prefixes if store else ()
    return key.lower().removeprefix(_HADOOP).startswith(prefixes) or is_storage_key(key)


def _of_store(path: str) -> _Settings | None:
    return _OF_SCHEMES.get(path.partition(":")[0].lower())


def hadoop_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings of a session for all stores; Hadoop's own defaults are not among them."""
    settings = {key.removeprefix(_HADOOP): value for key, value in spark.sparkContext.getConf().getAll()}
    stores = {*_OF_SCHEMES.values()}
    return {key: value for key, value in settings.items() if value and any(each.has(key) for each in stores)}


def settings_for(path: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for the store of a path.

    Args:
        path: the path.
        settings: as of `hadoop_settings`.
    """
    store = _of_store(path)
    return {} if store is None else {key: value for key, value in settings.items() if store.has(key)}


def path_of(location: str) -> str:
    """Return the path of a table from its location in the catalog, such as `file:/lake/rides`."""
    is_local = location.startswith("file:/") and not location.startswith("file://")
    return location.removeprefix("file:") if is_local else location


def spark_path(spark: SparkSession, uri: str) -> str | None:
    """Return the path by which Spark's own readers open a file, None if they cannot open it.

    Args:
        spark: the session; its Hadoop libraries determine which object stores it supports.
        uri: unescaped URI of the file, as `Storage.full_uri` returns it.
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
