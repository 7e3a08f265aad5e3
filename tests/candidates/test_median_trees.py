from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import hashing as naive
from naive import index as naive_index
from neuroseqret.candidates import ALL, CandidateSettings, load_hash, make_hash, median_trees, unpack_bits
from neuroseqret.candidates.code_finders import BucketFinder
from neuroseqret.errors import UserError


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def tight_groups(rng, groups=8, per_group=40, d=12, spread=0.02):
    centres = unit(rng.normal(size=(groups, d)))
    return unit(np.repeat(centres, per_group, axis=0) + spread * rng.normal(size=(groups * per_group, d)))


def bits_of_trees(fitted, rows):
    bits = unpack_bits(fitted.encode(rows), fitted.bits)
    return bits.reshape(len(rows), fitted.bits // fitted.levels, fitted.levels).astype(int)


def direction_of(fitted, tree):
    """The direction of a bucket of a tree, from the bucket's bits."""

    def direction(bucket):
        level, number = len(bucket), int("".join(map(str, bucket)) or "0", 2)
        if level < fitted.own:
            return fitted.planes[tree, (1 << level) - 1 + number]
        return fitted.directions[tree, level - fitted.own]

    return direction


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 70), levels=st.integers(1, 8), choices=st.integers(1, 4))
def test_bits_are_those_of_the_naive_trees(seed, n, levels, choices):
    rows = unit(np.random.default_rng(seed).normal(size=(n, 6)))
    fitted = make_hash("trees", 2 * levels, levels=levels, choices=choices).fit(rows, seed=seed)
    found = bits_of_trees(fitted, rows)
    grown = min(levels, max(1, int(np.log2(n))))
    assert fitted.own == (0 if n < 4 else min(levels, int(np.log2(n)) - 1))
    for tree in range(2):
        expected = naive.tree_bits(rows, direction_of(fitted, tree), grown)
        assert found[:, tree, :grown].tolist() == [list(bits) for bits in expected]
        for level in range(grown, levels):  # below, at the median of all rows
            values = rows @ fitted.directions[tree, level - fitted.own]
            assert found[:, tree, level].tolist() == (values > naive.split_value(values)).astype(int).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_direction_that_keeps_most_neighbours_together_is_taken(seed, monkeypatch):
    rows = unit(np.random.default_rng(seed).normal(size=(64, 6)))
    offered = []
    draw = median_trees._draw
    monkeypatch.setattr(median_trees, "_draw", lambda *args: offered.append(draw(*args)) or offered[-1])
    fitted = make_hash("trees", 9, levels=3, choices=8).fit(rows, seed=seed)
    assert len(offered) == 3 * (1 + 2 + 4)
    pairs = naive.nearest_pairs(rows, median_trees.NEIGHBOURS)
    assert sorted(pairs) == sorted(map(tuple, median_trees.nearest_pairs(rows, median_trees.NEIGHBOURS).tolist()))
    earlier, offers = [], iter(offered)
    for tree in range(3):
        direction = direction_of(fitted, tree)
        for level in range(3):
            bits = naive.tree_bits(rows, direction, level)
            for bucket in sorted(set(bits)):
                inside = [row for row in range(64) if bits[row] == bucket]
                held = [(inside.index(a), inside.index(b)) for a, b in pairs if bits[a] == bits[b] == bucket]
                before = [[one[row] for row in inside] for one in earlier]

                def kept(w, inside=inside, held=held, before=before):
                    return naive.kept_together(held, naive.tree_bits(rows[inside], lambda _: w, 1), before)

                tried = [kept(w) for w in next(offers).T]
                assert kept(direction(bucket)) == pytest.approx(max(tried))
                assert level or max(tried) > min(tried)
        earlier.append(naive.tree_bits(rows, direction, 3))  # buckets of eight rows


def test_buckets_halve_with_every_level_where_hyperplanes_keep_groups_whole():
    rows = tight_groups(np.random.default_rng(0))
    trees = bits_of_trees(make_hash("trees", 60, levels=6).fit(rows), rows)
    for tree in range(10):
        for level in range(1, 7):
            _, sizes = np.unique(trees[:, tree, :level], axis=0, return_counts=True)
            assert len(sizes) == 2**level
            assert sizes.max() - sizes.min() <= 2  # equal, but for near ties
    planes = unpack_bits(make_hash("hyperplanes", 60).fit(rows).encode(rows), 60)
    assert np.unique(planes[:, :6], axis=0, return_counts=True)[1].max() >= 40


