from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest

from neuroseqret.datasets import electricity, refit
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.data_folder import read_folder

README = """REFIT: Electrical Load Measurements

House 1
0.Aggregate, 1.Fridge, 2.Freezer (Garage), 3.Television Site,
4.MJY Computer 5.Washing Machine (1), 6.Not Used
\t!NOTES
\t\t4.a Desktop Computer

House 2
0.Aggregate, 1.Fridge, 2.Kettle
\t!NOTES
"""


def write_house(folder, house, watts, start=1_380_000_000):
    names = [f"Appliance{n + 1}" for n in range(len(watts))]
    lines = [f"Time,Unix,Aggregate,{','.join(names)},Issues"]
    for row, values in enumerate(zip(*watts, strict=True)):
        cells = ",".join(str(v) for v in values)
        lines.append(f"2013-10-09 13:06:17,{start + 7 * row},500,{cells},{int(row == 3)}")
    (folder / f"CLEAN_House{house}.csv").write_text("\n".join(lines) + "\n")


def test_tracebase_gives_the_windows_of_the_benchmark_set(shared_raw, shared_data):
    made = electricity.read(shared_raw / "tracebase")
    folder = read_folder(shared_data / "electricity")
    sources = set(made.column("source").to_pylist())

    def key(sequence):  # marks are quintiles over other files, so times are compared
        return sequence.group, sequence.metadata["source"], tuple(np.round(sequence.times).tolist())

    both = [s for part in (folder.corpus, folder.queries) for s in part if s.metadata["source"] in sources]
    assert Counter(map(key, both)) == Counter(map(key, made))
    assert len(made) == 49
    assert np.abs(np.bincount(made.marks) / len(made.marks) - 0.2).max() < 0.05


def test_tracebase_data_folder_and_options(shared_raw, tmp_path):
    made = prepare("electricity", shared_raw / "tracebase", tmp_path / "e", events=50, marks=3, most=12)
    assert made.corpus.num_marks == 3
    assert made.corpus.lengths.max() == 50
    assert Counter(made.corpus.groups.to_pylist() + made.queries.groups.to_pylist()).most_common(1)[0][1] <= 12
    readings = electricity.read(shared_raw / "tracebase", variant="readings")
    assert len(readings) > 10 * 49


def test_files_that_overlap_on_one_meter_are_left_out(shared_raw, tmp_path):
    shutil.copytree(shared_raw / "tracebase", tmp_path / "t", copy_function=shutil.copy)
    path = sorted((tmp_path / "t").rglob("*D35AC2*24.11*"))[0]
    path.parent.chmod(0o755)
    shutil.copy(path, path.with_name("dev_D35AC2_2011.12.01_cleaned_24.11.2011.csv"))
    made = electricity.read(tmp_path / "t")
    assert len(made) == 49


def test_refit_houses(tmp_path):
    rng = np.random.default_rng(0)
    watts = rng.integers(0, 2000, (6, 60))
    write_house(tmp_path, 1, watts)
    write_house(tmp_path, 2, watts[:2] // 2)
    (tmp_path / "CLEAN_READ_ME.txt").write_text(README)
    made = electricity.read(tmp_path, events=20)
    assert set(made.groups.to_pylist()) == {"Fridge", "Freezer", "Television", "Computer", "Washing Machine", "Kettle"}
    first = next(s for s in made if s.metadata["device"] == "House1:Appliance1" and s.metadata["position"] == 0)
    assert first.metadata["source"] == "House1:Appliance1:2013-09-24"
    level, times = watts[0][0], []
    for row in [r for r in range(60) if r != 3]:  # the row with an issue is left out
        if abs(watts[0][row] - level) > max(2, 0.05 * level):
            times.append(7 * row)
            level = watts[0][row]
    assert (first.times + times[0]).tolist() == times[:20]


def test_refit_kinds():
    kinds = ["Freezer (Utility Room)", "Television Site(Lounge)", "PGM Computer", "Dryer", "Electric Heater (1)?"]
    assert [refit._kind(k) for k in kinds] == ["Freezer", "Television", "Computer", "Tumble Dryer", "Electric Heater"]


def test_broken_files(tmp_path):
    with pytest.raises(DataError, match=r"expected REFIT's CLEAN_House<n>\.csv"):
        electricity.read(tmp_path)
    with pytest.raises(UserError, match="choose steps or readings"):
        electricity.read(tmp_path, variant="x")
    write_house(tmp_path, 7, np.ones((2, 5), int))
    with pytest.raises(DataError, match="nothing says which appliance Appliance1 of house 7 is; put REFIT's readme"):
        electricity.read(tmp_path)
    (tmp_path / "CLEAN_House7.csv").write_text("Time,Unix,Aggregate,Appliance1\nx,1,2,three\n")
    with pytest.raises(DataError, match="'Appliance1' holds text"):
        electricity.read(tmp_path)
    (tmp_path / "CLEAN_House7.csv").write_text("Time,Aggregate\nx,1\n")
    with pytest.raises(DataError, match="no column 'Unix'"):
        electricity.read(tmp_path)
    (tmp_path / "CLEAN_House7.csv").unlink()
    trace = tmp_path / "complete" / "Kettle" / "dev_1_2011.csv"
    trace.parent.mkdir(parents=True)
    trace.write_text("22/11/2011 01:00:15;0;0\n2011-11-22;1;1\n")
    with pytest.raises(DataError, match=r"dev_1_2011\.csv: not a tracebase file") as caught:
        electricity.read(tmp_path)
    assert "\n" not in str(caught.value)
    trace.write_text("22/11/2011 01:00:15;5;0\n;6;0\n")
    with pytest.raises(DataError, match="a line has no time or power"):
        electricity.read(tmp_path)
    trace.write_text("22/11/2011 01:00:15;5;0\n22/11/2011 01:00:16;5;0\n")
    with pytest.raises(DataError, match="no change of power"):
        electricity.read(tmp_path)
