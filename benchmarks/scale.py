"""Past one machine: object store, Milvus, Ray, and how the cost of a query grows. Run it section by section.

    OMP_NUM_THREADS=1 python benchmarks/scale.py [SECTION ...] [--prepare] [--rows 1000000] [--room FOLDER] [--anew]

Every cell is saved to results/scale when it is done, and is not measured again without --anew; docs/scale.md is made
from them (`python tests/scale_page.py`). --prepare only makes the corpora and indexes that a section needs.

    growth   queries on 10^4 to 10^7 sequences; with a model in ROOM/model and $NEUROSEQRET_DATA, from raw events
    bucket   an index in an object store (moto_server) beside the same one in a folder
    milvus   a real Milvus server beside bare calls of pymilvus
    ray      two nodes of Ray on this machine beside one worker without it; needs ROOM/model
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # the Milvus server of the tests

import torch

import scale_bucket
import scale_growth
import scale_milvus
import scale_ray
from scale_room import Room

RESULTS = Path(__file__).resolve().parents[1] / "results" / "scale"
SECTIONS = {"growth": scale_growth, "bucket": scale_bucket, "milvus": scale_milvus, "ray": scale_ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION", help="all by default")
    parser.add_argument("--only", action="append", metavar="CELL", help="only this cell; may be repeated")
    parser.add_argument("--rows", type=int, default=1_000_000, help="sequences of an index")
    parser.add_argument("--room", type=Path, default=Path(tempfile.gettempdir()) / "neuroseqret-scale")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--prepare", action="store_true", help="make what is needed, and measure nothing")
    parser.add_argument("--anew", action="store_true", help="measure cells that are there again")
    given = parser.parse_args()
    torch.set_num_threads(1)
    room = Room(given.room, given.results, given.rows)
    for name in given.sections or SECTIONS:
        if given.prepare:
            SECTIONS[name].prepare(room)
            continue
        for cell, measure in SECTIONS[name].cells(room).items():
            wanted = given.only is None or cell in given.only
            if wanted and (given.anew or not room.cell(cell).exists()):
                room.keep(cell, measure())


if __name__ == "__main__":
    main()
