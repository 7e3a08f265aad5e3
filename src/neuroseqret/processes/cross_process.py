r"""The cross-attention point process: the likelihood of a corpus sequence given a query sequence.

Every corpus event j attends to all events i of the query. The results are summed over the past corpus events, and the
sum predicts the next corpus event:

.. math::
    y_i &= w_x[x_i] + w_t t_i + w_{\Delta} (t_i - t_{i-1}) + b_y + p_i \\
    s_j &= W^S y^c_j, \quad k_i = W^K y^q_i, \quad v_i = W^V y^q_i \\
    h_j &= \sum_i \mathrm{softmax}_i(s_j^\top k_i / \sqrt D)\, v_i \\
    \bar h_r &= \sum_{j \le r} [w_{\bar h} \odot \mathrm{ReLU}(h_j \odot w_f + b_o) + b_{\bar h}],
        \qquad \bar h_0 = 0

There are N_b blocks of attention, each with weights of its own. Keys and values always come from the :math:`y^q_i`. The
first block asks with :math:`y^c_j`, the next ones with what the earlier ones have added to it,
:math:`y^c_j \leftarrow y^c_j + h_j`; the :math:`h_j` of the last block goes on. Dropout follows every block.

The heads (log-normal gap, softmax mark) predict event r + 1 from :math:`\bar h_r`. If a sequence is conditioned on
itself, the attention is causal (i <= j); otherwise it would see the events that it has to predict.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroseqret.processes.dropout import Dropout
from neuroseqret.processes.heads import NextEventHeads

_FAR_TIME = 1e6  # times are clipped here, in typical gaps
_LARGE_LOGIT = 1e6  # above this, single precision resolves logits to 1/16 at best


class CrossLayer(nn.Module):
    """The attention of one block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)  # W^S
        self.key = nn.Linear(width, width, bias=False)  # W^K
        self.value = nn.Linear(width, width, bias=False)  # W^V

    def forward(self, asking: Tensor, query: Tensor, **mask: Tensor | bool | None) -> Tensor:
        """Return h of asking events (Q, S, D) over query events (Q, I, D)."""
        asked, key, value = self.query(asking)[:, None], self.key(query)[:, None], self.value(query)[:, None]
        return _attention(asked, key, value, **mask)[:, 0]


class CrossProcess(nn.Module):
    """The process above. Shapes: Q queries of up to I events, C candidates for each query, of up to J events."""

    def __init__(
        self, marks: int, width: int = 32, positions: int = 512, blocks: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.marks = marks
        self.mark = nn.Embedding(marks + 1, width)  # the last row is for all marks unseen in training
        self.clock = nn.Linear(2, width)  # w_t, w_delta and b_y
        self.position = nn.Parameter(0.02 * torch.randn(positions, width))
        self.layers = nn.ModuleList(CrossLayer(width) for _ in range(blocks))
        self.dropout = Dropout(dropout)
        self.feed = nn.Parameter(torch.ones(width))  # w_f
        self.feed_bias = nn.Parameter(torch.zeros(width))  # b_o
        self.out = nn.Parameter(torch.full((width,), 0.1))  # w_hbar; small because the sum runs over all events
        self.out_bias = nn.Parameter(torch.zeros(width))  # b_hbar
        self.heads = NextEventHeads(marks, width)

    def embed_events(self, times: Tensor, marks: Tensor, unit: float = 1.0) -> Tensor:
        """Return y of events: times (B, L) in typical gaps since the start, marks (B, L) -> (B, L, D).

        Gaps stay in typical gaps, times are divided by `unit`. Events beyond the last learned position use that
        position.
        """
        gaps, own = torch.diff(times, dim=-1, prepend=torch.zeros_like(times[..., :1])), self.clock.weight
        clock = torch.stack([times / unit, gaps], dim=-1).clamp(-_FAR_TIME, _FAR_TIME).to(own.dtype).to(own.device)
        place = torch.arange(times.shape[-1], device=own.device).clamp(max=len(self.position) - 1)
        embedded: Tensor = self.mark(marks.clamp(max=self.marks)) + self.clock(clock) + self.position[place]
        return embedded

    def attend(self, corpus: Tensor, query: Tensor, query_mask: Tensor) -> Tensor:
        """Return h of corpus events over query events: (Q, C, J, D), (Q, I, D), mask (Q, I) -> (Q, C, J, D)."""
        asking = corpus.flatten(1, 2)  # all candidates of a query share its keys, so one product is enough
        mask = None if bool(query_mask.all()) else query_mask[:, None, None]
        return self._through(asking, query, attn_mask=mask).reshape(corpus.shape)

    def attend_self(self, sequences: Tensor) -> Tensor:
        """Return h of events (B, L, D) over the same sequence up to each event; right padding is never seen."""
        return self._through(sequences, sequences, is_causal=True)

    def _through(self, asking: Tensor, query: Tensor, **mask: Tensor | bool | None) -> Tensor:
        """Return h of the last block."""
        attended = asking
        for place, layer in enumerate(self.layers):
            asking = asking + attended if place else asking
            attended = self.dropout(layer(asking, query, **mask))
        return attended

    def states(self, attended: Tensor) -> Tensor:
        """Return hbar_0 ... hbar_L: (..., L, D) -> (..., L + 1, D)."""
        step = self.out * functional.relu(attended * self.feed + self.feed_bias) + self.out_bias
        return functional.pad(step.cumsum(-2), (0, 0, 1, 0))


def _attention(query: Tensor, key: Tensor, value: Tensor, **mask: Tensor | bool | None) -> Tensor:
    """Attention over (B, 1, L, D) tensors whose gradient is also right for large logits.

    Times are not scaled down, so a sequence of thousands of typical gaps has huge logits. Fused kernels recompute their
    weights for the gradient as exp(logit - log of the sum). With logits around 1e8 the rounding error of this
    difference can turn a weight of 1 into e^8. The explicit form keeps the weights instead.
    """
    explicit = False
    if torch.is_grad_enabled():
        longest = (x.detach().square().sum(-1).max().sqrt() for x in (query, key))
        explicit = bool(math.prod(longest) > _LARGE_LOGIT * query.shape[-1] ** 0.5)
    with sdpa_kernel(SDPBackend.MATH) if explicit else nullcontext():
        attended: Tensor = functional.scaled_dot_product_attention(query, key, value, **mask)  # type: ignore[arg-type]
    return attended
