"""Make a data folder from raw files: read, drop duplicates, choose queries, split, write.

Queries come from other sources than the corpus sequences of their group. (A source that two groups share may give
queries of one group and corpus sequences of the other.) If a group is one recording (a patient), its last third gives
the queries, its beginning the corpus, and a window between them is left out. Groups with fewer than three corpus
sequences are dropped. `meta.json` says what was left out. Row order gives nothing away, nor do the ids of the known
sets.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.doubts import doubts
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import SPLITS, choose_queries, codes_of, split_queries
from neuroseqret.data.statistics import describe_retrieval
from neuroseqret.data.subsequences import disjoint, overlapping
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.data_folder import DataFolder, folder_of, write_folder

MIN_CORPUS = 3
RELEVANCE = ("groups", "subsequences", "overlapping")


@dataclass(frozen=True)
class Recipe:
    """What `meta.json` says about a set and how its queries are chosen; its module says how it is read."""

    title: str
    licence: str
    group_meaning: str
    query_share: float
    last_third: bool = False


RECIPES = {
    "audio": Recipe("Spoken words, speaker retrieval", "AudioMNIST: MIT", "speaker", 0.1),
    "sports": Recipe("Actions in sports videos, sport retrieval", "not stated with the annotations", "sport", 0.2),
    "celebrity": Recipe("Faces in interviews, person retrieval", "VoxCeleb: CC BY 4.0", "person", 0.2),
    "electricity": Recipe(
        "Power of appliances, appliance retrieval", "REFIT: CC BY 4.0; tracebase: ODbL 1.0", "kind of appliance", 0.1
    ),
    "health": Recipe("Heart beats, patient retrieval", "MIT-BIH: ODC-By 1.0", "patient", 1 / 3, last_third=True),
    "twitter": Recipe("Cascades of retweets, veracity retrieval", "not stated", "veracity of the story", 0.2),
    "amazon": Recipe("Product reviews, category retrieval", "Amazon review data: for research", "category", 0.15),
}


def module(name: str) -> ModuleType:
    """Return the module of a set."""
    if name not in RECIPES:
        raise UserError(f"no data set is called {name!r}; choose from {', '.join(RECIPES)}; for a file say --from FILE")
    return import_module(f"neuroseqret.datasets.{name}")


def options_of(name: str) -> dict[str, Any]:
    """Return the options of a set's reader, with their defaults."""
    parameters = inspect.signature(module(name).read).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def prepare(
    name: str,
    raw: str | PathLike[str],
    out: str | PathLike[str],
    *,
    relevance: str = "groups",
    query_share: float | None = None,
    seed: int = 0,
    progress: Callable[..., Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFolder:
    """Make the data folder `out` from the raw files in the folder `raw`, by the recipe of the set `name`."""
    known = options_of(name)
    if unknown := sorted(set(options) - set(known)):
        has = ", ".join(f"--{o.replace('_', '-')}" for o in known if o not in ("seed", "progress"))
        raise UserError(f"{name} has no option --{unknown[0].replace('_', '-')}; it has {has}")
    recipe = RECIPES[name]
    if query_share is not None and (recipe.last_third or relevance != "groups"):
        raise UserError(f"with {relevance}, {name} has a fixed choice of queries; leave out --query-share")
    given = dict(options)
    given |= {"seed": seed} if "seed" in known else {}
    given |= {"progress": progress} if "progress" in known else {}
    sequences = module(name).read(Path(raw), **given)
    paragraphs = (inspect.getdoc(module(name)) or "").split("\n\n")
    about = {
        "name": name,
        "title": recipe.title,
        "licence": recipe.licence,
        "group_meaning": recipe.group_meaning,
        "how": " ".join(" ".join(p.split()) for p in paragraphs[1:] if not p.startswith("Download")),
        "options": {k: v for k, v in {**known, **options}.items() if k not in ("seed", "progress")},
        **(meta or {}),
    }
    made_of = "subsequences" if relevance == "groups" and sequences.groups is None else relevance
    return prepare_sequences(
        sequences,
        out,
        relevance=made_of,
        query_share=recipe.query_share if query_share is None and made_of == "groups" else query_share,
        last_third=recipe.last_third,
        seed=seed,
        meta=about,
        anonymous=True,
    )


def prepare_sequences(
    sequences: EventSequences,
    out: str | PathLike[str] | None,
    *,
    relevance: str | None = None,
    query_share: float | None = None,
    last_third: bool = False,
    window_events: int | None = None,
    seed: int = 0,
    meta: Mapping[str, Any] | None = None,
    anonymous: bool = False,
) -> DataFolder:
    """Make a data folder from any sequences; `out` is its path, None for one in memory.

    `relevance` is one of
    - `groups`, the default if the sequences have groups: sequences of the same group are relevant. `query_share` of
      them become queries (0.15 if it is not given);
    - `subsequences`, for data without labels: windows of the same sequence are relevant. They do not overlap and have
      `window_events` events, by default so many that half of the sequences give five windows;
    - `overlapping`: the paper's heuristic, whose queries share events with their answers.

    With `anonymous`, ids are replaced by numbers that give nothing away. Otherwise sequences keep their ids, and a
    window has the id of its sequence with its place, such as `c1[10:20]`.
    """
    if relevance is None:
        relevance = "groups" if sequences.groups is not None else "subsequences"
    if window_events is not None and relevance != "subsequences":
        raise UserError("the number of events per window (--events) is for relevance 'subsequences'; leave it out")
    if query_share is not None and relevance != "groups":
        raise UserError("the share of queries (--query-share) is for relevance 'groups'; leave it out")
    query_share = 0.15 if query_share is None else query_share
    source = sequences.column("source")
    if source is not None and pa.types.is_nested(source.type):
        raise DataError(
            "column 'source' has one value per event, but it says where a whole sequence came from",
            remedy="rename it, or give all events of a sequence the same source",
        )
    name = {} if out is None else {"name": Path(out).resolve().name}
    about: dict[str, Any] = {**name, **(meta or {}), "relevance": relevance, "seed": seed}
    left_out: dict[str, int] = {}
    if relevance == "groups":
        if sequences.groups is None:
            raise DataError(
                "the sequences have no groups", remedy="add a column 'group' or use --relevance subsequences"
            )
        corpus, queries = divide(sequences, query_share, last_third, seed, left_out)
        about["query_share"] = round(query_share, 4)
    elif relevance == "subsequences":
        parents = _once(sequences, np.zeros(len(sequences), np.int64), left_out)
        size = window_events or _window_events(parents)
        corpus, queries = disjoint(parents, events=size, seed=seed)
        long = parents.lengths >= size
        left_out[f"sequences of fewer than {size} events"] = int((~long).sum())
        outside = int(parents.lengths[long].sum()) - len(corpus.times) - len(queries.times)
        left_out["events outside the windows"] = outside
        about["window_events"] = size
    elif relevance == "overlapping":
        parents = _once(sequences, np.zeros(len(sequences), np.int64), left_out)
        corpus, queries = overlapping(parents, seed=seed)
        left_out["sequences with too few events for two windows"] = len(parents) - len(queries)  # one query each
    else:
        raise UserError(f"relevance is {relevance!r}; choose from {', '.join(RELEVANCE)}")
    corpus, queries = _shuffled(corpus, queries, str(about.get("name", "sequence")) if anonymous else None, seed)
    about["left_out"] = {what: number for what, number in left_out.items() if number}
    whole = describe_retrieval(corpus, queries)
    for doubt in (*doubts(whole.everything), *_missing_splits(whole.queries_by_split)):
        warnings.warn(doubt, stacklevel=3)
    about["counts"] = whole.counts()
    return folder_of(corpus, queries, meta=about) if out is None else write_folder(out, corpus, queries, meta=about)


def _missing_splits(numbers: Mapping[str, int]) -> list[str]:
    """Say what cannot be done without train, validation or test queries."""
    missing = [split for split in SPLITS if not numbers.get(split)]
    if not missing:
        return []
    whole = sum(numbers.values())
    return [
        f"of {whole:,} {'query' if whole == 1 else 'queries'}, none is for {' or '.join(missing)}; all queries of one "
        "source are in the same split, so training and judging a model takes more sequences, from more sources"
    ]


def divide(
    sequences: EventSequences,
    query_share: float,
    last_third: bool = False,
    seed: int = 0,
    left_out: dict[str, int] | None = None,
) -> tuple[EventSequences, EventSequences]:
    """Divide a labelled set into corpus and queries (with a `split`); `left_out` counts what is in neither."""
    counts = {} if left_out is None else left_out
    sequences = _once(sequences, codes_of(sequences, "group"), counts)
    if last_third:
        is_query, is_corpus = tail_of_groups(sequences)
    else:
        is_query = choose_queries(sequences, query_share, seed, MIN_CORPUS)
        is_corpus = ~is_query
    group = codes_of(sequences, "group") + 1  # 0: none
    enough = np.bincount(group[is_corpus], minlength=group.max(initial=0) + 1) >= MIN_CORPUS
    enough[0] = True  # sequences without a group answer no query; they stay as distractors
    counts["sequences next to the queries of their group"] = int((enough[group] & ~is_query & ~is_corpus).sum())
    counts[f"sequences of groups with fewer than {MIN_CORPUS} in the corpus"] = int((~enough[group]).sum())
    is_query, is_corpus = is_query & enough[group], is_corpus & enough[group]
    if not is_query.any():
        apart = "" if sequences.column("source") is None else " from other sources"
        raise DataError(
            f"no group is large enough for a query and {MIN_CORPUS} other sequences{apart}; the largest has "
            f"{np.bincount(group[group > 0], minlength=1).max()}",
            remedy="add sequences to the groups, or use --relevance subsequences",
        )
    return sequences[is_corpus], split_queries(sequences[is_query], seed)


def _window_events(sequences: EventSequences) -> int:
    """Return a window size with which half of the sequences give five windows: query, gap, and three for the corpus."""
    return int(np.clip(np.median(sequences.lengths) // 5, 5, 100)) if len(sequences) else 5


def tail_of_groups(sequences: EventSequences) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return query and corpus rows for groups of one recording: the last third of its windows, and all but one before.

    If a group has several recordings, the last third of the last one gives the queries and the others are the corpus.
    """
    group, source = codes_of(sequences, "group"), codes_of(sequences, "source")
    position = np.asarray(sequences.column("position"))
    is_query, is_corpus = np.zeros(len(group), bool), np.zeros(len(group), bool)
    for rows in _runs(group):
        last = rows[source[rows] == source[rows].max()]
        windows = int(position[last].max()) + 1
        is_query[last] = position[last] >= windows - windows // 3
        others = rows[source[rows] != source[rows].max()]
        is_corpus[others] = True
        if not len(others):
            is_corpus[last] = position[last] < windows - windows // 3 - 1
    return is_query, is_corpus


def _once(sequences: EventSequences, kind: IntArray, left_out: dict[str, int]) -> EventSequences:
    """Return the sequences without those that have the same events as an earlier one of the same kind."""
    seen: dict[tuple[int, bytes, bytes], int] = {}
    times, marks, offsets = sequences.times, sequences.marks, sequences.offsets
    for row in range(len(sequences)):
        part = slice(offsets[row], offsets[row + 1])
        seen.setdefault((int(kind[row]), times[part].tobytes(), marks[part].tobytes()), row)
    left_out["sequences equal to another one"] = len(sequences) - len(seen)
    return sequences[np.fromiter(seen.values(), np.int64, len(seen))]


def _shuffled(
    corpus: EventSequences, queries: EventSequences, name: str | None, seed: int
) -> tuple[EventSequences, EventSequences]:
    """Shuffle both; with a name, replace the ids by numbers over both."""
    rng = np.random.default_rng(seed)
    corpus, queries = corpus[rng.permutation(len(corpus))], queries[rng.permutation(len(queries))]
    if name is None:
        return corpus, queries
    number = rng.permutation(len(corpus) + len(queries))
    ids = pa.array([f"{name}-{i:06d}" for i in number], pa.large_string())
    return corpus.with_column("id", ids[: len(corpus)]), queries.with_column("id", ids[len(corpus) :])


def _runs(codes: IntArray) -> list[IntArray]:
    """Return the rows of each code."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(codes) else []
