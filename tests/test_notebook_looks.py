"""How things look in a notebook: reprs, HTML with time lines, frames, plots."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import neuroseqret as nsr
from naive.index import TinyEmbedder, some_sequences
from neuroseqret.data.timelines import colours_of, svg
from neuroseqret.errors import UserError
from neuroseqret.index import Hit, Hits, SearchReport
from simulated import simulate

DAY = 1_709_251_200.0


@pytest.fixture
def index(tmp_path):
    names = ("<b>", "$x_1$", "_hidden", "d")
    corpus = some_sequences(30, mark_names=names, time_unit="seconds")
    return nsr.Index.create(TinyEmbedder(mark_names=names, time_unit="seconds"), tmp_path / "index", corpus)


def drawn(figure):
    figure.canvas.draw()
    return [text.get_text() for axes in figure.axes for text in (*axes.get_yticklabels(), axes.title)] + [
        figure.get_suptitle()
    ]


def test_hits_as_frames(index):
    hits = index.search(id="s3", k=4)
    table = hits.to_arrow()
    assert table.column_names == ["rank", "score", "id", "group", "role", "year"]
    assert table.column("id").to_pylist() == [hit.id for hit in hits]
    assert hits.to_pandas()["score"].tolist() == [hit.score for hit in hits]
    assert hits.to_polars()["role"].to_list() == [hit.metadata["role"] for hit in hits]
    assert Hits([], "q", hits.report).to_arrow().num_rows == 0


def test_tables_leave_out_values_of_events_and_splits(index):
    report = index.search(id="s3", k=1).report
    told = {"role": "a", "price": [1.0, 2.0], "split": "train"}
    hits = Hits([Hit("a", 0.5, 1, told), Hit("b", 0.4, 2, {"role": "b", "split": None})], "q", report)
    assert hits.to_arrow().column_names == ["rank", "score", "id", "role"]
    own = Hits([Hit("a", 0.5, 1, {"split": "left"})], "q", report)  # a column of the user's
    assert own.to_arrow().column_names == ["rank", "score", "id", "split"]


def test_hits_print_short_and_without_none(index):
    hits = index.search(id="s3", k=3)
    lines = repr(hits).splitlines()
    assert lines[0] == f"3 hits of 's3': {hits.report.comparisons} of 29 compared (exhaustive)"
    assert lines[1].split()[0] == "1"
    assert lines[1].split()[2:] == [hits[0].id, hits[0].group]
    assert "None" not in repr(hits[0])
    assert repr(hits[0]).startswith(f"Hit(1: {hits[0].id!r}, score=0.")
    assert repr(Hits([], "q", hits.report)).startswith("0 hits of 'q'")
    nobody = index.search(id="s3", k=3, where="role = 'nobody'")
    assert repr(nobody) == "0 hits of 's3': no sequence of the index matches"


def test_hits_of_many_queries_are_one_table(index):
    found = index.search(id=["s3", "s4"], k=3, where="role is not null")
    frame = found.to_pandas()
    assert frame["query"].tolist() == [hits.query for hits in found for _ in hits]
    assert frame["score"].tolist() == [hit.score for hits in found for hit in hits]
    assert found.to_arrow().column_names[:4] == ["query", "rank", "score", "id"]
    assert found.to_polars().height == len(frame)
    assert repr(found) == f"{found[0]!r}\n\n{found[1]!r}"
    assert found._repr_html_().count("<svg") == 8
    many = index.search(id=[f"s{n}" for n in range(8)], k=1)
    assert repr(many).endswith("... and the hits of 3 more queries")
    nobody = index.search([])
    assert nobody == []
    assert nobody.to_arrow().column_names == ["query", "rank", "score", "id"]
    assert repr(nobody) == "no queries"


def test_hits_in_html_have_a_time_line_per_row_and_nothing_is_markup(index):
    hits = index.search(id="s3", k=3)
    page = hits._repr_html_()
    assert page.count("<svg") == 4  # the query and three hits
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    ET.fromstring(page.replace("&#9646;", "").replace("<br>", "<br/>"))
    again = pickle.loads(pickle.dumps(hits))
    assert again == hits
    assert "<svg" in again._repr_html_()  # the query is still there
    with pytest.raises(UserError, match=r"get them from the index: index.get\(hit.id\)"):
        _ = again[0].sequence
    report = SearchReport("exhaustive", 1, 1)
    assert "&lt;script&gt;" in Hits([Hit("<script>", 0.5, 1)], "<script>", report)._repr_html_()


def test_plots_are_figures_with_every_line(index):
    hits = index.search(id="s3", k=3)
    texts = drawn(hits.plot())
    assert sum(hit.id in text for hit in hits for text in texts) >= 3
    assert any("query" in text for text in texts)
    assert "s3" in drawn(hits.asked.plot())[0]
    assert "the first 20 of 30 sequences" in drawn(some_sequences(30).plot())


def test_long_ids_are_told_apart_and_nothing_is_cut_off():
    names = [f"shop.example/visitor/{n:04d}/a-rather-long-identifier-of-a-session-on-a-telephone" for n in range(3)]
    events = [([0.0, 5.0, 9.0], [0, 1, 0])] * 3
    corpus = nsr.EventSequences.from_lists(events, ids=names, groups=["people who only look"] * 3)
    hits = Hits(
        [Hit(name, 0.5, n, group="people who only look", fetch=lambda ids: corpus) for n, name in enumerate(names)],
        names[0],
        SearchReport("exhaustive", 3, 3),
        corpus[0],
    )
    for figure in (hits.plot(), corpus[0].plot()):
        figure.canvas.draw()
        texts = [figure._suptitle, *figure.axes[0].get_yticklabels(), *figure.axes[0].texts]
        for text in texts:
            box = text.get_window_extent()
            assert box.x0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.width, text.get_text()
            assert box.y1 <= figure.bbox.height, text.get_text()
        boxes = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
        assert all(above.y0 >= below.y1 for above, below in pairwise(boxes))
    labels = [text.get_text().replace("\n", "") for text in hits.plot().axes[0].get_yticklabels()]
    assert all(name in label for name, label in zip(names, labels[1:], strict=True))


def test_times_print_as_dates_or_durations():
    one = nsr.EventSequences.from_lists([([DAY, DAY + 5400], [0, 1])], ids=["a"], time_unit="seconds")
    assert repr(one[0]) == "EventSequence('a', 2 events, 2024-03-01 to 01:30)"
    assert "2024-03-01 to 01:30" in repr(one)
    assert "e+" not in repr(one)
    assert one[0].plot().axes[0].texts[0].get_text() == "90 min"
    notes = nsr.EventSequence("b", [0, 2.5], [0, 1], time_unit="quarter notes", group="g")
    assert repr(notes) == "EventSequence('b', 2 events, 0 to 2.5 quarter notes, group 'g')"


def test_indexes_and_models_say_what_they_are(index):
    assert repr(index).endswith("30 sequences, 4 marks, time in seconds, candidates auto, model 'tiny')")
    assert repr(nsr.make("gru")) == "GRU(not trained)"
    assert repr(nsr.SelfAttention()) == "SelfAttention(preset 'default', not trained)"
    queries, corpus = simulate()
    model = nsr.make("gru", hidden=4, loop={"steps": 3, "evaluations": 1}).fit(queries, corpus)
    assert repr(model).startswith("GRU(")
    assert "validation" in repr(model)
    assert "loss" in model.plot_training().axes[0].get_ylabel()
    with pytest.raises(UserError, match="no training to draw"):
        nsr.make("histogram").plot_training()


def test_a_report_as_frames_and_html():
    queries, corpus = simulate()
    report = nsr.evaluate(
        nsr.DataFolder(None, corpus, queries, nsr.Relevance.from_groups(queries, corpus)), cache=False
    )
    frame = report.to_pandas()
    assert list(frame["method"]) == ["random", "histogram"]
    assert frame["AP"].tolist() == [result.mean("AP") for result in report.results]
    assert report.to_polars()["error"].null_count() == 2
    assert report._repr_html_().count("<tr>") == 3


def test_a_long_sequence_is_thinned_out_in_a_table():
    long = nsr.EventSequences.from_lists([(range(5000), [0] * 5000)])[0]
    assert svg(long, colours_of([long])).count("<rect") == 400
    empty = nsr.EventSequences.from_lists([([], [])], validate=False)[0]
    assert svg(empty, {}).count("<rect") == 0
