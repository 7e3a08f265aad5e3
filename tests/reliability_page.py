"""`python tests/reliability_page.py`: write docs/reliability.md from what is in results/torture and results/fuzz."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "reliability.md"
ALWAYS = "every `make test`"


@dataclass(frozen=True)
class Promise:
    """A sentence, the tests that hold it, and the results of their long form: names of files as glob patterns."""

    text: str
    tests: tuple[str, ...]
    results: tuple[str, ...] = ()


_TORTURE = "tests/torture/test_torture.py::test_what_was_acknowledged_is_there"
_FUZZ = "tests/fuzz/test_fuzz.py::test_whatever_comes_in_the_outcome_is_data_or_the_librarys_error"

PROMISES = {
    "Crashes": (
        Promise(
            "`kill -9` before any file-system call of a change, or at a random moment of it: "
            "what was acknowledged is there, all of it and once; "
            "what was not is there completely or not at all; a search finds what is stored, as after a rebuild from "
            "nothing. Changes are `add`, `upsert`, `remove`, `compact`, a rebuild, `create`, saving a model or a "
            "checkpoint, and feedback; a server to which a client writes; and four writers beside two readers, of whom "
            "some are killed. `create` makes the index with its first batch, or nothing.",
            (_TORTURE,),
            ("torture/kill-*", "torture/moment-*"),
        ),
        Promise(
            "The same after a power cut: what was acknowledged was synced before, files and folders. Writes that were "
            "not synced are dropped, all or some of them.",
            (_TORTURE, "tests/index/test_power_cut.py::test_a_cut_at_any_sync_loses_nothing_acknowledged"),
            ("torture/cut-*",),
        ),
        Promise(
            "A file-system call fails, once or from then on (input/output error, full disk, read-only disk, permission "
            "denied): the change is refused with one line and nothing of it stays, or it is made.",
            (_TORTURE, "tests/index/test_failed_writes.py::test_a_file_whose_last_write_was_lost"),
            ("torture/fail-*",),
        ),
        Promise(
            "`kill -9` on a writer, on a server and on Milvus, in turn, with an index in an object store and with an "
            "index whose engine is Milvus: what was acknowledged is there, nothing twice, in the engine as in the "
            "store, and `index check` finds nothing when the index is opened next.",
            (
                "tests/torture/test_machines.py::test_what_was_acknowledged_is_there_once",
                "tests/index/engines/test_milvus.py::test_writers_and_the_server_are_killed",
            ),
            ("machines/*",),
        ),
        Promise("The clock may go back between changes.", (_TORTURE,), ("torture/clock-*",)),
        Promise(
            "If the folder is removed while the index is open, every call gives data or one line, and no write is "
            "acknowledged.",
            (_TORTURE, "tests/index/test_threads.py::test_a_removed_folder_is_one_line"),
            ("torture/gone-*",),
        ),
        Promise(
            "A server that is killed while clients write has lost nothing that it acknowledged, feedback included.",
            ("tests/serving/test_life.py::test_kill_9_under_writes_loses_nothing_that_was_acknowledged", _TORTURE),
            ("torture/kill-server",),
        ),
        Promise(
            "Several writers, in processes or threads, lose and double nothing, even if they share no lock.",
            (
                "tests/index/test_durability.py::test_two_processes_that_add_at_once_lose_nothing",
                "tests/index/test_lance_store.py::test_writers_that_do_not_take_turns_lose_and_double_nothing",
                _TORTURE,
            ),
            ("torture/kill-crowd",),
        ),
    ),
    "Damage": (
        Promise(
            "`neuroseqret index check` finds changed ids, events, embeddings and search structures by the hashes that "
            "were written with them, also of windows; 256 embeddings are computed again.",
            (
                "tests/index/test_check.py::test_damage_is_named",
                "tests/index/test_check.py::test_damage_of_a_window_is_named",
            ),
        ),
        Promise(
            "`Index.get` compares what it reads with the hashes that were written with it.",
            ("tests/index/test_lance_store.py::test_get_refuses_what_is_not_as_it_was_written",),
        ),
        Promise(
            "A damaged search structure is rebuilt from the store; no number in it leads outside its arrays.",
            (
                "tests/index/test_hot_damage.py::test_whatever_is_wrong_with_the_hot_structure_it_is_rebuilt",
                "tests/index/test_hot_damage.py::test_numbers_that_lead_outside_the_arrays_are_seen_at_opening",
            ),
        ),
        Promise(
            "Stored events that are damaged, by accident or by somebody who has put the hashes right, are one line of "
            "error before a model sees them; so are a forged manifest and a forged list of removed rows.",
            (
                "tests/index/test_forged_store.py::test_stored_events_are_checked_before_a_model_sees_them",
                "tests/index/test_forged_store.py::test_a_forged_manifest_is_refused",
                "tests/index/test_forged_store.py::test_a_list_of_removed_rows_that_lies_about_its_size_is_refused",
            ),
        ),
        Promise(
            "After `compact(grace=0)` no file holds anything of what was removed.",
            ("tests/index/test_lance_store.py::test_compact_leaves_nothing_of_what_was_removed",),
        ),
    ),
    "Input from outside": (
        Promise(
            "Files of sequences and TREC files: the outcome is data or one line of error, within 20 seconds and 3 GiB.",
            (_FUZZ, "tests/readers/test_limits.py::test_a_compressed_text_is_read_only_so_far"),
            ("fuzz/read-*", "fuzz/trec-*"),
        ),
        Promise(
            "Model and index folders, hashed again by whoever forged them: the same.",
            (_FUZZ, "tests/models/test_forged_folders.py::test_tensors_are_counted_before_they_are_made"),
            ("fuzz/model-*", "fuzz/index-*"),
        ),
        Promise(
            "Conditions (`where`), as text and as mappings: the same, and what is accepted means what a slow "
            "evaluation says.",
            (_FUZZ, "tests/index/test_filter_properties.py::test_the_store_agrees_with_a_slow_evaluation"),
            ("fuzz/filter-*",),
        ),
        Promise("Queries: whatever is valid has a finite embedding.", (_FUZZ,), ("fuzz/query*",)),
        Promise(
            "Requests to the server, in order or not: the answer is data or a problem document, none makes it fail.",
            ("tests/serving/test_fuzzed.py::test_no_request_makes_the_server_fail", _FUZZ),
            ("fuzz/http*",),
        ),
    ),
    "Threads and processes": (
        Promise(
            "Threads share an `Index`, a model and the readers: 32 threads that search while others write, score or "
            "read files get what one thread gets.",
            (
                "tests/index/test_threads.py::test_32_threads_search_while_others_write",
                "tests/models/test_extreme_inputs.py::"
                "test_scores_do_not_depend_on_batch_or_order_and_threads_may_share_a_model",
                "tests/readers/test_threads.py::test_32_threads_read_files_of_every_format",
            ),
        ),
        Promise(
            "A search waits neither for a rebuild nor for a writer's model.",
            (
                "tests/index/test_threads.py::test_a_search_does_not_wait_for_a_rebuild",
                "tests/index/test_threads.py::test_nobody_waits_for_the_model",
            ),
        ),
        Promise(
            "Following an upsert reads only its new rows, however large the index is.",
            ("tests/index/test_threads.py::test_following_an_upsert_reads_only_the_new_rows",),
        ),
        Promise(
            "A process that searches and commits for a long time does not hold more and more memory, files or threads "
            "(see [Long life](#long-life)).",
            ("tests/torture/test_long_life.py::test_a_process_that_searches_and_commits_holds_no_more_and_more",),
            ("life",),
        ),
        Promise(
            "In a process that was forked after an index was opened, every call is one line that names `spawn`; the "
            "parent goes on.",
            ("tests/index/test_forked.py::test_a_child_that_was_forked_after_opening_is_refused",),
        ),
        Promise(
            "A write waits for another one for at most 60 seconds, and a lock is free when its holder dies.",
            (
                "tests/index/test_forked.py::test_a_write_that_waits_too_long_for_another_is_one_clear_line",
                "tests/storage/test_lock.py::test_a_lock_has_one_holder_and_is_freed_by_its_end",
            ),
        ),
    ),
    "Numbers": (
        Promise(
            "Scores of valid sequences are finite, or the error is one line: times up to 1e300, gaps of 0, one event, "
            "a million events.",
            (
                "tests/models/test_extreme_inputs.py::test_scores_of_extremes_are_finite_or_one_line",
                "tests/models/test_extreme_inputs.py::test_a_sequence_of_a_million_events_has_a_finite_embedding",
            ),
        ),
        Promise(
            "An embedding or a score does not depend on batch, order or number of threads.",
            (
                "tests/models/test_extreme_inputs.py::test_embeddings_do_not_depend_on_batch_order_or_threads",
                "tests/models/test_extreme_inputs.py::"
                "test_scores_do_not_depend_on_batch_or_order_and_threads_may_share_a_model",
            ),
        ),
        Promise(
            "Hits of equal score are in the order of their ids, whoever was stored first.",
            (
                "tests/index/test_search.py::test_equal_scores_are_ordered_by_id_whoever_was_stored_first",
                "tests/index/test_search.py::test_reranked_scores_that_are_equal_are_ordered_by_id",
            ),
        ),
    ),
}

HEAD = """# Reliability

