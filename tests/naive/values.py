"""The tables of values written as their definition, one event at a time."""

from __future__ import annotations

import math

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes.event_classes import log_gaps
from neuroseqret.processes.value_tables import MOST_MARKS, ValueTables


def value_statistics(tables: ValueTables, sequences: EventSequences) -> np.ndarray:
    """`ValueTables.statistics`: (sequences, size)."""
    edges = {name: tensor.tolist() for name, tensor in tables.tensors.items()}
    number = min(tables.marks, MOST_MARKS)

    def of(name, value):
        return sum(edge < value for edge in edges[name])

    rows = []
    for r in range(len(sequences)):
        one = sequences[r : r + 1]
        gaps, marks, n = log_gaps(one, tables.scale), one.marks, len(one.times)
        cells, moments = [], []

        def table(found, size, total, cells=cells):
            counts = [0] * size
            for cell in found:
                counts[cell] += 1
            cells += [math.sqrt(count / max(total, 1)) for count in counts]

        for v, scores in enumerate(tables.values.known(one)):
            fine, coarse = (len(edges[f"{name}.{v}"]) + 1 for name in ("fine", "coarse"))
            klass = [None if np.isnan(s) else of(f"coarse.{v}", s) for s in scores]
            table([of(f"fine.{v}", s) for s in scores if not np.isnan(s)], fine, n)
            steps = [(klass[i - 1], klass[i]) for i in range(1, n)]
            table([a * coarse + b for a, b in steps if a is not None and b is not None], coarse**2, n - 1)
            marked = [
                (edges["marks"][marks[i]] if "marks" in edges else marks[i], klass[i])
                for i in range(n)
                if klass[i] is not None and marks[i] < tables.marks
            ]
            table([int(x) * coarse + c for x, c in marked], number * coarse, n)
            timed = [i for i in range(n) if klass[i] is not None and np.isfinite(gaps[i])]
            of_gaps = [of("gaps", gaps[i]) * coarse + klass[i] for i in timed]
            table(of_gaps, (len(edges["gaps"]) + 1) * coarse, np.isfinite(gaps).sum())
            s = np.nan_to_num(scores.astype(np.float64), nan=0.0)
            own, steps = s - s.mean(), max(n - 1, 1)
            changes = sum(abs(s[i] - s[i - 1]) for i in range(1, n)) / steps
            lagged = sum(own[i] * own[i - 1] for i in range(1, n)) / steps / max((own**2).mean(), 1e-3)
            moments += [s.mean(), math.sqrt((own**2).mean()), changes, lagged]
        rows.append(cells + moments)
    return np.array(rows)
