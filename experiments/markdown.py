"""Markdown: tables, numbers, lists of names, and the paper's claims beside what is found here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroseqret.data.sequences import FloatArray

MISSING = "–"
NOTHING = "Not measured yet."
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


@dataclass(frozen=True)
class Finding:
    """What the paper claims, and what the cells say, without a full stop; empty if nothing was measured."""

    claim: str
    found: str

    def __str__(self) -> str:
        found = f"{self.found}." if self.found else NOTHING
        return f"- **The paper:** {self.claim} **Here:** {found}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> str:
    """Return a table whose first `text` columns are text and whose others are numbers."""
    lines = [head, ["---"] * text + ["---:"] * (len(head) - text), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)  # the name of a data set may have a bar
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def measured_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without the rows and columns in which nothing was measured."""
    kept = [row for row in rows if any(map(_is_known, row[1:]))]
    columns = [0, *(k for k in range(1, len(head)) if any(_is_known(row[k]) for row in kept))]
    return table([head[k] for k in columns], [[row[k] for k in columns] for row in kept]) if kept else NOTHING


def _is_known(cell: str) -> bool:
    return cell not in ("", MISSING)


def points(values: FloatArray, places: int = 1) -> str:
    """Return mean ± standard deviation over seeds (of a sample: n - 1); a single value has no deviation."""
    if not len(values):
        return MISSING
    spread = f" ± {deviation(values):.{places}f}" if len(values) > 1 else ""
    return f"{values.mean():.{places}f}{spread}"


def point_column(values: Sequence[FloatArray]) -> list[str]:
    """Return a column of a table from one array of seeds per row, the best in bold."""
    means = [float(one.mean()) if len(one) else float("nan") for one in values]
    places = decimals(means)
    return bold_best([points(one, places) for one in values], means)


def deviation(values: FloatArray) -> float:
    """Return the standard deviation of a sample; NaN for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def decimals(values: Sequence[float]) -> int:
    """Return 2 if all numbers of a column are below 10, where one decimal would hide differences; else 1."""
    known = [abs(value) for value in values if not math.isnan(value)]
    return 2 if known and max(known) < 10 else 1


def number(value: float, form: str = ".1f") -> str:
    """Return a number with a proper minus sign, without a sign if it rounds to zero; a dash for NaN."""
    if math.isnan(value):
        return MISSING
    shown = format(value, form)
    return shown.replace("-", "−") if any(digit in "123456789" for digit in shown) else shown.lstrip("+-")


def percent(share: float) -> str:
    """Return a share as `70 %`."""
    return f"{100 * share:.0f} %"


def bold_best(column: Sequence[str], means: Sequence[float]) -> list[str]:
    """Return the column with the highest mean in bold, and all cells that print the same mean."""
    known = [mean for mean in means if not math.isnan(mean)]
    best = _mean_of(column[list(means).index(max(known))]) if known else ""
    return [
        f"**{cell}**" if not math.isnan(mean) and _mean_of(cell) == best else cell
        for cell, mean in zip(column, means, strict=True)
    ]


def _mean_of(cell: str) -> str:
    return cell.split(" ")[0]


def details(summary: str, text: str) -> str:
    """Return a section that opens on a click."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def picture(name: str, alt: str) -> str:
    """Return a figure from the folder beside the page."""
    return f"![{alt}](figures/{name}.png)"


def of(part: int, whole: int) -> str:
    """Return `3 of 8`."""
    return f"{part} of {whole}"


def word(count: int) -> str:
    """Return a small number as a word."""
    return WORDS[count] if count < len(WORDS) else str(count)


def of_in_words(part: int, whole: int) -> str:
    """Return `three of eight`, `all eight` or `none of eight`."""
    return f"all {word(whole)}" if part == whole else f"{word(part) if part else 'none'} of {word(whole)}"


def counted(counts: Mapping[str, tuple[int, int]], what: str = "sets") -> str:
    """Return `text 3 of 8 sets; ...`, without the counts whose total is 0."""
    return "; ".join(f"{text} {of(*count)} {what}" for text, count in counts.items() if count[1])


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`, or `none`."""
    names = list(names)
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"
