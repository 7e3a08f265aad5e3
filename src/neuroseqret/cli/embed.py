"""`neuroseqret embed`: write the vectors of sequences to a Parquet file, one row per sequence."""

from __future__ import annotations

from pathlib import Path

import typer

from neuroseqret.cli.console import print_json, progress, remarks
from neuroseqret.cli.event_files import (
    COLUMNS_AS_IN_TRAINING,
    IN_ANY_FORMAT,
    STRICT,
    TIME_FORMAT,
    UNKNOWN_MARKS,
    file_options_as_in_training,
)
from neuroseqret.cli.places import DEVICE, device_named
from neuroseqret.errors import UserError

RAY = typer.Option(
    None,
    "--ray",
    metavar="ADDRESS",
    help="Embed on this Ray cluster, for example host:6379, or auto for the one of this machine.",
)


def embed(
    model: Path = typer.Argument(..., metavar="MODEL", help="Model folder, written by 'neuroseqret fit'."),
    sequences: Path = typer.Argument(..., metavar="SEQUENCES", help=f"File of event sequences {IN_ANY_FORMAT}."),
    out: Path = typer.Option(
        ..., "--out", metavar="FILE", help="Parquet file to write, with the columns id and embedding."
    ),
    query: bool = typer.Option(
        False, "--query", help="Embed as queries, whose times are unwarped, instead of as corpus sequences."
    ),
    column: list[str] = COLUMNS_AS_IN_TRAINING,
    time_format: str | None = TIME_FORMAT,
    unknown_marks: str = UNKNOWN_MARKS,
    ray: str | None = RAY,
    strict: bool = STRICT,
    device: str | None = DEVICE,
    as_json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
) -> None:
    """Write the vectors of sequences to a Parquet file.

    The vectors have length 1. The dot product of two of them is the model's score (with preset 'paper' the kernel part
    of it). The file is read and written in batches, so it may be larger than memory. With --ray an
    interrupted run continues where it stopped.
    """
    import pyarrow.parquet as pq

    from neuroseqret.data.gaps import checked_gaps
    from neuroseqret.data.meaning import unknown_marks_choice
    from neuroseqret.methods import registry as methods
    from neuroseqret.models.base import Embedder, Role
    from neuroseqret.models.model_folder import read_saved
    from neuroseqret.readers import scan_or_read
    from neuroseqret.storage.files import new_file
    from neuroseqret.storage.vectors import LAYOUT, vector_table

    if out.suffix != ".parquet":
        raise UserError(f"{out}: vectors are written as Parquet; call it {out.stem}.parquet")
    if ray is not None and device is not None:
        raise UserError("--device is about this machine; leave it out with --ray")
    choice, loaded = unknown_marks_choice(unknown_marks), methods.load(model)
    if not isinstance(loaded, Embedder):
        raise UserError(f"{model}: a {loaded.name!r} model has no embeddings, it only scores pairs; use a 'self' model")
    if device is not None:
        loaded.to(device_named(device))
    role: Role = "query" if query else "corpus"
    count, known = 0, loaded.trained_card()
    options = file_options_as_in_training(sequences, column, time_format, known)
    read = progress(scan_or_read(sequences, **options), "embedding", count=len)
    numbered = (loaded.meaning.apply(batch, choice, sequences) for batch in read)
    batches = checked_gaps(numbered, known.typical_gaps, known.time_unit, strict=strict, file=sequences)
    if ray is not None:
        from neuroseqret.distributed import Cluster, RemoteEmbedder, embed_file

        source = {"sequences": str(sequences.resolve()), "model": read_saved(model).tensors_blake2b}
        with Cluster(ray) as cluster:
            count = embed_file(RemoteEmbedder(cluster, model), batches, out, role, source)
        _report(out, count, as_json)
        return
    with new_file(out) as temporary:
        writer = None
        for batch in batches:
            table = vector_table(batch.ids, loaded.embed(batch, role, unknown_marks="keep", strict=None))
            writer = writer or pq.ParquetWriter(temporary, table.schema, **LAYOUT)
            writer.write_table(table)
            count += len(batch)
        if writer is None:
            raise UserError(f"{sequences}: holds no sequences; there is nothing to embed")
        writer.close()
    _report(out, count, as_json)


def _report(out: Path, count: int, as_json: bool) -> None:
    """Say what was written."""
    import pyarrow.parquet as pq

    if as_json:
        dimension = pq.read_schema(out).field("embedding").type.list_size
        print_json({"file": str(out), "sequences": count, "dimension": dimension})
    else:
        remarks.print(f"vectors of {count:,} sequences written to {out}", markup=False)
