"""Data sets: the paper's seven from raw files, the music of the demo, and simulated data.

- `prepare.py`: from raw files or any sequences to a data folder; the recipes of the seven sets
- `from_frame.py`: `neuroseqret.prepare`, a data folder in memory from a data frame
- `audio.py`, `sports.py`, `celebrity.py`, `electricity.py`, `health.py`, `twitter.py`, `amazon.py`: one set each; their
  docstrings say what to download and what becomes an event
- `amazon_files.py`, `refit.py`: the raw files of Amazon and REFIT in their published forms
- `recordings.py`: whole recordings, cut into windows and turned into sequences
- `steps.py`: regular signals to events
- `raw_files.py`: finding and reading raw files
- `music/`: melodies from scores, for the demo
- `simulate.py`, `simulated_processes.py`: example data from random point processes
"""
