from __future__ import annotations

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.hashing import Cells
from neuroseqret.index.finders import ALL
from neuroseqret.index.scoring import best_in_cells, best_in_runs, best_rows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("masked", [False, True])
def test_best_rows_equal_the_naive_ones(seed, masked):
    rng = np.random.default_rng(seed)
    # Small integers: exact products and many ties.
    matrix = rng.integers(-2, 3, (60, 5)).astype(np.float32)
    query = rng.integers(-2, 3, 5).astype(np.float32)
    allowed = rng.random(60) < 0.5 if masked else ALL
    candidates = rng.permutation(60)[:40].astype(np.int32)
    for number in (1, 7, 40, 100):
        rows, scores = np.empty(number, np.int32), np.empty(number, np.float32)
        kept = best_rows(matrix, query, candidates, allowed, scores, rows)
        expected = naive.best_rows(matrix, query, candidates, allowed, number)
        assert rows[:kept].tolist() == expected
        assert scores[:kept].tolist() == (matrix[expected] @ query).tolist()
        begins, stops = np.array([30, 0]), np.array([45, 12])
        kept, compared = best_in_runs(matrix, query, begins, stops, allowed, scores, rows)
        run = [*range(30, 45), *range(12)]
        assert rows[:kept].tolist() == naive.best_rows(matrix, query, run, allowed, number)
        assert compared == sum(1 for r in run if not masked or allowed[r])


@pytest.mark.parametrize("masked", [False, True])
def test_visiting_cells_equals_scoring_their_runs(masked):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(900, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cells, order = Cells.build(vectors, 50)
    matrix, allowed = vectors[order], rng.random(900) < 0.5 if masked else ALL
    for query in vectors[:20]:
        for wanted in (1, 40, 300, 900, 5000):
            rows, scores = np.empty(15, np.int32), np.empty(15, np.float32)
            kept, compared = best_in_cells(matrix, query, cells.centres, cells.offsets, wanted, allowed, scores, rows)
            again, others = np.empty(15, np.int32), np.empty(15, np.float32)
            expected = best_in_runs(matrix, query, *cells.candidates(query, wanted), allowed, others, again)
            assert (kept, compared) == expected
            assert rows[:kept].tolist() == again[:kept].tolist()
            assert scores[:kept].tolist() == others[:kept].tolist()
