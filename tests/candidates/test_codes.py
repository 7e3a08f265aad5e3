from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from naive import hashing as naive
from neuroseqret.candidates import HASHES, load_hash, make_hash, pack_bits, unpack_bits
from neuroseqret.errors import UserError


def unit(rng, n, d=16):
    v = rng.normal(size=(n, d)).astype(np.float32)
    return v / np.linalg.norm(v, axis=1, keepdims=True)


OPTIONS = {
    "trees": {"levels": 4},
    "hyperplanes": {},
    "rotation": {"iterations": 10},
    "network": {"steps": 20, "batch": 64},
}


@pytest.mark.parametrize("bits", [1, 7, 63, 64, 65, 130])
def test_packing_is_the_naive_layout_and_comes_back(bits):
    given = np.random.default_rng(bits).random((9, bits)) > 0.5
    codes = pack_bits(given)
    assert codes.shape == (9, -(-bits // 64))
    assert codes.dtype == np.uint64
    for code, row in zip(codes, given, strict=True):
        assert naive.bits_of(code, bits) == row.astype(int).tolist()
    assert np.array_equal(unpack_bits(codes, bits), given)


@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("bits", [12, 64, 100])
def test_codes_are_the_signs_of_the_margins_and_survive_saving(name, bits, tmp_path):
    v = unit(np.random.default_rng(0), 300)
    fitted = make_hash(name, bits, **OPTIONS[name]).fit(v, seed=3)
    margins = fitted.margins(v)
    assert margins.shape == (300, bits)
    assert np.array_equal(fitted.encode(v), pack_bits(margins > 0))
    assert np.array_equal(fitted.encode(v, chunk=7), fitted.encode(v))
    again = load_hash(fitted.save(tmp_path / "hash.safetensors"))
    assert type(again) is type(fitted)
    assert again.settings() == fitted.settings()
    assert np.array_equal(again.margins(v), margins)
    assert [p.name for p in tmp_path.iterdir()] == ["hash.safetensors"]


@pytest.mark.parametrize("name", HASHES)
def test_same_seed_same_code_other_seed_other_code(name):
    v = unit(np.random.default_rng(1), 200)

    def codes(seed):
        return make_hash(name, 32, **OPTIONS[name]).fit(v, seed=seed).encode(v)

    assert np.array_equal(codes(0), codes(0))
    assert not np.array_equal(codes(0), codes(1))


@pytest.mark.parametrize("name", ["hyperplanes", "rotation", "network"])
def test_near_vectors_have_near_codes(name):
    rng = np.random.default_rng(2)
    v = unit(rng, 400)
    close = v + 0.1 * unit(rng, 400)
    close /= np.linalg.norm(close, axis=1, keepdims=True)
    options = {"network": {"steps": 150, "batch": 128}}.get(name, {})
    fitted = make_hash(name, 64, **options).fit(v)
    a, b = fitted.encode(v), fitted.encode(close)
    to_neighbour = np.mean([naive.hamming(x, y) for x, y in zip(a, b, strict=True)])
    to_stranger = np.mean([naive.hamming(x, y) for x, y in zip(a, np.roll(b, 1, 0), strict=True)])
    assert to_neighbour < 0.4 * to_stranger


def test_rotation_loses_less_than_a_random_rotation():
    v = unit(np.random.default_rng(3), 500)

    def loss(fitted):
        m = fitted.margins(v)
        return np.mean((np.where(m > 0, 1, -1) - m) ** 2)

    assert loss(make_hash("rotation", 16, iterations=30).fit(v)) < loss(make_hash("rotation", 16, iterations=0).fit(v))


def test_rotation_is_semi_orthogonal():
    v = unit(np.random.default_rng(4), 200, 8)
    few = make_hash("rotation", 5).fit(v).projection
    assert np.allclose(few.T @ few, np.eye(5), atol=1e-5)
    many = make_hash("rotation", 20).fit(v).projection
    assert np.allclose(many @ many.T, np.eye(8), atol=1e-5)


def test_mistakes_are_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="must have 1 to 1024 bits"):
        make_hash("rotation", 0)
    with pytest.raises(UserError, match="no hash function is called 'lsh'"):
        make_hash("lsh")
    with pytest.raises(UserError, match="shape"):
        make_hash("hyperplanes").fit(np.zeros((0, 4), np.float32))
    with pytest.raises(UserError, match="embedding 1 is not finite"):
        make_hash("hyperplanes").fit(np.array([[1, 0], [np.nan, 0]], np.float32))
    with pytest.raises(UserError, match="not a readable hash file"):
        load_hash(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UserError, match="not a readable hash file"):
        load_hash(tmp_path / "text")
    save_file({"a": np.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(UserError, match="not a hash file of neuroseqret"):
        load_hash(tmp_path / "foreign")
    head = {"format": "neuroseqret-hash", "format_version": "99", "hash": "rotation", "settings": "{}"}
    save_file({"a": np.zeros(1)}, tmp_path / "newer", metadata=head)
    with pytest.raises(UserError, match="format version 99"):
        load_hash(tmp_path / "newer")


def test_signs_of_planes_and_of_the_network_are_the_naive_ones():
    v = unit(np.random.default_rng(2), 60)
    planes = make_hash("hyperplanes", 12).fit(v, seed=1)
    network = make_hash("network", 12, **OPTIONS["network"]).fit(v, seed=1)
    layers = [tensor.numpy().tolist() for tensor in network.network.state_dict().values()]
    for row in range(5):
        assert (planes.margins(v[row : row + 1])[0] > 0).tolist() == naive.plane_signs(v[row], planes.normals.T)
        expected = naive.network_signs(v[row].tolist(), *layers)
        assert (network.margins(v[row : row + 1])[0] > 0).tolist() == expected
