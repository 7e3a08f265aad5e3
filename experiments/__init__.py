"""The tables and figures of the paper, made from cells; see `experiments.result_cells`."""
