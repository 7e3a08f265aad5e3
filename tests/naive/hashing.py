"""Slow, obvious references of hash codes, bucket tables and cells: plain loops over bits, codes and buckets."""

from __future__ import annotations

import itertools
import math

import numpy as np


def bits_of(code, count):
    """The bits of one packed code, as a list of 0 and 1."""
    return [(int(code[r // 64]) >> (r % 64)) & 1 for r in range(count)]


def hamming(a, b):
    return sum(bin(int(x) ^ int(y)).count("1") for x, y in zip(a, b, strict=True))


def nearest_codes(codes, code, wanted):
    """Rows of the nearest codes, ties by row, as a sorted list."""
    order = sorted(range(len(codes)), key=lambda row: (hamming(codes[row], code), row))
    return sorted(order[:wanted])


def bucket(code, positions, bits):
    chosen = bits_of(code, bits)
    return sum(chosen[position] << rank for rank, position in enumerate(positions))


def tables(codes, positions, bits):
    """Return for every table a dictionary from bucket number to the rows in it."""
    made = []
    for table in positions:
        buckets: dict[int, list[int]] = {}
        for row, code in enumerate(codes):
            buckets.setdefault(bucket(code, table, bits), []).append(row)
        made.append(buckets)
    return made


def union(codes, positions, bits, code, margins, wanted=0, probes=0):
    """Return the rows of the query's buckets in all tables, then of flipped ones by rising sum of |margin|.

    Continuous margins give no equal costs, except that the same set of bits may be flipped in several tables. Tests
    therefore compare the rows exactly only for one table.
    """
    made = tables(codes, positions, bits)
    found = set()
    for table, buckets in zip(positions, made, strict=True):
        found |= set(buckets.get(bucket(code, table, bits), []))
    flips = []
    for number, table in enumerate(positions):
        for size in range(1, len(table) + 1):
            for chosen in itertools.combinations(range(len(table)), size):
                flips.append((sum(abs(margins[table[i]]) for i in chosen), number, chosen))
    for done, (_, number, chosen) in enumerate(sorted(flips)):
        if len(found) >= wanted and done >= probes:
            break
        key = bucket(code, positions[number], bits)
        for i in chosen:
            key ^= 1 << i
        found |= set(made[number].get(key, []))
    return found


def plane_signs(v, planes):
    """sgn(u_r . v) of every plane u_r, as True for +1."""
    return [sum(float(a) * float(b) for a, b in zip(u, v, strict=True)) > 0 for u in planes]


def network_signs(v, first, first_bias, last, last_bias):
    """sgn(Lambda(v)): a linear layer, ReLU, a linear layer, unit by unit."""
    inner = [
        max(0.0, sum(w * x for w, x in zip(row, v, strict=True)) + b) for row, b in zip(first, first_bias, strict=True)
    ]
    return [sum(w * x for w, x in zip(row, inner, strict=True)) + b > 0 for row, b in zip(last, last_bias, strict=True)]


def paper_objective(h, eta):
    """The paper's equation, sum by sum."""
    n, r = len(h), len(h[0])
    even = sum(abs(sum(row)) for row in h) / n
    near = sum(sum(abs(abs(x) - 1) for x in row) for row in h) / n
    pairs = sum(row[i] * row[j] for row in h for i in range(r) for j in range(r) if i != j)
    return eta[0] * even + eta[1] * near + 2 * eta[2] / math.comb(r, 2) * abs(pairs)


def extra_terms(h, v):
    """Similarity, balance, decorrelation of the default preset."""
    n, r = len(h), len(h[0])
    balance = sum((sum(row[b] for row in h) / n) ** 2 for b in range(r)) / r
    similarity = 0.0
    for a in range(n):
        for b in range(n):
            if a != b:
                cosine = min(1.0, max(-1.0, float(np.dot(v[a], v[b]))))
                wish = 1 - 2 / math.pi * math.acos(cosine)
                similarity += (float(np.dot(h[a], h[b])) / r - wish) ** 2
    correlation = [(sum(row[i] * row[j] for row in h) / n) ** 2 for i in range(r) for j in range(r) if i != j]
    return similarity / (n * (n - 1)), balance, sum(correlation) / len(correlation)


def nearest_centre(v, centres):
    return max(range(len(centres)), key=lambda c: (float(np.dot(v, centres[c])), -c))


def split_value(values):
    """A threshold with half of the values above it (of 2 k + 1, k + 1); a hair below the lower middle one at a tie."""
    ordered = sorted(float(v) for v in values)
    below, above = ordered[len(ordered) // 2 - 1], ordered[len(ordered) // 2]
    return (below + above) / 2 if above - below > 2e-5 else below - 1e-5


def tree_bits(rows, direction, levels):
    """Bits of every row in one median tree: every bucket is split at its own median, level after level.

    `direction` gives the direction of a bucket from its bits. A bucket of fewer than two rows is split at the median of
    all rows.
    """
    bits = [() for _ in rows]
    for _ in range(levels):
        after = list(bits)
        for bucket in set(bits):
            values = [float(np.dot(row, direction(bucket))) for row in rows]
            inside = [v for v, b in zip(values, bits, strict=True) if b == bucket]
            threshold = split_value(inside if len(inside) > 1 else values)
            for row, value in enumerate(values):
                if bits[row] == bucket:
                    after[row] = (*bucket, int(value > threshold))
        bits = after
    return bits


def nearest_pairs(rows, number):
    """Every row with each of its nearest others by dot product."""
    pairs = []
    for row, vector in enumerate(rows):
        others = [other for other in range(len(rows)) if other != row]
        others.sort(key=lambda other: -float(np.dot(vector, rows[other])))
        pairs += [(row, other) for other in others[:number]]
    return pairs


def kept_together(pairs, bits, earlier):
    """The weighted number of pairs with equal bits: 2^-a for a pair that has equal bits in a earlier trees."""
    total = 0.0
    for one, other in pairs:
        found = sum(tree[one] == tree[other] for tree in earlier)
        total += 2.0**-found * (bits[one] == bits[other])
    return total
