"""Azure Blob Storage and Data Lake Storage.

    abfss://container@account.dfs.core.windows.net/path   also abfs, wasbs and wasb, also .blob. hosts
    az://container/path                                   also abfss; options or environment name the account

All requests are those of the interface for blobs, which accounts with folders (hierarchical namespaces) have
as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore

from drawstring.base.errors import InvalidError
from drawstring.storage.object_store import (
    COMMON_OPTIONS,
    Bucket,
    OptionNames,
    Vendor,
    client_arguments,
    first_given,
    split_address,
)
from drawstring.storage.protocol import joined

VENDOR: Final = Vendor(
    example="abfss://container@account.dfs.core.windows.net/path",
    noun="container",
    no_bucket=("ContainerNotFound", "ContainerBeingDeleted", "FilesystemNotFound"),
    version="e_tag",
    credentials="account_key, sas_token, connection_string or client_id with client_secret and tenant_id",
)

NAMES: Final = OptionNames(
    meanings={
        **COMMON_OPTIONS,
        "account_name": "the storage account, if the address does not name it",
        "account_key": "a key of the storage account",
        "sas_token": "a shared access signature",
        "connection_string": "account, credentials and endpoint in one text, as the portal shows it",
        "client_id": "id of an application in Microsoft Entra ID, or of a managed identity",
        "client_secret": "the application's secret",
        "tenant_id": "the directory of the application",
        "authority_host": "address of Entra ID, for other clouds than the public one",
        "federated_token_file": "path of the token of a workload identity",
        "msi_endpoint": "address that gives out the tokens of a managed identity",
        "token": "an access token; it is not renewed",
        "use_azure_cli": "whether `az login` provides the credentials",
    },
    others={
        "name": "account_name",
        "account": "account_name",
        "account-name": "account_name",
        "key": "account_key",
        "access_key": "account_key",
        "account-key": "account_key",
        "account.key": "account_key",
        "sas_key": "sas_token",
        "sas-token": "sas_token",
        "sas.fixed.token": "sas_token",
        "connection-string": "connection_string",
        "client-id": "client_id",
        "client-secret": "client_secret",
        "tenant-id": "tenant_id",
        "bearer_token": "token",
        "account.oauth2.client.id": "client_id",
        "account.oauth2.client.secret": "client_secret",
        "account.oauth2.msi.tenant": "tenant_id",
        "account.oauth2.msi.endpoint": "msi_endpoint",
    },
    prefixes=("fs.azure.", "azure_", "storage_", "adls."),
    ignored=frozenset({"account.auth.type", "account.oauth.provider.type"}),
)
_FLAGS: Final = frozenset({"use_azure_cli"})
_PUBLIC: Final = "core.windows.net"
_HOST: Final = r"([a-z0-9-]+)\.(?:dfs|blob)\.([a-z0-9.-]+)"
_AUTHORITY: Final = re.compile(rf"([^@]+)@{_HOST}", re.IGNORECASE)
_OF_ACCOUNT: Final = re.compile(rf"(account\.[a-z0-9.]+?|sas\.fixed\.token)\.{_HOST}")
_TOKEN_ADDRESS: Final = "account.oauth2.client.endpoint"
_KINDS: Final = {
    "token": "bearer_token",
    "account_key": "access_key",
    "client_secret": "client_secret",
    "federated_token_file": "workload_identity",
    "sas_token": "sas_token",
    "use_azure_cli": "azure_cli",
}
"""What the client calls credentials of an option; unless told, it prefers those of the environment."""

_CONNECTION: Final = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_token",
    "blobendpoint": "endpoint",
}
_EMULATOR: Final = {
    "account_name": "devstoreaccount1",
    "account_key": (
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    ),
    "endpoint": "http://127.0.0.1:10000/devstoreaccount1",
}
"""What `UseDevelopmentStorage=true` stands for; the key is the same everywhere."""


@dataclass(frozen=True, slots=True)
class _Address:
    """What an address says.

    Attributes:
        container: its name.
        account: the storage account, empty where the address does not name it.
        suffix: what the hosts of the cloud end with.
        prefix: in the container.
    """

    container: str
    account: str
    suffix: str
    prefix: str

    @property
    def root(self) -> str:
        return f"abfss://{self.container}@{self.account}.dfs.{self.suffix}"


def open_azure(uri: str, options: Mapping[str, str]) -> Bucket:
    """Return the container at an address; calls with equal arguments share a client.

    Raises:
        InvalidError: the address has no container or nothing names the account, or an option does not exist
            or is not valid.
    """
    address, settings = _parsed(uri), azure_settings(uri, options)
    account = settings.get("account_name", "")
    if not account:
        raise InvalidError(
            f"{uri!r} names no storage account. Write {VENDOR.example}, or give the option account_name."
        )
    if account != (address.account or account):
        raise InvalidError(
            f"{uri!r} names another storage account than the options ({account}). Correct one of them."
        )
    address = replace(address, account=account)
    client = _client(address.container, address.prefix, tuple(sorted(settings.items())), os.getpid())
    root = joined(address.root, address.prefix).rstrip("/")
    return Bucket(VENDOR, address.container, address.root, client, root)


def _parsed(uri: str) -> _Address:
    authority, prefix = split_address(uri, VENDOR)
    if match := _AUTHORITY.fullmatch(authority):
        return _Address(match[1], match[2].lower(), match[3].lower(), prefix)
    if "@" in authority or "." in authority:
        raise InvalidError(f"{uri!r} names no container. Write {VENDOR.example}.")
    return _Address(authority, "", _PUBLIC, prefix)


def azure_settings(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return what options and environment say about an address, under the names of `NAMES`.

    Raises:
        InvalidError: the address has no container, an option does not exist or has another form.
    """
    address = _parsed(uri)
    named = (value for key, value in options.items() if NAMES.named(key) == "account_name")
    account = address.account or next(named, _account_of_environment())
    given = NAMES.normalised(dict(_without_hosts(account, options)))
    connection = _connection(given.pop("connection_string", ""))
    settings = _beside_environment({**connection, **given}, account)
    if address.suffix != _PUBLIC:
        settings.setdefault("endpoint", f"https://{settings['account_name']}.blob.{address.suffix}")
    if "sas_token" in settings:
        settings["sas_token"] = settings["sas_token"].removeprefix("?")
    return settings


