"""`python tests/scale_page.py`: write docs/scale.md from what `benchmarks/scale.py` saved in results/scale.

Query cost: milliseconds of one core after embedding are fitted by least squares to

    t = a + b * D * (centres + rows compared)

on the measured indexes but the largest, which is predicted. What lies beyond is the same line.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE, RESULTS = REPOSITORY / "docs" / "scale.md", REPOSITORY / "results" / "scale"
MACHINES = REPOSITORY / "results" / "machines"
DIMENSION, EVENTS = 128, 50  # of the sequences that are planned for
GRAPH = 128  # bytes per sequence of Milvus's HNSW with M = 16: 32 neighbours of 4 bytes
PLANNED = (10**6, 10**7, 10**8, 10**9)
GROUP = 1e9  # bytes of a GB
NOT_YET = "Not measured yet: run `python benchmarks/scale.py {section}`.\n"

Cell = dict[str, Any]


def cell(name: str) -> Cell | None:
    """Return a saved cell; None if it was not measured."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def growth() -> list[Cell]:
    """Return the measured indexes, smallest first."""
    found = [json.loads(file.read_text()) for file in RESULTS.glob("growth-*0.json")]
    return sorted(found, key=lambda one: one["sequences"])


# -------------------------------------------------------------------- the model


def terms(one: Cell, point: Cell) -> list[float]:
    """Return the terms of the model for one measured point."""
    return [1.0, 1e-6 * one["dimension"] * (point["centres"] + point["compared"])]


def fitted(cells: list[Cell]) -> tuple[float, float]:
    """Return a and b (per million numbers), fitted to relative errors. Exhaustive indexes read four bytes a number."""
    points = [(one, point) for one in cells for point in one["curve"] if one["candidates"] == "cells"]
    measured = np.array([point["p50_ms"] for _, point in points])
    matrix = np.array([terms(one, point) for one, point in points]) / measured[:, None]
    a, b = np.linalg.lstsq(matrix, np.ones(len(points)), rcond=None)[0]
    return float(a), float(b)


def centres_of(n: int) -> float:
    return 4 * math.sqrt(n)


def predicted(model: tuple[float, float], n: int, dimension: int, fraction: float) -> float:
    """Return the milliseconds of a search that compares a fraction of n sequences, at least 2,000."""
    compared = max(2000.0, fraction * n)
    return model[0] + model[1] * 1e-6 * dimension * (centres_of(n) + compared)


def slope(cells: list[Cell], low: int = 10_000, high: int = 1_000_000) -> float:
    """Return the slope of log time against log size, by least squares."""
    some = [one for one in cells if low <= one["sequences"] <= high]
    x = np.log([one["sequences"] for one in some])
    y = np.log([one["curve"][0]["p50_ms"] for one in some])
    return float(np.polyfit(x, y, 1)[0])


# -------------------------------------------------------------------- parts of the page


