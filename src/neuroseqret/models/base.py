"""The contract of every ranking method, models and baselines.

    RelevanceModel   fit, score, save, load
    Embedder         also embed: gives each sequence a vector, so it can be indexed
    Reranker         also rerank: reorders the best candidates of a first stage
    Resumable        fit takes a checkpoint folder and continues an interrupted run

The type of a method says what it can do. The public verbs check marks and time units here, once (`Meaning.apply`). A
method implements `learn`, `compute_scores` (or `compute_embeddings`), `to_state` and `restore`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel
from typing_extensions import Self

from neuroseqret.data.durations import duration
from neuroseqret.data.gaps import check_gaps, typical_gaps
from neuroseqret.data.meaning import Meaning, UnknownMarks
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.sketch import sketch_of
from neuroseqret.errors import DataError, UserError
from neuroseqret.models.card import ModelCard, ModelState, Outcome
from neuroseqret.models.model_folder import read_state, write_state
from neuroseqret.readers.coercion import ColumnMap, Given, as_sequences, one_or_many
from neuroseqret.readers.data_folder import DataFolder
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.task import TrainingTask

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

Scores = npt.NDArray[np.float32]
Role = Literal["query", "corpus"]


class RelevanceModel(ABC):
    """Scores corpus sequences by their relevance to a query; higher is more relevant."""

    name: ClassVar[str]
    #: Raised by hand when the results of the method change; stored with every result (see tests/golden).
    version: ClassVar[int] = 1
    #: Versions of presets that did not change with `version`, by the beginning of their names; the longest counts.
    preset_versions: ClassVar[dict[str, int]] = {}
    #: Whether it learns from relevance labels; if there are none, it learns from sub-sequences of the corpus.
    needs_labels: ClassVar[bool] = True
    #: Whether several processes share the work of `fit` (see `neuroseqret.training.ranks`).
    shares_training: ClassVar[bool] = False
    #: Whether `fit` can train on a GPU.
    trains_on_devices: ClassVar[bool] = False

    def __init__(self, settings: BaseModel, preset: str | None = None) -> None:
        self.settings: Any = settings
        self.preset = preset
        self.card: ModelCard | None = None  # None until it is trained
        self.log = TrainingLog()

    @classmethod
    def version_of(cls, preset: str | None) -> int:
        """Return the version of the results of a preset."""
        own = [name for name in cls.preset_versions if preset is not None and preset.startswith(name)]
        return cls.preset_versions[max(own, key=len)] if own else cls.version

    # ---------------------------------------------------------------- learn

    def fit(
        self,
        queries: Given | DataFolder | None,
        corpus: Given | None = None,
        relevance: Relevance | None = None,
        *,
        columns: ColumnMap | None = None,
        seed: int = 0,
        max_seconds: float | None = None,
        checkpoint: str | PathLike[str] | None = None,
        device: torch.device | str | None = None,
    ) -> Self:
        """Learn from the queries whose `split` is train; select weights on those whose `split` is validation.

        Queries and corpus are sequences, data frames or lists (see `neuroseqret.readers.coercion`; `columns` maps the
        columns of frames), or one data folder takes the place of all three.

        Queries of other splits are not used. Queries without a `split` column are split here, by `source` if there is
        one. `relevance` defaults to `Relevance.from_groups(queries, corpus)`. Without any labels the method learns from
        sub-sequences of the corpus, with a warning. `checkpoint` is a folder; if a run is interrupted, the same call
        continues from there. `device` ("cuda", "mps") is where networks are trained; the trained method is on the CPU,
        as a loaded one is (see `to`).
        """
        if checkpoint is not None and not isinstance(self, Resumable):
            raise UserError(f"{self.name!r} does not learn in steps and takes no checkpoint; leave out 'checkpoint'")
        raw_files: dict[str, Any] = {}
        if isinstance(queries, DataFolder):
            if corpus is not None or relevance is not None:
                raise UserError("fit takes a data folder, or queries and corpus; not both")
            folder = queries
            queries, corpus, relevance, raw_files = folder.queries, folder.corpus, folder.relevance, folder.raw_files
        if corpus is None:
            raise UserError(
                "fit needs a corpus: fit(data) with what prepare or read_folder returned, fit(queries, corpus), or "
                "without labels fit(None, corpus)"
            )
        task = TrainingTask.of(
            None if queries is None else as_sequences(queries, "queries", columns),
            as_sequences(corpus, "corpus", columns),
            relevance,
            needs_labels=self.needs_labels,
            seed=seed,
            max_seconds=max_seconds,
            checkpoint=checkpoint,
            device=self._training_device(device),
        )
        self.fit_task(task)
        self.card = self.trained_card(**raw_files)
        return self

    def _training_device(self, device: torch.device | str | None) -> str:
        """Return the device to train on; raise a `UserError` if there is none, or the method cannot use it."""
        if device is None or str(device) == "cpu":
            return "cpu"
        if not self.trains_on_devices:
            raise UserError(f"{self.name!r} trains on the CPU only; leave out the device {str(device)!r}")
        from neuroseqret.models.devices import usable  # here, as it imports torch
        from neuroseqret.training import ranks

        if ranks.number() > 1:
            raise UserError(f"several processes train on the CPU; leave out the device {str(device)!r}, or torchrun")
        return str(usable(device))

    def fit_task(self, task: TrainingTask) -> Self:
        """Learn from a task; `fit` builds one from its arguments and calls this."""
        outcome = self.learn(task)
        self.log = task.log
        meaning, corpus = self.learned_meaning(task), task.given_corpus
        self.card = ModelCard(
            model=self.name,
            method_version=self.version_of(self.preset),
            preset=self.preset,
            settings=self.settings.model_dump(mode="json"),
            marks=meaning.marks or 1,
            mark_names=meaning.mark_names,
            time_unit=meaning.time_unit,
            typical_gaps=typical_gaps(corpus),
            seed=task.seed,
            max_seconds=task.max_seconds,
            unlabelled=task.unlabelled,
            train_queries=len(task.train_rows_if_any),
            corpus_fingerprint=corpus.fingerprint(),
            learned_from=sketch_of([task.queries[task.train_rows_if_any], task.queries[task.validation_rows], corpus]),
            validation=outcome.validation,
            notes=outcome.notes,
        )
        return self

    def learned_meaning(self, task: TrainingTask) -> Meaning:
        """What marks and times mean to the trained method: the same as in the corpus."""
        return Meaning.of(task.given_corpus)

    @abstractmethod
    def learn(self, task: TrainingTask) -> Outcome:
        """Learn from the task and return what goes into the model card."""

    # ---------------------------------------------------------------- use

    @property
    def meaning(self) -> Meaning:
        """What marks and times mean to the method; unknown until it is trained."""
        return Meaning() if self.card is None else self.card.meaning

    def score(self, queries: Given, candidates: Given, *, unknown_marks: UnknownMarks = "error") -> Scores:
        """Return the relevance of every candidate: (candidates,) for one query, else (queries, candidates).

        The score of a pair does not depend on the other queries and candidates. Marks are matched by name.
        `unknown_marks` says what to do with marks that the method does not know: `error` raises, `drop` leaves the
        events out, `keep` treats all of them as one unknown mark.
        """
        asked, one = one_or_many(queries, "queries")
        offered = self.meaning.apply(as_sequences(candidates, "candidates"), unknown_marks)
        asked = self.meaning.apply(asked, unknown_marks)
        scores = self.compute_scores(asked, offered)
        if not (finite := np.isfinite(scores)).all():
            lost = ~finite.any(1)  # a query with no score at all; otherwise a candidate is to blame
            culprit = asked[int(lost.argmax())] if lost.any() else offered[int(finite.all(0).argmin())]
            raise _not_finite("score", culprit.id)
        return scores[0] if one else scores

    @abstractmethod
    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """Return scores (queries, candidates); the marks of the sequences have the method's numbers."""

    def to(self, device: torch.device | str) -> Self:
        """Move a trained method to a device; most methods compute on the CPU only, and raise a `UserError`."""
        if str(device) != "cpu":
            raise UserError(f"a {self.name!r} model computes on the CPU only; leave out the device {str(device)!r}")
        return self

    def __repr__(self) -> str:
        parts = [] if self.preset is None else [f"preset {self.preset!r}"]
        if (card := self.card) is None:
            return f"{type(self).__name__}({', '.join([*parts, 'not trained'])})"
        parts.append(f"{card.marks} marks")
        if card.time_unit:
            parts.append(f"time in {card.time_unit}")
        if card.typical_gaps is not None:
            parts.append(f"typical gap {duration(card.typical_gaps[1], card.time_unit)}")
        parts += [f"validation {name} {100 * value:.1f}" for name, value in card.validation.items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def plot_training(self) -> Figure:
        """Draw the loss and the validation of every phase of `fit`; return a Matplotlib figure."""
        return self.log.figure()

    # ---------------------------------------------------------------- keep

    def trained_card(self, **more: Any) -> ModelCard:
        """Return the card with further fields filled in; raise if the method is not trained."""
        if self.card is None:
            raise UserError(f"{self.name!r} is not trained; call 'fit', or load a model folder")
        return self.card.model_copy(update=more)

    @abstractmethod
    def to_state(self) -> ModelState:
        """Return the trained method as card and tensors."""

    @abstractmethod
    def restore(self, state: ModelState) -> None:
        """Load the state that `to_state` returned; the settings are already those of the card."""

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        """Build the trained method from the state that `to_state` returned."""
        made = cls(**state.card.settings)
        made.preset, made.card = state.card.preset, state.card
        made.restore(state)
        return made

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the model folder (`config.json`, `model.safetensors`, training log), complete or not at all."""
        return write_state(folder, self.to_state(), self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Read a model folder; raise a `UserError` of one line if it is damaged or of another kind or version."""
        from neuroseqret.models.allocation import OnlyWhatTheFileHolds  # here, as it imports torch

        state = read_state(folder, cls.name)
        try:
            with OnlyWhatTheFileHolds(state.tensors):
                made = cls.from_state(state)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f"{folder}: config.json and model.safetensors do not fit together ({error}); fit the model again"
            ) from error
        made.log = TrainingLog.of_folder(folder)
        return made


