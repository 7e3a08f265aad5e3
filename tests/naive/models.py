"""Slow, obvious references of the parts of the relevance model: plain loops, one event at a time."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch

# ------------------------------------------------------------------ features


def time_scale(sequences):
    """eps, mean, sd of log(gap + eps), from a list of (times, start)."""
    gaps = []
    for times, start in sequences:
        if times[0] > start:
            gaps.append(times[0] - start)
        gaps += [b - a for a, b in pairwise(times)]
    positive = [g for g in gaps if g > 0]
    eps = max(0.5 * np.quantile(positive, 0.02), 1e-3 * np.median(positive))
    logs = [math.log(g + eps) for g in gaps]
    return eps, np.mean(logs), np.std(logs)


# ------------------------------------------------------------------ point process


def attention_states(encoder, inputs):
    """States of the first sequence of the inputs by explicit attention, one position at a time."""
    length = int(inputs.mask[0].sum())
    rows = [encoder.position[0]]
    for i in range(length):
        mark = min(int(inputs.marks[0, i]), encoder.marks)
        rows.append(encoder.mark.weight[mark] + encoder.value(inputs.values[0, i]) + encoder.position[i + 1])
    return _through_blocks(encoder, torch.stack(rows), torch.zeros(()))


def hawkes_states(encoder, inputs):
    """States of the first sequence of the inputs under the Transformer Hawkes Process, wave by wave."""
    rows, clock = [encoder.begin], [0.0]
    for i in range(int(inputs.mask[0].sum())):
        mark = encoder.mark.weight[min(int(inputs.marks[0, i]), encoder.marks)]
        rows.append(mark + encoder.gap.weight[:, 0] * inputs.gaps[0, i] + encoder.gap.bias)
        clock.append(float(inputs.times[0, i]))
    half, width = encoder.begin.numel() // 2, encoder.begin.numel()
    angles = [[t / 10000 ** (2 * j / width) for j in range(half)] for t in clock]
    waves = torch.tensor([[math.sin(a) for a in row] + [math.cos(a) for a in row] for row in angles])
    return _through_blocks(encoder, torch.stack(rows), waves)


def _through_blocks(encoder, states, clock):
    """Causal attention and feed-forward networks; `clock` is added before every block."""
    for block in encoder.blocks:
        states = states + clock
        normal = block.norm_attention(states)
        query, key, value = block.query_key_value(normal).chunk(3, dim=1)
        size = query.shape[1] // block.heads
        mixed = []
        for i in range(len(states)):
            parts = []
            for head in range(block.heads):
                own = slice(head * size, (head + 1) * size)
                weights = torch.softmax((key[: i + 1, own] @ query[i, own]) / math.sqrt(size), dim=0)
                parts.append(weights @ value[: i + 1, own])
            mixed.append(torch.cat(parts))
        states = states + block.out(torch.stack(mixed))
        states = states + block.narrow(torch.relu(block.widen(block.norm_forward(states))))
    return encoder.norm(states)


def log_likelihood(heads, states, gaps, timed, marks, tail=None):
    """log p of one sequence from its states (n + 1, D): normal log gaps, softmax marks, survival of the tail."""
    total = torch.zeros(())
    for i in range(len(marks)):
        mu, s = heads.gap(states[i])
        sigma = torch.exp(3 * torch.tanh(s / 3))
        if timed[i]:
            total = total + torch.distributions.Normal(mu, sigma).log_prob(gaps[i])
        if marks[i] < heads.marks:
            total = total + torch.log_softmax(heads.mark(states[i]), 0)[marks[i]]
    if tail is not None:
        mu, s = heads.gap(states[len(marks)])
        total = total + torch.log(1 - torch.distributions.Normal(mu, torch.exp(3 * torch.tanh(s / 3))).cdf(tail))
    return total


def fisher_score(heads, states, gaps, timed, marks, tail=None, clip=5.0):
    """g of one sequence, event by event: residuals of the next event times [state; 1], one row per output."""
    outputs = 2 + heads.marks
    total = np.zeros((outputs, states.shape[1] + 1))

    def add(residuals, state):
        for k, r in enumerate(residuals):
            total[k] += min(max(r, -clip), clip) * np.append(state, 1.0)

    for i in range(len(marks)):
        mu, sigma, slope = _gap(heads, states[i])
        z = (float(gaps[i]) - mu) / sigma
        residuals = [z / sigma, (z**2 - 1) * slope] if timed[i] else [0.0, 0.0]
        p = torch.softmax(heads.mark(states[i]), 0).tolist()
        residuals += [float(marks[i] == x) - p[x] if marks[i] < heads.marks else 0.0 for x in range(heads.marks)]
        add(residuals, states[i].numpy())
    if tail is not None:
        mu, sigma, slope = _gap(heads, states[len(marks)])
        a = (float(tail) - mu) / sigma
        hazard = math.exp(-0.5 * a * a) / math.sqrt(2 * math.pi) / (0.5 * math.erfc(a / math.sqrt(2)))
        add([hazard / sigma, hazard * a * slope, *[0.0] * heads.marks], states[len(marks)].numpy())
    return total.ravel()


def _gap(heads, state):
    """mu, sigma and the slope of the smooth bound on log sigma."""
    mu, raw = heads.gap(state).tolist()
    s = 3 * math.tanh(raw / 3)
    return mu, math.exp(s), 1 - (s / 3) ** 2


def fisher_vectors(scores):
    """v of sequences from their scores g: divided by the root of the mean square of each column, then unit rows."""
    roots = [math.sqrt(np.mean([row[k] ** 2 for row in scores])) for k in range(len(scores[0]))]
    white = [[g / root if root else 0.0 for g, root in zip(row, roots, strict=True)] for row in scores]
    return np.array([np.array(row) / math.sqrt(sum(x * x for x in row)) for row in white])


def relevance(of_query, of_candidate, gamma, delta_t, delta_x):
    """s = kappa + gamma Sim with kappa = v(U(q)) . v(c) and Sim = -Delta_t - Delta_x."""
    kappa = sum(float(a) * float(b) for a, b in zip(of_query, of_candidate, strict=True))
    return kappa + gamma * (-delta_t - delta_x)


def projection(projection, vector):
    """The embedding of one vector: the unit vectors of all members, concatenated, over the root of their number."""
    found = []
    for member in range(projection.members):
        inner = vector @ projection.first[member].numpy() + projection.first_bias[member, 0].numpy()
        if projection.kind == "mlp":
            inner = np.maximum(inner, 0) @ projection.second[member].numpy() + projection.second_bias[member, 0].numpy()
        found.append(inner / math.sqrt(float(inner @ inner)))
    return np.concatenate(found) / math.sqrt(projection.members)


# ------------------------------------------------------------------ unwarping


def unwarp(net_rate, t, horizon, points=4000):
    """U(t) by the midpoint rule from 0 to t."""
    width = t / horizon / points
    middles = (torch.arange(points, dtype=torch.float32) + 0.5) * width
    return net_rate(middles[:, None]).double().sum().item() * width * horizon


def unwarp_penalty(net_rate, sigma, points=4000):
    middles = (torch.arange(points, dtype=torch.float32) + 0.5) / points
    return ((net_rate(middles[:, None]).double() - 1) ** 2).mean().item() / sigma**2


# ------------------------------------------------------------------ similarity


def deltas(query_times, query_marks, query_end, times, marks, end, normalised, horizon=None):
    shorter = min(len(query_times), len(times))
    last = max(query_end, end)
    delta_t = sum(abs(query_times[i] - times[i]) for i in range(shorter))
    delta_t += sum(last - t for t in list(query_times[shorter:]) + list(times[shorter:]))
    delta_x = sum(query_marks[i] != marks[i] for i in range(shorter)) + abs(len(times) - len(query_times))
    if normalised:
        longer = max(len(query_times), len(times))
        unit = (last if last > 0 else 1.0) if horizon is None else horizon
        return min(delta_t / (longer * unit), 1.0), delta_x / longer
    return delta_t, delta_x


# ------------------------------------------------------------------ Markov-renewal process


def markov_statistics(model, times, marks, start, end):
    """The features of one sequence before centring, table by table, in the order of the fast ones."""
    edges = {k: model.tensors[k].tolist() for k in ("fine", "coarse", "own", "own_coarse", "quarter")}
    scale, kinds, n = model.scale, model.marks, len(times)
    gaps: list[float | None] = []
    for i in range(n):
        gap = times[0] - start if i == 0 else times[i] - times[i - 1]
        absent = i == 0 and gap <= 0
        z = (math.log(gap + scale.eps) - scale.mean) / scale.sd
        gaps.append(None if absent else min(max(z, -6.0), 6.0))
    present = [g for g in gaps if g is not None]
    mean = sum(present) / max(len(present), 1)
    own = [None if g is None else g - mean for g in gaps]

    def klass(name, value):
        return sum(edge < value for edge in edges[name])

    def size(name):
        return len(edges[name]) + 1

    tables = []

    def table(codes, number, total):
        counts = [0.0] * number
        for code in codes:
            counts[code] += 1
        tables.extend(math.sqrt(c / max(total, 1)) for c in counts)

    def pairs(values, name):
        codes = []
        for i in range(n - 1):
            if values[i] is not None and values[i + 1] is not None:
                codes.append(klass(name, values[i]) * size(name) + klass(name, values[i + 1]))
        return codes

    def classes(name, most):
        """The class of each known mark, and how many there are."""
        if kinds <= most:
            return {x: x for x in range(kinds)}, kinds
        return dict(enumerate(model.tensors[name].tolist())), most

    alone, timed = classes("mark_classes", 1024), classes("timed_mark_classes", 64)
    table([alone[0][x] for x in marks if x < kinds], alone[1], n)

    def kept(name, codes):
        kinds_kept = model.tensors[name].tolist()
        table([kinds_kept.index(code) for code in codes if code in kinds_kept], len(kinds_kept), n - 1)

    known = [x < kinds for x in marks]
    kept("pairs", [marks[i] * kinds + marks[i + 1] for i in range(n - 1) if known[i] and known[i + 1]])
    kept(
        "triples",
        [(marks[i] * kinds + marks[i + 1]) * kinds + marks[i + 2] for i in range(n - 2) if all(known[i : i + 3])],
    )
    timed_pairs = []
    for i in range(n - 1):
        if known[i] and known[i + 1] and gaps[i + 1] is not None:
            timed_pairs.append((marks[i] * kinds + marks[i + 1]) * 4 + klass("quarter", gaps[i + 1]))
    kept("timed_pairs", timed_pairs)
    table([klass("fine", g) for g in present], size("fine"), len(present))
    table([klass("own", g) for g in own if g is not None], size("own"), len(present))
    both = [(timed[0][x], g, o) for x, g, o in zip(marks, gaps, own, strict=True) if g is not None and x < kinds]
    table([x * size("coarse") + klass("coarse", g) for x, g, _ in both], timed[1] * size("coarse"), len(present))
    table(pairs(gaps, "coarse"), size("coarse") ** 2, n - 1)
    table(pairs(own, "own_coarse"), size("own_coarse") ** 2, n - 1)
    triples = []
    for i in range(n - 2):
        three = gaps[i : i + 3]
        if None not in three:
            a, b, c = (klass("quarter", g) for g in three)
            triples.append((a * size("quarter") + b) * size("quarter") + c)
    table(triples, size("quarter") ** 3, n - 1)
    span = max(end - start, np.finfo(float).tiny)
    table([min(int(min(max((t - start) / span, 0), 1) * 10), 9) for t in times], 10, n)
    for column in (1, 2):
        for mark in range(timed[1]):
            values = [b[column] for b in both if b[0] == mark]
            tables.append(sum(values) / len(values) if values else 0.0)
    centred = [0.0 if o is None else o for o in own]
    variance = sum(c * c for c in centred) / max(len(present), 1)
    sd = math.sqrt(variance) + 1e-3
    moments = [mean, sd, math.log(sd), sum(c**3 for c in centred) / max(len(present), 1) / sd**3, math.log(n)]
    moments.append(math.log(times[-1] - times[0] + scale.eps))
    for lag in range(1, 7):
        product = sum(centred[i] * centred[i + lag] for i in range(n - lag))
        moments.append(product / max(n - lag, 1) / max(variance, 1e-3))
    changes = []
    for a, b in pairwise(gaps):
        changes.append(b - a if a is not None and b is not None else 0.0)
    moments.append(sum(abs(c) for c in changes) / max(n - 1, 1))
    moments.append(math.log(sum(c * c for c in changes) / max(n - 1, 1) + 1e-4))
    return np.array(tables + [min(max(m, -50.0), 50.0) for m in moments])
