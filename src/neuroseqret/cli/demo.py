"""`neuroseqret demo`: read real melodies, train a model, index and search them, and measure how well it works."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from neuroseqret.cli.console import out as console
from neuroseqret.cli.console import progress
from neuroseqret.cli.demo_closing import next_commands, write_events
from neuroseqret.cli.demo_figures import NAMES, OURS, Speed, figures_table, typical_queries, verdict
from neuroseqret.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from neuroseqret.data.sequences import EventSequence, EventSequences
    from neuroseqret.evaluation.protocol import RankingTask
    from neuroseqret.evaluation.runner import Result
    from neuroseqret.index import Hits, Index
    from neuroseqret.models.base import Embedder
    from neuroseqret.readers.data_folder import DataFolder

#: Most melodies per group, and seconds of training.
FULL, FAST = (200, 90.0), (40, 10.0)
HITS, TIMED = 5, 40  # hits shown of a query, queries timed
SEED = 0


def demo(
    fast: bool = typer.Option(
        False, "--fast", help="Use fewer melodies and train for 10 seconds; takes under a minute."
    ),
    out: Path = typer.Option(
        Path("neuroseqret-demo"), "--out", metavar="DIR", help="Folder to write data, model, index and picture to."
    ),
    open_page: bool = typer.Option(
        False,
        "--open",
        help="Serve the index and open it in the browser: see and hear the melodies. An index that an earlier demo "
        "made is served as it is.",
    ),
) -> None:
    """Train, index and search on real melodies.

    Reads about 2,500 melodies from the scores in the music21 package, trains a model, indexes half of the melodies,
    searches them for music of the same kind as a query, and compares the result with simpler methods. Takes two to
    three minutes.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file, not a folder; choose another --out")
    if not (open_page and (out / "index" / "index.json").exists()):
        _run(fast, out)
    if open_page:
        _serve(out / "index")


def _run(fast: bool, out: Path) -> None:
    begun = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    most, seconds = FAST if fast else FULL
    data = _data(most, out)
    task = _task(data)
    model = _train(task, seconds, out)
    index = _index(model, task, out)
    results = _evaluate(task, seconds, out)
    speed = _time(index, task)
    _show_hits(index, task, results, out)
    _step(f"6. How good: {len(task.queries)} test queries, {len(task.corpus):,} unseen melodies")
    console.print(figures_table(results, speed))
    for line in verdict(results, speed):
        console.print(line)
    _write(results, speed, task, out)
    write_events(data.corpus, out / "events.csv")
    console.print(
        f"\nDone in {time.monotonic() - begun:.0f} s. {out} holds data, events.csv, model, index, hits.png "
        "and results.json.",
        markup=False,
    )
    next_commands(out)


def _serve(index: Path) -> None:
    """Serve the index until Ctrl-C, and open it in the browser."""
    import webbrowser

    try:
        from neuroseqret.serving.running import run
    except ImportError as error:
        raise MissingExtraError(error.name or "fastapi", "server", "'neuroseqret demo --open'") from error
    from neuroseqret.serving.settings import ServerSettings

    def started(url: str) -> None:
        console.print(f"\nThe melodies are at {url} (end with Ctrl-C)", markup=False)
        webbrowser.open(url)

    run(ServerSettings(index=index, port=0), started)


def _step(text: str) -> None:
    console.print(f"\n[bold]{escape(text)}[/]")


# ---------------------------------------------------------------- data


def _data(most: int, out: Path) -> DataFolder:
    from neuroseqret.datasets.music import repertoires
    from neuroseqret.readers.data_folder import write_folder

    _step("1. Data: melodies from the scores inside the music21 package")

    def shown(items: Iterable[Any], total: int) -> Iterator[Any]:
        return progress(items, "reading scores", total)

    begun = time.monotonic()
    data = repertoires.load(most, seed=SEED, progress=shown)
    write_folder(out / "data", data.corpus, data.queries, meta=data.meta)
    counts = data.meta["counts"]
    console.print(
        f"{counts['corpus'] + counts['queries']:,} melodies of {counts['groups']} kinds, {counts['events']:,} notes, "
        f"read in {time.monotonic() - begun:.0f} s. Each note is an event, and its mark the interval from the last one."
    )
    table = Table(box=None, pad_edge=False)
    for name in ("kind of music", "melodies", "for example"):
        table.add_column(name, justify="right" if name == "melodies" else "left", overflow="ellipsis", no_wrap=True)
    groups, titles = _texts(data.corpus, "group"), _texts(data.corpus, "title")
    number = Counter(groups + _texts(_queries(data), "group"))
    example = dict(zip(groups, titles, strict=True))
    for group in sorted(number, key=lambda g: -number[g]):
        table.add_row(group, str(number[group]), escape(example[group]))
    console.print(table)
    return data


def _queries(data: DataFolder) -> EventSequences:
    assert data.queries is not None  # the recipe makes some
    return data.queries


def _texts(sequences: EventSequences, name: str) -> list[str]:
    column = sequences.column(name)
    return [] if column is None else [str(value) for value in column.to_pylist()]


def _task(data: DataFolder) -> RankingTask:
    from neuroseqret.evaluation.protocol import make_task

    task = make_task(_queries(data), data.corpus, data.relevance, condition="unseen", seed=SEED)
    train = _texts(_queries(data), "split").count("train")
    console.print(
        f"The model trains on {len(task.training_corpus):,} melodies and {train} train queries. It is then tested with "
        f"{len(task.queries)} other queries on {len(task.corpus):,} melodies from pieces that it has not seen."
    )
    return task


