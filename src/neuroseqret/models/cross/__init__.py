"""Second stages: a trained SelfAttention plus a correction that scores query and candidate together.

    cross_attention        the class CrossAttention
    hash_cross_attention   the class HashCrossAttention, which also embeds
    second_stage           what both share: first stage, correction, rerank, save and load
    presets                their settings and presets
    correction             what a correction is
    ranked_lists           the lists that a second stage learns from and reorders

Preset `default`: correction by a memory of relevant sets
    memory_correction      the two corrections
    memory                 the memory, attention to it, agreement and divergence
    memory_fitting         how the memory and the strength of the correction are fitted
    out_of_fold            first-stage embeddings of queries that the metric has not seen

Presets `paper` and `paper-literal`: correction by the cross-attention process
    process_correction     the two corrections
    cross_scorer           the paper's two scores
    cross_scorer_fitting   how they are trained
"""
