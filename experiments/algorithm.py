"""`algorithm`: the paper's Algorithm 1 from hash codes to the last ranking, for every way to make codes."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import drawing
from experiments.algorithm_run import (
    DEPTH,
    LEFT_OUT,
    LENGTHS,
    WAYS,
    Order,
    Point,
    Reranked,
    Rows,
    curve,
    new_hash,
    point,
)
from experiments.hash_curve import TABLES
from experiments.lab import Lab, Piece
from experiments.markdown import NOTHING, Finding, decimals, details, number, of, picture, table
from experiments.measured import DIFFERENT, Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result
from neuroseqret.evaluation.protocol import RankingTask
from neuroseqret.models.base import Embedder, Scores
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.models.presets import PAPER_TABLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ASKED = 100  # test queries of a set, because a second stage scores every pair anew
PAPER_L = 12
NAMES = {
    "hyperplanes": "random hyperplanes",
    "paper": "η1, η2, η3",
    "paper-without-evenness": "η2, η3",
    "paper-without-saturation": "η1, η3",
    "paper-without-redundancy": "η1, η2",
    "trees": "median trees (ours)",
}
#: Whose embeddings are hashed, and what then ranks the candidates.
BASES = {"self": ("buckets", "cross", "hash-cross"), "hash-cross": ("buckets", "hash-cross")}
OWN_WAYS = ("hyperplanes", "paper", "trees")  # of the embeddings of `hash-cross`
ORDERS = {"buckets": "buckets alone", "cross": "then `cross`", "hash-cross": "then `hash-cross`"}
MEASURES = {"nDCG@10": "nDCG@10", "AP": "MAP"}

Curves = dict[tuple[str, str, str], list[Point]]  # by data set, base and way


def measure(lab: Lab) -> None:
    """Measure one cell per data set, hashed embeddings and way; exhaustive search is the way without a hash."""

    @lru_cache(maxsize=1)
    def bench(data: str) -> Bench:
        return Bench(lab, data)

    def look(data: str, base: str, way: str) -> Result:
        return bench(data).measure(base, way)

    pieces = []
    for data in lab.data:
        fit = Fit(data=data, method="cross", preset="paper")
        for base in BASES if lab.wanted(fit) else ():
            for way in ("exhaustive", *(WAYS if base == "self" else OWN_WAYS)):
                config = lab.piece_config("algorithm", fit, base=base, way=way, asked=ASKED)
                pieces.append(Piece(f"{data}/algorithm/{base}-{way}", config, partial(look, data, base, way)))
    lab.run_pieces(pieces)


class Bench:
    """The three models of a data set, their embeddings, and the scores that were computed so far."""

    def __init__(self, lab: Lab, data: str) -> None:
        self.data = data
        task = lab.task(Fit(data=data, method="self", preset="paper"), View())
        self.task: RankingTask = task.part(np.arange(min(ASKED, len(task.queries))))
        models = [
            lab.fitted(Fit(data=data, method=name, preset="paper"))[0] for name in ("self", "cross", "hash-cross")
        ]
        first, cross, hash_cross = models
        assert isinstance(first, Embedder)
        assert isinstance(cross, SecondStage)
        assert isinstance(hash_cross, HashCrossAttention)
        queries, corpus = self.task.queries, self.task.corpus
        embedders: dict[str, Embedder] = {"self": first, "hash-cross": hash_cross}
        self.embedded = {
            name: (m.embed(corpus, "corpus", unknown_marks="keep"), m.embed(queries, "query", unknown_marks="keep"))
            for name, m in embedders.items()
        }
        own_corpus, own_queries = self.embedded["hash-cross"]
        self.first = {
            "self": first.score(queries, corpus, unknown_marks="keep"),
            "hash-cross": own_queries @ own_corpus.T,
        }
        self.orders = {"cross": self._reranked(cross), "hash-cross": self._reranked(hash_cross)}

    def measure(self, base: str, way: str) -> Result:
        """Return the points of one way over the embeddings of one model."""
        orders = {name: self.orders[name] for name in BASES[base][1:]}
        first, truth = self.first[base], self.task.relevance
        if way == "exhaustive":
            every = np.arange(first.shape[1])
            return {"points": [point(lambda query: every, first, orders, truth)]}
        corpus, queries = self.embedded[base]
        hashed = new_hash(way, self.data, width_of(self.data)).fit(corpus)
        return {"points": curve(hashed, corpus, queries, first, orders, truth)}

    def _reranked(self, model: SecondStage) -> Order:
        queries, corpus = self.task.queries, self.task.corpus

        def score(query: int, rows: Rows) -> Scores:
            return model.score_listed(
                queries[query : query + 1], corpus, rows[None].astype(np.int64), unknown_marks="keep"
            )[0]

        return Reranked.of(score, len(queries), len(corpus))


def width_of(data: str) -> int:
    """Return D of the paper's table, which is also its R; 64 for a set that is not in it."""
    return PAPER_TABLE[data][3] if data in PAPER_TABLE else 64


