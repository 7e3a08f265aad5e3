"""The versions behind a cell: raise one by hand when what it stands for computes something else.

A cell is fresh while its versions are those of today. There is one for each of these:

- `method`: the method that was fitted, `RelevanceModel.version_of` its preset;
- `protocol`: who is asked and what is ranked, `neuroseqret.evaluation.protocol.PROTOCOL_VERSION`;
- `data`, `cutting`, `hashing`, `algorithm`, `cross-ablation`, `qualitative`, `unwarping`, `runtime`, `training-time`,
  `simulated`, `diagnosis`, `learning-curves`, `feedback`: the way in which an experiment looks at a fitted method, in
  `LOOKS` below;
- `hash`: the hash function of a curve, `HashFunction.version`.

tests/golden fails when a figure moves and its version does not, except for `runtime` and `training-time`, which
measure time.
"""

from __future__ import annotations

from typing import Any

from experiments.hash_curve import hash_of
from neuroseqret.evaluation.protocol import PROTOCOL_VERSION
from neuroseqret.methods import method_class

#: Versions of the ways to look at a fitted method.
LOOKS = {
    "data": 1,
    "cutting": 1,
    "hashing": 2,
    "algorithm": 1,
    "cross-ablation": 1,
    "qualitative": 1,
    "unwarping": 1,
    "runtime": 1,
    "training-time": 1,
    "simulated": 1,
    "diagnosis": 1,
    "learning-curves": 1,
    "feedback": 1,
}


def versions_of(config: dict[str, Any]) -> dict[str, int]:
    """Return the versions of today for a cell with this configuration."""
    found = {"method": method_class(config["method"]).version_of(config.get("preset")), "protocol": PROTOCOL_VERSION}
    looks = [config["experiment"]] if "experiment" in config else []
    looks += ["cutting"] if config.get("queries", "whole") != "whole" else []
    found |= {look: LOOKS[look] for look in looks}
    hashed = hash_of(config.get("way", ""), config["data"])
    return found if hashed is None else found | {"hash": hashed.version}