class Embedder(RelevanceModel):
    """A method that gives each sequence a vector, so it can be indexed."""

    def embed(
        self,
        sequences: Given,
        role: Role = "corpus",
        *,
        unknown_marks: UnknownMarks = "error",
        strict: bool | None = False,
    ) -> Scores:
        """Return unit vectors (sequences, dimension) float32.

        `role` is "query" or "corpus": some methods embed queries differently. `unknown_marks` as in `score`. Times that
        look like another unit than the model's give a warning, with `strict` an error; None does not look at them.
        """
        many = self.meaning.apply(as_sequences(sequences), unknown_marks)
        if strict is not None and self.card is not None:
            check_gaps(many, self.card.typical_gaps, self.card.time_unit, strict=strict)
        vectors = self.compute_embeddings(many, role)
        if not (finite := np.isfinite(vectors).all(1)).all():
            raise _not_finite("embedding", many[int(finite.argmin())].id)
        return vectors

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of events that it reads beside times and marks."""
        return ()

    @abstractmethod
    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """Return unit vectors (sequences, dimension); the marks of the sequences have the method's numbers."""

    def as_query(self, embeddings: Scores) -> Scores:
        """Return embeddings of corpus sequences as those of queries, to search for more of the same."""
        return embeddings

    @property
    def score_is_cosine(self) -> bool:
        """Whether `score` is the dot product of the embeddings and nothing else."""
        return type(self).compute_scores is Embedder.compute_scores

    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        scores: Scores = self.compute_embeddings(queries, "query") @ self.compute_embeddings(candidates, "corpus").T
        return scores


