r"""Fisher vectors: :math:`v(H) = I^{-1/2} g / \lVert I^{-1/2} g \rVert` with :math:`g = \nabla_\theta \log p(H)`.

With respect to the parameters of the heads, the gradient has a closed form. With
:math:`z_i = (\log \Delta t_i - \mu_i) / \sigma_i`

.. math:: r_i = [\, z_i / \sigma_i,\; (z_i^2 - 1)\, s'_i,\; \mathrm{onehot}(x_i) - p_i \,], \qquad
          g = \sum_i r_i \otimes [h_{i-1}; 1],

where :math:`s' = 1 - (s/3)^2` comes from the smooth bound on log sigma (:math:`s = 3 \tanh(\cdot/3)`). With
:math:`a = (z_T - \mu_n)/\sigma_n` and the hazard :math:`\lambda = \phi(a)/\Phi(-a)` the end of the window adds
:math:`[\lambda/\sigma_n, \lambda a s'_n, 0] \otimes [h_n; 1]`. Because g is a sum over events, explanations and the
blocks of a long sequence are exact. The information I is diagonal: the mean of g^2 over the corpus.

The models clip every entry of :math:`r_i` at +-5 (`clip`), so that one event with an extreme gap does not outweigh all
others. Without the clip, g is the exact gradient.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroseqret.processes.heads import LARGEST_LOG_SIGMA, NextEventHeads
from neuroseqret.processes.time_scale import Inputs


def residuals(
    heads: NextEventHeads, inputs: Inputs, states: Tensor, survival: bool = True, clip: float | None = 5.0
) -> Tensor:
    """Return the derivatives r of log p by the outputs of the heads: (B, L + 1, 2 + marks), 0 if no event follows."""
    mu, log_sigma = heads.gaps(states)
    sigma, slope = log_sigma.exp(), 1 - (log_sigma / LARGEST_LOG_SIGMA).square()
    z = (inputs.gaps - mu[:, :-1]) / sigma[:, :-1]
    by_mu = z / sigma[:, :-1] * inputs.timed
    by_log_sigma = (z.square() - 1) * slope[:, :-1] * inputs.timed
    known = inputs.mask & (inputs.marks < heads.marks)
    by_mark = -_softmax(heads.mark(states[:, :-1])) * known[:, :, None]
    by_mark = by_mark.scatter_add(2, inputs.marks.clamp(max=heads.marks - 1)[:, :, None], known[:, :, None].to(z.dtype))
    inner = torch.cat([by_mu[:, :, None], by_log_sigma[:, :, None], by_mark], dim=2)
    full = nn.functional.pad(inner, (0, 0, 0, 1))  # one more state than events
    if survival:
        full = full + _survival_residual(inputs, mu, sigma, slope, heads.marks)
    return full if clip is None else full.clamp(-clip, clip)


def _softmax(logits: Tensor) -> Tensor:
    """Softmax over the last dimension; four times faster than torch's if there are few marks."""
    exponential = (logits - logits.detach().amax(-1, keepdim=True)).exp()
    return exponential / exponential.sum(-1, keepdim=True)


def _survival_residual(inputs: Inputs, mu: Tensor, sigma: Tensor, slope: Tensor, marks: int) -> Tensor:
    last = inputs.lengths[:, None]
    mu, sigma, slope = (x.gather(1, last) for x in (mu, sigma, slope))  # (B, 1)
    a = (inputs.tail[:, None] - mu) / sigma
    log_density = -0.5 * a.square() - 0.5 * math.log(2 * math.pi)
    hazard = (log_density - torch.special.log_ndtr(-a)).exp() * inputs.open_end[:, None]
    here = torch.arange(inputs.mask.shape[1] + 1, device=last.device) == last  # (B, L + 1)
    two = torch.stack([hazard / sigma, hazard * a * slope], dim=2) * here[:, :, None]
    return nn.functional.pad(two, (0, marks))


def score(
    heads: NextEventHeads, inputs: Inputs, states: Tensor, survival: bool = True, clip: float | None = 5.0
) -> Tensor:
    """Return g of each sequence: (B, (2 + marks) * (D + 1)), one row of D weights and a bias for each output."""
    r = residuals(heads, inputs, states, survival, clip)
    return torch.cat([r.transpose(1, 2) @ states, r.sum(1)[:, :, None]], dim=2).flatten(1)


def contributions(
    heads: NextEventHeads, inputs: Inputs, states: Tensor, survival: bool = True, clip: float | None = 5.0
) -> Tensor:
    """Return `score` split over the states: (B, L + 1, (2 + marks) * (D + 1)); the sum over the states is `score`.

    Row i belongs to event i + 1, and the last row of a sequence to the end of its window.
    """
    r = residuals(heads, inputs, states, survival, clip)
    extended = torch.cat([states, torch.ones_like(states[:, :, :1])], dim=2)
    return (r[:, :, :, None] * extended[:, :, None, :]).flatten(2)


def full_score(model: nn.Module, inputs: Inputs) -> Tensor:
    """Return g over all parameters of a model with `model(inputs) -> log p (B,)` by automatic differentiation: (B, P).

    `fisher="all"` uses it, and the tests compare the closed form with it. Dropout is off. The result can itself be
    differentiated, which fused attention cannot, so attention is explicit here.
    """
    was_training = model.training
    model.eval()
    parameters: dict[str, Tensor] = {k: v for k, v in model.named_parameters() if v.requires_grad}
    fields = tuple(vars(inputs).values())

    def one(values: dict[str, Tensor], *row: Tensor) -> Tensor:
        single = Inputs(*(x.unsqueeze(0) for x in row))
        result: Tensor = functional_call(model, values, (single,))
        return result[0]

    with sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop")  # known and accepted
        by_name = vmap(grad(one), in_dims=(None, *(0 for _ in fields)))(parameters, *fields)
    model.train(was_training)
    return torch.cat([by_name[k].flatten(1) for k in parameters], dim=1)


class DiagonalInformation(nn.Module):
    """I = mean of g^2: a running mean while the model is trained, computed exactly at the end."""

    moment: Tensor

    def __init__(self, size: int, decay: float = 0.95) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("moment", torch.zeros(size))

    @torch.no_grad()
    def update(self, scores: Tensor) -> None:
        """Move the running mean towards the mean of g^2 of a batch."""
        now = scores.detach().square().mean(0)
        self.moment.copy_(now if not self.moment.any() else self.moment.lerp(now, 1 - self.decay))

    def scale(self) -> Tensor:
        """Return the diagonal of :math:`I^{-1/2}`."""
        return torch.rsqrt(self.moment + 1e-6 * self.moment.mean() + 1e-30)

    def whiten(self, scores: Tensor) -> Tensor:
        r"""Return unit vectors :math:`I^{-1/2} g / \lVert \cdot \rVert`; a parameter without any gradient stays 0."""
        return nn.functional.normalize(scores * self.scale(), dim=1, eps=1e-12)
