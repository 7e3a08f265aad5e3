"""A folder of an object store (`s3://bucket/path`): objects that are written whole, and only once where that matters.

Endpoint, region and credentials come from the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, ...)
or from what AWS tools read besides. They are neither stored nor shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from neuroseqret.errors import MissingExtraError, UserError, one_line

_ATTEMPTS = 5  # of one request
_SECRET = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
_LOST_RACE = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_MISSING = ("NoSuchKey", "404")


def bucket_url(place: object) -> str | None:
    """Return the address of a folder in an object store, None if a place is not one; a `Path` has lost a slash."""
    text = str(place)
    if not text.startswith("s3:/"):
        return None
    found = re.fullmatch(r"s3:/+([^/@:\s]+)/+([^?#\s]*[^/?#\s])/*", text)
    if found is None:  # not repeated in the message: it may hold a password
        raise UserError(
            "an index in an object store has an address like s3://bucket/path; credentials come from the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), not from the address"
        )
    return f"s3://{found[1]}/{found[2]}"


def endpoint() -> str | None:
    """Return the address of an S3-compatible store; None for AWS itself."""
    return next((v for n in ("_URL_S3", "_URL", "") if (v := os.environ.get(f"AWS_ENDPOINT{n}"))), None)


def region() -> str:
    """Return the region; stores other than AWS take any."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def redacted(text: str) -> str:
    """Return a message without the credentials of the environment."""
    for name in _SECRET:
        if value := os.environ.get(name):
            text = text.replace(value, "***")
    return text


class Bucket:
    """A folder of an object store. Names are relative to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name, _, self.path = url.removeprefix("s3://").partition("/")

    def below(self, name: str) -> Bucket:
        """Return a folder in this one."""
        return Bucket(f"{self.url}/{name}")

    @property
    def options(self) -> dict[str, str]:
        """What Lance needs to know to read and write here; it takes the credentials from the environment itself."""
        at = endpoint()
        where = {} if at is None else {"aws_endpoint": at, "allow_http": str(at.startswith("http:")).lower()}
        limits = {"client_max_retries": str(_ATTEMPTS), "client_retry_timeout": "60", "timeout": "60s"}
        return {"aws_region": region(), "connect_timeout": "5s", **limits, **where}

    @cached_property
    def _client(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise MissingExtraError(error.name or "boto3", "s3", "an index in an object store") from error
        settings = Config(
            connect_timeout=5,
            read_timeout=60,
            retries={"max_attempts": _ATTEMPTS, "mode": "standard"},
            # Other stores than AWS do not know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path"} if endpoint() else {},
        )
        return boto3.client("s3", endpoint_url=endpoint(), region_name=region(), config=settings)

    def put(self, name: str, content: bytes, only_new: bool = False) -> bool:
        """Write an object; with `only_new`, return False if another one is there.

        If the answer to a successful put is lost, the repeated request is told that the object exists. So the content
        decides who wrote it; it has to be unique.
        """
        condition = {"IfNoneMatch": "*"} if only_new else {}
        from_us = False
        with self._explained("written to"):
            try:
                self._client.put_object(Bucket=self.name, Key=self._key(name), Body=content, **condition)
                from_us = True
            except self._client.exceptions.ClientError as error:
                if not only_new or error.response["Error"]["Code"] not in _LOST_RACE:
                    raise
        return from_us or self.get(name) == content

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if there is none."""
        from botocore.exceptions import BotoCoreError

        with self._explained("read"):
            for attempt in range(_ATTEMPTS):
                try:
                    found: bytes = self._client.get_object(Bucket=self.name, Key=self._key(name))["Body"].read()
                    return found
                except self._client.exceptions.ClientError as error:
                    if error.response["Error"]["Code"] in _MISSING:
                        return None
                    raise
                except BotoCoreError:  # the connection broke in the middle of the content
                    if attempt == _ATTEMPTS - 1:
                        raise
        raise AssertionError("a read ends with content or an error")

    def list(self) -> list[tuple[str, int]]:
        """Return names and sizes of all objects in the folder and below, in the order of their names."""
        with self._explained("read"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=f"{self.path}/")
            cut = len(self.path) + 1
            return [(one["Key"][cut:], one["Size"]) for page in pages for one in page.get("Contents", [])]

    def remove(self, *names: str) -> None:
        """Remove objects; those that are not there are no error."""
        with self._explained("written to"):
            for name in names:
                self._client.delete_object(Bucket=self.name, Key=self._key(name))

    def _key(self, name: str) -> str:
        return f"{self.path}/{name}"

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Turn errors of the store into one line that names the endpoint and what to check."""
        client = self._client  # raises if the extra is missing
        from botocore.exceptions import BotoCoreError

        try:
            yield
        except (client.exceptions.ClientError, BotoCoreError) as error:
            raise UserError(explain(self.url, done, str(error))) from None  # the cause may hold a signed request


def explain(url: str, done: str, reason: str) -> str:
    """Return one line about a request that failed."""
    where = endpoint() or "AWS"
    return (
        f"{url}: cannot be {done} at {where} ({redacted(one_line(reason))[:300]}); check the address, the network and "
        "the credentials in the environment (AWS_*)"
    )
