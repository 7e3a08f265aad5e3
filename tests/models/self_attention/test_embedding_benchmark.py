"""The embedding benchmark runs at a small size, and its ratios are not far from what the documentation says."""

from __future__ import annotations

import torch

import benchmark_scripts


def test_embedding_costs_little_more_than_a_bare_encoder() -> None:
    """Beside other tests little is certain, so the best of three counts, with room to spare."""
    benchmark = benchmark_scripts.load("embedding")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = [benchmark.measure(50, 408, 5, 3) for _ in range(3)]
    finally:
        torch.set_num_threads(before)
    assert min(one["one query: our time / bare time"] for one in found) < 3
    assert max(one["bulk: bare time / our time"] for one in found) > 1
