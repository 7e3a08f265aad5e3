"""Fits methods alone or under torchrun, without dropout, and writes their embeddings: OUT.npz."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

import neuroseqret as nsr
from neuroseqret.methods.registry import make
from neuroseqret.processes.unwarp import Unwarp
from neuroseqret.training import ranks

DATA = nsr.simulate(4, 12, 8, seed=1)
SHORT = {"steps": 12, "evaluations": 3}
METHODS = {
    "default": lambda: nsr.SelfAttention(head=SHORT, selection={"steps": 10}, projection={"dropout": 0.0}),
    "paper": lambda: nsr.SelfAttention("paper-literal", warm_up=SHORT, joint=SHORT, encoder={"dropout": 0.0}),
    "gru": lambda: make("gru", "default", loop={**SHORT, "patience": 6}, dropout=0.0),
}


@patch.object(Unwarp, "noise", lambda self, number: torch.zeros(number, 1))  # it is random, as dropout is
def embeddings(checkpoints: Path) -> dict[str, np.ndarray]:
    """Return the embeddings of the corpus by every method."""
    found = {}
    for name, method in METHODS.items():
        model = method().fit(DATA.queries, DATA.corpus, DATA.relevance, checkpoint=checkpoints / name)
        found[name] = model.embed(DATA.corpus)
    return found


if __name__ == "__main__":
    out = Path(sys.argv[1])
    with ranks.started():
        made = embeddings(out.with_suffix(f".checkpoints-{ranks.own()}"))
        if ranks.is_first():
            np.savez(out, ranks=ranks.number(), **made)
