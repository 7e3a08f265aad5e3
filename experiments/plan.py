"""What is measured: methods, presets, seeds and corpora of the grid, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from experiments.cutting import CUTS, Cut
from neuroseqret.evaluation.protocol import Condition, Protocol
from neuroseqret.methods.registry import BASELINES, MODELS

#: Methods that get one seed: it changes nothing, but for the validation queries by which `sharp`, which is not
#: trained, chooses its one number.
DETERMINISTIC = frozenset({"histogram", "mass", "sharp", "udtw"})
#: Methods whose queries are also cut short: those of the paper's tables, and the simple strong ones.
SHORTENED = frozenset({"histogram", "histogram-metric", "rank-rmtpp", "rank-thp", *MODELS})
CORPORA: tuple[Condition, ...] = ("seen", "unseen")


class Fit(BaseModel):
    """A method as it is fitted; `variant` is one of `experiments.variants`, or nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    method: str
    preset: str = "default"
    variant: str = ""
    seed: int = 0
    corpus: Condition = "seen"

    @property
    def name(self) -> str:
        """The folder and the beginning of the name of its cells."""
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
    """Method and preset of every row of the accuracy table: baselines, then the models, as the paper has them."""
    models = [(name, preset) for preset in ("paper", "default") for name in MODELS]
    return [(name, "default") for name in BASELINES] + models


def accuracy(data: Sequence[str], seeds: int) -> Iterator[Fit]:
    """The first seed of everything before the second of anything, so that a cut-off run has a whole table."""
    for seed in range(seeds):
        for corpus in CORPORA:
            for method, preset in rows():
                if seed and method in DETERMINISTIC:
                    continue
                for name in data:
                    yield Fit(data=name, method=method, preset=preset, seed=seed, corpus=corpus)


def views(fit: Fit) -> list[View]:
    """What is asked of a fitted method."""
    asked = [View(protocol="full"), View(protocol="sampled")]
    if fit.method in SHORTENED and fit.corpus == "seen" and not fit.variant:
        asked += [View(queries=cut) for cut in CUTS if cut != "whole"]
    return asked
