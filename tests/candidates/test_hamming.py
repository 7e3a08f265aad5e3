from __future__ import annotations

import numpy as np
import pytest

from naive import hashing as naive
from neuroseqret.candidates import hamming_distances, nearest_codes, nearest_of


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_scan_equals_the_naive_scan(words, seed):
    rng = np.random.default_rng(seed)
    # Few distinct words, so that many distances are equal and the ties' order matters.
    codes = rng.integers(0, 2**64, (4, words), dtype=np.uint64)[rng.integers(0, 4, 60)]
    codes[:, 0] ^= rng.integers(0, 8, 60).astype(np.uint64)
    code = codes[5] ^ np.uint64(3)
    assert hamming_distances(codes, code).tolist() == [naive.hamming(c, code) for c in codes]
    for wanted in (0, 1, 7, 59, 60, 100):
        assert nearest_codes(codes, code, wanted).tolist() == naive.nearest_codes(codes, code, wanted)
    rows = rng.permutation(60)[:30].astype(np.int32)
    for wanted in (1, 7, 30, 40):
        part = codes[rows]
        assert sorted(nearest_of(codes, code, rows, wanted).tolist()) == sorted(
            rows[naive.nearest_codes(part, code, wanted)].tolist()
        )


def test_no_codes():
    assert len(nearest_codes(np.empty((0, 1), np.uint64), np.zeros(1, np.uint64), 5)) == 0
