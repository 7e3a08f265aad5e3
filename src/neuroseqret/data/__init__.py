"""The data model: event sequences, and which of them are relevant to which.

- `sequences.py`: `EventSequences`, many sequences as columns
- `sequence.py`: `EventSequence`, one of them
- `columns.py`: the Arrow columns behind them: types, order, conversion
- `stored_meaning.py`: mark names and time unit stored with the columns
- `equality.py`: comparison by value and fingerprints
- `frames.py`: conversion to pandas and polars
- `validation.py`: what is wrong with sequences, with place and remedy
- `repair.py`: repairs of what is wrong
- `meaning.py`: mark names and time unit of data and model compared
- `durations.py`: times and durations as people write them
- `gaps.py`: typical gaps between events, to notice a wrong time unit
- `gap_loops.py`: its compiled loop
- `figures.py`: Matplotlib figures that show themselves in a notebook
- `timelines.py`: sequences drawn as time lines, for notebooks
- `relevance.py`: which corpus sequences answer which query
- `splits.py`: train, validation and test queries; the unseen half of a corpus; negatives
- `windows.py`: sequences cut into windows
- `subsequences.py`: relevance for unlabelled data, from parts of the same sequence
- `statistics.py`: the numbers that `neuroseqret data info` prints
- `doubts.py`: what looks wrong with them
- `batching.py`: padded tensors
"""
