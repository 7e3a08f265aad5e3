"""The relevance models, and the contract that every ranking method follows.

base             the contract; its classes are in relevance_model, embedder and reranker
card             the model card and the state of a trained method
model_folder     writes and reads model folders
presets          settings and presets of SelfAttention
fixed_features   the features of SelfAttention that need no training
self_attention/  SelfAttention: embeds each sequence separately
without_torch    SelfAttention for queries, without torch
plain_metric     its learned metric without gradients and without torch
cross/           CrossAttention and HashCrossAttention: a first stage and a correction
"""
