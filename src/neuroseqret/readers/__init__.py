"""Read and write event sequences in the formats that people have.

- `reading.py`: `read` a file or a data frame, `scan` a file larger than memory
- `writing.py`: `write` a file, with a warning about what its format cannot hold
- `data_folder.py`: data folders: corpus, queries and relevance, as `fit` and `evaluate` take them
- `part_of_corpus.py`: a random part of a corpus that is larger than memory
- `trec.py`: TREC qrels and runs
- `frame.py`: data frames of pandas and polars, and Arrow tables
- `coercion.py`: whatever a user passes as sequences: frames, lists of (time, mark) pairs, sequences
- `sniffing.py`: which format a file has, by its content
- `registry.py`: the formats by name
- `capacity.py`: what each format has room for
- `options.py`: what the caller says about the data: column map, mark names, time unit
- `formats/`: one file per format
- `engines/`: what the formats share
- `pickles/`: pickles, read without running anything and only if the caller asks for it
"""

from neuroseqret.readers.data_folder import DataFolder, read_folder, write_folder
from neuroseqret.readers.reading import columns_of_long_table, read, scan, scan_or_read
from neuroseqret.readers.registry import FORMATS, Format
from neuroseqret.readers.sniffing import sniff
from neuroseqret.readers.trec import read_qrels, read_run, write_qrels, write_run
from neuroseqret.readers.writing import LossWarning, lost_by, write

__all__ = [
    "FORMATS",
    "DataFolder",
    "Format",
    "LossWarning",
    "columns_of_long_table",
    "lost_by",
    "read",
    "read_folder",
    "read_qrels",
    "read_run",
    "scan",
    "scan_or_read",
    "sniff",
    "write",
    "write_folder",
    "write_qrels",
    "write_run",
]
