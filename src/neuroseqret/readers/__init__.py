"""Read and write event sequences in the formats that people have."""

from neuroseqret.readers.data_folder import DataFolder, read_folder, write_folder
from neuroseqret.readers.reading import read, scan, scan_or_read
from neuroseqret.readers.registry import FORMATS, Format
from neuroseqret.readers.sniffing import sniff
from neuroseqret.readers.trec import read_qrels, read_run, write_qrels, write_run
from neuroseqret.readers.writing import LossWarning, lost_by, write

__all__ = [
    "FORMATS",
    "DataFolder",
    "Format",
    "LossWarning",
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
