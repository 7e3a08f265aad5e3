"""Every ranking method by its name, models and baselines alike: list them, make a new one, load a trained one.

- `registry.py`: the methods by name
- `catalogue.py`: what each of them can do

The package can be called: `neuroseqret.methods()` lists all methods.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from neuroseqret.methods.registry import BASELINES, MODELS, is_method, load, make, method_class

if TYPE_CHECKING:
    from neuroseqret.methods.catalogue import Methods

__all__ = ["BASELINES", "MODELS", "is_method", "load", "make", "method_class"]


class _Callable(ModuleType):
    """A package that `neuroseqret.methods()` can call like a function."""

    def __call__(self) -> "Methods":
        from neuroseqret.methods.catalogue import catalogue

        return catalogue()


sys.modules[__name__].__class__ = _Callable
