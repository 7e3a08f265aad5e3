from __future__ import annotations

import numpy as np
import pytest

from naive.random_sequences import random_sequences
from neuroseqret.errors import UserError
from neuroseqret.training.unlabelled import PARTS, sub_sequence_task


def test_parts_are_runs_of_their_parent():
    corpus = random_sequences(0, number=40, longest=30)
    queries, parts = sub_sequence_task(corpus, seed=1)
    parent = {s.id: s for s in corpus}
    usable = int((corpus.lengths >= 4).sum())
    assert (len(queries), len(parts)) == (usable, usable * (PARTS - 1))
    for piece in [*queries, *parts]:
        whole = parent[piece.group]
        begin = [b for b in range(len(whole) - len(piece) + 1)
                 if np.array_equal(whole.times[b : b + len(piece)], piece.times)
                 and np.array_equal(whole.marks[b : b + len(piece)], piece.marks)]  # fmt: skip
        assert begin
    assert set(queries.column("split").to_pylist()) == {"train", "validation"}


def test_too_little_data_is_an_error():
    with pytest.raises(UserError, match="at least two sequences with 4 events"):
        sub_sequence_task(random_sequences(0, number=3, longest=3))
