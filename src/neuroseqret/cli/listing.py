"""Commands whose help lists names (of methods, formats) and calls values by upper-case words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from typer.core import TyperCommand


def _methods() -> Iterable[str]:
    from neuroseqret.methods.registry import BASELINES, MODELS

    return [*MODELS, *BASELINES]


def _formats() -> Iterable[str]:
    from neuroseqret.readers import FORMATS

    return FORMATS


#: Words that stand in braces in a help, and the names they stand for.
LISTS: dict[str, Callable[[], Iterable[str]]] = {
    "methods": _methods,
    "formats": _formats,
}


class Command(TyperCommand):
    """A command that looks names up when its help is printed and not before: where they are costs time to import."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line; `DATA`, where newer versions of typer would write `{DATA}`."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options; an argument is called `ID`, where newer versions of typer would add `<list[str]>`."""
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010  # typer knows no other way
            setattr(parameter, "help", _listed(getattr(parameter, "help", None)))  # noqa: B010  # some have none
        super().format_options(ctx, formatter)


def _listed(said: str | None) -> str | None:
    """A help with the names in the place of the words that stand for them."""
    for word, names in LISTS.items():
        if said and f"{{{word}}}" in said:
            said = said.replace(f"{{{word}}}", ", ".join(names()))
    return said
