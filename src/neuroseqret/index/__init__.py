"""The index: a corpus in a folder that can be searched, added to and shared by processes.

    index.py         `Index`, which users call; it puts the other parts together
    making.py        a new, empty index folder
    given.py         what people give: sequences to add, ids, queries
    info.py          what an index says of itself
    config.py        the folder's `index.json`, and the settings of an index
    forked.py        refuses the use of an index in a forked process
    rows.py          sequences to rows of the store and back, and the checks on the way
    check.py         is everything as it was written?

Writing:

    writer.py        add, replace, remove: embed what is new, commit it batch by batch
    keys.py          64-bit hashes of ids and events: is a sequence there already, and unchanged?
    store.py         `Store`, the contract of the place where rows live: the truth, all else is derived from it
    lance_store.py   the store in a folder, on Lance
    lance_files.py   its files: which are safe from a power cut
    lance_recovery.py  reads back what it wrote; goes back to a readable version
    bucket_store.py  the store in an object store, shared by writers on several machines
    bucket_place.py  where the parts of an index in an object store are, and this machine's cache

    engines/         servers that find candidates in place of the hot structure, such as Milvus

Searching:

    search.py        one search, from the query's embedding to its hits
    snapshot.py      one state of the corpus: the hot structure, newer rows, removed rows
    reader.py        gives the snapshot of the newest commit, rebuilds the hot structure when it is due
    watching.py      follows commits in the background, for an index in an object store
    local_filter.py  conditions on metadata without the network
    hot.py           the hot structure: memory-mapped arrays of everything that a search reads
    hot_builder.py   derives the hot structure from the store
    view.py          several questions to one state of the corpus: hits, sequences by id, pages of the corpus
    hit.py           `Hit`, `Hits`, `AllHits` and `SearchReport`: what a search returns
"""

from neuroseqret.index.hit import AllHits, Hit, Hits, SearchReport
from neuroseqret.index.index import Index

__all__ = ["AllHits", "Hit", "Hits", "Index", "SearchReport"]
