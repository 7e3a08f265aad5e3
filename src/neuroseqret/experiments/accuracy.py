"""`accuracy`: how well every method ranks, on every data set, by both protocols, with the corpus seen and unseen."""

from __future__ import annotations

from neuroseqret.experiments import plan
from neuroseqret.experiments.lab import Lab


def measure(lab: Lab) -> None:
    """Fit and ask every method; the same cells serve `queries`, `lengths` and `runtime`."""
    lab.run([fit for fit in plan.accuracy(lab.data, lab.seeds) if lab.wanted(fit)])
