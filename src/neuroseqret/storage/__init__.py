"""What every room that writes uses.

- `files.py`: files and folders that appear complete or not at all; the cache folder
- `exchange.py`: puts a new folder in the place of an old one
- `sync.py`: makes files and folders safe from a power cut
- `lock.py`: a lock on a file, so that writers take turns
- `bucket.py`: a folder of an object store
- `numba_cache.py`: a place for numba's compiled functions, if the install is read-only
- `reading.py`: one line that names the path, if a file cannot be read or is damaged
- `vectors.py`: Parquet files of vectors
- `seal.py`: a checksum inside Parquet files, so that damage is found
"""