def curves(measured: Measured) -> Curves:
    """Return the points by data set, base and way."""
    found = {(c["data"], c["base"], c["way"]): r["points"] for c, r in measured.pieces["algorithm"] if "points" in r}
    ways = [(base, way) for base in BASES for way in ("exhaustive", *WAYS)]
    keys = [(data, base, way) for data in measured.data for base, way in ways]
    return {key: found[key] for key in keys if key in found}


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure, a table at the paper's L, and the tables at every L behind a click."""
    found = curves(measured)
    if not found:
        return f"## Algorithm 1, end to end\n\n{NOTHING}"
    if figures is not None:
        _draw(found, figures)
    return "\n\n".join(
        [
            "## Algorithm 1, end to end",
            f"Preset `paper`, seed 0, corpus seen, at most {ASKED} test queries of a set. The vectors of `self` are "
            f"hashed into R = D bits, {TABLES} tables take L random bits each, and the union of the query's buckets is "
            f"ranked: by the score of `self` (buckets alone), then with the best {DEPTH} of them in the order of "
            "`cross` or of `hash-cross`. The last rows hash the own embedding of `hash-cross` in place of that of "
            "`self`. A relevant sequence that is in no bucket counts as not found. The weights η are those of the "
            "paper's table, scaled to the same sum where one is left out; median trees have a tree of "
            f"{LENGTHS[-1]} bits for every table.",
            picture("algorithm", "nDCG@10 against the reduction in comparisons for Algorithm 1, one panel per set"),
            f"At the paper's L = {PAPER_L}, each cell with the share of the corpus that is compared:",
            *(_at_length(found, PAPER_L, measure) for measure in MEASURES),
            details(
                f"nDCG@10 at every other L from {LENGTHS[0]} to {LENGTHS[-1]}",
                "\n\n".join(_at_length(found, length, "nDCG@10") for length in LENGTHS if length != PAPER_L),
            ),
        ]
    )


def _at_length(found: Curves, length: int, measure: str) -> str:
    names = list(dict.fromkeys(data for data, _, _ in found))
    rows = [(base, way, order) for base in BASES for way in ("exhaustive", *WAYS) for order in BASES[base]]
    rows = [row for row in rows if any((data, *row[:2]) in found for data in names)]
    columns = []
    for data in names:
        points = [_point(found, data, base, way, length) for base, way, _ in rows]
        values = [100 * one.get(f"{measure} {row[2]}", np.nan) for one, row in zip(points, rows, strict=True)]
        form = f".{decimals(values)}f"
        columns.append(
            [
                f"{number(value, form)} ({_share(one)})" if one and row[1] != "exhaustive" else number(value, form)
                for value, one, row in zip(values, points, rows, strict=True)
            ]
        )
    lines = [[_row_name(*row), *cells] for row, *cells in zip(rows, *columns, strict=True)]
    return table([f"{MEASURES[measure]}, L = {length}", *names], lines)


