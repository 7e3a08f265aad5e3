"""What is measured: methods, presets, seeds and corpora, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from experiments.cutting import CUTS, Cut
from neuroseqret.evaluation.protocol import Condition, Protocol
from neuroseqret.methods.registry import BASELINES, MODELS

#: Methods that get one seed because they are not trained. (For `sharp` the seed only chooses the validation queries by
#: which it picks its one number.)
DETERMINISTIC = frozenset({"histogram", "mass", "sharp", "udtw"})
#: Methods that are also asked with shortened queries: those of the paper's tables, and the strong simple ones.
SHORTENED = frozenset({"histogram", "histogram-metric", "rank-rmtpp", "rank-thp", *MODELS})
#: Presets of the models, in the order of the rows.
PRESETS = ("paper-literal", "paper", "default")
CORPORA: tuple[Condition, ...] = ("seen", "unseen")


class Fit(BaseModel):
    """A method as it is fitted; `variant` is one of `experiments.variants`, or empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    method: str
    preset: str = "default"
    variant: str = ""
    seed: int = 0
    corpus: Condition = "seen"

    @property
    def name(self) -> str:
        """The folder and the beginning of the names of its cells."""
        row = "+".join(filter(None, (self.method, "" if self.preset == "default" else self.preset, self.variant)))
        return f"{self.data}/{row}/seed{self.seed}-{self.corpus}"


class View(BaseModel):
    """How a fitted method is asked: which candidates are ranked, and how long the queries are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Protocol = "full"
    queries: Cut = "whole"

    @property
    def name(self) -> str:
        return self.protocol if self.queries == "whole" else f"{self.protocol}-{self.queries}"


def rows() -> list[tuple[str, str]]:
    """Return method and preset of every row of the accuracy table: baselines, then models, in the paper's order."""
    models = [(name, preset) for preset in PRESETS for name in MODELS]
    return [(name, "default") for name in BASELINES] + models


def accuracy(data: Sequence[str], seeds: int) -> Iterator[Fit]:
    """Yield all fits, the first seed of everything first, so that an interrupted run has a whole table."""
    for seed in range(seeds):
        for corpus in CORPORA:
            for method, preset in rows():
                if seed and method in DETERMINISTIC:
                    continue
                for name in data:
                    yield Fit(data=name, method=method, preset=preset, seed=seed, corpus=corpus)


def starts_other_work(fit: Fit) -> bool:
    """Return whether other experiments start from this fitted model: `self`, and what reranks in `algorithm`."""
    return fit.method == "self" or (fit.method in MODELS and fit.preset == "paper" and not fit.variant)


def views(fit: Fit) -> list[View]:
    """Return the views in which a fitted method is asked."""
    asked = [View(protocol="full"), View(protocol="sampled")]
    if fit.method in SHORTENED and fit.corpus == "seen" and not fit.variant:
        asked += [View(queries=cut) for cut in CUTS if cut != "whole"]
    return asked
