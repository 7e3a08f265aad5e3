"""Every ranking method by its name: the three relevance models and the baselines, made or loaded the same way."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

from neuroseqret.errors import UserError
from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.model_folder import read_card

MODELS = {
    "self": "neuroseqret.models.self_attention.model:SelfAttention",
    "cross": "neuroseqret.models.cross.cross_attention:CrossAttention",
    "hash-cross": "neuroseqret.models.cross.hash_cross_attention:HashCrossAttention",
}
BASELINES = {
    "random": "neuroseqret.baselines.random:Random",
    "histogram": "neuroseqret.baselines.histogram:Histogram",
    "histogram-metric": "neuroseqret.baselines.histogram_metric:HistogramMetric",
    "gru": "neuroseqret.baselines.gru:GRU",
    "mass": "neuroseqret.baselines.mass:MASS",
    "udtw": "neuroseqret.baselines.udtw:UDTW",
    "sharp": "neuroseqret.baselines.sharp:Sharp",
    "rmtpp": "neuroseqret.baselines.rmtpp:RMTPP",
    "sahp": "neuroseqret.baselines.sahp:SAHP",
    "thp": "neuroseqret.baselines.thp:THP",
    "rank-rmtpp": "neuroseqret.baselines.rank:RankRMTPP",
    "rank-sahp": "neuroseqret.baselines.rank:RankSAHP",
    "rank-thp": "neuroseqret.baselines.rank:RankTHP",
}


def method_class(name: str) -> type[RelevanceModel]:
    """The class behind a name; modules are imported only when asked for, so that no extra is needed before."""
    path = MODELS.get(name) or BASELINES.get(name)
    if path is None:
        raise UserError(f"no method is called {name!r}; there are {', '.join([*MODELS, *BASELINES])}")
    module, attribute = path.split(":")
    found: type[RelevanceModel] = getattr(import_module(module), attribute)
    return found


def make(name: str, preset: str = "default", **options: Any) -> RelevanceModel:
    """An untrained method by name; the baselines have one preset, the models have `default` and `paper`."""
    if name in MODELS:
        return method_class(name)(preset=preset, **options)  # type: ignore[call-arg]
    return method_class(name)(**options)


def load(folder: str | PathLike[str]) -> RelevanceModel:
    """The trained method in a model folder, whichever it is."""
    name = read_card(folder).model
    if name not in MODELS and name not in BASELINES:
        raise UserError(f"{folder}: holds a {name!r} model, which this version does not know; fit the model again")
    return method_class(name).load(folder)
