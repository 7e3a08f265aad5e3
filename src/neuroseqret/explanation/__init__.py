"""Explain why two sequences match: split the score over pairs of events, as numbers and as a picture.

- `attribution.py`: `explain` returns an `Explanation`, which holds the part of the score that each pair of events gives
- `shares.py`: splits the vector of one sequence over its events; `attribution` builds on it
- `second_stage_shares.py`: what a second stage adds to the score, split in the same way
- `picture.py`: draws an explanation as a PNG
"""

from neuroseqret.explanation.attribution import Explanation, explain, explainable, explained_by
from neuroseqret.explanation.picture import picture

__all__ = ["Explanation", "explain", "explainable", "explained_by", "picture"]
