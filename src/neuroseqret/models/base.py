"""The contract of every ranking method, models and baselines.

    RelevanceModel   fit, score, save, load
    Embedder         also embed: gives each sequence a vector, so it can be indexed
    Reranker         also rerank: reorders the best candidates of a first stage
    Resumable        fit takes a checkpoint folder and continues an interrupted run

The type of a method says what it can do. The public verbs check marks and time units, once (`Meaning.apply`). A method
implements `learn`, `compute_scores` (or `compute_embeddings`), `to_state` and `restore`.
"""

from neuroseqret.models.embedder import Embedder
from neuroseqret.models.relevance_model import RelevanceModel, Resumable, Role, Scores
from neuroseqret.models.reranker import Reranker

__all__ = ["Embedder", "RelevanceModel", "Reranker", "Resumable", "Role", "Scores"]
