r"""Docstrings as Markdown: `.. math::` and :math: become `\[ \]` and `\( \)`, and doctests become code blocks.

The docstrings are written so that `help()` reads well in a terminal. This griffe extension changes only what the site
would not understand. `mathml.py` then renders the mathematics.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from griffe import Extension, Object

#: `.. math::` and the lines below it that are indented further.
_BLOCK = re.compile(r"^(?P<indent> *)\.\. math:: *(?P<body>.*(?:\n(?P=indent) +\S.*)*)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
#: A line that begins with `>>>`, and all lines up to the next empty one.
_DOCTEST = re.compile(r"^ *>>> .*(?:\n *\S.*)*", re.MULTILINE)


def as_markdown(docstring: str) -> str:
    """Return a docstring with its mathematics in the form that Markdown's arithmatex reads, and examples as code."""
    return _DOCTEST.sub(_example, _INLINE.sub(_inline, _BLOCK.sub(_block, docstring)))


def _block(found: re.Match[str]) -> str:
    formula = " ".join(found["body"].split())
    return f"\n{found['indent']}\\[{formula}\\]\n"


def _inline(found: re.Match[str]) -> str:
    return rf"\({' '.join(found[1].split())}\)"


def _example(found: re.Match[str]) -> str:
    return f"\n```pycon\n{textwrap.dedent(found[0])}\n```\n"


class DocstringMath(Extension):
    """Apply `as_markdown` to every docstring that griffe finds."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
