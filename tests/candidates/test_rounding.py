from __future__ import annotations

import numpy as np

from naive import index as naive
from neuroseqret.candidates import Cells
from neuroseqret.candidates.cell_finder import CellFinder
from neuroseqret.candidates.finder import ALL
from neuroseqret.candidates.rounding import RoundedVectors, rounded, scale_of


def vectors(n, dimension=24, seed=0):
    made = np.random.default_rng(seed).normal(size=(n, dimension)).astype(np.float32)
    made[:, 0] *= 3  # dimensions of very different spread
    made[:, 1] = 0
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_rounding_is_off_by_half_a_step_at_most():
    matrix = vectors(200)
    small = RoundedVectors.of(matrix)
    assert small.numbers.dtype == np.int8
    assert (np.abs(small.numbers * small.scale - matrix) <= small.scale / 2 * 1.001).all()
    assert np.abs(small.numbers[:, 0]).max() == 127
    assert (small.numbers[:, 1] == 0).all()
    assert (rounded(3 * matrix, small.scale) >= -127).all()
    assert scale_of(matrix[:0]).tolist() == [1] * 24


def test_cells_give_the_exact_scores_of_the_exact_best():
    matrix = vectors(3000)
    cells, order = Cells.build(matrix, 60)
    laid_out = matrix[order]
    finder = CellFinder(laid_out, RoundedVectors.of(laid_out), cells)
    allowed = np.random.default_rng(1).random(3000) < 0.3
    for query in vectors(20, seed=2):
        for mask in (ALL, allowed):
            found = finder.best(query, 10, 3000, mask)
            assert found.rows.tolist() == naive.best_rows(laid_out, query, range(3000), mask, 10)
            assert np.allclose(found.scores, laid_out[found.rows] @ query, atol=1e-6)
            assert found.compared == (3000 if mask is ALL else allowed.sum())
            assert found.centres == len(cells.centres)
