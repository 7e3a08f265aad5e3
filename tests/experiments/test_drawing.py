"""What figures choose by themselves: units, legends, axes, and which points of a curve get a marker."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import drawing, hash_curve, hashing, qualitative, queries, unwarping


@pytest.mark.parametrize(
    ("largest", "unit", "found"),
    [
        (20.0, "seconds", (1.0, "seconds")),
        (0.3, "seconds", (1e3, "ms")),
        (3e-5, "seconds", (1e6, "µs")),
        (0.01, "days", (1.0, "days")),
        (0.0, "seconds", (1.0, "seconds")),
    ],
)
def test_short_times_get_a_short_unit(largest, unit, found):
    assert drawing.short_unit(largest, unit) == found


def test_every_way_to_candidates_has_a_sign_and_dashes_of_its_own():
    number = len(hash_curve.WAYS) - 1
    for choices in (drawing.COLOURS, drawing.MARKERS, drawing.DASHES):
        assert len(set(choices)) == len(choices) >= number


def test_signs_on_a_curve_keep_a_distance_and_mark_its_end():
    assert hashing._spread([1.0, 1.1, 1.2, 2.0, 2.1, 4.0]) == [2, 4, 5]


def test_the_legend_takes_the_panel_that_is_left():
    figure, axes = drawing.panels(5)
    axes[0].plot([0, 1], [0, 1], label="line")
    drawing.legend(figure, drawing.named_lines(axes))
    assert figure.axes[5].get_legend() is not None
    assert not figure.legends


def test_a_figure_has_one_panel_per_name_and_one_legend(monkeypatch, tmp_path):
    saved = []
    monkeypatch.setattr(drawing, "save", lambda figure, folder, file: saved.append((figure, folder / file)))

    def panel(axis, name):
        drawing.curve(axis, [1, 10], [0, len(name)], 0, "line")
        drawing.logarithmic(axis)
        drawing.label_axes(axis, "x", "y")

    drawing.draw(tmp_path, "file", ["one", "three"], panel)
    ((figure, place),) = saved
    assert place == tmp_path / "file"
    assert [axis.get_title() for axis in figure.axes] == ["one", "three"]
    assert [line.get_ydata()[1] for axis in figure.axes for line in axis.lines] == [3, 5]
    assert {(axis.get_xscale(), axis.get_xlabel(), axis.get_ylabel()) for axis in figure.axes} == {("log", "x", "y")}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["line"]


def test_a_few_large_gains_make_a_logarithmic_axis():
    assert queries._is_spike(np.r_[np.full(95, 0.2), np.full(5, 60.0)])
    assert not queries._is_spike(np.linspace(-40, 80, 100))


def test_long_names_of_marks_break_at_a_comma():
    names = ["short, name", "track starts, x quarter 3, size quarter 4"]
    assert qualitative._mark_name(names, 0) == "short, name"
    assert qualitative._mark_name(names, 1) == "track starts,\nx quarter 3, size quarter 4"
    assert (qualitative._mark_name(None, 4), qualitative._mark_name(names, None)) == ("mark 4", "other marks")


def test_the_identity_is_called_so():
    times = np.linspace(0, 1, 11)
    bent = {"times": times.tolist(), "unwarped_times": (times**2).tolist(), "time_unit": None}
    straight = {"times": times.tolist(), "unwarped_times": (1.001 * times).tolist(), "time_unit": None}
    assert unwarping._meaning({"paper-literal": ("toy", bent)}) == ""
    assert "practically the identity" in unwarping._meaning(
        {"paper-literal": ("toy", straight), "unwarping": ("toy", straight)}
    )