def _not_finite(what: str, sequence: str) -> DataError:
    return DataError(
        f"its {what} is not finite",
        sequence=sequence,
        remedy="look for extreme times in it ('neuroseqret data info'), or use a larger unit of time",
    )


class Reranker(RelevanceModel):
    """A second stage: reorders the best candidates of its first stage."""

    @abstractmethod
    def rerank(
        self,
        queries: Given,
        corpus: Given,
        first_stage_scores: Scores | None = None,
        depth: int = 100,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        """Rank the corpus by the first stage, and its `depth` best candidates by this model; return sortable numbers.

        Shapes as in `score`. The reordered candidates get positive ranks, highest first; all others get the difference
        of their first-stage score to the best one, at most 0. Pass `first_stage_scores` (queries, corpus) if you have
        them already. `unknown_marks` as in `score`.
        """

    @abstractmethod
    def score_listed(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        listed: IntArray,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        """Return the scores of the listed corpus rows of each query: (queries, depth)."""

    def builds_on(self, model: RelevanceModel) -> bool:
        """Whether `model` is the first stage of this one, so that its embeddings can be used again."""
        return False

    def score_embedded(
        self, query: EventSequences, embedding: Scores, candidates: Scores, events: Callable[[], EventSequences]
    ) -> Scores:
        """Return `score` of one query, given embeddings of a first stage that this model builds on: (candidates,).

        `embedding` is (D,), `candidates` (candidates, D). `events` returns the candidates as sequences; it is called
        only if the score needs their events.
        """
        return self.score(query, events(), unknown_marks="keep")[0]


class Resumable(RelevanceModel):
    """A method that learns in steps: `fit(checkpoint=FOLDER)` continues a run that was interrupted."""
