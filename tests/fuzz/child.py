"""Run some inputs of one target in a process of its own, with a limit on memory and on the time of each input.

    python tests/fuzz/child.py TARGET SEED NUMBER FOLDER [atheris]

The input that is being tried is in FOLDER/current, so that it is known if the process dies. FOLDER/done.json holds the
counts, and every finding is a file in FOLDER.
"""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import signal
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import neuroseqret

PARSERS = ("neuroseqret.readers", "neuroseqret.index.filters")
MEMORY, SECONDS = 3 << 30, 20  # bytes more than the process has at the start; processor seconds of an input


def main() -> None:
    faulthandler.register(signal.SIGUSR1)  # tells where it hangs
    name, seed, number, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    guided = "atheris" in sys.argv[5:]
    if guided:
        import atheris

        with atheris.instrument_imports(include=["neuroseqret"], exclude=_not_guided_by()):
            from fuzz.targets import outcome, targets
    else:
        from fuzz.targets import outcome, targets
    from fuzz.mutation import mutated

    target = targets()[name]
    outcome(target, target.seeds[0])  # compile and import everything before memory is limited
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGPROF, _late)
    counts = {"inputs": 0, "data": 0, "refused": 0, "findings": 0}

    def attempt(data: bytes) -> None:
        counts["inputs"] += 1
        (folder / "current").write_bytes(data)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            counts[outcome(target, data)] += 1
        except (Exception, RecursionError):
            counts["findings"] += 1
            kept = folder / f"finding-{name}-{seed}-{counts['inputs']}"
            kept.with_suffix(".bin").write_bytes(data)
            kept.with_suffix(".txt").write_text(traceback.format_exc())
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if counts["inputs"] >= number:
            (folder / "done.json").write_text(json.dumps(counts))

    if guided:
        corpus = folder / "seeds"
        corpus.mkdir(exist_ok=True)
        for place, known in enumerate(target.seeds):
            (corpus / str(place)).write_bytes(known)
        words = [f"-atheris_runs={number}", f"-runs={number}", f"-seed={seed + 1}", "-max_len=8192", "-rss_limit_mb=0"]
        words += ["-timeout=0"]  # `attempt` has its own limit
        atheris.Setup([sys.argv[0], *words, str(corpus)], attempt, internal_libfuzzer=True)
        atheris.Fuzz()
    rng = random.Random(seed)
    while counts["inputs"] < number:
        attempt(mutated(target.seeds, rng))


def _not_guided_by() -> list[str]:
    """Return all modules but the parsers: numba cannot compile what is instrumented, and the rest is slow."""
    root = Path(neuroseqret.__file__).parent
    files = (file.relative_to(root.parent).with_suffix("") for file in root.rglob("*.py"))
    names = (".".join(file.parts).removesuffix(".__init__") for file in files)
    return [name for name in names if not name.startswith(PARSERS)]


def _late(*_: object) -> None:
    raise TimeoutError(f"one input took more than {SECONDS} seconds of processor time")


if __name__ == "__main__":
    main()
