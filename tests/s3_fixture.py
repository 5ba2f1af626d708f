"""An S3 server on this machine; a test module uses it by importing `s3`."""

from collections.abc import Iterator

import pytest

BUCKET = "hospital"
SECRET = "canary-of-a-secret-key"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty bucket; the environment has what a client needs."""
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store, _ = fs.FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")
    store.create_dir(BUCKET)
    store.delete_dir_contents(BUCKET)  # what an earlier server of this process was given
    yield f"s3://{BUCKET}"
    server.stop()
