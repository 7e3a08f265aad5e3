"""Slow, obvious references of the cross-attention room: loops over events, cells and lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from neuroseqret.processes.event_classes import log_gaps


def cross_attention(corpus: Any, query: Any, *weights: Any, causal: bool = False) -> Any:
    """h_j of corpus events (J, D) over query events (I, D), block after block of three weights each."""
    attended = one_block(corpus, query, *weights[:3], causal)
    for begin in range(3, len(weights), 3):
        corpus = corpus + attended
        attended = one_block(corpus, query, *weights[begin : begin + 3], causal)
    return attended


def one_block(corpus: Any, query: Any, w_query: Any, w_key: Any, w_value: Any, causal: bool) -> Any:
    """h_j of one block, one softmax at a time."""
    found = []
    for j in range(len(corpus)):
        asked = w_query @ corpus[j]
        last = j + 1 if causal else len(query)
        logits = [float(asked @ (w_key @ query[i])) / math.sqrt(len(asked)) for i in range(last)]
        weights = [math.exp(x - max(logits)) for x in logits]
        found.append(sum(w / sum(weights) * (w_value @ query[i]) for i, w in enumerate(weights)))
    return np.array(found)


def event_embeddings(process: Any, times: list[float], marks: list[int], unit: float = 1.0) -> Any:
    """y_i of one sequence, event by event."""
    found, before = [], 0.0
    for i, (t, x) in enumerate(zip(times, marks, strict=True)):
        clock = process.clock.weight[:, 0] * t / unit + process.clock.weight[:, 1] * (t - before) + process.clock.bias
        position = process.position[min(i, len(process.position) - 1)]
        found.append((process.mark.weight[min(x, process.marks)] + clock + position).detach().numpy())
        before = t
    return np.array(found)


def prefix_states(attended: Any, out: Any, feed: Any, feed_bias: Any, out_bias: Any) -> Any:
    """hbar_0 ... hbar_L by the sum in the paper."""
    states = [np.zeros(attended.shape[1])]
    for r in range(1, len(attended) + 1):
        total = np.zeros(attended.shape[1])
        for j in range(r):
            total += out * np.maximum(attended[j] * feed + feed_bias, 0) + out_bias
        states.append(total)
    return np.array(states)


def normal_divergence(mu1: float, sigma1: float, mu2: float, sigma2: float) -> float:
    """KL between normals by the trapezoidal rule on a fine grid."""
    x = np.linspace(mu1 - 12 * sigma1, mu1 + 12 * sigma1, 20001)
    log1 = -0.5 * ((x - mu1) / sigma1) ** 2 - math.log(sigma1) - 0.5 * math.log(2 * math.pi)
    log2 = -0.5 * ((x - mu2) / sigma2) ** 2 - math.log(sigma2) - 0.5 * math.log(2 * math.pi)
    return float(np.trapezoid(np.exp(log1) * (log1 - log2), x))


def mark_divergence(p: Any, q: Any) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def textbook_divergence(mu1: float, sigma1: float, p: Any, mu2: float, sigma2: float, q: Any) -> float:
    """KL of one next event from another: the formula for two normals, plus the sum over marks."""
    of_gap = math.log(sigma2 / sigma1) + (sigma1**2 + (mu1 - mu2) ** 2) / (2 * sigma2**2) - 0.5
    return of_gap + mark_divergence(p, q)


def gain(
    events: list[tuple[int, int]],
    of_set: list[tuple[int, int]],
    of_corpus: list[tuple[int, int]],
    size: tuple[int, int],
) -> float:
    """G(H | S) of one table: events are (context, outcome) pairs, size is the number of contexts and outcomes."""
    prior = 5.0
    total = 0.0
    for a, y in events:
        shared = (of_corpus.count((a, y)) + 0.5) / (sum(c == a for c, _ in of_corpus) + 0.5 * size[1])
        given = (of_set.count((a, y)) + prior * shared) / (sum(c == a for c, _ in of_set) + prior)
        total += math.log(given / shared)
    return total / max(len(events), 1)


def pairs_of_table(marks: list[int], lags: tuple[int, ...], size: int) -> list[tuple[int, int]]:
    """(context, outcome) of every event of one sequence for a table of marks given marks at the lags."""
    found = []
    for i in range(len(marks)):
        if all(i >= lag for lag in lags):
            context = 0
            for lag in lags:
                context = context * size + marks[i - lag]
            found.append((context, marks[i]))
    return found


def table_cells(tables: Any, table: Any, times: list[float], marks: list[int], start: float, end: float) -> list[int]:
    """The code of every event of one sequence that a table counts, by loops over events and context."""
    scale, n = tables.scale, len(times)
    gaps: list[float | None] = []
    for i in range(n):
        gap = times[i] - (times[i - 1] if i else start)
        z = (math.log(gap + scale.eps) - scale.mean) / scale.sd
        gaps.append(None if i == 0 and gap <= 0 else min(max(z, -6.0), 6.0))
    present = [g for g in gaps if g is not None]
    mean = sum(present) / max(len(present), 1)

    def value(view: str, i: int) -> int | None:
        if view == "mark":
            return int(tables.mark_rank[marks[i]]) if marks[i] < len(tables.mark_rank) else None
        if view == "part":
            return min(int((times[i] - start) / max(end - start, 1e-300) * 10), 9)
        gap = gaps[i]
        if gap is None:
            return None
        return sum(edge < (gap - mean if view.startswith("own") else gap) for edge in tables.edges[view])

    def size(view: str) -> int:
        return {"mark": len(tables.mark_rank), "part": 10}.get(view) or len(tables.edges[view]) + 1

    codes = []
    for i in range(n):
        code: int | None = 0
        for view, lag in (*table.context, (table.outcome, 0)):
            found = value(view, i - lag) if i >= lag else None
            code = None if code is None or found is None else code * size(view) + found
        if code is not None:
            codes.append(code)
    return codes


def memory_attention(weights: Any, vector: Any, centroids: Any, gains: Any) -> list[float]:
    """a(S | H) of one sequence: its embedding (D,), the centroids (S, D) and its gains (tables, S)."""
    logits = []
    for s in range(len(centroids)):
        evidence = weights[0] * sum(a * b for a, b in zip(vector, centroids[s], strict=True))
        evidence += sum(weights[1 + k] * gains[k][s] for k in range(len(gains)))
        logits.append(10 * evidence)
    raised = [math.exp(x - max(logits)) for x in logits]
    return [x / sum(raised) for x in raised]


def mixed_embedding(vector: Any, attention: Any, centroids: Any, strength: float) -> Any:
    """e(H) of one sequence: the first-stage embedding plus the attended centroids, of unit length."""
    total = np.array(vector, float)
    for s, share in enumerate(attention):
        total += strength * share * np.array(centroids[s])
    return total / math.sqrt(sum(x * x for x in total))


def average_precision(truth: list[bool], count: int) -> float:
    """Of a list in ranked order, over the relevant ones that it can hold."""
    hits, total = 0, 0.0
    for place, relevant in enumerate(truth, 1):
        if relevant:
            hits += 1
            total += hits / place
    return total / max(min(count, len(truth)), 1)


def ndcg(truth: list[bool], count: int, depth: int) -> float:
    gained = sum(1 / math.log2(place + 1) for place, relevant in enumerate(truth[:depth], 1) if relevant)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(count, depth) + 1))
    return gained / ideal if ideal else 0.0


def reranked(first: list[float], second: dict[int, float]) -> list[int]:
    """Columns in final order: those with a second-stage score first, by it, then the rest by the first stage."""
    listed = sorted(second, key=lambda c: (-second[c], -first[c], c))
    rest = sorted((c for c in range(len(first)) if c not in second), key=lambda c: (-first[c], c))
    return listed + rest


def local_outputs(bank: Any, sequence: Any, reach: int, most: int) -> Any:
    """The outputs of the bank's kernels without dilation around every event of one sequence, tap by tap."""
    a = {name: tensor.numpy() for name, tensor in bank.tensors.items()}
    gaps = log_gaps(sequence, bank.scale)
    mean = np.nanmean(gaps) if np.isfinite(gaps).any() else 0.0
    gaps = np.where(np.isnan(gaps), mean, gaps)
    classes = a["codes"].shape[1] - 1
    kinds = [mark % classes if 0 <= mark < bank.marks else classes for mark in sequence.marks]
    channels = np.vstack([gaps, gaps - mean, bank.values.of(sequence), a["codes"][:, kinds]])
    rows = []
    for i in range(len(gaps)):
        row = []
        for k in range(len(a["span"])):
            taps = range(a["begin"][k], a["begin"][k + 1])
            offsets = sorted({int(a["offset"][t]) for t in taps})
            if offsets != list(range(len(offsets))) or len(offsets) > 2 * reach + 1 or len(row) == most:
                continue
            places = [(t, i + int(a["offset"][t]) - offsets[-1] // 2) for t in taps]
            row.append(sum(a["tap"][t] * channels[a["channel"][t], p] for t, p in places if 0 <= p < len(gaps)))
        rows.append(row)
    return np.array(rows)


def event_agreement(query: Any, candidate: Any, sharpness: float) -> float:
    """A of two sequences of unit states, one softmax at a time."""

    def one_way(asking: Any, asked: Any) -> float:
        total = 0.0
        for x in asking:
            raised = [math.exp(sharpness * float(x @ y)) for y in asked]
            total += float(x @ sum(e / sum(raised) * y for e, y in zip(raised, asked, strict=True)))
        return total / len(asking)

    return (one_way(query, candidate) + one_way(candidate, query)) / 2
