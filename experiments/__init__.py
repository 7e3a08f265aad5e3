"""The tables and figures of the paper, on any data folders: `python -m experiments NAME`. See docs/experiments.md.

This package is part of the repository, not of the wheel. What happens, in order:

- Plan: `plan` says what is fitted (`Fit`) and how it is asked (`View`), `variants` has the models of the ablation,
  `cutting` the shortened queries, `find_data` the data folders.
- Measure: `lab` fits a method, asks it in every view and keeps each answer as a cell. `result_cells` stores cells,
  `outcomes` says what a cell keeps, `versions` when it is stale. `hash_curve`, `examples` and `indexing` measure
  everything that is not a ranking.
- Read: `measured` has all cells in memory. `paper_values` has the paper's figures.
- Report: one file per experiment, `accuracy`, `ablation`, `neural_process`, `unwarping`, `hashing`, `queries`,
  `lengths`, `runtime`, `training_time` and `qualitative`, each with `measure`, `report` and mostly `findings`.
  `second_stages`, `standing` and `troubles` are further sections. `markdown` and `drawing` make tables and figures.
- `results_document` puts everything together as docs/results.md; `__main__` is the command.
"""
