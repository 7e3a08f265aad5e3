"""Engines: servers that an index hands the search for candidates to, one file per engine.

The store stays the truth. An engine holds a copy of ids, embeddings, groups and metadata, and answers which rows are
nearest to a vector and meet a condition. Events, reranking and explanations do not need it.

    engine.py          `Engine`, the contract; opening one by its address
    address.py         `milvus://host:19530/collection?consistency=session`, read and checked
    milvus.py          the engine on a Milvus server
    codes.py           binary codes of an index whose engine compares codes
    milvus_rows.py     rows of the store as Milvus holds them, and back
    milvus_filter.py   conditions of `where` as Milvus writes them
    mirror.py          keeps the copy in line with the store: while writing, after a crash, on demand
    engine_search.py   one search through an engine, from the query's embedding to its hits
    engine_view.py     `EngineView`, what `View` is to an index without an engine
"""

from neuroseqret.index.engines.engine import Engine, check_address, open_engine
from neuroseqret.index.engines.mirror import Mirror

__all__ = ["Engine", "Mirror", "check_address", "open_engine"]
