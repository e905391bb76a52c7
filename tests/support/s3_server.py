"""An S3 server in a process of its own: moto's, with one request at a time, so that puts are atomic."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from tests.support.store_server import Failing, StoreServer, serve, with_bucket


class S3Server(StoreServer):
    @property
    def options(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "retry_seconds": "5",
        }

    def address(self, path: str, bucket: str = "lake") -> str:
        return f"s3://{bucket}/{path}"


def s3_server(bucket: str) -> AbstractContextManager[S3Server]:
    """Run a server with an empty bucket on a free port of the loopback device."""
    return with_bucket(S3Server, __name__, bucket)


def moto() -> Any:
    """Return moto's servers as one application, which knows requests to S3 sooner than moto does."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    s3, every = create_backend_app("s3"), DomainDispatcherApplication(create_backend_app)

    def dispatched(environ: dict[str, Any], start_response: Any) -> Any:
        is_s3 = "/s3/aws4_request" in environ.get("HTTP_AUTHORIZATION", "")
        return (s3 if is_s3 else every)(environ, start_response)

    return dispatched


if __name__ == "__main__":
    serve(Failing(moto(), one_at_a_time=True))
