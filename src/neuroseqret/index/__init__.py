"""The index: a searchable corpus in a folder."""

from neuroseqret.index.hit import Hit, Hits, SearchReport
from neuroseqret.index.index import Index

__all__ = ["Hit", "Hits", "Index", "SearchReport"]
