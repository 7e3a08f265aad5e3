"""Every ranking method by its name: the three relevance models and the thirteen baselines.

A method is imported when it is first asked for, because importing all of them takes seconds; help texts need the names
alone.

>>> make("histogram").name
'histogram'
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.models.base import RelevanceModel

#: The relevance models: name to "module:class". They have presets (`default`, `paper`, ...).
MODELS = {
    "self": "neuroseqret.models.self_attention.model:SelfAttention",
    "cross": "neuroseqret.models.cross.cross_attention:CrossAttention",
    "hash-cross": "neuroseqret.models.cross.hash_cross_attention:HashCrossAttention",
}
#: The baselines: name to "module:class". They have no presets.
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


def is_method(name: str) -> bool:
    """Return whether a method has this name."""
    return name in MODELS or name in BASELINES


def method_class(name: str) -> type[RelevanceModel]:
    """Return the class of a method; raise a `UserError` that lists the names if there is no such method."""
    if not is_method(name):
        raise UserError(f"no method is called {name!r}; there are {', '.join([*MODELS, *BASELINES])}")
    module, attribute = (MODELS | BASELINES)[name].split(":")
    found: type[RelevanceModel] = getattr(import_module(module), attribute)
    return found


def make(name: str, preset: str = "default", **options: Any) -> RelevanceModel:
    """Return a new, untrained method; `preset` counts for the models only."""
    if name in MODELS:
        return method_class(name)(preset=preset, **options)
    from pydantic import ValidationError

    try:
        return method_class(name)(**options)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise UserError(f"{name!r} has no setting {place!r}; `fit` takes seed and max_seconds") from error
        raise UserError(f"{name!r}: {place}: {first['msg'].lower()}") from error
    except TypeError as error:
        raise UserError(f"{name!r} has no such settings: {error}") from error


def load(folder: str | PathLike[str]) -> RelevanceModel:
    """Return the trained method in a model folder."""
    from neuroseqret.models.model_folder import read_card

    name = read_card(folder).model
    if not is_method(name):
        raise UserError(f"{folder}: holds a {name!r} model, which this version does not know; fit the model again")
    return method_class(name).load(folder)


def load_to_embed(folder: str | PathLike[str]) -> RelevanceModel:
    """Return the trained method in a model folder, to embed with; without importing torch if that is possible."""
    from neuroseqret.models.model_folder import read_card

    if read_card(folder).model == "self":
        from neuroseqret.models.without_torch import SelfWithoutTorch

        try:
            return SelfWithoutTorch.load(folder)
        except (AttributeError, LookupError, TypeError, ValueError):
            pass  # it needs torch, or is damaged, which `load` says
    return load(folder)
