"""The table of the data: sizes, and which share of the corpus is relevant to a query."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.lab import Lab, Piece
from experiments.markdown import table
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result


def measure(lab: Lab) -> None:
    """Measure one cell per data set; nothing is fitted."""

    def look(fit: Fit) -> Result:
        full, lists = lab.task(fit, View()), lab.task(fit, View(protocol="sampled"))
        corpus, queries = lab.folder(fit.data).corpus, full.training_queries
        return {
            "events": int(corpus.offsets[-1] + queries.offsets[-1]),
            "marks": corpus.num_marks,
            "sequences": len(corpus),
            "queries": len(queries),
            "relevant": round(float(np.mean(full.relevance.counts)), 2),
            "relevant_share": round(float(np.mean(full.relevance.counts / len(corpus))), 6),
            "relevant_share_of_lists": round(float(np.mean(lists.relevance.counts / lists.candidates)), 6),
        }

    fits = [Fit(data=data, method="random") for data in lab.data]
    lab.run_pieces([Piece(f"{fit.data}/data", lab.piece_config("data", fit), partial(look, fit)) for fit in fits])


def report(measured: Measured) -> str:
    """Return one column per data set, as in the paper; empty if nothing was measured."""
    found = {c["data"]: r for c, r in measured.pieces["data"] if "error" not in r}
    if not found:
        return ""
    sets = [data for data in measured.data if data in found]
    rows = {
        "sequences in the corpus": lambda one: f"{one['sequences']:,}",
        "queries, all splits": lambda one: f"{one['queries']:,}",
        "events": lambda one: f"{one['events']:,}",
        "marks": lambda one: f"{one['marks']:,}",
        "relevant to a test query": lambda one: f"{one['relevant']:,.0f}",
        "|C_q+| / |C|, whole corpus": lambda one: f"{one['relevant_share']:.3f}",
        "|C_q+| / |C|, lists as in the paper": lambda one: f"{one['relevant_share_of_lists']:.3f}",
    }
    lines = [[name, *(shown(found[data]) for data in sets)] for name, shown in rows.items()]
    return "\n\n".join(
        [
            "The data, with the mean share of the corpus that is relevant to a test query. (The paper's table has 0.16 "
            "to 0.30, of the sequences that are drawn for training.)",
            table(["", *sets], lines),
        ]
    )
