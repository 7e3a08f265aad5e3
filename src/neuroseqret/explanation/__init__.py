"""Why two sequences match: the score split over pairs of events, as numbers and as a picture."""

from neuroseqret.explanation.attribution import Explanation, explain, explainable
from neuroseqret.explanation.picture import picture

__all__ = ["Explanation", "explain", "explainable", "picture"]
