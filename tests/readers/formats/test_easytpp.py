"""EasyTPP's JSON and JSON lines, as EasyTPP writes them and as they are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, scan, sniff, write
from neuroseqret.readers.formats import easytpp

ROWS = [
    {
        "dim_process": 4,
        "seq_idx": 0,
        "seq_len": 3,
        "time_since_start": [0.0, 0.5, 2],
        "time_since_last_event": [0.0, 0.5, 1.5],
        "type_event": [0, 2, 1],
    },
    {
        "dim_process": 4,
        "seq_idx": 1,
        "seq_len": 1,
        "time_since_start": [7],
        "time_since_last_event": [0],
        "type_event": [1],
    },
]
EXPECTED = EventSequences.from_lists(
    [([0.0, 0.5, 2.0], [0, 2, 1]), ([7.0], [1])], ids=["0", "1"], mark_names=["0", "1", "2", "3"]
)


def as_lines(rows: list) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def test_both_forms(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(ROWS, indent=4))
    (tmp_path / "b.json").write_text(as_lines(ROWS))
    assert [sniff(tmp_path / name) for name in ("a.json", "b.json")] == ["easytpp-json", "easytpp-jsonl"]
    assert read(tmp_path / "a.json") == read(tmp_path / "b.json") == EXPECTED


def test_what_is_written_has_easytpp_s_keys(tmp_path: Path) -> None:
    write(EXPECTED, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == ROWS
    write(EXPECTED, tmp_path / "a.jsonl")
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == ROWS


def test_blocks_of_lines_come_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(easytpp, "BLOCK", 300)
    rows = [{**ROWS[i % 2], "seq_idx": f"s{i}", "kind": "even" if i % 2 == 0 else None} for i in range(23)]
    (tmp_path / "a.jsonl").write_text(as_lines(rows) + "\n\n")
    back = read(tmp_path / "a.jsonl")
    assert back.ids.to_pylist() == [f"s{i}" for i in range(23)]
    parts = list(scan(tmp_path / "a.jsonl", 2))
    assert EventSequences.concat(parts).ids.equals(back.ids)
    # Without ids the rows are numbered through, over all blocks.
    (tmp_path / "a.jsonl").write_text(as_lines([{k: v for k, v in row.items() if k != "seq_idx"} for row in rows]))
    assert read(tmp_path / "a.jsonl").ids.to_pylist() == [str(i) for i in range(23)]
    parts = list(scan(tmp_path / "a.jsonl", 5))
    assert [s.id for part in parts for s in part] == [str(i) for i in range(23)]


def test_marks_written_as_floats_and_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(as_lines([{**ROWS[0], "type_event": [0.0, 2.0, 1.0]}]))
    assert read(tmp_path / "a.jsonl") == EXPECTED[:1]
    (tmp_path / "a.jsonl").write_text(as_lines([{**ROWS[0], "type_event": ["b", "a", "b"]}]))
    back = read(tmp_path / "a.jsonl")
    assert (back.mark_names, back.marks.tolist()) == (("a", "b"), [1, 0, 1])


def test_text_that_looks_like_a_date_stays_text(tmp_path: Path) -> None:
    more = {"day": "2024-02-29", "days": ["2024-02-29 12:00:00"], "record": {"when": "2024-02-29"}}
    (tmp_path / "a.jsonl").write_text(as_lines([{**ROWS[0], **more}]))
    (tmp_path / "a.json").write_text(json.dumps([{**ROWS[0], **more}]))
    assert read(tmp_path / "a.jsonl")[0].metadata == more
    assert read(tmp_path / "a.jsonl") == read(tmp_path / "a.json")


@pytest.mark.parametrize("lines", [True, False])
def test_whole_numbers_of_any_size_stay_as_they_are(
    tmp_path: Path, lines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(easytpp, "BLOCK", 300)
    ids = [1, 2**63 + 1, 2**63 + 2, 3]
    more = {"card": 2**64 + 1, "cards": [2**53 + 1, 0.5], "record": {"n": 2**70 + 1}, "huge": 1e300}
    rows = [{**ROWS[1], "seq_idx": id_, **more} for id_ in ids]
    path = tmp_path / "a.json"
    path.write_text(as_lines(rows) if lines else json.dumps(rows))
    back = read(path)
    assert back.ids.to_pylist() == list(map(str, ids))
    expected = {"card": str(2**64 + 1), "cards": [str(2**53 + 1), "0.5"], "record": {"n": str(2**70 + 1)}}
    assert all(row.metadata == {**expected, "huge": 1e300} for row in back)
    if lines:
        assert [row.id for part in scan(path, 1) for row in part] == list(map(str, ids))


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq_len": 2}, "sequence 0: seq_len is 2, but there are 3 events"),
        ({"dim_process": 2}, "the number of marks is 2 and 4; give one"),
        ({"dim_process": 10**12}, "the number of marks is"),
        ({"time_since_start": [0.0, 0.5]}, "sequence 0: 2 times but 3 marks"),
        ({"time_since_start": [0.0, 0.5, "x"]}, "a.json: "),
        ({"time_since_start": [0.0, 0.5, None]}, "sequence 0: event 2: time"),
        ({"time_since_start": [0.0, 0.5, 0.25]}, "sequence 0: event 2: time 0.25 is before"),
        ({"time_since_start": None}, "sequence 0: no times"),
        ({"type_event": [0, 2, 2**40]}, "sequence 0: event 2: mark"),
        ({"type_event": [0, 4, 1]}, "sequence 0: event 1: mark 4 has no name"),
        ({"type_event": 3}, "a.json: "),
        (
            {"time_since_start": [0.0, 0.5, 2**60 + 1]},
            "sequence 0: event 2: time (time_since_start) does not fit a float",
        ),
        ({"time_since_start": [0, 1, 2**53 + 1]}, "sequence 0: event 2: time (time_since_start) does not fit a float"),
        ({"time_since_start": [0, 1, 2**63 + 1]}, "sequence 0: event 2: time (time_since_start) does not fit a float"),
        ({"seq_idx": 1}, "sequence 1: the id occurs more than once"),
    ],
)
def test_flaws(tmp_path: Path, change: dict, message: str, lines: bool) -> None:
    rows = [{**ROWS[0], **change}, ROWS[1]]
    path = tmp_path / "a.json"
    path.write_text(as_lines(rows) if lines else json.dumps(rows))
    with pytest.raises(DataError) as caught:
        read(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"time_since_start": [0], "type_event": [0]}\n{"time_since', "object 1 is not JSON"),
        ('{"time_since_start": [0], "type_event": [0]}\n7\n', "object 1 is int, not an object"),
        ('[{"time_since_start": [0], "type_event": [0]}, 7]', "object 1 is int, not an object"),
        ('[{"time_since_start": [0], "type_event": [0]}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "the array is empty"),
        ('["a"]', "object 0 is str, not an object"),
        ('[{"a": 1}]', "no column 'time_since_start' for times; columns found: a"),
        ('{"a": 1}', "JSON without 'time_since_start'"),
        ('[{"time_since_start": [NaN], "type_event": [0]}]', "sequence 0: event 0: time is nan"),
        ('{"time_since_start": [NaN], "type_event": [0]}', "sequence 0: event 0: time is nan"),
    ],
)
def test_broken_json(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_marks_have_one_numbering_over_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(easytpp, "BLOCK", 200)
    rows = [{**ROWS[0], "seq_idx": i, "type_event": ["z", "abcdefghij"[i % 10], "z"]} for i in range(20)]
    (tmp_path / "a.jsonl").write_text(as_lines(rows))
    parts = list(scan(tmp_path / "a.jsonl", 3))
    assert len(parts) > 4
    assert EventSequences.concat(parts) == read(tmp_path / "a.jsonl")
    named = scan(tmp_path / "a.jsonl", 3, mark_names=[*"zabcdefghij"])
    assert EventSequences.concat(named)[0].marks.tolist() == [0, 1, 0]
