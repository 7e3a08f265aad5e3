"""An index in an object store, and its cache on this machine.

s3://BUCKET/PATH/index.json        what the index is; written last, and only if there is none
s3://BUCKET/PATH/IDENTITY/model/   the model folder
s3://BUCKET/PATH/IDENTITY/store/   sequences, embeddings and metadata: the truth
s3://BUCKET/PATH/IDENTITY/feedback/  judgements, one object per request

CACHE/indexes/NAME-HASH/           on every machine: a copy of the model, and the hot structure; may be deleted any time
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from neuroseqret.errors import UserError
from neuroseqret.index import rows
from neuroseqret.index.bucket_store import BucketStore
from neuroseqret.index.config import CONFIG, IndexConfig, checked_config, read_config
from neuroseqret.models.model_folder import HOLDS, SavedModel, read_saved
from neuroseqret.storage.bucket import Bucket, bucket_url, endpoint
from neuroseqret.storage.files import cache_folder, new_folder

_POLL = "NEUROSEQRET_POLL_SECONDS"


def config_at(place: Path) -> IndexConfig:
    """Read the configuration of an index, wherever it is."""
    url = bucket_url(place)
    return read_config(place) if url is None else BucketPlace.open(Bucket(url)).config


def seconds_between_looks() -> float:
    """Return how often a process looks for commits of others: `$NEUROSEQRET_POLL_SECONDS`, or every second."""
    given = os.environ.get(_POLL, "1")
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86400:
        raise UserError(f"{_POLL} is a number of seconds from 0.01 to 86400, not {given!r}")
    return seconds


class BucketPlace:
    """Where the parts of one index are: in the bucket, and in this machine's cache."""

    def __init__(self, bucket: Bucket, config: IndexConfig) -> None:
        assert config.identity is not None
        self.bucket, self.config = bucket, config
        self.content = bucket.below(config.identity)
        name = hashlib.blake2b(f"{endpoint()}\0{bucket.url}\0{config.identity}".encode(), digest_size=8).hexdigest()
        self.folder = cache_folder() / "indexes" / f"{bucket.url.rpartition('/')[2][:40]}-{name}"

    @classmethod
    def create(
        cls, bucket: Bucket, model: Path, config: IndexConfig, begin: Callable[[BucketPlace, BucketStore], object]
    ) -> BucketPlace:
        """Write the model of a folder and a store that `begin` fills, then `index.json`, which makes them the index."""
        if config.engine is not None:
            raise UserError("an index in an object store finds its candidates itself; leave out the engine")
        if bucket.get(CONFIG) is not None:
            raise _there_already(bucket)
        made = cls(bucket, config.model_copy(update={"identity": uuid.uuid4().hex}))
        try:
            for file in model.iterdir():
                made.content.put(f"model/{file.name}", file.read_bytes())
            store = BucketStore.make(made.content.below("store"), rows.base_schema(config.dimension))
            made._check_conditional_puts()
            begin(made, store)
        except BaseException:
            made._remove_content()
            raise
        # If this raises, nobody knows whether it was written: then the content stays.
        if not bucket.put(CONFIG, (made.config.model_dump_json(indent=1) + "\n").encode(), only_new=True):
            made._remove_content()
            raise _there_already(bucket)
        return made

    @classmethod
    def open(cls, bucket: Bucket) -> BucketPlace:
        """Read and check `index.json`."""
        found, path = bucket.get(CONFIG), f"{bucket.url}/{CONFIG}"
        if found is None:
            raise UserError(
                f"{bucket.url}: not an index ({CONFIG} is missing); make one with 'neuroseqret index create'"
            )
        try:
            content = json.loads(found)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}: damaged ({error}); restore a copy or make the index again") from error
        config = checked_config(content, path)
        if config.identity is None or not config.identity.isalnum():
            raise UserError(f"{path}: damaged (no identity); restore a copy or make the index again")
        return cls(bucket, config)

    def store(self) -> BucketStore:
        """Open the store."""
        return BucketStore.at(self.content.below("store"))

    def model(self, anew: bool = False) -> tuple[Path, SavedModel]:
        """Return this machine's copy of the model folder; fetch it if it is missing, damaged or to be had `anew`."""
        target = self.folder / "model"
        try:
            saved = None if anew else read_saved(target)
        except UserError:
            saved = None
        if saved is None or saved.tensors_blake2b != self.config.tensors_blake2b:
            shutil.rmtree(target, ignore_errors=True)
            with new_folder(target, *HOLDS) as temporary:
                for name, _ in self.content.below("model").list():
                    (temporary / Path(name).name).write_bytes(self.content.get(f"model/{name}") or b"")
            saved = read_saved(target)
        return target, saved

    def size(self) -> int:
        """Return the bytes in the bucket."""
        return sum(size for _, size in self.content.list())

    def _remove_content(self) -> None:
        with suppress(UserError):  # it is in nobody's way
            self.content.remove(*(name for name, _ in self.content.list()))

    def _check_conditional_puts(self) -> None:
        """Raise a `UserError` if the store writes over what exists: two writers would lose each other's changes."""
        first = self.content.put("probe", b"1", only_new=True)
        second = self.content.put("probe", b"2", only_new=True)
        self.content.remove("probe")
        if not first or second:
            raise UserError(
                f"{self.bucket.url}: {endpoint() or 'AWS'} ignores conditional puts (If-None-Match), so writers would "
                "lose each other's changes; use a store that has them"
            )


def _there_already(bucket: Bucket) -> UserError:
    return UserError(
        f"{bucket.url}: there is an index already; add to it (Index.open(...).add, 'neuroseqret index add'), or choose "
        "another place"
    )
