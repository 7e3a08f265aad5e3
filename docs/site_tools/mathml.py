r"""Mathematics as MathML, written when the site is built: browsers draw it without any script.

Arithmatex marks mathematics in the HTML of a page as `\( ... \)` and `\[ ... \]` in elements of class `arithmatex`.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_MARKED = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)


def to_mathml(formula: str, block: bool) -> str:
    """Return a formula in LaTeX as a `<math>` element."""
    if "&" in formula:
        formula = rf"\begin{{align*}}{formula}\end{{align*}}"
    return str(convert(formula, display="block" if block else "inline"))


def render(page: str) -> str:
    """Return the HTML of a page with all its mathematics as MathML."""
    return _MARKED.sub(lambda found: to_mathml(html.unescape(found[2]).strip(), block=found[1] == "div"), page)
