"""`RelevanceModel`: what every ranking method has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel
from typing_extensions import Self

from neuroseqret.data.durations import duration
from neuroseqret.data.gaps import typical_gaps
from neuroseqret.data.meaning import Meaning, UnknownMarks
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
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
            raise not_finite("score", culprit.id)
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


def not_finite(what: str, sequence: str) -> DataError:
    """Return the error about a number of a sequence that is infinite or none at all."""
    return DataError(
        f"its {what} is not finite",
        sequence=sequence,
        remedy="look for extreme times in it ('neuroseqret data info'), or use a larger unit of time",
    )


class Resumable(RelevanceModel):
    """A method that learns in steps: `fit(checkpoint=FOLDER)` continues a run that was interrupted."""
