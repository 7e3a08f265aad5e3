"""`docs/results.md`: how things were measured, what was found, and every table and figure, all made from the cells."""

from __future__ import annotations

from pathlib import Path

from experiments import (
    ablation,
    accuracy,
    algorithm,
    data_statistics,
    diagnosis,
    feedback,
    hashing,
    learning_curves,
    lengths,
    neural_process,
    qualitative,
    queries,
    runtime,
    second_stages,
    simulated,
    standing,
    training_time,
    unwarping,
)
from experiments.lab import SECOND_STAGE
from experiments.markdown import MISSING, details, listed, table
from experiments.measured import DIFFERENT, Measured, label, row_fit
from experiments.plan import CORPORA, DETERMINISTIC, PRESETS, View, rows
from neuroseqret.baselines.sharp import GAMMAS
from neuroseqret.storage.files import new_file

EXPERIMENTS = {
    "accuracy": accuracy,
    "learning-curves": learning_curves,
    "diagnosis": diagnosis,
    "ablation": ablation,
    "neural-process": neural_process,
    "unwarping": unwarping,
    "hashing": hashing,
    "algorithm": algorithm,
    "queries": queries,
    "lengths": lengths,
    "runtime": runtime,
    "training-time": training_time,
    "qualitative": qualitative,
    "feedback": feedback,
    "simulated": simulated,
}
CLAIMS = (accuracy, ablation, unwarping, hashing, algorithm, queries, lengths, runtime, qualitative, simulated)


def write(measured: Measured, document: Path, figures: Path) -> None:
    """Write the page, and its figures into their folder."""
    content = text(measured, figures)
    with new_file(document) as path:
        path.write_text(content, encoding="utf-8")


def text(measured: Measured, figures: Path | None = None) -> str:
    """Return the page; without a folder, the figures are mentioned but not drawn."""
    parts = [
        _how(measured),
        _asked(measured),
        _found(measured),
        *(one.report(measured, figures) for one in EXPERIMENTS.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _how(measured: Measured) -> str:
    usual = [c for c in measured.configs if c.get("experiment") != "simulated"]
    seconds, asked = (sorted({c[key] for c in usual}) for key in ("max_seconds", "max_queries"))
    budget = "".join(f" --max-seconds {s:g}" for s in seconds[:1]) + "".join(f" --max-queries {n}" for n in asked[:1])
    several = f" (cells with several budgets are mixed: {listed([f'{s:g} s' for s in seconds])})" if seconds[1:] else ""
    return f"""# Results

Every number on this page is computed from the {len(measured.configs):,} cells in `results/cells`, one small file per
measurement. A test regenerates the page from the cells and compares. [experiments.md](experiments.md) explains how to
run the experiments.

    python -m experiments all --data DATA --seeds {measured.seeds}{budget}

- **Data:** {listed(measured.data)}. All methods get the same queries, the same candidates and the same order of ties.
- **Versions:** every method has a version, which is raised by hand when what it computes changes; a test with golden
  figures fails if it is not. A cell is measured again when a version behind it is raised. A change that moves no figure
  leaves the cells as they are, so they come from {len(measured.commits)} commits.
- **Seeds:** up to {measured.seeds} for methods that are trained; one for {listed(sorted(DETERMINISTIC))}, which are not
  trained, and one for the ablation, hashing, unwarping and the examples.
- **Budget:** at most {listed([f"{s:g} s" for s in seconds])} of one core to train a method, the same for all{several}.
  Preset `paper` stops earlier if validation stops rising.
  A second stage gets {100 * SECOND_STAGE:g} % more on top of its first stage. The budget does not cover what comes
  before and after training (features of the corpus, validation); the section "Run time" shows what was really spent.
- **Queries:** test queries, at most {listed([str(n) for n in asked])} per set, the same for all methods.
- **Hyper-parameters** were chosen on validation queries only, but not with equal effort. Each trained baseline had one
  search: three learning rates on two sets ([baselines.md](baselines.md)). `sharp` picks its gamma among {len(GAMMAS)}
  values on the validation queries of each set. Our `default` preset is one recipe for all sets, with nothing chosen per
  set, but it had far more trials during development, which were not counted. `paper` and `paper-literal` had no
  search: they have the gamma, delta, batch size and D of the paper's table, or the most common ones for a set that is
  not in the table. In `paper`, what its encoder reads, and the likelihood in its loss, were chosen on validation
  queries of health and sports.

{details("Commits and seeds", _commits_and_seeds(measured))}"""


def _commits_and_seeds(measured: Measured) -> str:
    commits = ", ".join(measured.commits) or "none"
    return f"Commits: {commits} (+: with changes that were committed later).\n\nSeeds: {_seeds(measured)}."


def _seeds(measured: Measured) -> str:
    """Return how many seeds each row was trained with, on the set with the fewest."""
    parts = []
    for corpus in CORPORA:
        by_number: dict[int, list[str]] = {}
        for row in rows():
            if row[0] not in DETERMINISTIC:
                runs = [len(measured.answered(row_fit(data, row, corpus), View())) for data in measured.data]
                by_number.setdefault(min(runs, default=0), []).append(f"`{label(row)}`")
        found = [f"{number} for {listed(by_number[number])}" for number in sorted(by_number)[::-1] if number]
        partly = f"not on every set: {listed(by_number[0])}" if 0 in by_number else ""
        parts.append(f"with the corpus {corpus}, {'; '.join(filter(None, [*found, partly]))}")
    return ". ".join(part[0].upper() + part[1:] for part in parts)


def _asked(measured: Measured) -> str:
    """Return the table of queries and candidates; they are the same for all methods, so any method's cell has them."""
    lines = []
    for data in measured.data:
        cells = []
        for corpus in CORPORA:
            answered = [r for row in rows() for r in measured.answered(row_fit(data, row, corpus), View())]
            first = answered[0] if answered else {}
            keys = ("queries_answered", "queries_not_drawn", "queries_left_out", "candidates")
            cells += [f"{first[key]:,}" if key in first else MISSING for key in keys]
        lines.append([data, *cells])
    head = ["queries", "not drawn", "nothing relevant", "corpus"]
    asked = table(["data", *(f"{corpus}: {name}" for corpus in CORPORA for name in head)], lines)
    return "\n\n".join(filter(None, [asked, data_statistics.report(measured)]))


def _why(measured: Measured) -> str:
    """Return why preset `paper` ranks as it does, as far as the looks at it tell; empty if there are none."""
    said = [part for part in (learning_curves.verdict(measured), diagnosis.verdict(measured)) if part]
    return "\n\n".join(["### Why preset `paper` ranks as it does", *said]) if said else ""


def _found(measured: Measured) -> str:
    claims = "\n".join(str(finding) for part in CLAIMS for finding in part.findings(measured))
    return "\n\n".join(
        filter(
            None,
            [
                "## What is found",
                "### Models and baselines",
                standing.report(measured),
                "### Second stages and first stages",
                "\n".join(f"- {second_stages.verdict(measured, preset)}" for preset in PRESETS[::-1]),
                second_stages.losses(measured, "default"),
                "### What the paper claims",
                "Accuracy is measured in the paper's protocol with the corpus seen; ablation, single queries and "
                f"lengths with the whole corpus ranked. A difference of less than {DIFFERENT} points does not count.",
                claims,
                _why(measured),
            ],
        )
    )
