from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import hashing as naive
from neuroseqret.candidates import BucketTables, pack_bits
from neuroseqret.candidates.bucket_tables import Workspace, choose_length
from neuroseqret.errors import UserError


def random_codes(rng, n, bits, skew=0.5):
    return pack_bits(rng.random((n, bits)) < skew)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(0, 80),
    bits=st.sampled_from([6, 64, 70]),
    tables=st.integers(1, 4),
    length=st.integers(1, 6),
)
def test_tables_and_unions_equal_the_naive_ones(seed, n, bits, tables, length):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, n, bits, 0.3)
    made = BucketTables.build(codes, bits, tables, length, seed=seed)
    expected = naive.tables(codes, made.positions.tolist(), bits)
    for table in range(tables):
        for bucket in range(1 << length):
            begin, stop = made.offsets[table, bucket : bucket + 2]
            assert made.rows[table, begin:stop].tolist() == expected[table].get(bucket, [])
    margins = rng.normal(size=bits).astype(np.float32)
    code = pack_bits(margins[None] > 0)[0]
    for wanted in (0, 1, n // 2, n, n + 5):
        found = made.candidates(code, margins, wanted)
        assert len(set(found.tolist())) == len(found)
        union = naive.union(codes, made.positions.tolist(), bits, code, margins, min(wanted, n))
        if tables == 1 or wanted == 0:  # with more tables one bit set may be flipped in several, in any order
            assert set(found.tolist()) == union
        assert len(found) >= min(wanted, n)


def test_probes_flip_the_least_certain_bits_first():
    # All 2^4 codes, one each; a table over all four bits: the order of the buckets is the order of the flips.
    codes = np.arange(16, dtype=np.uint64)[:, None]
    table = BucketTables.build(codes, 4, tables=1, length=4)
    margins = np.array([0.1, -0.25, 0.5, -1.1], np.float32)
    code = pack_bits(margins[None] > 0)[0]
    found = table.candidates(code, margins, wanted=16)
    costs = [sum(abs(margins[b]) for b in range(4) if (int(row) ^ int(code[0])) >> b & 1) for row in found]
    assert costs == sorted(costs)
    assert len(found) == 16
    assert len(table.candidates(code, margins, probes=3)) == 4


def test_the_workspace_is_clean_after_every_query():
    rng = np.random.default_rng(0)
    codes = random_codes(rng, 500, 64)
    made = BucketTables.build(codes, 64, length=5)
    space = Workspace.of(500)
    margins = rng.normal(size=(20, 64)).astype(np.float32)
    for m, code in zip(margins, pack_bits(margins > 0), strict=True):
        with_space = made.candidates(code, m, 50, workspace=space)
        assert np.array_equal(with_space, made.candidates(code, m, 50))
        assert not space.seen.any()


def test_length_follows_the_size_and_the_target():
    rng = np.random.default_rng(1)
    codes = random_codes(rng, 20_000, 64)
    positions = BucketTables.build(codes[:1], 64, length=20).positions
    lengths = [choose_length(codes[:n], positions, 0.05) for n in (100, 2000, 20_000)]
    assert lengths == sorted(lengths)
    # Even codes: ten tables at 2^-L each, so 10 * 2^-8 < 0.05 < 10 * 2^-7.
    assert lengths[-1] == 8
    assert choose_length(codes, positions, 0.01) > 8
    made = BucketTables.build(codes, 64, target=0.05)
    shares = [len(made.candidates(code, np.ones(64, np.float32))) / 20_000 for code in codes[:200]]
    assert 0.01 < np.mean(shares) < 0.05


def test_impossible_tables_are_refused():
    codes = np.zeros((3, 1), np.uint64)
    for options in ({"tables": 0}, {"length": 0}, {"length": 65}, {"target": 0.0}):
        with pytest.raises(UserError):
            BucketTables.build(codes, 64, **options)
