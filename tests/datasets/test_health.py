from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from neuroseqret.datasets import health
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.data_folder import read_folder

pytest.importorskip("wfdb")


def test_the_benchmark_set_is_reproduced(shared_raw, shared_data, tmp_path):
    made, wanted = prepare("health", shared_raw / "mitdb", tmp_path / "h"), read_folder(shared_data / "health")
    assert (len(made.corpus), len(made.queries)) == (1401, 695)

    def keys(sequences):
        return {(s.group, tuple(np.round(s.times, 3).tolist()), tuple(s.marks.tolist())) for s in sequences}

    assert keys(made.corpus) == keys(wanted.corpus)
    assert keys(made.queries) == keys(wanted.queries)
    assert made.corpus.mark_names == wanted.corpus.mark_names


def test_signal_variants(shared_raw):
    signal = health.read(shared_raw / "mitdb", variant="signal")
    assert signal.lengths.tolist() == [10_000] * 64  # 649,999 changes of record 100
    assert np.allclose(np.diff(signal[3].times), 1 / 360)
    changes = health.read(shared_raw / "mitdb", variant="changes", events=300, marks=4)
    assert set(changes.lengths.tolist()) == {300}
    assert np.bincount(changes.marks).min() > 0.2 * len(changes.marks)
    assert np.diff(changes[0].times).std() > 0


def test_the_clock_runs_on_where_the_signal_is_missing(monkeypatch, tmp_path):
    signal = np.array([[0.0], [1.0], [np.nan], [np.nan], [0.0], [1.0]])
    record = SimpleNamespace(p_signal=signal, fs=10)
    monkeypatch.setattr(health, "_wfdb", lambda: SimpleNamespace(rdrecord=lambda *_, **__: record))
    for every_sample in (True, False):
        times, change, _ = health._signal(tmp_path / "100", every_sample)
        assert times.tolist() == [0.1, 0.4, 0.5]
        assert np.sign(change).tolist() == [1, -1, 1]


def test_broken_files(shared_raw, tmp_path):
    with pytest.raises(DataError, match=r"expected PhysioNet records, <record>\.hea with <record>\.atr"):
        health.read(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        health.read(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no variant 'beat'; choose beats, signal, changes"):
        health.read(tmp_path, variant="beat")
    shutil.copy(shared_raw / "mitdb" / "100.hea", tmp_path / "100.hea")
    (tmp_path / "100.atr").write_bytes(b"\x01")
    with pytest.raises(
        DataError, match=r"100\.atr: (cannot be read as a PhysioNet file|no beat annotations)"
    ) as caught:
        health.read(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / "100.dat").write_bytes(b"\x00" * 999)
    with pytest.raises(DataError, match=r"100\.dat: cannot be read as a PhysioNet file"):
        health.read(tmp_path, variant="signal")