What the library promises, which test holds each promise, and how often the long form of that test ran. A test in
`tests/` is part of `make test`, where it plays a few rounds. `make torture` and `make fuzz` are the long forms: they
go on where they stopped, save their results in `results/torture` and `results/fuzz`, and write this page from them. So
do `make life`, with `results/life.json`, and `python tests/torture/machines.py`, for kills past one machine, with
`results/machines`.

The goal is 10,000 rounds of torture and 1,000,000 inputs of fuzzing. So far there are {rounds} rounds ({failures})
and {inputs} inputs ({findings}).
"""

RULES = """## Rules for threads and processes

- **Threads** may share an `Index`, a model and everything that is read from files. A search works on one commit from
  start to end: a snapshot, which never changes. Threads that write take turns.
- **Processes** open the index themselves. Any number may read and write at once. Writers of one machine take turns by
  `write.lock`; writers of several machines that share a bucket are told by the store who came first, and repeat the
  change.
- **Fork**: a process that was forked after an index was opened must not use an index, not even one that it opens
  itself, since the threads of the store do not survive a fork. Every call refuses with one line. Start workers with
  `multiprocessing.get_context("spawn")`, or fork before anything is opened.
- **Acknowledged** means that `add`, `upsert`, `remove`, `compact` or `save` has returned, or that the server has
  answered with 200. From then on the change survives `kill -9` and a power cut, if the disk keeps what it says it has
  synced.

