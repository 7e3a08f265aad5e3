"""Explain why two sequences match: split the score over pairs of events, as numbers and as a picture.

- `attribution.py`: `explain` returns an `Explanation`, which holds the part of the score that each pair of events gives
- `shares.py`: splits the vector of one sequence over its events; `attribution` builds on it
- `picture.py`: draws an explanation as a PNG
"""

from neuroseqret.explanation.attribution import Explanation, explain, explainable
from neuroseqret.explanation.picture import picture

__all__ = ["Explanation", "explain", "explainable", "picture"]