def test_learned_directions_keep_more_neighbours_than_random_ones():
    rng = np.random.default_rng(1)
    rows = unit(rng.normal(size=(1500, 4)) @ rng.normal(size=(4, 32)) + 0.3 * rng.normal(size=(1500, 32)))
    corpus, queries = rows[:1400], rows[1400:]
    nearest = np.argsort(-queries @ corpus.T, axis=1)[:, :10]

    def recall(choices, seed):
        fitted = make_hash("trees", 18, levels=6, choices=choices).fit(corpus, seed=seed)
        mine, theirs = bits_of_trees(fitted, queries), bits_of_trees(fitted, corpus)
        met = (mine[:, None] == theirs[None]).all(-1).any(-1)
        return np.take_along_axis(met, nearest, 1).mean(), met.mean()

    learned, random = (np.mean([recall(choices, seed) for seed in range(3)], axis=0) for choices in (16, 1))
    assert learned[0] > random[0] + 0.1
    assert learned[1] < random[1]  # and the union is smaller


def test_an_index_of_trees_finds_the_best(tmp_path):
    rows = tight_groups(np.random.default_rng(2))
    options = CandidateSettings(candidates="buckets", hash="trees", fraction=0.2, tables=4)
    options.check()
    BucketFinder.write(tmp_path, rows, options)
    finder = BucketFinder.open(tmp_path, rows)
    assert finder.hash.settings() == {"bits": 64, "levels": 16, "choices": 16}
    assert finder.tables.positions[:, 0].tolist() == [0, 16, 32, 48]
    assert finder.fits(len(rows), 12)
    for query in rows[::50]:
        found = finder.best(query, 5, len(rows))
        assert found.rows.tolist() == naive_index.best_rows(rows, query, range(len(rows)), ALL, 5)
        few = finder.best(query, 5, 30)
        assert few.compared < len(rows) / 2
        assert few.scores[0] == pytest.approx(1, abs=1e-5)  # the row itself is in its own bucket


def test_equal_rows_and_single_rows_have_codes():
    for rows in (np.ones((1, 4), np.float32) / 2, np.ones((9, 4), np.float32) / 2):
        fitted = make_hash("trees", 8, levels=4).fit(rows)
        assert len(np.unique(fitted.encode(rows))) == 1


def test_trees_are_above_hyperplanes_in_the_union_of_buckets_at_equal_comparisons():
    """Groups of near sequences, as a learned metric makes them, of very different sizes."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(20, 100, 16)
    centres = np.repeat(rng.normal(size=(16, 24)), sizes, axis=0)
    scale = rng.normal(size=(1, 24)) / np.arange(1, 25) ** 0.5
    rows = unit(centres + scale * rng.normal(size=centres.shape))
    corpus, queries = rows[::2], rows[1::20]
    nearest = np.argsort(-queries @ corpus.T, axis=1)[:, :10]

    def recall(name, options, lengths, share, seed):
        fitted = make_hash(name, **options).fit(corpus, seed=seed)
        mine, theirs = ((fitted.margins(part) > 0)[:, fitted.table_positions(10)] for part in (queries, corpus))
        met = [(mine[:, None, :, :n] == theirs[None, :, :, :n]).all(-1).any(-1) for n in lengths]
        found = [np.take_along_axis(one, nearest, 1).mean() for one in met][::-1]
        return np.interp(np.log(share), np.log([one.mean() for one in met][::-1]), found)

    of_trees, of_planes = {"bits": 80, "levels": 8}, {"bits": 64}
    for share, more in ((0.1, 0.02), (0.02, 0.1)):
        trees = np.mean([recall("trees", of_trees, range(2, 9), share, seed) for seed in range(2)])
        planes = np.mean([recall("hyperplanes", of_planes, range(4, 40, 3), share, seed) for seed in range(2)])
        assert trees > planes + more


def test_mistakes_are_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="64 is no multiple of 10"):
        make_hash("trees", 64, levels=10)
    with pytest.raises(UserError, match="at least one direction"):
        make_hash("trees", 64, choices=0)
    with pytest.raises(UserError, match="call fit first"):
        make_hash("trees", 64).margins(np.ones((1, 4), np.float32))
    with pytest.raises(UserError, match="4 trees for 5 bucket tables"):
        make_hash("trees", 64).table_positions(5)
    with pytest.raises(UserError, match="a multiple of 10 tables, not 64; leave out bits"):
        CandidateSettings(hash="trees", bits=64).check()
    with pytest.raises(UserError, match="must take 1 to 16 of the 16 bits, not 17"):
        CandidateSettings(hash="trees", table_bits=17).check()
    assert CandidateSettings(hash="trees", tables=255).code_bits == 4 * 255
    fitted = make_hash("trees", 8, levels=4).fit(unit(np.random.default_rng(3).normal(size=(30, 5))))
    fitted.thresholds = fitted.thresholds[:, :-1]
    with pytest.raises(UserError, match="do not fit together"):
        load_hash(fitted.save(tmp_path / "forged"))
