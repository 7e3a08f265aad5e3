"""Text tables: whole where nothing limits them, within the window otherwise, and ids always whole."""

from __future__ import annotations

from rich.cells import cell_len

from neuroseqret.cli.text_table import Column, lines_of

ID = "a-very-long-name-that-is-never-cut-whatever-happens"
COLUMNS = [
    Column("rank", ["1", "10"], right=True, essential=True),
    Column("id", [ID, "b"], essential=True),
    Column("title", ["a short one", "one that goes on and on " * 3]),
    Column("year", ["1999", "2001"]),
]


def test_without_a_window_nothing_is_cut() -> None:
    lines, left_out = lines_of(COLUMNS, None)
    assert left_out == []
    assert lines[0].split() == ["rank", "id", "title", "year"]
    assert lines[1].startswith(f"   1  {ID}  a short one ")
    assert lines[2].endswith("on and on   2001")


def test_in_a_window_columns_are_cut_or_left_out_and_named() -> None:
    lines, left_out = lines_of(COLUMNS, 80)
    assert left_out == ["year"]
    assert max(map(len, lines)) == 80
    assert lines[2].endswith("…")
    assert lines_of(COLUMNS, 64)[1] == ["title", "year"]


def test_an_id_is_whole_even_where_the_window_is_narrower() -> None:
    lines, left_out = lines_of(COLUMNS, 20)
    assert ID in lines[1]
    assert left_out == ["title", "year"]


def test_wide_letters_count_twice() -> None:
    lines, _ = lines_of([Column("id", ["日本", "ab"], essential=True), Column("n", ["1", "2"])], 40)
    assert [cell_len(line) for line in lines] == [7, 7, 7]
    assert lines_of([Column("t", ["日本" * 20])], 21)[0][1] == "日本" * 5 + "…"
