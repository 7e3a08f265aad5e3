"""`neuroseqret embed`: sequences to vectors, in a Parquet file with one row a sequence."""

from __future__ import annotations

from pathlib import Path

import typer

from neuroseqret.cli.console import progress, remarks
from neuroseqret.cli.data import ANY_FORMAT
from neuroseqret.errors import UserError


def embed(
    model: Path = typer.Argument(..., metavar="MODEL", help="Model folder, as 'fit' writes it."),
    sequences: Path = typer.Argument(..., metavar="SEQUENCES", help=f"File of event sequences, {ANY_FORMAT}."),
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Parquet file to write: columns id and embedding."),
    query: bool = typer.Option(False, "--query", help="Embed as queries (unwarped) instead of as corpus."),
) -> None:
    """Turn sequences into vectors, in a Parquet file.

    Unit vectors, whose dot product is the model's relevance (in preset 'paper' its kernel part). Reads and writes in
    batches, so the file may be larger than memory.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from neuroseqret import methods
    from neuroseqret.data.meaning import in_terms_of
    from neuroseqret.models.base import Embedder
    from neuroseqret.models.model_folder import read_config
    from neuroseqret.readers import scan_or_read
    from neuroseqret.storage.files import new_file

    if out.suffix != ".parquet":
        raise UserError(f"{out}: vectors are written as Parquet; call it {out.stem}.parquet")
    loaded, learned = methods.load(model), read_config(model)
    if not isinstance(loaded, Embedder):
        raise UserError(f"{model}: a {loaded.name!r} model scores pairs and has no embeddings; use a 'self' model")
    count = 0
    with new_file(out) as temporary:
        writer = None
        for batch in progress(scan_or_read(sequences), "embedding"):
            batch = in_terms_of(batch, learned, sequences)
            vectors = loaded.embed(batch, "query" if query else "corpus")
            column = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(vectors)), vectors.shape[1])
            table = pa.table({"id": batch.ids, "embedding": column})
            writer = writer or pq.ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table)
            count += len(batch)
        if writer is None:
            raise UserError(f"{sequences}: holds no sequences, so there is nothing to embed")
        writer.close()
    remarks.print(f"{count:,} sequences embedded, written to {out}", markup=False)
