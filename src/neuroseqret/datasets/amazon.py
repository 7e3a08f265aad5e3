"""Amazon: reviews of products, retrieval of the same category.

Download: the Amazon review data of McAuley et al. (University of California San Diego; for research), one or more
categories; the paper uses Movies, Toys and Beauty. These files are read as published, gzipped or not:
- reviews as JSON lines: `reviews_Beauty_5.json.gz` (2014), `All_Beauty.json.gz` (2018), `All_Beauty.jsonl.gz` (2023);
- ratings as csv without a header: `user,item,rating,time` (2014) or `item,user,rating,time` (2018), or with a header
  (2023);
- the csv with classes and binary ratings of Anonymous63525/CPMM (`user_id,item_id,class,reviewTime,overall`).

A sequence is the reviews of one product. An event is a review, at its day; its mark is the number of stars (5 marks),
or good or bad (`binary`, which is also used if a file rates by 0 and 1). The group is the category, from the file name,
with the class if the file has one. Windows have 20 to 100 reviews, at most 3 per product. Products that share 30 % of
their reviews (user and day) with a larger product are variants of it and are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.datasets.amazon_files import Reviews, read_reviews
from neuroseqret.datasets.raw_files import Progress, find, nothing_found, track
from neuroseqret.datasets.recordings import Recordings, Windows, thin
from neuroseqret.errors import DataError, UserError

PATTERNS = ("*.json", "*.jsonl", "*.csv", "*.json.gz", "*.jsonl.gz", "*.csv.gz")
STARS = ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]
BINARY = ["rated bad", "rated good"]
GOOD = 3.0
SHARED = 0.3
#: A user who reviews more products than this on one day (a bot, a resold account) says nothing about variants.
BUSIEST_DAY = 50


def read(
    raw: Path,
    *,
    variant: str | None = None,
    events: int = 100,
    min_events: int = 20,
    most: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> EventSequences:
    """Read windows of `min_events` to `events` reviews, at most `most` per product; `variant` is stars or binary."""
    if variant not in (None, "stars", "binary"):
        raise UserError(f"amazon has no variant {variant!r}; choose stars or binary")
    paths = find(raw, *PATTERNS)
    if not paths:
        raise nothing_found(raw, "review .json(.gz) or ratings .csv(.gz) files of one or more categories")
    files = [read_reviews(path) for path in track(paths, progress)]
    rated_by_two = [path for path, file in zip(paths, files, strict=True) if file.ratings.max() <= 1]
    if variant == "stars" and rated_by_two:
        raise DataError("rates by 0 and 1, not by stars", file=rated_by_two[0], remedy="use --variant binary")
    binary = variant == "binary" or bool(rated_by_two)
    rng = np.random.default_rng(seed)
    parts = [_category(file, _category_name(path), binary, min_events) for path, file in zip(paths, files, strict=True)]
    cut = [part.cut(Windows(events, "shrink", min_events)) for part in parts]
    kept = Recordings.concat(part.take(thin(np.asarray(part.columns["source"]), most, rng)) for part in cut)
    if not len(kept):
        raise DataError(f"no product has {min_events} reviews", file=raw, remedy="ask for fewer --min-events")
    return kept.to_sequences(BINARY if binary else STARS, "days")


def _category_name(path: Path) -> str:
    name = re.sub(r"(\.jsonl?|\.csv)(\.gz)?$", "", path.name)
    return re.sub(r"^(reviews|ratings|train_set)_|(_5|_CTR|_5core)$", "", name)


def _category(file: Reviews, category: str, binary: bool, min_events: int) -> Recordings:
    """Return the products of one file with enough reviews, without variants of other products."""
    products = file.products.dictionary_encode()
    item = products.indices.to_numpy().astype(np.int64)
    kept = np.bincount(item, minlength=len(products.dictionary))[item] >= min_events
    user = file.users.dictionary_encode().indices.to_numpy().astype(np.int64)
    kept &= ~variants(item, user, file.days, kept)[item]
    item, days, ratings = item[kept], file.days[kept], file.ratings[kept]
    if binary:
        good = ratings > 0 if file.ratings.max() <= 1 else ratings >= GOOD
        marks = good.astype(np.int32)
    else:
        marks = np.rint(ratings).astype(np.int32) - 1
    asin = products.dictionary.cast(pa.string()).to_numpy(zero_copy_only=False).astype(object)
    sources = asin if file.classes is None else np.array([f"{category}_{name}" for name in asin], dtype=object)
    columns: dict[str, npt.NDArray[Any]] = {"source": sources[item]}
    if file.classes is None:
        columns["group"] = np.full(len(item), category, dtype=object)
    else:
        named = np.array([f"{category}_{c:02d}" for c in range(int(file.classes.max()) + 1)], dtype=object)
        columns["group"] = named[file.classes[kept]]
    columns["department"] = np.full(len(item), category, dtype=object)
    return Recordings.from_events(item, days.astype(np.float64), marks, columns)


def variants(item: IntArray, user: IntArray, day: IntArray, among: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which items share `SHARED` of their reviews (same user, same day) with a larger item: (items,) bool."""
    count = int(item.max()) + 1 if len(item) else 0
    first_day = int(day.min()) if len(day) else 0
    occasion = (user * (int(day.max()) - first_day + 1) + day - first_day if len(day) else user)[among]
    pairs = np.unique(np.stack([occasion, item[among]]), axis=1)
    occasion, item = pairs
    sizes = np.bincount(item, minlength=count)
    shared = []
    for lag in range(1, BUSIEST_DAY):
        together = occasion[lag:] == occasion[:-lag]
        if not together.any():
            break
        a, b = item[lag:][together], item[:-lag][together]
        smaller = (sizes[a] < sizes[b]) | ((sizes[a] == sizes[b]) & (a > b))
        shared.append(np.where(smaller, a * count + b, b * count + a))
    is_variant = np.zeros(count, bool)
    if shared:
        pair, times = np.unique(np.concatenate(shared), return_counts=True)
        small = pair // count
        is_variant[small[times >= SHARED * sizes[small]]] = True
    return is_variant
