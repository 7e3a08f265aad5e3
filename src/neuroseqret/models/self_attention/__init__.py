"""SelfAttention: embeds each sequence by itself."""

from neuroseqret.models.self_attention.model import SelfAttention

__all__ = ["SelfAttention"]
