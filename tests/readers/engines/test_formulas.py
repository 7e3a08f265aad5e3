"""A CSV that is opened in a spreadsheet runs nothing, and reading it gives back what was written."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import neuroseqret as nsr
from neuroseqret.readers.engines.formulas import defused_name, restored_name

FORMULA = "=cmd|'/C calc'!A0"


def test_no_field_of_a_written_file_is_a_formula(tmp_path: Path) -> None:
    sequences = nsr.EventSequences.from_lists(
        [([0.0, 1.0], [0, 1]), ([-1.0], [0])],
        ids=["-2+3", "\t=1"],
        groups=[FORMULA, "-7"],
        metadata={"=note": ["\r=1", "plain"], "@more": ["+1+1", "'=quoted"]},
    )
    nsr.write(sequences, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        fields = {field for row in csv.reader(file) for field in row}
    assert not [field for field in fields if field[:1] in "=+@\t\r" and field]
    assert {field for field in fields if field.startswith("-")} == {"-1", "-7"}  # numbers stay
    again = nsr.read(tmp_path / "x.csv")
    assert set(again.ids.to_pylist()) == {"-2+3", "\t=1"}
    assert set(again.groups.to_pylist()) == {FORMULA, "-7"}
    assert again.metadata.column_names == ["=note", "@more"]
    assert set(again.column("@more").to_pylist()) == {"+1+1", "'=quoted"}
    assert sum(map(len, nsr.scan(tmp_path / "x.csv"))) == 2


@given(st.text())
def test_what_is_defused_is_restored(text: str) -> None:
    safe = defused_name(text)
    assert restored_name(safe) == text
    assert safe == text or safe == "'" + text
