r"""SelfAttention: relevance as the cosine of two embeddings that are computed separately, so it can be indexed.

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) + \gamma\, \mathrm{Sim}(H_q, H_c), \qquad
          \kappa(H_q, H_c) = v(U(H_q))^\top v(H_c)

In the paper, v is the whitened Fisher vector of a self-attentive point process. In preset `default`, v is a learned
metric over the Fisher vector of a Markov-renewal process and a bank of convolutions; preset `neural` adds the Fisher
vector and the pooled states of the self-attentive process. Both leave out U and Sim, which brought no gain there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from neuroseqret.data.batching import Batch, pad, rows_by_length
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Resumable, Role, Scores
from neuroseqret.models.card import ModelState, Outcome, prefixed, under
from neuroseqret.models.devices import usable
from neuroseqret.models.fixed_features import TOGETHER, FixedFeatures
from neuroseqret.models.plain_metric import FEW, PlainMetric
from neuroseqret.models.presets import SelfAttentionSettings, settings_of
from neuroseqret.models.self_attention.affordable import affordable, part_for_statistics
from neuroseqret.models.self_attention.fitting import Fitting
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.network import MAX_EVENTS, RelevanceNetwork
from neuroseqret.models.self_attention.products import many_rows
from neuroseqret.models.self_attention.similarity_term import unwarped, with_similarity
from neuroseqret.models.self_attention.vectors import CROPS
from neuroseqret.processes.convolution_bank import ConvolutionBank
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.shared_classes import shared_classes
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.processes.value_tables import ValueTables
from neuroseqret.training.task import TrainingTask

_MOST_MARKS = 64  # most classes of marks in the neural process


class SelfAttention(Embedder, Resumable):
    """Embeds each sequence separately; the score is the cosine of two embeddings. Use it to build an index and search.

    `preset` is `default`, which measures best, `paper` (`paper-health`, ...), the model of the paper, or
    `paper-literal`, its sums to the letter. `overrides` replace settings of the preset, see
    `presets.SelfAttentionSettings`.

    For example:

        model = SelfAttention().fit(queries, corpus)
        model.score(queries[0], corpus)
        model.save("model")
    """

    name: ClassVar[str] = "self"
    version: ClassVar[int] = 3
    preset_versions: ClassVar[dict[str, int]] = {"paper-literal": 1, "paper": 4}
    shares_training: ClassVar[bool] = True
    trains_on_devices: ClassVar[bool] = True
    settings: SelfAttentionSettings

    def __init__(self, preset: str = "default", **overrides: Any) -> None:
        super().__init__(settings_of(preset, overrides), preset)
        self._plain: tuple[Metric, PlainMetric] | None = None

    # ---------------------------------------------------------------- learn

    def learn(self, task: TrainingTask) -> Outcome:
        """Fit what needs no training, then train the network."""
        has_statistics = self.settings.vector.markov or self.settings.vector.bank > 0
        part = part_for_statistics(task, self._fit_tables) if has_statistics else None
        self.scale_on(task.given_corpus, task.seed, part)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            # The joint phase trains the first member alone; the head phase makes all of them anew.
            only_first = [1.0] + [0.0] * (len(self.settings.projection.members) - 1)
            self._build(only_first)
        crops = any(member.crops for member in self.settings.projection.members)
        task = affordable(task, self.network.size, 1 + CROPS * crops, self.fixed_features)
        checkpoint = task.checkpoint(self.settings.model_dump_json())
        fitting = Fitting(
            self.network, self.scale, self.settings, task, self.fixed_features, self.event_values, checkpoint
        )
        best = fitting.run()
        self.network.cpu().eval()
        return Outcome.of("AP", best, **fitting.notes)

    def scale_on(self, corpus: EventSequences, seed: int = 0, part: EventSequences | None = None) -> None:
        """Fit what needs no training: time scale, classes of marks, horizon, tables, bank; some of it to a `part`."""
        part = corpus if part is None else part
        self.scale = TimeScale.fit(part)
        self.marks = max(corpus.num_marks, 1)
        self.classes = MarkClasses(self.marks, shared_classes(corpus.marks, self.marks, _MOST_MARKS))
        starts, ends = corpus.observed()
        self.horizon = float(max((ends - starts).max(), np.finfo(np.float32).tiny))
        v, about = self.settings.vector, (part, self.scale, self.marks)
        values = self.event_values = EventValues.fit(part, self.settings.values)
        self.fixed = FixedFeatures(
            ConvolutionBank.fit(*about, values, v.bank, seed) if v.bank else None,
            MarkovRenewal.fit(*about) if v.markov else None,
            ValueTables.fit(*about, values) if v.markov and values.names else None,
        )

    @staticmethod
    def _fit_tables(corpus: EventSequences) -> None:
        MarkovRenewal.fit(corpus, TimeScale.fit(corpus), max(corpus.num_marks, 1))

    def _build(self, weights: list[float] | None = None, groups: int = 0) -> None:
        sizes = self.fixed.sizes
        self.network = RelevanceNetwork(self.classes, sizes, self.settings, self.horizon, weights, groups)

    def fixed_features(self, sequences: EventSequences) -> Tensor | None:
        """Return the features that need no training, bank before tables: (sequences, features)."""
        found = self.fixed.of(sequences)
        return None if found is None else torch.from_numpy(found)

    @property
    def bank(self) -> ConvolutionBank | None:
        """The bank of convolutions; None if the settings have none."""
        return self.fixed.bank

    @property
    def markov(self) -> MarkovRenewal | None:
        """The tables of marks and gaps; None if the settings have none."""
        return self.fixed.markov

    # ---------------------------------------------------------------- use

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        self._require_fitted()
        return self.network.metric.dimension

    @property
    def values(self) -> tuple[str, ...]:
        return self.settings.values

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return self.network.metric.weights.device

    def to(self, device: torch.device | str) -> Self:
        """Move a trained model to a device for `embed` and `score`; their results are numpy arrays on the CPU."""
        self._require_fitted()
        self.network.to(usable(device))
        self._plain = None  # the network has new memory
        return self

    def compute_embeddings(self, many: EventSequences, role: Role) -> Scores:
        """Return unit vectors (sequences, dimension); queries are unwarped if the model has an unwarping."""
        self._require_fitted()
        if len(many) <= FEW and not self.settings.vector.neural and self._plainly:
            vectors = self.fixed.of(many)
            assert vectors is not None  # there is no neural process, so there is something else
            return self._plain_metric(vectors, role)
        return self._embedded_in_chunks(many, role)

    @property
    def _plainly(self) -> bool:
        """Whether `PlainMetric` can embed, which is faster than the network."""
        weights = self.network.metric.weights
        return weights.device.type == "cpu" and weights.dtype == torch.float32

    @torch.inference_mode()
    def _embedded_in_chunks(self, many: EventSequences, role: Role) -> Scores:
        embedded = np.empty((len(many), self.dimension), np.float32)
        for rows, vectors in self.vectors(many, role):
            embedded[rows] = self._embedded(vectors, role)
        return embedded

    def _embedded(self, vectors: Tensor, role: Role) -> Scores:
        """Return the embeddings of whitened vectors."""
        if self._plainly:
            return self._plain_metric(vectors.numpy(), role)
        found: Scores = self.network.metric(vectors, role).cpu().numpy()
        return found

    @property
    def _plain_metric(self) -> PlainMetric:
        """The metric without gradients, which shares the memory of the metric of the network."""
        metric = self.network.metric
        if self._plain is None or self._plain[0] is not metric:
            arrays = {name: tensor.numpy() for name, tensor in metric.state_dict().items()}
            self._plain = metric, PlainMetric(arrays, self.settings.projection, metric.layout, many_rows)
        return self._plain[1]

    @torch.inference_mode()
    def as_query(self, embeddings: Scores) -> Scores:
        found: Scores = self.network.metric.as_query(torch.from_numpy(embeddings).to(self.device)).cpu().numpy()
        return found

    def vectors(self, many: EventSequences, role: Role = "corpus") -> Iterator[tuple[np.ndarray, Tensor]]:
        """Yield rows of the sequences and their whitened vectors, some hundred at a time, on the model's device."""
        for begin in range(0, len(many), TOGETHER):
            chunk = many[begin : begin + TOGETHER]
            fixed = self.fixed_features(chunk)
            fixed = None if fixed is None else fixed.to(self.device)
            if not self.settings.vector.neural:
                yield np.arange(begin, begin + len(chunk)), self.network.vector(None, fixed)
                continue
            rows, vectors = [], []
            for some in rows_by_length(chunk.lengths, MAX_EVENTS):
                inputs = self.inputs(chunk, some, role).to(self.device)
                rows.append(some)
                vectors.append(self.network.vector(self.network.raw(inputs), None if fixed is None else fixed[some]))
            yield begin + np.concatenate(rows), torch.cat(vectors)

    def inputs(self, sequences: EventSequences, rows: np.ndarray | None = None, role: Role = "corpus") -> Inputs:
        """Return what the neural process reads of some sequences (all by default), on the CPU."""
        return self.scale.inputs(self.unwarped(self.event_values.padded(sequences, rows), role))

    def unwarped(self, batch: Batch, role: Role) -> Batch:
        """Return the batch with U(t) for t if it holds queries and the model has an unwarping."""
        if role == "corpus" or self.network.unwarp is None:
            return batch
        return unwarped(self.network.unwarp, batch)

    @property
    def score_is_cosine(self) -> bool:
        """Whether the score is kappa alone, without a similarity term."""
        return self.settings.similarity.form == "none"

    @torch.no_grad()
    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """Return kappa, plus gamma * Sim if the settings have a similarity term."""
        scores = super().compute_scores(queries, candidates)
        if self.score_is_cosine:
            return scores
        asked = self.unwarped(pad(queries), "query")
        return with_similarity(scores, asked, candidates, self.settings.similarity, self.horizon)

    def _require_fitted(self) -> None:
        if not hasattr(self, "network"):
            raise UserError("the model is not trained; call 'fit', or load a model folder")

    # ---------------------------------------------------------------- keep

    def to_state(self) -> ModelState:
        self._require_fitted()
        tensors = prefixed("network", self.network.state_dict())
        if self.markov is not None:
            tensors |= prefixed("markov", self.markov.tensors)
        if self.classes.of_mark is not None:
            tensors["classes"] = self.classes.of_mark
        if self.bank is not None:
            tensors |= prefixed("bank", self.bank.tensors)
        if self.fixed.value_tables is not None:
            tensors |= prefixed("value_tables", self.fixed.value_tables.tensors)
        if self.bank is not None or self.values:
            tensors["values"] = torch.from_numpy(self.event_values.quantiles)
        groups = 0 if self.network.metric.groups is None else self.network.metric.groups.groups
        constants = {"horizon": self.horizon, "groups": float(groups)}
        return ModelState(self.trained_card(time_scale=self.scale, constants=constants), tensors)

    def restore(self, state: ModelState) -> None:
        self.scale = TimeScale.model_validate(state.card.time_scale)
        self.horizon = state.card.constants["horizon"]
        self.marks = state.card.marks
        self.classes = MarkClasses(self.marks, state.tensors.get("classes"))
        bank, markov, tables = (under(state.tensors, part) for part in ("bank", "markov", "value_tables"))
        quantiles = state.tensors.get("values")
        values = EventValues(self.settings.values, None if quantiles is None else quantiles.numpy())
        self.event_values, about = values, (self.scale, self.marks)
        self.fixed = FixedFeatures(
            ConvolutionBank(*about, bank, values) if bank else None,
            MarkovRenewal(*about, markov) if markov else None,
            ValueTables(*about, values, tables) if tables else None,
        )
        self._build(state.tensors["network.metric.weights"].tolist(), int(state.card.constants["groups"]))
        self.network.load_state_dict(under(state.tensors, "network"))
        self.network.eval()
