"""Every ranking method by its name: the models and the baselines."""

from neuroseqret.methods.registry import BASELINES, MODELS, load, make, method_class

__all__ = ["BASELINES", "MODELS", "load", "make", "method_class"]
