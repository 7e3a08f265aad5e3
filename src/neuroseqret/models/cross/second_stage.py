"""What the two cross-attention models share: a first stage to start from, `rerank`, and a folder that holds both."""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split, split_rows, split_rows_if_any
from neuroseqret.errors import UserError
from neuroseqret.models.base import Reranker, Scores
from neuroseqret.models.cross.literal_cross import Kind, LiteralCross
from neuroseqret.models.cross.literal_scoring import fit_literal
from neuroseqret.models.cross.memory import RelevanceMemory
from neuroseqret.models.cross.memory_fitting import FittedMemory, fit_memory
from neuroseqret.models.cross.presets import CrossSettings, cross_settings_of
from neuroseqret.models.cross.ranked_lists import best_first, lift
from neuroseqret.models.model_folder import read_model, write_model
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.processes.conditioned_tables import ConditionedTables
from neuroseqret.processes.event_tables import EventTables
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.unlabelled import WITHOUT_LABELS, sub_sequence_task

_HEAD = ("format", "format_version", "library_version", "model", "tensors_blake2b")
_MEANING = ("marks", "mark_names", "time_unit")  # of the sequences, where those who read a folder look for it
_FIRST_SHARE = 0.6  # of the wall clock, where the first stage is fitted too


class SecondStage(Reranker):
    """`preset` and overrides as in `cross_presets`; `first_stage` is a trained SelfAttention, else `fit` makes one."""

    literal_kind: Kind

    def __init__(self, preset: str = "default", first_stage: SelfAttention | None = None, **overrides: Any) -> None:
        self.preset = preset
        self.settings: CrossSettings = cross_settings_of(preset, overrides)
        self.given = first_stage
        self.info: dict[str, Any] = {}
        self.log = TrainingLog()
        self.memory: RelevanceMemory | None = None
        self.literal: LiteralCross | None = None

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
        """As the first stage's `fit`; `checkpoint` is a folder from which a run that was cut off goes on."""
        if options:
            raise TypeError(f"fit knows no option {', '.join(options)}")
        begun, given = time.monotonic(), corpus
        unsupervised = queries is None or (relevance is None and (queries.groups is None or corpus.groups is None))
        if unsupervised:
            warnings.warn(WITHOUT_LABELS, stacklevel=2)
            queries, corpus = sub_sequence_task(corpus, seed)
            relevance = None
        assert queries is not None
        queries = ensure_split(queries, seed)
        relevance = relevance if relevance is not None else Relevance.from_groups(queries, corpus)
        learned = split_rows(queries, "train")
        judged = split_rows_if_any(queries, "validation")
        learned, judged = (rows[relevance.counts[rows] > 0] for rows in (learned, judged))
        if len(learned) < 2:
            raise UserError("a second stage needs two train queries with relevant corpus sequences; check 'split'")
        self.log = TrainingLog()
        if self.given is None:
            share = None if max_seconds is None else _FIRST_SHARE * max_seconds
            first = SelfAttention(self.settings.first_stage)
            kept = None if checkpoint is None else Path(checkpoint) / "first_stage"
            # Without labels it makes the same task of the same corpus and seed, and scales times on whole sequences.
            task = (None, given, None) if unsupervised else (queries, corpus, relevance)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", re.escape(WITHOUT_LABELS))  # said above
                first.fit(*task, seed=seed, max_seconds=share, checkpoint=kept)
            self.log.records += first.log.records
            self.first_stage = first
        else:
            self.given._require_fitted()
            if self.settings.kind == "memory" and self.given.settings.similarity.form != "none":
                raise UserError("a second stage corrects cosines, and this first stage adds a similarity to them")
            self.first_stage = self.given
        left = None if max_seconds is None else max(1.0, max_seconds - (time.monotonic() - begun))
        saved = None if checkpoint is None else Checkpoint(checkpoint, self._key(queries, corpus, relevance, seed))
        self._learn(queries, corpus, relevance, learned, judged, seed, left, saved)
        self.info |= {
            "seed": seed,
            "unsupervised": unsupervised,
            "train_queries": len(learned),
            "corpus_fingerprint": given.fingerprint(),
        }
        return self

    def _learn(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        relevance: Relevance,
        train_rows: IntArray,
        validation_rows: IntArray,
        seed: int,
        max_seconds: float | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        """Fit what comes after the first stage."""
        task = (queries, corpus, relevance, train_rows, validation_rows)
        if self.settings.kind == "literal":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.literal = self._new_literal()
            best = fit_literal(
                self.literal,
                self.first_stage,
                self.settings.literal,
                *task,
                seed=seed,
                max_seconds=max_seconds,
                log=self.log,
                checkpoint=checkpoint,
            )
            self.info["validation"] = {} if best is None else {"AP of lists": best}
            return
        fitted = fit_memory(
            self.first_stage,
            *task,
            self.settings.memory,
            seed=seed,
            max_seconds=max_seconds,
            log=self.log,
            checkpoint=checkpoint,
        )
        self.memory = fitted.memory
        self._choose(fitted)

    def _key(self, queries: EventSequences, corpus: EventSequences, relevance: Relevance, seed: int) -> str:
        """What a checkpoint belongs to: data, settings, seed and the first stage's weights."""
        found = hashlib.blake2b(digest_size=16)
        data = (queries.fingerprint(), corpus.fingerprint(), relevance.fingerprint())
        for part in (*data, self.settings.model_dump_json(), seed):
            found.update(f"{part}|".encode())
        for weights in self.first_stage.network.state_dict().values():
            found.update(weights.cpu().numpy().tobytes())
        return found.hexdigest()

    @abstractmethod
    def _choose(self, fitted: FittedMemory) -> None:
        """Choose how strongly the memory corrects the first stage, on lists that neither was fitted on."""

    def _require_fitted(self) -> None:
        if self.memory is None and self.literal is None:
            raise UserError("the model is not trained; call fit or load a model folder")

    # ---------------------------------------------------------------- use

    def score(
        self,
        queries: EventSequence | EventSequences | Iterable[EventSequence],
        candidates: EventSequences,
    ) -> Scores:
        """(candidates,) for one sequence, else (queries, candidates); a pair's score is the same in any company."""
        self._require_fitted()
        scores = self._score(EventSequences.of(queries), candidates)
        return scores[0] if isinstance(queries, EventSequence) else scores

    @abstractmethod
    def _score(self, queries: EventSequences, candidates: EventSequences) -> Scores: ...

    def rerank(
        self,
        queries: EventSequence | EventSequences | Iterable[EventSequence],
        corpus: EventSequences,
        first_stage_scores: Scores | None = None,
        depth: int = 100,
    ) -> Scores:
        """The whole corpus in the first stage's order, its `depth` best put into the order of this model's scores.

        Shapes as in `score`; the numbers are ranks (listed candidates) and differences of first-stage scores (the
        others), made to be sorted. `first_stage_scores` (queries, corpus) spares the first stage's work.
        """
        self._require_fitted()
        many = EventSequences.of(queries)
        first = self.first_stage.score(many, corpus) if first_stage_scores is None else np.asarray(first_stage_scores)
        first = first.reshape(len(many), len(corpus)).astype(np.float32)
        best = best_first(first, depth)
        lifted = lift(first, best, self.score_listed(many, corpus, best))
        return lifted[0] if isinstance(queries, EventSequence) else lifted

    def score_listed(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        """Scores of the listed corpus rows of each query: (Q, depth)."""
        return np.stack([self._score(queries[k : k + 1], corpus[rows])[0] for k, rows in enumerate(listed)])

    # ---------------------------------------------------------------- keep

    def save(self, folder: str | PathLike[str]) -> Path:
        self._require_fitted()
        first_config, first_tensors = _pack(self.first_stage)
        config = {
            "preset": self.preset,
            "settings": self.settings.model_dump(),
            "first_stage": first_config,
            **{name: first_config.get(name) for name in _MEANING},
            **self.info,
        }
        tensors = {f"first_stage.{k}": v for k, v in first_tensors.items()} | self._own_tensors()
        return write_model(folder, self.name, config, tensors, self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, tensors = read_model(folder, cls.name)
        try:
            model = cls.__new__(cls)
            model.preset = config.pop("preset")
            model.settings = CrossSettings.model_validate(config.pop("settings"))
            model.given, model.log = None, TrainingLog()
            model.memory, model.literal = None, None
            model.first_stage = _unpack(config.pop("first_stage"), _under(tensors, "first_stage"))
            model.info = {k: v for k, v in config.items() if k not in (*_HEAD, *_MEANING)}
            if model.settings.kind == "memory":
                model._load_memory(_under(tensors, "memory"))
            else:
                model.literal = model._new_literal()
                model.literal.load_state_dict(_under(tensors, "literal"))
                model.literal.eval()
        except (KeyError, ValueError, RuntimeError) as error:
            raise UserError(
                f"{folder}: config and tensors do not fit together ({error}); fit the model again"
            ) from error
        return model

    def _own_tensors(self) -> dict[str, Tensor]:
        if self.literal is not None:
            return {f"literal.{k}": v for k, v in self.literal.state_dict().items()}
        assert self.memory is not None
        tables = self.memory.tables
        arrays: dict[str, np.ndarray] = {"centroids": self.memory.centroids, "weights": self.memory.weights}
        arrays |= {f"gains.{k}": gain for k, gain in enumerate(tables.log_gains)}
        arrays |= {f"edges.{k}": edge for k, edge in tables.tables.edges.items()}
        arrays |= {"mark_rank": tables.tables.mark_rank, "most_cells": np.array([tables.tables.most_cells])}
        return {f"memory.{k}": torch.from_numpy(np.ascontiguousarray(v)) for k, v in arrays.items()}

    def _load_memory(self, tensors: dict[str, Tensor]) -> None:
        arrays = {k: v.numpy() for k, v in tensors.items()}
        edges = {k.split(".", 1)[1]: v for k, v in arrays.items() if k.startswith("edges.")}
        tables = EventTables(self.first_stage.scale, edges, arrays["mark_rank"], int(arrays["most_cells"][0]))
        number = sum(k.startswith("gains.") for k in arrays)
        conditioned = ConditionedTables(tables, [arrays[f"gains.{k}"] for k in range(number)])
        self.memory = RelevanceMemory(conditioned, arrays["centroids"], arrays["weights"])

    def _new_literal(self) -> LiteralCross:
        s, first = self.settings.literal, self.first_stage
        return LiteralCross(
            first.scale,
            first.classes,
            first.horizon,
            self.literal_kind,
            width=s.width,
            positions=s.positions,
            sigma=s.sigma,
            gamma=s.gamma,
        )


def _pack(model: SelfAttention) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration and tensors of a first stage, by way of its own folder, so that its format stays its own."""
    with tempfile.TemporaryDirectory() as scratch:
        config, tensors = read_model(model.save(Path(scratch) / "first_stage"), SelfAttention.name)
    return {k: v for k, v in config.items() if k not in _HEAD}, tensors


def _unpack(config: dict[str, Any], tensors: dict[str, Tensor]) -> SelfAttention:
    with tempfile.TemporaryDirectory() as scratch:
        return SelfAttention.load(write_model(Path(scratch) / "first_stage", SelfAttention.name, config, tensors))


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k[len(prefix) + 1 :]: v for k, v in tensors.items() if k.startswith(prefix + ".")}
