"""Every ranking method by its name, models and baselines alike: look one up, make a new one, load a trained one."""

from neuroseqret.methods.registry import BASELINES, MODELS, is_method, load, make, method_class

__all__ = ["BASELINES", "MODELS", "is_method", "load", "make", "method_class"]
