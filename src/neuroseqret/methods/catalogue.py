"""What each ranking method can do, as a table: `neuroseqret.methods()`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING

from neuroseqret.methods.registry import BASELINES, MODELS, method_class
from neuroseqret.models.base import Embedder, Reranker, Resumable

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Method:
    """One ranking method: `neuroseqret.make(name)` makes it."""

    name: str
    embeds: bool  # gives sequences vectors, so it can be indexed
    reranks: bool  # reorders the best hits of another method
    needs_labels: bool  # learns from relevance; without labels it learns from sub-sequences
    resumes: bool  # goes on with an interrupted fit from a checkpoint
    presets: tuple[str, ...]
    about: str


class Methods(Sequence[Method]):
    """All methods; printing it shows a table."""

    def __init__(self, methods: Sequence[Method]) -> None:
        self._methods = tuple(methods)

    def __len__(self) -> int:
        return len(self._methods)

    def __getitem__(self, key: int | str) -> Method:  # type: ignore[override]
        """Return a method by its place or its name."""
        if isinstance(key, str):
            return next((one for one in self._methods if one.name == key), None) or _unknown(key)
        return self._methods[key]

    def __iter__(self) -> Iterator[Method]:
        return iter(self._methods)

    def __contains__(self, name: object) -> bool:
        return any(name in (one, one.name) for one in self._methods)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a data frame."""
        import pandas

        return pandas.DataFrame([asdict(method) for method in self._methods])

    def __repr__(self) -> str:
        rows = [_HEAD, *(_cells(method) for method in self._methods)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD) - 1)]
        lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in _HEAD)
        rows = (
            "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in _cells(method))
            for method in self._methods
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table class='neuroseqret'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HEAD = ("method", "index", "rerank", "labels", "resume", "what it is")


def _cells(method: Method) -> tuple[str, ...]:
    abilities = (method.embeds, method.reranks, method.needs_labels, method.resumes)
    return (method.name, *("✓" if able else "" for able in abilities), method.about)


def _unknown(name: str) -> Method:
    method_class(name)  # raises, and lists the names
    raise KeyError(name)


def catalogue() -> Methods:
    """List all ranking methods and what each can do.

    `index`: has embeddings, so `Index.create` takes it. `rerank`: reorders the hits of another method. `labels`: learns
    from relevance. `resume`: goes on with an interrupted `fit`.
    """
    return Methods([_describe(name) for name in (*MODELS, *BASELINES)])


def _describe(name: str) -> Method:
    found = method_class(name)
    return Method(
        name,
        embeds=issubclass(found, Embedder),
        reranks=issubclass(found, Reranker),
        needs_labels=found.needs_labels,
        resumes=issubclass(found, Resumable),
        presets=("default", "paper", "paper-literal") if name in MODELS else (),
        about=(found.__doc__ or "").strip().split("\n")[0].partition("; `")[0].rstrip("."),
    )
