from __future__ import annotations

import numpy as np
import pyarrow as pa

from naive import index as naive
from neuroseqret.index.keys import KeySet, hash_events, hash_strings


def test_hashes_depend_on_the_value_alone():
    names = pa.array(["a", "b", "", "a", "ab", "ba", "a\0", "ü"])
    hashes = hash_strings(names)
    assert len(set(hashes.tolist())) == 7
    assert hashes[0] == hashes[3]
    assert np.array_equal(hash_strings(names.slice(3, 4)), hashes[3:7])
    assert hash_strings(names)[0] == hash_strings(pa.array(["a"], pa.large_string()))[0]
    assert len(hash_strings(pa.array([], pa.string()))) == 0


def test_events_hashes_see_every_part():
    sequences = naive.some_sequences(200)
    hashes = hash_events(sequences)
    assert len(set(hashes.tolist())) == 200
    assert np.array_equal(hash_events(sequences[50:90]), hashes[50:90])
    times = sequences.times.copy()
    times[-1] += 1e-12
    changed = type(sequences).from_arrays(times, sequences.marks, sequences.offsets, ids=sequences.ids)
    assert (hash_events(changed) != hashes).sum() == 1
    assert not np.any(hash_events(sequences.with_column("end", sequences.observed()[1] + 1)) == hashes)


def test_a_bound_that_is_not_known_leaves_no_trace_in_the_hash():
    sequences = naive.some_sequences(3)
    plain, ends = hash_events(sequences), sequences.observed()[1] + 1
    with_end = hash_events(sequences.with_column("end", ends))
    some = sequences.with_column("end", [ends[0], None, ends[2]]).with_column("start", [None] * 3)
    assert hash_events(some).tolist() == [with_end[0], plain[1], with_end[2]]


def test_key_set_is_a_dictionary():
    rng = np.random.default_rng(0)
    kept, plain = KeySet(), {}
    for _ in range(60):
        keys = rng.integers(0, 500, rng.integers(0, 40))
        keys = np.unique(keys)
        values = rng.integers(0, 10**6, len(keys))
        kept.add(keys, values)
        plain.update(zip(keys.tolist(), values.tolist(), strict=True))
        asked = rng.integers(0, 600, 100)
        there, found = kept.find(asked)
        assert there.tolist() == [key in plain for key in asked.tolist()]
        assert found.tolist() == [plain.get(key, 0) for key in asked.tolist()]
