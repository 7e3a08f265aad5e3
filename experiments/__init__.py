"""The tables and figures of the paper, on any data folders: `python -m experiments NAME`. See docs/experiments.md.

This package is part of the repository, not of the wheel. What happens, in order:

- Plan: `plan` says what is fitted (`Fit`) and how it is asked (`View`), `variants` has the models of the ablation,
  `cutting` the shortened queries, `find_data` the data folders.
- Measure: `lab` fits a method, asks it in every view and keeps each answer as a cell. `result_cells` stores cells,
  `outcomes` says what a cell keeps, `versions` when it is stale. `hash_curve`, `algorithm_run`, `examples` and
  `indexing` measure everything that is not a ranking, `simulated_judges` what judgements of hits bring.
- Read: `measured` has all cells in memory. `paper_values` has the paper's figures.
- Report: one file per experiment, listed in `results_document.EXPERIMENTS`, each with `measure`, `report` and mostly
  `findings`. `second_stages`, `standing`, `data_statistics`, `cross_ablation` and `troubles` are further sections.
  `markdown` and `drawing` make tables and figures.
- `results_document` puts everything together as docs/results.md; `__main__` is the command. `summary`
  puts the results in short into the README and a page, with `summary_figures` and `summary_statements`.
"""
