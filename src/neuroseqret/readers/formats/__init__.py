"""One file per format; each has `read` and `write`, and `scan` if it can be read in batches.

- `canonical.py`: this library's Parquet, one row per sequence
- `hotpp.py`: HoTPP's Parquet
- `lifestream.py`: pytorch-lifestream's Parquet
- `long_parquet.py`: Parquet with one row per event
- `long_csv.py`: CSV with one line per event
- `easytpp.py`: EasyTPP's JSON and JSON lines
- `gatech.py`: the Georgia Tech pickle of NHP and THP
- `ifl_tpp.py`: ifl-tpp's torch file
- `paired_text.py`: the paired text files of the paper's authors
"""
