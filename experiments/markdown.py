"""Markdown: tables, numbers in points, marks of significance, and the paper's claims beside what is found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroseqret.data.sequences import FloatArray

MISSING = "–"
NOTHING = "Not measured yet."


@dataclass(frozen=True)
class Finding:
    """What the paper says, and what the cells say (nothing: not measured), without a full stop."""

    claim: str
    found: str

    def __str__(self) -> str:
        found = f"{self.found}." if self.found else NOTHING
        return f"- **The paper:** {self.claim} **Here:** {found}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> str:
    """A table whose first `text` columns are text and whose others are numbers."""
    lines = [head, ["---"] * text + ["---:"] * (len(head) - text), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)  # a data set may be called so
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def measured_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same without the rows and columns in which nothing was measured."""
    kept = [row for row in rows if any(map(_is_known, row[1:]))]
    columns = [0, *(k for k in range(1, len(head)) if any(_is_known(row[k]) for row in kept))]
    return table([head[k] for k in columns], [[row[k] for k in columns] for row in kept]) if kept else NOTHING


def _is_known(cell: str) -> bool:
    return cell not in ("", MISSING)


def points(values: FloatArray, places: int = 1) -> str:
    """Mean and standard deviation over seeds (of a sample: n - 1); a single value has no deviation."""
    if not len(values):
        return MISSING
    spread = f" ± {deviation(values):.{places}f}" if len(values) > 1 else ""
    return f"{values.mean():.{places}f}{spread}"


def point_column(values: Sequence[FloatArray]) -> list[str]:
    """A column of a table: one array of seeds a row, the best in bold."""
    means = [float(one.mean()) if len(one) else float("nan") for one in values]
    places = decimals(means)
    return bold_best([points(one, places) for one in values], means)


def deviation(values: FloatArray) -> float:
    """Standard deviation of a sample; NaN where there are not two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def decimals(values: Sequence[float]) -> int:
    """Two where all numbers of a column are below 10, since a tenth would hide what tells them apart; else one."""
    known = [abs(value) for value in values if not math.isnan(value)]
    return 2 if known and max(known) < 10 else 1


def number(value: float, form: str = ".1f") -> str:
    """A number with a real minus sign and no sign where it rounds to zero, or a dash where there is none."""
    if math.isnan(value):
        return MISSING
    shown = format(value, form)
    return shown.replace("-", "−") if any(digit in "123456789" for digit in shown) else shown.lstrip("+-")


def percent(share: float) -> str:
    """`70 %`."""
    return f"{100 * share:.0f} %"


def bold_best(column: Sequence[str], means: Sequence[float]) -> list[str]:
    """The cell with the highest mean in bold, and all that print the same mean."""
    known = [mean for mean in means if not math.isnan(mean)]
    best = _mean_of(column[list(means).index(max(known))]) if known else ""
    return [
        f"**{cell}**" if not math.isnan(mean) and _mean_of(cell) == best else cell
        for cell, mean in zip(column, means, strict=True)
    ]


def _mean_of(cell: str) -> str:
    return cell.split(" ")[0]


def details(summary: str, text: str) -> str:
    """A part that is shown on a click."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def picture(name: str, alt: str) -> str:
    """A figure of the folder beside the document."""
    return f"![{alt}](figures/{name}.png)"


def of(part: int, whole: int) -> str:
    """`3 of 8`."""
    return f"{part} of {whole}"


def counted(counts: Mapping[str, tuple[int, int]], what: str = "sets") -> str:
    """`text` on 3 of 8 sets; ...: what was counted, without what there was nothing to count of."""
    return "; ".join(f"{text} {of(*count)} {what}" for text, count in counts.items() if count[1])


def listed(names: Sequence[str]) -> str:
    """`a, b and c`, or `none`."""
    names = list(names)
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"
