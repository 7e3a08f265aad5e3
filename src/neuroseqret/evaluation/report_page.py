"""A report as a page for people: one HTML file without scripts, which opens from disk, and the figures as JSON.

It shows the table of means, every query of every method as a dot, and the best method against each of the others: query
by query, and the queries on which the two differ most. Names come from users, so everything passes through
`html.escape`.
"""

from __future__ import annotations

import json
from html import escape
from os import PathLike
from pathlib import Path

import numpy as np

import neuroseqret
from neuroseqret.data.sequences import FloatArray
from neuroseqret.evaluation.report import BAR, Report
from neuroseqret.evaluation.runner import Result
from neuroseqret.measures.table import MEASURES
from neuroseqret.storage.files import new_folder

PAGE, FIGURES = "index.html", "report.json"
PAGE_HOLDS = (PAGE, FIGURES)  # the files of a page
SHOWN = "AP"  # the measure of the plots
CHANCE = "random"  # nobody needs to see how much better than chance a method is on each query
_MOST_DOTS = 2000  # per method; more would hide one another
_LISTED = 15  # queries that are listed on either side
_LABEL, _WIDTH, _ROW = 190, 560, 30  # of the plots, in pixels
_STYLE = """
:root{color-scheme:light dark;--paper:#f7f6f3;--surface:#fff;--line:#dddad3;--ink:#1c2126;--soft:#555d66;--dot:#1b66a8;
--mean:#c05a00;--other:#8b9096}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--surface:#1c2024;--line:#343a41;--ink:#e9ebee;--soft:#a7b0b9;
--dot:#6db6f2;--mean:#f0a24a;--other:#7d858d}}
body{margin:0;background:var(--paper);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:980px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.2;letter-spacing:-.015em;margin:0 0 4px}h2{font-size:16px;margin:0 0 4px}
h3{font-size:14px;margin:16px 0 4px}
summary{cursor:pointer}summary h2{display:inline}details>p{margin-top:6px}
h1,h2,h3,p,footer{overflow-wrap:anywhere}
p{margin:0 0 10px;color:var(--soft)}section{background:var(--surface);border:1px solid var(--line);border-radius:8px;
padding:16px 18px;margin-top:18px;overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{padding:4px 12px 4px 0;text-align:right;
font-weight:400;white-space:nowrap}
thead th{color:var(--soft);border-bottom:1px solid var(--line)}th:first-child,.left{text-align:left}
tbody tr+tr>*{border-top:1px solid var(--line)}.best{font-weight:700}.next{text-decoration:underline}
svg{min-width:520px;max-width:100%;height:auto;display:block}
svg text{fill:var(--soft);font-size:12px}svg .name{fill:var(--ink)}
.dot{fill:var(--dot);fill-opacity:.35}.mean{stroke:var(--mean);stroke-width:2.5}.axis{stroke:var(--line)}
.lose{fill:var(--other);fill-opacity:.6}footer{margin-top:18px;color:var(--soft);font-size:12px}
"""


def write_page(report: Report, folder: str | PathLike[str]) -> Path:
    """Write a new folder with `index.html` and `report.json`; return the path of the page."""
    with new_folder(folder, *PAGE_HOLDS) as target:
        (target / PAGE).write_text(page(report), encoding="utf-8")
        figures = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
        (target / FIGURES).write_text(figures + "\n", encoding="utf-8")
    return Path(folder) / PAGE


def page(report: Report) -> str:
    """Return the whole page as HTML."""
    task = report.task
    ranked = "the whole corpus" if task.protocol == "full" else "sampled lists"
    about = (
        f"{len(task.queries):,} {task.split} queries rank {ranked} of {len(task.corpus):,} sequences; corpus "
        f"{task.condition} in training, seed {task.seed}."
    )
    sections = [_table(report), _dots(report), *_pairs(report)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Evaluation of {escape(report.data)}</title><style>{_STYLE}</style></head>\n<body><main>"
        f"<h1>Evaluation of {escape(report.data)}</h1><p>{escape(about)}</p>\n"
        + "\n".join(sections)
        + f"\n<footer>NeuroSeqRet {escape(neuroseqret.__version__)}. {FIGURES} has the same figures.</footer>"
        "</main></body></html>\n"
    )


