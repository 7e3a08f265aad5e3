"""Help texts that list the names of methods and formats, and show values as upper-case words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: The names of `readers.FORMATS`; a test compares them.
FORMAT_NAMES = (
    *("canonical", "hotpp", "lifestream", "long-parquet", "long-csv", "easytpp-json", "easytpp-jsonl"),
    *("gatech", "ifl-tpp", "paired-text"),
)


def _methods() -> Iterable[str]:
    from neuroseqret.methods.registry import BASELINES, MODELS

    return [*MODELS, *BASELINES]


def _formats() -> Iterable[str]:
    return FORMAT_NAMES  # importing the readers takes longer than the rest of a help text


def _limits() -> Iterable[str]:
    from dataclasses import fields

    from neuroseqret.serving.settings import Limits

    return [one.name for one in fields(Limits)]


#: From a file to hits, then what fewer people need.
ORDER = ("data", "fit", "index", "search", "evaluate", "embed", "serve", "keys", "demo")
#: Placeholders in help texts, written in braces, and the names that replace them.
LISTS: dict[str, Callable[[], Iterable[str]]] = {
    "methods": _methods,
    "formats": _formats,
    "limits": _limits,
}


class Command(TyperCommand):
    """A command that looks up names only when its help is printed, because importing their modules takes time."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: `DATA`, where newer versions of typer write `{DATA}`."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options: `ID`, where newer versions of typer add `<list[str]>`."""
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010  # typer offers no other way
            setattr(parameter, "help", _listed(getattr(parameter, "help", None)))  # noqa: B010  # some have none
        super().format_options(ctx, formatter)


class Commands(TyperGroup):
    """Commands in the order in which people need them, whether or not they have sub-commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands as the help lists them."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def _listed(said: str | None) -> str | None:
    """Return a help text with the placeholders replaced by names."""
    for word, names in LISTS.items():
        if said and f"{{{word}}}" in said:
            said = said.replace(f"{{{word}}}", ", ".join(names()))
    return said
