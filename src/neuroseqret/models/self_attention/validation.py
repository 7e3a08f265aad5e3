"""The validation of `self` while it is trained: AP of the validation queries among some thousand corpus sequences."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.batching import pad
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.base import Scores
from neuroseqret.models.self_attention.network import RelevanceNetwork
from neuroseqret.models.self_attention.similarity_term import unwarped, with_similarity
from neuroseqret.training.task import TrainingTask

_JUDGED_CORPUS = 4096  # most corpus sequences that validation during training ranks


class Validation:
    """The validation queries that have an answer, and the corpus sequences that they rank, as rows of the task."""

    def __init__(self, task: TrainingTask, network: RelevanceNetwork) -> None:
        self.network, self.settings, self.task = network, network.settings.similarity, task
        size = min(_JUDGED_CORPUS, len(task.corpus))
        self.queries = task.answerable_validation_rows
        self.corpus = np.sort(np.random.default_rng(task.seed).choice(len(task.corpus), size, replace=False))
        self.truth = task.relevance.select_queries(self.queries).select_corpus(self.corpus)

    @torch.no_grad()
    def similarity(self) -> Scores:
        """Return gamma * Sim of queries and corpus; 0 if the score has no such term."""
        nothing = np.zeros((len(self.queries), len(self.corpus)), np.float32)
        if self.settings.form == "none" or not len(self.queries):
            return nothing
        asked = pad(self.task.queries, self.queries)
        if self.network.unwarp is not None:
            asked = unwarped(self.network.unwarp, asked)
        return with_similarity(nothing, asked, self.task.corpus[self.corpus], self.settings, self.network.horizon)

    def quality(self, asked: Tensor, shown: Tensor, similarity: Scores) -> float:
        """Return the mean AP that follows from embeddings of queries and corpus."""
        kernel = (asked @ shown.T).cpu().numpy()
        return mean_average_precision(self.settings.kernel * kernel + similarity, self.truth)
