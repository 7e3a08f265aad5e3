r"""SelfAttention: relevance as the cosine of two vectors that are computed apart, so it can be indexed.

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) + \gamma\, \mathrm{Sim}(H_q, H_c), \qquad
          \kappa(H_q, H_c) = v(U(H_q))^\top v(H_c)

v is the whitened Fisher vector of a self-attentive point process; in `default` together with that of a Markov-renewal
process and the pooled states, under a learned metric, and without U and Sim, which measured no gain there.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from neuroseqret.data.batching import Batch, pad, rows_by_length
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.splits import ensure_split, split_rows, split_rows_if_any
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.model_folder import read_model, write_model
from neuroseqret.models.presets import Settings, settings_of
from neuroseqret.models.self_attention.fitting import Fitting, unwarped, with_similarity
from neuroseqret.models.self_attention.network import MAX_EVENTS, RelevanceNetwork
from neuroseqret.processes.mark_classes import MarkClasses, shared_classes
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.unlabelled import WITHOUT_LABELS, sub_sequence_task

_MOST_MARKS = 64  # classes of marks that the neural process tells apart
_CHUNK = 8192  # sequences whose Markov-renewal features are held at once
_PROJECTED = 1024  # vectors that are projected at once: a batch of the encoder is too few to fill a matrix product


class SelfAttention(Embedder):
    """Embeds each sequence by itself; the score is the cosine of two embeddings. It can be indexed: use it to search.

    `preset` is `default`, which measures best and is not the paper's model, or `paper` (`paper-health`, ...), which is;
    `overrides` replace any of `presets.Settings`.

    >>> model = SelfAttention().fit(queries, corpus)       # doctest: +SKIP
    >>> model.score(queries[0], corpus)                    # doctest: +SKIP
    >>> model.save("model")                                # doctest: +SKIP
    """

    name: ClassVar[str] = "self"

    def __init__(self, preset: str = "default", **overrides: Any) -> None:
        self.preset = preset
        self.settings: Settings = settings_of(preset, overrides)
        self.info: dict[str, Any] = {}
        self.log = TrainingLog()

    # ---------------------------------------------------------------- learn

    def fit(
        self,
        queries: EventSequences | None,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        checkpoint: str | PathLike[str] | None = None,
        **options: Any,
    ) -> Self:
        """Learn from labelled queries, or without any label from sub-sequences of the corpus (and warn of it).

        `checkpoint` is a folder from which a run that was cut off goes on.
        """
        if options:
            raise TypeError(f"fit knows no option {', '.join(options)}")
        unsupervised = queries is None or (relevance is None and (queries.groups is None or corpus.groups is None))
        if unsupervised:
            warnings.warn(WITHOUT_LABELS, stacklevel=2)
        self.scale_on(corpus)
        given = corpus.fingerprint()
        if unsupervised:
            queries, corpus = sub_sequence_task(corpus, seed)
            relevance = None
        assert queries is not None
        queries = ensure_split(queries, seed)
        relevance = relevance if relevance is not None else Relevance.from_groups(queries, corpus)
        learned, judged = split_rows(queries, "train"), split_rows_if_any(queries, "validation")
        markov = self._markov_of(queries, np.concatenate([learned, judged])), self._markov_of(corpus)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build()
        self.log = TrainingLog()
        key = self._key(queries, corpus, relevance, seed) if checkpoint is not None else ""
        fitting = Fitting(
            self.network,
            self.scale,
            self.settings,
            queries,
            corpus,
            relevance,
            learned,
            judged,
            None if markov[1] is None or markov[0] is None else (markov[0], markov[1]),
            seed=seed,
            log=self.log,
            checkpoint=None if checkpoint is None else Checkpoint(checkpoint, key),
        )
        best = fitting.run(max_seconds)
        self.network.eval()
        self.info |= {
            "seed": seed,
            "unsupervised": unsupervised,
            "train_queries": len(learned),
            "corpus_fingerprint": given,
            "validation": {} if best is None else {"AP": best},
        }
        return self

    def scale_on(self, corpus: EventSequences) -> None:
        """Fit what depends on the data alone: time scale, vocabulary, Markov-renewal process."""
        if not len(corpus):
            raise UserError("the corpus is empty; there is nothing to learn from")
        self.scale = TimeScale.fit(corpus)
        self.marks = max(corpus.num_marks, 1)
        self.classes = MarkClasses(self.marks, shared_classes(corpus.marks, self.marks, _MOST_MARKS))
        starts, ends = corpus.observed()
        self.horizon = float(max((ends - starts).max(), np.finfo(np.float32).tiny))
        self.mark_names, self.time_unit = corpus.mark_names, corpus.time_unit
        self.markov = MarkovRenewal.fit(corpus, self.scale, self.marks) if self.settings.vector.markov else None

    def _build(self) -> None:
        size = 0 if self.markov is None else self.markov.size
        self.network = RelevanceNetwork(self.classes, size, self.settings, self.horizon)

    def _markov_of(self, sequences: EventSequences, rows: np.ndarray | None = None) -> Tensor | None:
        """Markov-renewal features, (sequences, size); with `rows` only theirs are computed, the others stay 0."""
        if self.markov is None:
            return None
        if rows is None:
            return torch.from_numpy(self.markov.features(sequences))
        whole = torch.zeros(len(sequences), self.markov.size)
        whole[rows] = torch.from_numpy(self.markov.features(sequences[rows]))
        return whole

    def _key(self, queries: EventSequences, corpus: EventSequences, relevance: Relevance, seed: int) -> str:
        """What a checkpoint belongs to: data, settings and seed."""
        data = (queries.fingerprint(), corpus.fingerprint(), relevance.fingerprint())
        parts = (*data, self.settings.model_dump_json(), str(seed))
        return hashlib.blake2b("|".join(parts).encode(), digest_size=16).hexdigest()

    # ---------------------------------------------------------------- use

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        self._require_fitted()
        return self.network.projection.dimension

    @property
    def device(self) -> torch.device:
        """Where the network computes."""
        return next(self.network.parameters()).device

    def to(self, device: torch.device | str) -> Self:
        """Move a trained model, for `embed` and `score`; `fit` trains on the CPU, and results are always there."""
        self._require_fitted()
        self.network.to(device)
        return self

    @torch.inference_mode()
    def embed(
        self, sequences: EventSequence | EventSequences | Iterable[EventSequence], role: Role = "corpus"
    ) -> Scores:
        """Unit vectors (sequences, dimension); queries are unwarped where the preset says so."""
        self._require_fitted()
        many = EventSequences.of(sequences)
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
        """Rows, network inputs and Markov-renewal features of all sequences, in batches of like length.

        Inputs and features are on the model's device.
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
        """U(t) for the times of queries, where the model has a U."""
        if role == "corpus" or self.network.unwarp is None:
            return batch
        return unwarped(self.network.unwarp, batch)

    @property
    def score_is_cosine(self) -> bool:
        return self.settings.similarity.form == "none" and self.settings.similarity.kernel

    @torch.no_grad()
    def score(
        self,
        queries: EventSequence | EventSequences | Iterable[EventSequence],
        candidates: EventSequences,
    ) -> Scores:
        """kappa, and gamma * Sim where the preset has it."""
        many = EventSequences.of(queries)
        scores: Scores = self.embed(many, "query") @ self.embed(candidates, "corpus").T
        if self.settings.similarity.form != "none":
            asked = self.unwarped(pad(many), "query")
            scores = with_similarity(scores, asked, candidates, self.settings.similarity)
        return scores[0] if isinstance(queries, EventSequence) else scores

    def _require_fitted(self) -> None:
        if not hasattr(self, "network"):
            raise UserError("the model is not trained; call fit or load a model folder")

    # ---------------------------------------------------------------- keep

    def save(self, folder: str | PathLike[str]) -> Path:
        self._require_fitted()
        config = {
            "preset": self.preset,
            "settings": self.settings.model_dump(),
            "marks": self.marks,
            "mark_names": None if self.mark_names is None else list(self.mark_names),
            "time_unit": self.time_unit,
            "scale": self.scale.model_dump(),
            "horizon": self.horizon,
            **self.info,
        }
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        if self.markov is not None:
            tensors |= {f"markov.{k}": v for k, v in self.markov.tensors.items()}
        return write_model(folder, self.name, config, tensors, self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, tensors = read_model(folder, cls.name)
        try:
            model = cls.__new__(cls)
            model.preset, model.settings = config.pop("preset"), Settings.model_validate(config.pop("settings"))
            model.log = TrainingLog()
            model.scale, model.horizon = TimeScale.model_validate(config.pop("scale")), config.pop("horizon")
            model.marks, model.time_unit = config.pop("marks"), config.pop("time_unit")
            model.classes = MarkClasses(model.marks, tensors.get("network.process.classes.of_mark"))
            names = config.pop("mark_names")
            model.mark_names = None if names is None else tuple(names)
            markov = {k.split(".", 1)[1]: v for k, v in tensors.items() if k.startswith("markov.")}
            model.markov = MarkovRenewal(model.scale, model.marks, markov) if markov else None
            model._build()
            model.network.load_state_dict(
                {k.split(".", 1)[1]: v for k, v in tensors.items() if k.startswith("network.")}
            )
        except (KeyError, ValueError, RuntimeError) as error:
            raise UserError(
                f"{folder}: config and tensors do not fit together ({error}); fit the model again"
            ) from error
        head = ("format", "format_version", "library_version", "model", "tensors_blake2b")
        model.info = {k: v for k, v in config.items() if k not in head}
        model.network.eval()
        return model
