from __future__ import annotations

import numpy as np
import pytest

from naive import hashing as naive
from neuroseqret.candidates import Cells
from neuroseqret.candidates.cell_finder import CellFinder
from neuroseqret.candidates.cells import nearest_centres
from neuroseqret.candidates.rounding import RoundedVectors


def clustered(rng, n, groups=20, d=8):
    centres = rng.normal(size=(groups, d))
    v = centres[rng.integers(0, groups, n)] + 0.2 * rng.normal(size=(n, d))
    return (v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 50, 700])
def test_cells_hold_every_row_once_and_are_laid_out_in_runs(n):
    v = clustered(np.random.default_rng(n), n)
    cells, order = Cells.build(v)
    assert sorted(order.tolist()) == list(range(n))
    assert cells.offsets[0] == 0
    assert cells.offsets[-1] == n
    assert np.allclose(np.linalg.norm(cells.centres, axis=1), 1, atol=1e-5)


def test_nearest_centres_equal_the_naive_ones():
    rng = np.random.default_rng(0)
    for dimension in (3, 8, 17):
        v, centres = clustered(rng, 60, d=dimension), clustered(rng, 9, d=dimension)
        assert nearest_centres(v, centres).tolist() == [naive.nearest_centre(x, centres) for x in v]
    twice = np.concatenate([centres, centres])
    assert nearest_centres(v, twice).tolist() == nearest_centres(v, centres).tolist()


def test_visiting_goes_by_nearness_until_enough():
    rng = np.random.default_rng(1)
    v = clustered(rng, 800)
    cells, _ = Cells.build(v, 40)
    for query in clustered(rng, 10):
        by_nearness = np.argsort(-(cells.centres @ query), kind="stable")
        for wanted in (1, 30, 400, 800, 5000):
            begins, stops = cells.candidates(query, wanted)
            assert begins.tolist() == cells.offsets[by_nearness[: len(begins)]].tolist()
            reached = np.cumsum(stops - begins)
            assert reached[-1] >= min(wanted, 800)
            assert len(reached) == 1 or reached[-2] < wanted


def test_cells_find_the_neighbours_with_a_part_of_the_comparisons():
    rng = np.random.default_rng(2)
    v = clustered(rng, 4000, groups=60, d=16)
    cells, order = Cells.build(v)
    laid_out, kept = v[order], []
    for query in v[:50]:
        exact = set(np.argsort(-(laid_out @ query))[:10].tolist())
        begins, stops = cells.candidates(query, 200)
        visited = np.concatenate([np.arange(b, s) for b, s in zip(begins, stops, strict=True)])
        assert len(visited) < 400
        kept.append(len(exact & set(visited.tolist())) / 10)
    assert np.mean(kept) > 0.9


def test_rows_that_come_later_go_to_the_cells_of_their_nearest_centres():
    rng = np.random.default_rng(3)
    v, late = clustered(rng, 500), clustered(rng, 90)
    cells, order = Cells.build(v, 20)
    finder = CellFinder(v[order], RoundedVectors.of(v[order]), cells)
    first, grown = finder.emptied().grown(late[:60])
    second, grown = grown.grown(late[60:])
    came = np.concatenate([late[:60][first], late[60:]])[second]
    assert grown.fits(90, late.shape[1])
    assert np.array_equal(grown.embeddings, came)
    for cell, (begin, stop) in enumerate(zip(grown.cells.offsets[:-1], grown.cells.offsets[1:], strict=True)):
        assert {naive.nearest_centre(row, cells.centres) for row in came[begin:stop]} <= {cell}
    for query in v[:5]:
        best = grown.best(query, 10, wanted=90)
        assert best.rows.tolist() == np.argsort(-(came @ query), kind="stable")[:10].tolist()
    assert len(finder.embeddings) == 500  # as it was
