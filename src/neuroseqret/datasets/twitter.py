"""Twitter: cascades of retweets, retrieval of stories of the same veracity, or of parts of the same cascade.

Download one of
- Twitter15 and Twitter16 of Ma et al. 2017 (as in gszswork/Twitter15_16_dataset; licence not stated): one folder per
  collection with `label.txt` (`label:tweet`) and `tree/<tweet>.txt`, one edge per line,
  `['user', 'tweet', 'minutes']->['user', 'tweet', 'minutes']`;
- the retweet streams of the Neural Hawkes process (Zhao et al. 2015, Mei and Eisner 2017) as EasyTPP publishes them:
  `train.json`, `dev.json`, `test.json`, or the pickles `train.pkl` and so on (read only with `--allow-pickle`).

In the trees, an event is a retweet or reply, and its mark is the depth in the tree (1, 2, 3 or more); the first 200 are
used, and the group is the label. In the streams, the mark says how many followers the user has (ordinary, mildly
famous, influencer), as in the paper; there are no labels and no `group`, so relevance comes from sub-sequences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets.raw_files import Progress, find, nothing_found, text, track
from neuroseqret.datasets.recordings import Recordings, Windows
from neuroseqret.errors import DataError

DEPTHS = ["answers the source", "depth 2", "depth 3 or more"]
FAME = ["ordinary user", "mildly famous user", "influencer"]
EDGE = re.compile(r"\['(.*?)', '(.*?)', '(.*?)'\]\s*->\s*\['(.*?)', '(.*?)', '(.*?)'\]")

Node = tuple[str, str]


def read(
    raw: Path,
    *,
    events: int = 200,
    min_events: int = 10,
    allow_pickle: bool = False,
    progress: Progress | None = None,
) -> EventSequences:
    """Read the first `events` events of each cascade with at least `min_events`."""
    labels = [path for path in find(raw, "label.txt") if (path.parent / "tree").is_dir()]
    if labels:
        return _trees(labels, events, min_events, progress)
    streams = find(raw, "*.json", "*.jsonl", "*.pkl")
    if not streams:
        raise nothing_found(raw, "label.txt with tree/<tweet>.txt, or the retweet streams (train.json or train.pkl)")
    return _streams(streams, events, min_events, allow_pickle)


def _streams(paths: list[Path], events: int, min_events: int, allow_pickle: bool) -> EventSequences:
    from neuroseqret.readers import read as read_file

    parts = []
    read: Counter[tuple[bytes, bytes]] = Counter()
    for path in paths:
        part = read_file(path, allow_pickle=allow_pickle)
        if part.num_marks > len(FAME):
            raise DataError(
                f"{part.num_marks} marks, but the retweet streams have {len(FAME)}", file=path, remedy="move it away"
            )
        part = part[_not_in(read, part)]
        sources = [f"{path.stem}:{id_}" for id_ in part.ids.to_pylist()]
        parts.append(Recordings(part.times, part.marks, part.offsets, {"source": sources}))
    first = Recordings.concat(parts).cut(Windows(events, "keep", min_events, most=1))
    return first.to_sequences(FAME, "seconds")


def _not_in(read: Counter[tuple[bytes, bytes]], part: EventSequences) -> list[int]:
    """Return the rows of the streams that no earlier file has, and add them to those that were read."""
    before, new = read.copy(), []
    for row, stream in enumerate(part):
        events = stream.times.tobytes(), stream.marks.tobytes()
        if before[events]:
            before[events] -= 1
        else:
            new.append(row)
            read[events] += 1
    return new


def _trees(labels: list[Path], events: int, min_events: int, progress: Progress | None) -> EventSequences:
    known: dict[str, dict[str, str]] = {}
    for path in labels:
        for label, tweet in _labels(path):
            entry = {"label": label, "collection": path.parent.name, "file": str(path.parent / "tree" / f"{tweet}.txt")}
            before = known.setdefault(tweet, entry)
            if before["label"] != label:
                before["file"] = ""  # the collections disagree, so it is not used
    parts = []
    for tweet, entry in track(sorted(known.items()), progress):
        path = Path(entry["file"])
        if not entry["file"] or not path.exists():
            continue
        times, depths = cascade(path)
        if len(times) >= min_events:
            columns = {
                "group": entry["label"],
                "source": tweet,
                "collection": entry["collection"],
                "cascade_size": len(times),
            }
            parts.append((times[:events], np.minimum(depths[:events], 3) - 1, columns))
    if not parts:
        raise nothing_found(labels[0].parent, "tree/<tweet>.txt for the tweets of label.txt")
    return Recordings.from_parts(parts).to_sequences(DEPTHS, "minutes since the source tweet")


def _labels(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text(path).splitlines(), 1):
        if line.strip():
            label, colon, tweet = line.strip().partition(":")
            if not colon or not tweet:
                raise DataError(
                    f"line {number}: {line.strip()!r} is not label:tweet", file=path, remedy="correct the line"
                )
            yield label, tweet


def cascade(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return minutes after the source and depth of every node except the source, sorted by both.

    A node that is listed twice counts at its earliest time. Negative delays are clock errors and become 0. A node whose
    parents do not lead to the source counts as an answer to it.
    """
    root: Node | None = None
    parent: dict[Node, Node] = {}
    minutes: dict[Node, float] = {}
    for number, line in enumerate(text(path).splitlines(), 1):
        if not line.strip():
            continue
        edge = EDGE.match(line)
        try:
            time = float(edge[6]) if edge else float("nan")
        except ValueError:
            time = float("nan")
        if edge is None or not np.isfinite(time):
            raise DataError(
                f"line {number}: not an edge ['user', 'tweet', 'minutes']->[...]", file=path, remedy="correct the line"
            )
        above, node = (edge[1], edge[2]), (edge[4], edge[5])
        if edge[1] == "ROOT":
            root = node
        elif node != root and time < minutes.get(node, float("inf")):
            minutes[node], parent[node] = time, above
    if root is None:
        raise DataError("no edge from ROOT", file=path, remedy="download it again")
    depth: dict[Node, int] = {root: 0}
    for node in minutes:
        path_up = []
        while node not in depth and node in parent and node not in path_up:
            path_up.append(node)
            node = parent[node]
        base = depth.get(node, 0)
        for below in reversed(path_up):
            base = depth[below] = base + 1
    times = np.maximum(np.fromiter(minutes.values(), np.float64, len(minutes)), 0.0)
    depths = np.array([depth[node] for node in minutes], np.int32)
    order = np.lexsort((np.minimum(depths, 3), times))
    return times[order], depths[order]
