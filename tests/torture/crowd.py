"""Four writers and two readers of one index, each a process; some writers are killed on the way.

A writer changes rows of its own. It says what it will do before it does it, and that it is done when that is
acknowledged. So `allowed` tells from what a writer said which of its rows have to be there, whatever the others did.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index

WRITERS, READERS, STEPS = 4, 2, 6
MOST_CALLS = 250  # a writer makes about this many calls; it is killed at one of them, or after its last one
VERBS = ("add", "add", "upsert", "remove", "compact")
DONE, REFUSED = "done", "refused"
Say = Callable[[str], None]
Rows = dict[str, float]  # the first time of each row


def doomed(seed: int) -> dict[int, int]:
    """Return which writers of a round are killed, and at which of their calls."""
    rng = random.Random(seed)
    return {number: rng.randrange(1, MOST_CALLS) for number in rng.sample(range(WRITERS), rng.choice((1, 2)))}


def rows(ids: list[str], first: float) -> EventSequences:
    """Return sequences of three events from a time on."""
    return EventSequences.from_lists([([first, first + 1.0, first + 1.5], [0, 1, 2]) for _ in ids], ids=ids)


def write(folder: str, number: int, seed: int, say: Say) -> None:
    """Change rows of this writer's own, step by step."""
    index, rng, mine = Index.open(folder), random.Random(f"{seed} {number}"), list[str]()
    for step in range(STEPS):
        verb, ids, first = rng.choice(VERBS) if mine else "add", list[str](), float(100 * step + number)
        if verb == "add":
            ids = [f"w{number}-{step}-{at}" for at in range(3)]
        elif verb != "compact":
            ids = rng.sample(mine, min(2, len(mine)))
        say(json.dumps({"verb": verb, "ids": ids, "first": first}))
        try:
            if verb == "compact":
                index.compact()
            elif verb == "remove":
                index.remove(ids)
            else:
                index.add(rows(ids, first), upsert=verb == "upsert")
        except UserError as error:
            say(f"{REFUSED} {error}")
            continue
        say(DONE)
        mine = [id for id in dict.fromkeys([*mine, *ids]) if verb != "remove" or id not in ids]


def read(folder: str, queries: EventSequences, always: set[str], stop: Path, say: Say) -> None:
    """Search until the file `stop` is there; say what is wrong with an answer, or how many were sound."""
    index, sound = Index.open(folder), 0
    while not stop.exists():
        hits = list(index.search(queries[sound % len(queries)], 200))
        ids, scores = [hit.id for hit in hits], np.array([hit.score for hit in hits])
        if len(ids) != len(set(ids)) or not always <= set(ids) or (np.diff(scores) > 0).any():
            say(f"{len(ids)} hits, {len(set(ids))} ids, without {sorted(always - set(ids))}")
            return
        sound += 1
    say(f"sound {sound}")


def allowed(said: list[str]) -> list[Rows]:
    """Return which rows of a writer may be there after what it said: one state, or two if it was killed in a step."""
    state: Rows = {}
    states = [state]
    for step, answer in zip(said[::2], [*said[1::2], None], strict=False):
        after = _after(state, json.loads(step))
        if answer is None:  # it was killed before it said how this ended
            return [state, after]
        assert answer == DONE or answer.startswith(REFUSED), answer
        state = after if answer == DONE else state
        states = [state]
    return states


def _after(state: Rows, step: dict[str, Any]) -> Rows:
    if step["verb"] == "remove":
        return {id: first for id, first in state.items() if id not in step["ids"]}
    return state | dict.fromkeys(step["ids"], step["first"])
