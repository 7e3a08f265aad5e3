"""Seals: other readers do not meet them, and any changed byte breaks them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuroseqret.storage.seal import is_broken, is_sealed, seal

TABLE = pa.table({"id": ["a", "b"], "times": [[0.0, 1.0], [2.0]]})


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    assert not is_sealed(path)
    assert not is_broken(path)
    seal(path)
    return path


def test_a_sealed_file_is_parquet(sealed):
    assert is_sealed(sealed)
    assert not is_broken(sealed)
    assert pq.read_table(sealed) == TABLE


def test_every_changed_byte_breaks_the_seal_or_removes_it(sealed):
    good = sealed.read_bytes()
    for place in range(len(good)):
        sealed.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert is_broken(sealed) or not is_sealed(sealed), place


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_cut_file_has_no_good_seal(sealed, keep):
    sealed.write_bytes(sealed.read_bytes()[:keep])
    assert is_broken(sealed) or not is_sealed(sealed)


def test_a_file_that_is_written_again_has_none(sealed):
    pq.write_table(pq.read_table(sealed), sealed)
    assert not is_sealed(sealed)
