"""Bulk work on a Ray cluster.

cluster.py      connects to a cluster; the model on its nodes
embedding.py    embeds batches on the cluster: in order, with bounded memory; a cut-off run goes on
evaluating.py   scores the queries of an evaluation on the cluster
"""

from neuroseqret.distributed.cluster import Cluster
from neuroseqret.distributed.embedding import RemoteEmbedder, embed_file
from neuroseqret.distributed.evaluating import RemoteAnswers

__all__ = ["Cluster", "RemoteAnswers", "RemoteEmbedder", "embed_file"]
