"""SelfAttention: embeds each sequence separately, so that it can be indexed.

model             the class SelfAttention: fit, embed, score, save and load
network           point process, whitened vector and metric
metric            the learned metric on top of the vectors
metric_training   training of the metric on cached vectors
fitting           the training phases: process_training, selection (with held_out and judging), head_phase
affordable        how much of the data a training learns from
similarity_term   the unwarping of queries and the term Sim, of preset `paper`
"""

from neuroseqret.models.self_attention.model import SelfAttention

__all__ = ["SelfAttention"]
