"""Sports: actions in sports videos, retrieval of the same sport.

Download: the MultiTHUMOS annotations of Yeung et al., "Every Moment Counts" (Stanford), as
`multithumos.zip` (a folder `annotations` with one `.txt` per action: video, start and end in seconds on each line;
`class_list.txt`), or as one or more of the JSON files in action-localisation repositories, with labels by name
(`{"database": {video: {"annotations": [{"label", "segment"}]}}}`) or by number
(`{video: {"actions": [[class, start, end]]}}`). Licence: not stated with the annotations.

An event is the start of an annotated action, and its mark is the action. The group is the sport: the most frequent of
the 20 THUMOS classes in the video. CliffDiving wins over Diving, which is annotated together with it; cricket bowling
and batting are one sport. Marks that name a sport are left out, as they would give the answer away.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets.raw_files import find, json_file, nothing_found, numbers, text
from neuroseqret.datasets.recordings import Recordings, Windows
from neuroseqret.errors import DataError, UserError

#: The classes of THUMOS'14 in their published order; class n of MultiTHUMOS is the n-th of both lists.
SPORTS = [
    "BaseballPitch",
    "BasketballDunk",
    "Billiards",
    "CleanAndJerk",
    "CliffDiving",
    "CricketBowling",
    "CricketShot",
    "Diving",
    "FrisbeeCatch",
    "GolfSwing",
    "HammerThrow",
    "HighJump",
    "JavelinThrow",
    "LongJump",
    "PoleVault",
    "Shotput",
    "SoccerPenalty",
    "TennisSwing",
    "ThrowDiscus",
    "VolleyballSpiking",
]
ACTIONS = [
    "Walk",
    "Sit",
    "StandUp",
    "Stand",
    "Run",
    "Jump",
    "Fall",
    "PickUp",
    "Hug",
    "PatPerson",
    "HighFive",
    "FistPump",
    "ClapHands",
    "OneRaisedArmCelebrate",
    "TwoRaisedArmCelebrate",
    "Throw",
    "Drop",
    "OneHandedCatch",
    "TwoHandedCatch",
    "BodyRoll",
    "BodyTurn",
    "BodyBend",
    "BodyContract",
    "Squat",
    "BasketballDribble",
    "BasketballPass",
    "BasketballBlock",
    "BasketballShot",
    "BasketballGuard",
    "VolleyballSet",
    "VolleyballBump",
    "VolleyballBlock",
    "VolleyballServe",
    "WeightliftingClean",
    "WeightliftingJerk",
    "HammerThrowWindUp",
    "HammerThrowSpin",
    "HammerThrowRelease",
    "PoleVaultPlantPole",
    "ShotPutBend",
    "DiscusWindUp",
    "DiscusRelease",
    "TalkToCamera",
    "CloseUpTalkToCamera",
    "NoHuman",
]
CLASSES = [*SPORTS, *ACTIONS]
NAMING = ("Basketball", "Volleyball", "Weightlifting", "HammerThrow", "PoleVault", "ShotPut", "Discus")
MERGED = {"CricketBowling": "Cricket", "CricketShot": "Cricket"}
#: The marks: actions that do not name a sport.
MARKS = [a for a in ACTIONS if not a.startswith(NAMING)]

#: Video, action and start.
Segment = tuple[str, str, float]


def read(raw: Path, *, variant: str = "generic", events: int = 20) -> EventSequences:
    """Read sequences of `events` to `2 * events - 1` actions.

    Variant `generic` drops marks that name a sport, `all` keeps them.
    """
    if variant not in ("generic", "all"):
        raise UserError(f"sports has no variant {variant!r}; choose generic or all")
    segments = _segments(raw)
    if not segments:
        raise DataError("no action is annotated", file=raw, remedy="download it again")
    videos, labels, starts = zip(*segments, strict=True)
    code = {name: number for number, name in enumerate(CLASSES)}
    video_names, video = np.unique(np.array(videos), return_inverse=True)
    action = np.array([code[label] for label in labels])
    sport = _sports(video, action, len(video_names))
    names = MARKS if variant == "generic" else CLASSES
    new_mark = np.full(len(CLASSES), -1, np.int32)
    new_mark[[code[name] for name in names]] = np.arange(len(names))
    kept = (new_mark[action] >= 0) & (sport[video] >= 0)
    groups = np.array([MERGED.get(name, name) for name in SPORTS])
    recordings = Recordings.from_events(
        video[kept],
        np.array(starts)[kept],
        new_mark[action[kept]],
        {"group": groups[sport[video[kept]]], "source": video_names[video[kept]]},
    )
    return recordings.cut(Windows(events, "spread")).to_sequences(names, "seconds")


def _sports(video: Any, action: Any, videos: int) -> Any:
    """Return the most frequent sport of each video, -1 if none is annotated."""
    counts = np.zeros((videos, len(SPORTS)), np.int64)
    is_sport = action < len(SPORTS)
    np.add.at(counts, (video[is_sport], action[is_sport]), 1)
    cliff, diving = SPORTS.index("CliffDiving"), SPORTS.index("Diving")
    counts[:, diving] *= counts[:, cliff] == 0
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def _segments(raw: Path) -> list[Segment]:
    """Read every annotated segment, from whichever form is in the folder."""
    jsons = find(raw, "*.json")
    texts = [p for p in find(raw, "*.txt") if p.stem in set(CLASSES)]
    if not jsons and not texts:
        raise nothing_found(raw, "MultiTHUMOS .json, or annotations/<Action>.txt")
    named = [path for path in jsons if '"database"' in text(path)[:4096]]
    numbered = [path for path in jsons if path not in named]
    forms = [_from_texts(texts), _joined(map(_from_json, named)), _joined(map(_from_json, numbered))]
    # One form is enough: several forms hold the same segments, up to rounding and a few videos.
    chosen, *others = [segments for form in forms if (segments := list(form))] or [[]]
    if missed := {video for other in others for video, _, _ in other} - {video for video, _, _ in chosen}:
        warnings.warn(
            f"{raw}: has annotations in several forms; only the first of text, JSON by name and JSON by number is "
            f"read, without {len(missed)} videos of the others ({min(missed)}); keep the files of one form to choose",
            stacklevel=3,
        )
    return chosen


def _joined(parts: Iterable[Iterable[Segment]]) -> list[Segment]:
    """Join the segments of all files; segments that an earlier file has too count once."""
    joined: list[Segment] = []
    for part in parts:
        before = Counter(joined)
        for segment in part:
            if before[segment]:
                before[segment] -= 1
            else:
                joined.append(segment)
    return joined


def _from_texts(paths: list[Path]) -> Iterable[Segment]:
    for path in paths:
        rows = [(n, line.split()) for n, line in enumerate(text(path).splitlines(), 1) if line.strip()]
        for n, cells in rows:
            if len(cells) != 3:
                raise DataError(
                    f"line {n}: {len(cells)} columns, not video, start and end", file=path, remedy="correct the line"
                )
        starts = [float(numbers([cells[1]], path, n, "the start")[0]) for n, cells in rows]
        yield from ((cells[0], path.stem, start) for (_, cells), start in zip(rows, starts, strict=True))


def _from_json(path: Path) -> Iterable[Segment]:
    content = json_file(path)
    try:
        if "database" in content:
            for video, entry in content["database"].items():
                for segment in entry["annotations"]:
                    yield video, _known(segment["label"], path, video), float(segment["segment"][0])
        else:
            for video, entry in content.items():
                for number, start, _ in entry["actions"]:
                    yield video, _known(int(number), path, video), float(start)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataError(
            f"not MultiTHUMOS annotations ({error!r})", file=path, remedy="download it again, or move it elsewhere"
        ) from error


def _known(label: str | int, path: Path, video: str) -> str:
    if isinstance(label, int) and 1 <= label <= len(CLASSES):
        return CLASSES[label - 1]
    if label in CLASSES:
        return str(label)
    raise DataError(f"unknown action {label!r}", file=path, sequence=video, remedy="use the MultiTHUMOS classes")
