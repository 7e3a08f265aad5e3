r"""SelfAttention: relevance as the cosine of two embeddings that are computed separately, so it can be indexed.

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) + \gamma\, \mathrm{Sim}(H_q, H_c), \qquad
          \kappa(H_q, H_c) = v(U(H_q))^\top v(H_c)

v is the whitened Fisher vector of a self-attentive point process. Preset `default` adds the Fisher vector of a
Markov-renewal process and the pooled states, puts a learned metric on top, and leaves out U and Sim, which brought no
gain there.
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
from neuroseqret.models.presets import SelfAttentionSettings, settings_of
from neuroseqret.models.self_attention.fitting import Fitting, unwarped, with_similarity
from neuroseqret.models.self_attention.network import MAX_EVENTS, RelevanceNetwork
from neuroseqret.processes.mark_classes import MarkClasses, shared_classes
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.training.task import TrainingTask

_MOST_MARKS = 64  # most classes of marks in the neural process
_CHUNK = 8192  # sequences whose Markov-renewal features are held at once
_PROJECTED = 1024  # vectors projected at once: one batch of the encoder is too small for an efficient product


class SelfAttention(Embedder, Resumable):
    """Embeds each sequence separately; the score is the cosine of two embeddings. Use it to build an index and search.

    `preset` is `default`, which measures best, or `paper` (`paper-health`, ...), the model of the paper. `overrides`
    replace settings of the preset, see `presets.SelfAttentionSettings`.

    >>> model = SelfAttention().fit(queries, corpus)       # doctest: +SKIP
    >>> model.score(queries[0], corpus)                    # doctest: +SKIP
    >>> model.save("model")                                # doctest: +SKIP
    """

    name: ClassVar[str] = "self"
    settings: SelfAttentionSettings

    def __init__(self, preset: str = "default", **overrides: Any) -> None:
        super().__init__(settings_of(preset, overrides), preset)

    # ---------------------------------------------------------------- learn

    def learn(self, task: TrainingTask) -> Outcome:
        """Fit what needs no training, then train the network."""
        self.scale_on(task.given_corpus)
        rows = np.concatenate([task.train_rows, task.validation_rows])
        of_queries, of_corpus = self._markov_of(task.queries, rows), self._markov_of(task.corpus)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            self._build()
        markov = None if of_queries is None or of_corpus is None else (of_queries, of_corpus)
        checkpoint = task.checkpoint(self.settings.model_dump_json())
        best = Fitting(self.network, self.scale, self.settings, task, markov, checkpoint).run()
        self.network.eval()
        return Outcome.of("AP", best)

    def scale_on(self, corpus: EventSequences) -> None:
        """Fit what needs no training: time scale, classes of marks, horizon, Markov-renewal process."""
        self.scale = TimeScale.fit(corpus)
        self.marks = max(corpus.num_marks, 1)
        self.classes = MarkClasses(self.marks, shared_classes(corpus.marks, self.marks, _MOST_MARKS))
        starts, ends = corpus.observed()
        self.horizon = float(max((ends - starts).max(), np.finfo(np.float32).tiny))
        self.markov = MarkovRenewal.fit(corpus, self.scale, self.marks) if self.settings.vector.markov else None

    def _build(self) -> None:
        size = 0 if self.markov is None else self.markov.size
        self.network = RelevanceNetwork(self.classes, size, self.settings, self.horizon)

    def _markov_of(self, sequences: EventSequences, rows: np.ndarray | None = None) -> Tensor | None:
        """Return Markov-renewal features: (sequences, size). With `rows`, only those are computed; others are 0."""
        if self.markov is None:
            return None
        if rows is None:
            return torch.from_numpy(self.markov.features(sequences))
        whole = torch.zeros(len(sequences), self.markov.size)
        whole[rows] = torch.from_numpy(self.markov.features(sequences[rows]))
        return whole

    # ---------------------------------------------------------------- use

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        self._require_fitted()
        return self.network.projection.dimension

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    def to(self, device: torch.device | str) -> Self:
        """Move a trained model to a device for `embed` and `score`; their results are numpy arrays on the CPU.

        `fit` always trains on the CPU.
        """
        self._require_fitted()
        self.network.to(device)
        return self

    @torch.inference_mode()
    def compute_embeddings(self, many: EventSequences, role: Role) -> Scores:
        """Return unit vectors (sequences, dimension); queries are unwarped if the model has an unwarping."""
        self._require_fitted()
        embedded = np.empty((len(many), self.dimension), np.float32)
        rows, vectors = [], []
        for some, inputs, markov in self.prepared(many, role):
            rows.append(some)
            vectors.append(self.network.vector(self.network.raw(inputs), markov))
            if sum(map(len, rows)) >= _PROJECTED:
                embedded[np.concatenate(rows)] = self.network.projection(torch.cat(vectors)).cpu().numpy()
                rows, vectors = [], []
        if rows:
            embedded[np.concatenate(rows)] = self.network.projection(torch.cat(vectors)).cpu().numpy()
        return embedded

    def prepared(
        self, many: EventSequences, role: Role = "corpus"
    ) -> Iterator[tuple[np.ndarray, Inputs, Tensor | None]]:
        """Yield rows, network inputs and Markov-renewal features of all sequences, in batches of similar length.

        Inputs and features are on the device of the model.
        """
        device = self.device
        for begin in range(0, len(many), _CHUNK):
            chunk = many[begin : begin + _CHUNK]
            features = self._markov_of(chunk)
            for rows in rows_by_length(chunk.lengths, MAX_EVENTS):
                batch = self.unwarped(pad(chunk, rows), role)
                yield (
                    begin + rows,
                    self.scale.inputs(batch).to(device),
                    None if features is None else features[rows].to(device),
                )

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
        return with_similarity(scores, self.unwarped(pad(queries), "query"), candidates, self.settings.similarity)

    def _require_fitted(self) -> None:
        if not hasattr(self, "network"):
            raise UserError("the model is not trained; call 'fit', or load a model folder")

    # ---------------------------------------------------------------- keep

    def to_state(self) -> ModelState:
        self._require_fitted()
        tensors = prefixed("network", self.network.state_dict())
        if self.markov is not None:
            tensors |= prefixed("markov", self.markov.tensors)
        return ModelState(self.trained_card(time_scale=self.scale, constants={"horizon": self.horizon}), tensors)

    def restore(self, state: ModelState) -> None:
        self.scale = TimeScale.model_validate(state.card.time_scale)
        self.horizon = state.card.constants["horizon"]
        self.marks = state.card.marks
        self.classes = MarkClasses(self.marks, state.tensors.get("network.process.classes.of_mark"))
        markov = under(state.tensors, "markov")
        self.markov = MarkovRenewal(self.scale, self.marks, markov) if markov else None
        self._build()
        self.network.load_state_dict(under(state.tensors, "network"))
        self.network.eval()