## Rule for ties

Hits of equal score are in the order of their ids, by code point. In an index of windows they are in the order of the
sequence's id and then of the window's place. It does not matter when a sequence was added, nor whether the structure
has been rebuilt. The same holds for scores of a reranking model. In evaluation, ties are counted as [the measures
say](evaluation.md).
"""

LIFE = """## Long life

`python tests/torture/long_life.py`: one process searched {searches} times in one thread while another one made
{commits} commits (adds, upserts, removals, from 10 to 2,000 sequences each, in an index of 20,000, compacted every 250
commits). It took {minutes} minutes. The goal for searches beside commits and rebuilds is a p99 of at most 5 times the
quiet one.

{table}

The load of the machine was {load} on {cores} cores; this process alone makes a load of 1 to 3, and where it is higher,
searches waited for other work too. After the first tenth of its life, memory changed by {megabytes} MB (to {held} MB),
open files by {files}, threads by {threads}.{rest} Two settings are those of the server, and are worth having in every
process that searches beside writes: threads take turns of 0.5 ms (`sys.setswitchinterval(0.0005)`), and freed memory
goes back to the system (`neuroseqret.storage.memory.give_memory_back()`; without it, the C library keeps some 100 MB of
what its threads have freed).
"""


def cells(pattern: str) -> list[dict[str, Any]]:
    """Return the results whose files match a pattern."""
    return [json.loads(file.read_text()) for file in sorted((REPOSITORY / "results").glob(f"{pattern}.json"))]


def runs(patterns: Iterable[str]) -> str:
    """Return how often the long form ran, what failed, and the last day; empty if it has not run."""
    found = [cell for pattern in patterns for cell in cells(pattern)]
    if "commits" in (found or [{}])[0]:
        return f"{found[0]['searches']:,} searches beside {found[0]['commits']:,} commits, last on {found[0]['last']}"
    rounds = sum(cell.get("rounds", 0) for cell in found)
    inputs = sum(cell.get("inputs", 0) for cell in found)
    failed = sum(len(cell.get("failures", ())) + cell.get("findings", 0) for cell in found)
    if not rounds + inputs:
        return ""
    number = f"{rounds:,} rounds" if rounds else f"{inputs:,} inputs"
    return f"{number}, {failed or 'none'} failed, last on {max(cell['last'] for cell in found)}"


def table(promises: Iterable[Promise]) -> str:
    """Return promises as a table."""
    lines = ["| promise | test | long form |", "|---|---|---|"]
    for promise in promises:
        tests = "<br>".join(f"`{test}`" for test in promise.tests)
        lines.append(f"| {promise.text} | {tests} | {runs(promise.results) or 'none; ' + ALWAYS} |")
    return "\n".join(lines) + "\n"


def life() -> str:
    """Return what the long life found; nothing before its first run."""
    if not (lives := cells("life")):
        return ""
    found = lives[0]
    quiet, names = found["latency"]["quiet"], {"quiet": "nothing else", "commits": "commits", "rebuilds": "a rebuild"}
    lines = ["| during | searches | median | p99 | against quiet | longest |", "|---|---:|---:|---:|---:|---:|"]
    for part, name in names.items():
        one = found["latency"][part]
        ratio = f"{one['p99'] / quiet['p99']:.1f} times"
        times = f"{one['p50']:.2f} ms | {one['p99']:.2f} ms | {ratio} | {one['max']:.0f} ms"
        lines.append(f"| {name} | {one['searches']:,} | {times} |")
    more, rest = found["growth"], found.get("at_rest")
    return LIFE.format(
        searches=f"{found['searches']:,}",
        commits=f"{found['commits']:,}",
        minutes=round(found["minutes"]),
        last=found["last"],
        table="\n".join(lines),
        megabytes=f"{more['megabytes']:+.0f}",
        files=f"{more['files']:+.0f}",
        threads=f"{more['threads']:+.0f}",
        load=found["load"],
        cores=found["cores"],
        held=f"{found['figures'][-1]['megabytes']:.0f}",
        rest=f" Threads of the store end after ten seconds without work: at rest there were {rest['threads']}."
        if rest
        else "",
    )


def details() -> str:
    """Return one row per kind of torture and per target of the fuzzing."""
    lines = ["| torture | rounds | outcomes | failed | last |", "|---|---:|---|---:|---|"]
    for file in sorted((REPOSITORY / "results" / "torture").glob("*.json")):
        cell = json.loads(file.read_text())
        outcomes = ", ".join(f"{name} {number:,}" for name, number in sorted(cell["outcomes"].items()))
        lines.append(f"| {file.stem} | {cell['rounds']:,} | {outcomes} | {len(cell['failures'])} | {cell['last']} |")
    lines += ["", "| fuzzing | inputs | data | refused | guided by coverage | findings | last |"]
    lines.append("|---|---:|---:|---:|---:|---:|---|")
    for file in sorted((REPOSITORY / "results" / "fuzz").glob("*.json")):
        cell = json.loads(file.read_text())
        numbers = " | ".join(f"{cell[name]:,}" for name in ("inputs", "data", "refused", "guided", "findings"))
        lines.append(f"| {file.stem} | {numbers} | {cell['last']} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return docs/reliability.md."""
    torture, fuzz = cells("torture/*"), cells("fuzz/*")
    failures = sum(len(cell["failures"]) for cell in torture)
    findings = sum(cell["findings"] for cell in fuzz)
    parts = [
        HEAD.format(
            rounds=f"{sum(cell['rounds'] for cell in torture):,}",
            inputs=f"{sum(cell['inputs'] for cell in fuzz):,}",
            failures=f"{failures} failed" if failures else "none failed",
            findings=f"{findings} finding{'s' * (findings > 1)}" if findings else "no findings",
        )
    ]
    parts += [f"## {title}\n\n{table(promises)}" for title, promises in PROMISES.items()]
    parts += [RULES, life(), f"## All runs\n\n{details()}"]
    if any(cell["findings"] for cell in cells("fuzz/index-store")):
        parts.append(
            "The finding of `index-store`: Lance, which reads the data files of an index, ended the process at a\n"
            "damaged one. No test holds that, as the library cannot catch it; the [security policy](../SECURITY.md)\n"
            "says what to do about index folders of strangers.\n"
        )
    parts.append(
        "What a round and an input are: `tests/torture/rounds.py`, `tests/fuzz/targets.py`. Targets with `made` in\n"
        "their name get well-formed but odd tables, conditions and queries, made by hypothesis. The threat model is\n"
        "in the [security policy](../SECURITY.md), the verbs of the index are on [Search](search.md).\n"
    )
    return "\n".join(parts)


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