def number(value: float) -> str:
    """Return a number with two or three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def goals() -> str:
    """Return what was to be reached, and whether it is."""
    rows: list[list[str]] = []

    def tell(what: str, of: Cell | None, value: Any, goal: float, unit: str = "", at_most: bool = True) -> None:
        wanted = f"at {'most' if at_most else 'least'} {goal:g}{unit}"
        if of is None:
            rows.append([what, "", "", wanted, "not measured yet"])
            return
        found = value(of)
        met = found <= goal if at_most else found >= goal
        sequences = f"{of['sequences']:,}" if "sequences" in of else ""
        rows.append([what, sequences, f"{number(found)}{unit}", wanted, "met" if met else "**not met**"])

    bucket, load, search = cell("bucket"), cell("milvus-load"), cell("milvus-search")
    tell("search in an object store / in a folder", bucket, lambda c: c["bucket_to_folder"], 1.2)
    tell("opening with a warm cache, wall clock", bucket, lambda c: c["warm_s"], 1, " s")
    tell("opening without a cache: peak memory / structure", bucket, lambda c: c["peak_over_structure"], 2.5)
    tell("search through Milvus / bare call", search, lambda c: c["ours_to_bare"], 3)
    tell("the same with a condition", search, lambda c: c["ours_to_bare_filtered"], 3)
    tell("rows that come with a condition, for 10 hits", search, lambda c: c["most_rows_that_came"], 11)
    tell("adding through Milvus / bare inserts", load, lambda c: c["ours_to_bare"], 0.7, at_most=False)
    tell("embedding on two nodes of Ray / one worker", cell("ray-embed"), lambda c: c["ray_to_alone"], 1.5, "", False)
    grown = {} if cell("growth-1000000") else None
    tell("slope of log time against log size, 10^4 to 10^6", grown, lambda _: slope(growth()), 0.6)
    tell("from raw events to ten hits", cell("growth-raw"), lambda c: c["search"]["p50_ms"], 2, " ms")
    return table(["what", "sequences", "measured", "goal", ""], rows)


def growing() -> str:
    found = growth()
    if not found:
        return NOT_YET.format(section="growth")
    rows = []
    for one in found:
        for point in one["curve"] if one["candidates"] == "cells" else one["curve"][:1]:
            compared = 100 * (point["compared"] + point["centres"]) / one["sequences"]
            rows.append(
                [
                    f"{one['sequences']:,}",
                    one["candidates"],
                    f"{number(compared)} %",
                    f"{number(point['p50_ms'])} ({number(point['p99_ms'])})",
                    f"{100 * point['recall@10']:.1f}",
                ]
            )
    seen = set()
    rows = [row for row in rows if not (tuple(row[:3]) in seen or seen.add(tuple(row[:3])))]
    return table(["sequences", "method", "compared", "ms (p99)", "recall@10, %"], rows)


def checked() -> str:
    """Say how well the model predicts the largest index, and other dimensions, from the smaller indexes."""
    found = [one for one in growth() if one["candidates"] == "cells"]
    if len(found) < 2:
        return NOT_YET.format(section="growth")
    largest = found[-1]
    model, rows = fitted(found[:-1]), []
    for point in largest["curve"]:
        guess = float(np.dot(model, terms(largest, point)))
        rows.append([f"{largest['sequences']:,}", str(largest["dimension"]), point["compared"], guess, point["p50_ms"]])
    if raw := cell("growth-raw"):
        n, dimension = raw["sequences"], raw["dimension"]
        own = raw["search"]["p50_ms"] - raw["embedding"]["p50_ms"]
        rows.append([f"{n:,}", str(dimension), max(2000, n // 100), predicted(model, n, dimension, 0.01), own])
    shown = [[n, d, f"{c:,}", number(g), number(m), number(g / m)] for n, d, c, g, m in rows]
    head = ["sequences", "dimensions", "rows compared", "model, ms", "measured, ms", "model / measured"]
    return table(head, shown)


def per_sequence() -> dict[str, float]:
    """Return bytes per sequence beyond embedding and events, from the largest measured index."""
    one = growth()[-1]
    d, e = one["dimension"], 8
    return {
        "store": one["store_bytes_per_sequence"] - 4 * d - 12 * e,
        "structure": one["structure_bytes_per_sequence"] - 5 * d - 12 * e,
        "memory": one["memory_bytes_per_sequence"] - d,
    }


def plan() -> str:
    """Return memory, disk and time of one machine by number of sequences."""
    built = cell("bucket")
    if not growth() or built is None or built["dimension"] != DIMENSION:
        return NOT_YET.format(section="growth bucket")
    rest, model, rows = per_sequence(), fitted(growth()), []
    d, e = DIMENSION, EVENTS
    for n in PLANNED:
        memory = n * (d + rest["memory"]) / GROUP
        store = n * (4 * d + 12 * e + rest["store"]) / GROUP
        structure = n * (5 * d + 12 * e + rest["structure"]) / GROUP
        peak = n * built["cold_peak_bytes"] / built["sequences"] / GROUP
        costs = [number(predicted(model, n, d, fraction)) for fraction in (0.01, 0.001)]
        there = n * (4 * d + GRAPH) / GROUP
        sizes = [number(v) for v in (memory, peak, store, structure)]
        rows.append([f"10^{round(math.log10(n))}", *sizes, *costs, number(there)])
    head = [
        "sequences",
        "memory, GB",
        "memory to build, GB",
        "store, GB",
        "structure, GB",
        "search, ms: 1 % compared",
        "0.1 % compared",
        "with Milvus: its memory, GB",
    ]
    return table(head, rows)


def work() -> str:
    """Return the work of one core to index sequences, and the queries that a core answers."""
    if not growth():
        return NOT_YET.format(section="growth")
    one, ray, raw = growth()[-1], cell("ray-embed"), cell("growth-raw")
    rows = [["adding, without embedding", number(one["add_us_per_sequence"])]]
    rows.append(["building the structure", number(1e6 * one["build_s"] / one["sequences"])])
    if ray:
        rows.insert(0, ["embedding, 62 events each", number(1e6 / ray["alone_per_s"])])
    text = table(["work", "seconds of one core per 10^6 sequences"], rows)
    if raw:
        text += (
            f"\nA query of {raw['events_per_query']:.0f} events among {raw['sequences']:,} sequences takes "
            f"{number(raw['search']['p50_ms'])} ms of one core, of which embedding it takes "
            f"{number(raw['embedding']['p50_ms'])} ms. So a core answers about "
            f"{round(1000 / raw['search']['p50_ms'], -1):.0f} queries per second; replicas multiply that.\n"
        )
    return text


def bucket() -> str:
    found = cell("bucket")
    if found is None:
        return NOT_YET.format(section="bucket")
    same = "the same hits" if found["same_hits"] else "other hits"
    return (
        f"{found['sequences']:,} sequences of {found['dimension']} dimensions, `moto_server` on the same machine. "
        f"A search takes {number(found['bucket_ms'])} ms, in a folder {number(found['folder_ms'])} ms, with {same}. "
        f"The first machine opens the index in {number(found['cold_s'])} s, in which it builds the structure of "
        f"{found['structure_bytes'] / 1e6:,.0f} MB with at most {found['cold_peak_bytes'] / 1e6:,.0f} MB of memory. "
        f"Later it takes {number(found['warm_s'])} s of wall-clock time"
        + (f" and {number(found['warm_cpu_s'])} s of processor time" if "warm_cpu_s" in found else "")
        + f"; the first search after it {number(found['warm_first_search_ms'])} ms.\n"
    )


def milvus() -> str:
    load, found = cell("milvus-load"), cell("milvus-search")
    text = ""
    if load:
        text += (
            f"Adding {load['sequences']:,} sequences of {load['dimension']} dimensions to index and collection: "
            f"{load['ours_rows_per_s']:,} per second; bare `insert` of rows that were made ready: "
            f"{load['bare_rows_per_s']:,} per second. {indexed(load['until_indexed_s'])}\n"
        )
    if found:
        text += "\n" + table(
            ["milliseconds", "this library", "bare pymilvus"],
            [
                ["search", number(found["ours_ms"]), number(found["bare_ms"])],
                ["with a condition", number(found["ours_filtered_ms"]), number(found["bare_filtered_ms"])],
            ],
        )
        text += (
            f"\nRecall@10 is {100 * found['recall@10']:.1f} %. The server takes "
            f"{found['server_bytes'] / 1e9:.1f} GB of memory"
            + (f", {load['empty_server_bytes'] / 1e9:.1f} GB when it is empty{per_row(load, found)}" if load else "")
            + ". Both sides reach it through TLS and a relay.\n"
        )
    return text or NOT_YET.format(section="milvus")


def indexed(seconds: float | None) -> str:
    """Say how long the server took to index what was added; None: longer than the benchmark waits."""
    if seconds is None:
        return "A minute after the last one, the server had not indexed all of them; it compares the others one by one."
    return f"The server had indexed them {number(seconds)} s after the last one."


def per_row(load: Cell, found: Cell) -> str:
    """Say how many bytes per sequence Milvus takes, and how many the plan counts."""
    measured = (found["server_bytes"] - load["empty_server_bytes"]) / found["sequences"]
    planned = 4 * found["dimension"] + GRAPH
    return f": {number(measured)} bytes per sequence, of which {planned} are the embedding and its place in the graph"


def ray() -> str:
    found = cell("ray-embed")
    if found is None:
        return NOT_YET.format(section="ray")
    return (
        f"{found['sequences']:,} sequences from a Parquet file, on {found['cores']} cores. One worker without Ray: "
        f"{found['alone_per_s']:,} per second. Two nodes of one core each, which they share with the process that "
        f"reads and writes: {found['ray_per_s']:,} per second, {number(found['ray_to_alone'])} times as many, after "
        f"{number(found['ray_start_s'])} s of start-up. A worker takes at most "
        f"{found['worker_peak_bytes'] / 1e6:,.0f} MB, the process that reads "
        f"{found['driver_peak_bytes'] / 1e6:,.0f} MB.\n" + processor_time(found)
    )


def processor_time(found: Cell) -> str:
    """Tell the processor time per sequence, which other work on the machine does not change."""
    if "alone_cpu_us" not in found:
        return ""
    alone, driver, nodes = (found[f"{name}_cpu_us"] for name in ("alone", "driver", "nodes"))
    return (
        f"\nA sequence takes one worker {number(alone)} µs of processor time. With Ray it takes the nodes "
        f"{number(nodes)} µs, and the process that reads {number(driver)} µs; so two cores of their own give at most "
        f"{number(2 * alone / (driver + nodes))} times the rate of one worker.\n"
    )


def kills() -> str:
    rows = []
    for file in sorted(MACHINES.glob("*.json")):
        one = json.loads(file.read_text())
        rows.append([file.stem, *(f"{one[name]:,}" for name in ("rounds", "acknowledged"))])
        rows[-1] += [str(len(one["failures"])), str(len(one["not_played"]))]
    return table(["killed", "rounds", "sequences acknowledged", "failed", "not played"], rows)


def page() -> str:
    """Return docs/scale.md."""
    found, made = growth(), TEXT
    parts = {
        "goals": goals(),
        "largest": f"{max((one['sequences'] for one in found), default=0):,}",
        "growing": growing(),
        "checked": checked(),
        "plan": plan(),
        "work": work(),
        "bucket": bucket(),
        "milvus": milvus(),
        "ray": ray(),
        "kills": kills(),
        "rounds": str(sum(json.loads(file.read_text())["rounds"] for file in MACHINES.glob("*.json"))),
        "dimension": str(DIMENSION),
        "events": str(EVENTS),
        "graph": str(4 * DIMENSION + GRAPH),
        "rest": ", ".join(f"{value:.0f} ({name})" for name, value in per_sequence().items()) if found else "?",
        "load": number(max(json.loads(file.read_text())["load"] for file in RESULTS.glob("*.json"))),
    }
    for name, text in parts.items():
        made = made.replace(f"<<{name}>>", text.rstrip("\n"))
    return made


TEXT = (Path(__file__).parent / "scale_page.md").read_text(encoding="utf-8")

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