# ---------------------------------------------------------------- model and index


def _train(task: RankingTask, seconds: float, out: Path) -> Embedder:
    from neuroseqret.models.self_attention.model import SelfAttention

    _step("2. Training: a metric on histograms and random convolutions of marks and gaps")
    begun = time.monotonic()
    model = SelfAttention().fit(
        task.training_queries, task.training_corpus, task.training_relevance, seed=SEED, max_seconds=seconds
    )
    model.save(out / "model")
    console.print(f"trained in {time.monotonic() - begun:.0f} s on the CPU, written to {out / 'model'}", markup=False)
    return model


def _index(model: Embedder, task: RankingTask, out: Path) -> Index:
    from neuroseqret.index import Index

    _step("3. Index: one vector per melody")
    folder = out / "index"
    if (folder / "index.json").exists():
        shutil.rmtree(folder)
    begun = time.monotonic()
    index = Index.create(model, folder, progress([task.corpus], "indexing", 1))
    index.refresh()
    console.print(f"{len(index):,} melodies indexed in {time.monotonic() - begun:.1f} s", markup=False)
    return index


# ---------------------------------------------------------------- figures


def _evaluate(task: RankingTask, seconds: float, out: Path) -> list[Result]:
    from neuroseqret.evaluation.runner import run

    _step("4. Evaluation: rank the whole corpus for every test query")
    methods = ["udtw", "histogram-metric", str((out / "model").resolve())]
    results = run(task, methods, max_seconds=seconds, progress=progress)
    for result in results:
        if result.error:
            raise UserError(f"{NAMES.get(result.name, OURS)}: {result.error}")
    return results


def _time(index: Index, task: RankingTask) -> dict[str, Speed]:
    """Measure the time of one query at a time: of a search in the index, and of DTW against every melody.

    The median is taken, so that other work on the machine counts little. Of a search, the embedding of the query is
    timed on its own.
    """
    from neuroseqret.baselines.udtw import UDTW

    dtw = UDTW().fit(task.training_queries, task.training_corpus, task.training_relevance)
    asked = [task.queries[row : row + 1] for row in range(min(TIMED, len(task.queries)))]
    meaning = index.config.meaning
    numbered = [meaning.apply(query) for query in asked]
    spent = {
        "udtw": Speed(_median(lambda query: dtw.score(query, task.corpus), asked[: TIMED // 4])),
        OURS: Speed(
            _median(lambda query: index.search(query, k=10), asked),
            _median(index.embed_queries, numbered),
        ),
    }
    return spent


def _median(ask: Callable[[EventSequences], Any], queries: Sequence[EventSequences]) -> float:
    """Return the median milliseconds of a call; the first call compiles and opens files, so it is made twice."""
    ask(queries[0])
    spent = []
    for query in queries:
        begun = time.perf_counter()
        ask(query)
        spent.append(1000 * (time.perf_counter() - begun))
    return statistics.median(spent)


def _show_hits(index: Index, task: RankingTask, results: list[Result], out: Path) -> None:
    from neuroseqret.cli.demo_picture import Found, draw

    answers = next(result for result in results if result.name not in NAMES).answers
    assert answers is not None
    precision = answers.measures["AP"]
    _step("5. Search: typical queries and their best hits")
    console.print(
        "Of the hardest, the median and the easiest kind of music, the query with the median average precision (AP)."
    )
    rows = typical_queries(_texts(task.queries, "group"), precision)
    found = index.search(task.queries[rows], k=HITS)
    for row, hits in zip(rows, found, strict=True):
        query = task.queries[row]
        console.print(
            _hit_table(query.metadata["title"], f"{query.group}, AP {100 * precision[row]:.0f} %", query, hits)
        )
    # The picture shows the middle one of these, neither the best nor the worst.
    shown = sorted(range(len(rows)), key=lambda place: precision[rows[place]])[len(rows) // 2]
    query, hits = task.queries[rows[shown]], found[shown]
    melodies = index.get([hit.id for hit in hits])
    lanes = [Found(one, hit.score, hit.group == query.group) for one, hit in zip(melodies, hits, strict=True)]
    draw(query, lanes, out / "hits.png")
    console.print(f"{query.metadata['title']!r} and its hits as a picture: {out / 'hits.png'}", markup=False)


def _hit_table(title: str, about: str, query: EventSequence, hits: Hits) -> Table:
    table = Table(box=None, pad_edge=False, title=f"\n{escape(title)} [dim]({escape(about)})[/]", title_justify="left")
    for name in ("", "title", "kind of music", "score"):
        table.add_column(name, justify="right" if name == "score" else "left", no_wrap=True, overflow="ellipsis")
    for hit in hits:
        sign = "[green]✓[/]" if hit.group == query.group else "[red]✗[/]"
        table.add_row(
            f"{hit.rank} {sign}", escape(str(hit.metadata["title"])), escape(str(hit.group)), f"{hit.score:.2f}"
        )
    return table


def _write(results: list[Result], speed: dict[str, Speed], task: RankingTask, out: Path) -> None:
    content = {
        "queries": len(task.queries),
        "corpus": len(task.corpus),
        "condition": task.condition,
        "seed": task.seed,
        "methods": {r.name if r.name in NAMES else "self": r.means() for r in results},
        "milliseconds_per_query": {
            ("self" if name == OURS else name): value._asdict() for name, value in speed.items()
        },
    }
    (out / "results.json").write_text(json.dumps(content, indent=1) + "\n")
