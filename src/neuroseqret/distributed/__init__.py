"""Bulk work on a Ray cluster.

cluster.py     connects to a cluster; the model on its nodes
embedding.py   embeds batches on the cluster: in order, with bounded memory; a cut-off run goes on
"""

from neuroseqret.distributed.cluster import Cluster
from neuroseqret.distributed.embedding import RemoteEmbedder, embed_file

__all__ = ["Cluster", "RemoteEmbedder", "embed_file"]