def _table(report: Report) -> str:
    order = {measure: report.order(measure) for measure in MEASURES}
    rows = []
    for result in report.results:
        cells = [f'<th scope="row">{escape(result.name)}</th>']
        if result.error is not None:
            cells.append(f'<td class="left" colspan="{len(MEASURES) + 1}">failed: {escape(result.error)}</td>')
        else:
            for measure in MEASURES:
                place = order[measure].index(result.name)
                kind = {0: "best", 1: "next"}.get(place, "")
                sign = report.marks(result.name, measure)
                cells.append(f'<td><span class="{kind}">{100 * result.mean(measure):.1f}</span>{escape(sign)}</td>')
            cells.append(f"<td>{result.seconds:.1f}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("method", *MEASURES, "seconds"))
    note = f"Means in percent; the best is bold, the second best underlined. {report.signs}"
    return (
        f'<section tabindex="0"><h2>Means</h2><p>{escape(note)}</p><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></section>"
    )


def _values(result: Result) -> FloatArray:
    assert result.answers is not None  # asked only of methods that answered
    return result.answers.measures[SHOWN]


def _dots(report: Report) -> str:
    """Every query as a dot, one row per method, best method first."""
    by_name = {result.name: result for result in report.answered}
    names = report.order(SHOWN)
    ids = report.task.queries.ids.to_pylist()
    chosen = np.random.default_rng(report.task.seed).permutation(len(ids))[:_MOST_DOTS]
    height = _ROW * len(names) + 28
    parts = [_axis(_ROW * len(names))]
    for row, name in enumerate(names):
        values, middle = _values(by_name[name]), _ROW * row + _ROW / 2
        parts.append(f'<text class="name" x="0" y="{middle + 4}">{escape(_short(name))}</text>')
        for query in chosen:
            # Dots are spread over the height of a row by their number, so that equal values do not hide one another.
            y = middle + (query * 7 % 17 - 8) * 1.1
            parts.append(
                f'<circle class="dot" cx="{_x(values[query]):.1f}" cy="{y:.1f}" r="2.6">'
                f"<title>{escape(ids[query])}: {values[query]:.3f}</title></circle>"
            )
        mean = _x(float(values.mean()))
        parts.append(f'<line class="mean" x1="{mean:.1f}" x2="{mean:.1f}" y1="{middle - 12}" y2="{middle + 12}"/>')
    some = f" {_MOST_DOTS:,} queries drawn at random are shown." if len(ids) > _MOST_DOTS else ""
    return (
        f'<section tabindex="0"><h2>Every query</h2><p>{SHOWN} of each query, and the mean as a line.{some}</p>'
        f'<svg viewBox="0 0 {_LABEL + _WIDTH + 20} {height}" width="{_LABEL + _WIDTH + 20}" role="img" '
        f'aria-label="{SHOWN} of every query by method">{"".join(parts)}</svg></section>'
    )


def _pairs(report: Report) -> list[str]:
    """The best method against each of the others, best first; all but the next best and the baseline are folded."""
    by_name = {result.name: result for result in report.answered}
    best, *rest = report.order(SHOWN) or [""]
    others = [name for name in rest if name != CHANCE]
    return [_pair(report, by_name[best], by_name[name], unfold=name in (others[0], BAR)) for name in others]


def _pair(report: Report, best: Result, other: Result, unfold: bool) -> str:
    """The best method against another one: all queries, and those on which the two differ most."""
    mine, theirs = _values(best), _values(other)
    won, lost = int((mine > theirs).sum()), int((mine < theirs).sum())
    text = f"{best.name} is better on {won:,} queries, worse on {lost:,} and equal on {len(mine) - won - lost:,}."
    return (
        f'<section tabindex="0"><details{" open" if unfold else ""}><summary><h2>{escape(best.name)} against '
        f"{escape(other.name)}</h2></summary><p>{escape(text)}</p>{_scatter(report, best, other)}"
        f"{_extremes(report, best, other)}</details></section>"
    )


def _scatter(report: Report, best: Result, other: Result) -> str:
    """A dot per query; above the diagonal are those that the best method answers better."""
    mine, theirs = _values(best), _values(other)
    side = 360
    ids = report.task.queries.ids.to_pylist()
    chosen = np.random.default_rng(report.task.seed).permutation(len(ids))[:_MOST_DOTS]
    parts = [f'<line class="axis" x1="40" y1="{side}" x2="{40 + side}" y2="0"/>']
    parts += [f'<line class="axis" x1="40" y1="{y}" x2="{40 + side}" y2="{y}"/>' for y in (0, side)]
    parts += [f'<line class="axis" x1="{x}" y1="0" x2="{x}" y2="{side}"/>' for x in (40, 40 + side)]
    for query in chosen:
        x, y = 40 + side * theirs[query], side * (1 - mine[query])
        kind = "dot" if mine[query] >= theirs[query] else "lose"
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"><title>{escape(ids[query])}: '
            f"{mine[query]:.3f} and {theirs[query]:.3f}</title></circle>"
        )
    parts.append(f'<text x="40" y="{side + 18}">{SHOWN} of {escape(_short(other.name))}, 0 to 1</text>')
    parts.append(f'<text transform="translate(28 {side}) rotate(-90)">{SHOWN} of {escape(_short(best.name))}</text>')
    return (
        f'<svg viewBox="0 -6 {side + 60} {side + 34}" width="{side + 60}" role="img" aria-label="{SHOWN} of '
        f'{escape(best.name)} against {escape(other.name)} by query">{"".join(parts)}</svg>'
    )