def _beside_environment(settings: dict[str, str], account: str) -> dict[str, str]:
    """Add what the environment says in ways that the client does not read; credentials in options win."""
    kind = next((kind for name, kind in _KINDS.items() if settings.get(name, "false") != "false"), None)
    found = _connection(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", ""))
    if account not in ("", found.get("account_name")):
        found = {}
    account = account or settings.get("account_name") or found.get("account_name", "")
    key = os.environ.get("AZURE_STORAGE_KEY")
    if key and account == _account_of_environment():
        found.setdefault("account_key", key)
    if kind:
        found = {name: value for name, value in found.items() if name not in _KINDS}
        settings["credential_type"] = kind
    return {**found, "account_name": account, **settings}


def _account_of_environment() -> str:
    return first_given(os.environ, "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT") or ""


def _without_hosts(account: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield options; those of Hadoop that end in a host without it, and only if it is our account's."""
    for key, value in options.items():
        short = NAMES.shortened(key)
        if match := _OF_ACCOUNT.fullmatch(short):
            if match[2] != account:
                continue
            key = short = match[1]
        if short == _TOKEN_ADDRESS:
            server = urlsplit(value)
            yield "authority_host", f"{server.scheme}://{server.netloc}"
            yield "tenant_id", server.path.strip("/").partition("/")[0]
        else:
            yield key, value


def _connection(text: str) -> dict[str, str]:
    """Return the settings in a connection string.

    Raises:
        InvalidError: the text has another form.
    """
    parts = [part.partition("=") for part in text.split(";") if part.strip()]
    if not all(name and equals for name, equals, _ in parts):
        raise InvalidError("The storage option connection_string is not of the form NAME=VALUE;NAME=VALUE.")
    given = {name.strip().lower(): value.strip() for name, _, value in parts}
    if given.get("usedevelopmentstorage", "").lower() == "true":
        return dict(_EMULATOR)
    settings = {name: given[key] for key, name in _CONNECTION.items() if key in given}
    suffix, account = given.get("endpointsuffix", _PUBLIC), settings.get("account_name")
    if account and suffix != _PUBLIC:
        scheme = given.get("defaultendpointsprotocol", "https")
        settings.setdefault("endpoint", f"{scheme}://{account}.blob.{suffix}")
    return settings


@lru_cache(maxsize=32)
def _client(container: str, prefix: str, settings: tuple[tuple[str, str], ...], _process: int) -> AzureStore:
    """Open a client, one per process: the threads of a client do not survive a fork."""
    arguments = client_arguments(dict(settings), _FLAGS)
    config = arguments.pop("config")
    if "sas_token" in config:
        config["sas_key"] = config.pop("sas_token")
    try:
        return AzureStore(container, prefix=prefix or None, config=config, **arguments)
    except BaseError as error:
        raise InvalidError(
            f"The container {container!r} cannot be opened ({str(error).splitlines()[0]}). Correct"
            f" {VENDOR.credentials}."
        ) from error
