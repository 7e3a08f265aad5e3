from __future__ import annotations

import time

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.candidates import Cells
from neuroseqret.candidates import scoring as kernels
from neuroseqret.candidates.finder import ALL
from neuroseqret.candidates.scoring import best_in_cells, best_in_runs, best_rows, suited


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


def test_long_lists_are_in_the_same_order_as_short_ones():
    rng = np.random.default_rng(0)
    matrix = rng.integers(-3, 4, (3000, 4)).astype(np.float32)  # many ties
    query = rng.integers(-3, 4, 4).astype(np.float32)
    candidates = rng.permutation(3000).astype(np.int32)
    for number in (kernels.SHORT, kernels.SHORT + 1, 1000, 2999, 3000, 5000):
        rows, scores = np.empty(number, np.int32), np.empty(number, np.float32)
        kept = best_rows(matrix, query, candidates, ALL, scores, rows)
        expected = np.lexsort((np.arange(3000), -(matrix @ query)))[:number]
        assert rows[:kept].tolist() == expected.tolist()
        assert scores[:kept].tolist() == (matrix @ query)[expected].tolist()
        kept, _ = best_in_runs(matrix, query, np.array([0]), np.array([3000]), ALL, scores, rows)
        assert rows[:kept].tolist() == expected.tolist()


def test_keeping_all_of_many_does_not_take_quadratic_time():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(40_000, 4)).astype(np.float32)
    matrix = matrix[np.argsort(matrix @ matrix[0])]  # every row is better than all before it

    def seconds(number):
        rows, scores = np.empty(number, np.int32), np.empty(number, np.float32)
        begun = time.process_time()
        best_in_runs(matrix[:number], matrix[-1], np.array([0]), np.array([number]), ALL, scores, rows)
        return time.process_time() - begun

    seconds(100)
    assert min(seconds(40_000) for _ in range(3)) < 0.1  # 0.006 where nothing else runs, 1 by insertion


def test_kernels_that_keep_the_lock_give_the_same_to_the_last_bit():
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(900, 37)).astype(np.float32)
    cells, order = Cells.build(vectors, 30)
    matrix, candidates = vectors[order], rng.permutation(900).astype(np.int32)
    given = {
        best_rows: (candidates, ALL),
        best_in_runs: (np.array([0, 500]), np.array([400, 900]), rng.random(900) < 0.5),
        best_in_cells: (cells.centres, cells.offsets, 300, ALL),
    }
    for kernel, rest in given.items():
        assert suited(kernel, kernels.LOCKED + 1) is kernel
        assert suited(kernel, kernels.LOCKED) is not kernel
        for query in vectors[:10]:
            found = []
            for form in (kernel, suited(kernel, 1)):
                rows, scores = np.empty(20, np.int32), np.empty(20, np.float32)
                found.append((form(matrix, query, *rest, scores, rows), rows.tolist(), scores.tolist()))
            assert found[0] == found[1]