def _extremes(report: Report, best: Result, other: Result) -> str:
    """The queries on which the two differ most, with the group of each."""
    mine, theirs = _values(best), _values(other)
    order = np.argsort(theirs - mine, kind="stable")
    chosen = [*order[:_LISTED], *[row for row in order[-_LISTED:] if row not in order[:_LISTED]]]
    queries, counts = report.task.queries, report.task.relevance.counts
    groups = [None] * len(mine) if queries.groups is None else queries.groups.to_pylist()
    rows = "".join(
        f'<tr><th scope="row">{escape(queries.ids[int(row)].as_py())}</th>'
        f'<td class="left">{escape(groups[row] or "")}</td>'
        f"<td>{int(counts[row]):,}</td><td>{100 * mine[row]:.1f}</td><td>{100 * theirs[row]:.1f}</td>"
        f"<td>{100 * (mine[row] - theirs[row]):+.1f}</td></tr>"
        for row in chosen
    )
    names = ("query", "group", "relevant", _short(best.name), _short(other.name), "difference")
    head = "".join(f'<th scope="col"{_left(name)}>{escape(name)}</th>' for name in names)
    return (
        f"<h3>Where they differ most</h3><p>{SHOWN} in percent, largest gain first.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _axis(bottom: float) -> str:
    lines = [
        f'<line class="axis" x1="{_x(tick / 4)}" x2="{_x(tick / 4)}" y1="0" y2="{bottom + 4}"/>'
        f'<text x="{_x(tick / 4)}" y="{bottom + 20}" text-anchor="middle">{tick / 4:g}</text>'
        for tick in range(5)
    ]
    return "".join(lines)


def _x(value: float) -> float:
    return _LABEL + _WIDTH * float(value)


def _short(name: str) -> str:
    """The name of a method, or the last part of a model folder's path."""
    last = Path(name).name or name
    return last if len(last) <= 26 else last[:25] + "…"


def _left(name: str) -> str:
    return ' class="left"' if name == "group" else ""