def _share(one: Point) -> str:
    """Return the share compared as `12 %` or `0.34 %`."""
    share = 100 * one["compared"]
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"


def _row_name(base: str, way: str, order: str) -> str:
    hashed = NAMES.get(way, "exhaustive")
    return f"{hashed}, {ORDERS[order]}" if base == "self" else f"own embedding, {hashed}, {ORDERS[order]}"


def _point(found: Curves, data: str, base: str, way: str, length: int) -> Point:
    """Return the point of a way at L; exhaustive search has one for all L."""
    points = found.get((data, base, way), [])
    return next((one for one in points if one.get("L", length) == length), {})


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claims about its algorithm, at its L."""
    found = curves(measured)
    sets = list(dict.fromkeys(data for data, _, _ in found))

    def higher(one: tuple[str, str], other: tuple[str, str], measure: str = "nDCG@10") -> str:
        """Return on how many sets the first (way, order) is above the second."""
        pairs = [
            [
                100 * _point(found, data, "self", way, PAPER_L).get(f"{measure} {order}", np.nan)
                for way, order in (one, other)
            ]
            for data in sets
        ]
        known = [a - b for a, b in pairs if not np.isnan(a - b)]
        return of(sum(gain >= DIFFERENT for gain in known), len(known)) if known else ""

    reranked = higher(("hyperplanes", "cross"), ("hyperplanes", "buckets"))
    whole = higher(("exhaustive", "cross"), ("exhaustive", "buckets"))
    said = (
        f"at L = {PAPER_L} with random hyperplanes, reranking by `cross (paper)` raises nDCG@10 on {reranked} sets; "
        f"after exhaustive search on {whole}"
        if reranked and whole
        else ""
    )
    return [
        Finding("Each term of the objective helps, η1 most.", _terms(found)),
        Finding("A set of candidates from LSH on SelfAttn, reranked by CrossAttn, offers a good trade-off.", said),
    ]


def _terms(found: Curves) -> str:
    """Return the share of the corpus that is compared with and without each term; a good code makes it small."""
    compared = {
        way: [
            point["compared"]
            for (_, base, own), points in found.items()
            if base == "self" and own == way
            for point in points
            if point["L"] == PAPER_L
        ]
        for way in ("paper", *LEFT_OUT, "hyperplanes")
    }
    if not all(compared.values()):
        return ""
    median = {way: _share({"compared": float(np.median(shares))}) for way, shares in compared.items()}
    left_out = ", ".join(f"{median[way]} without η{term + 1}" for way, term in LEFT_OUT.items())
    return (
        f"at L = {PAPER_L} a query is compared with {median['paper']} of the corpus with all terms (median of "
        f"{len(compared['paper'])} sets), {left_out}, and {median['hyperplanes']} with random hyperplanes; the smaller "
        "the share, the more a hash saves"
    )


def _draw(found: Curves, folder: Path) -> None:
    def panel(axis: Axes, data: str) -> None:
        for place, way in enumerate(WAYS):
            shown = [one for one in found.get((data, "self", way), []) if one["compared"] > 0]
            if shown:
                x, y = [1 / one["compared"] for one in shown], [100 * one["nDCG@10 buckets"] for one in shown]
                drawing.curve(axis, x, y, place, NAMES[way])
        for one in found.get((data, "self", "exhaustive"), []):
            for measure, sign, size, name in (("buckets", "*", 14, "exhaustive"), ("cross", "x", 8, "then cross")):
                if (value := one.get(f"nDCG@10 {measure}")) is not None:
                    axis.plot(1, 100 * value, sign, color=drawing.EXHAUSTIVE, markersize=size, zorder=5, label=name)
        drawing.logarithmic(axis)
        drawing.label_axes(axis, "times fewer comparisons", "nDCG@10")

    names = list(dict.fromkeys(data for data, _, _ in found))
    drawing.draw(folder, "algorithm", names, panel, height=3.3, legend_columns=3)
