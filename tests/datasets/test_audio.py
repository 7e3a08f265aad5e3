from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from neuroseqret.datasets import audio
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.data_folder import read_folder

wavfile = pytest.importorskip("scipy.io.wavfile")


def write_voice(path, pitch, formant, rate=16_000, seconds=0.5):
    """A hum of two sines: one gives the cycles, the stronger one (after pre-emphasis) the dominant frequency."""
    path.parent.mkdir(parents=True, exist_ok=True)
    t = np.arange(int(rate * seconds)) / rate
    wave = np.sin(2 * np.pi * pitch * t) + 0.8 * np.sin(2 * np.pi * formant * t)
    wavfile.write(path, rate, (8000 * wave).astype(np.int16))


def test_cycles_are_those_of_the_benchmark_set(shared_raw, shared_data):
    made = audio.read(shared_raw / "audiomnist")
    assert len(made) == 12
    folder = read_folder(shared_data / "audio")
    found = 0
    for part in (folder.corpus, folder.queries):
        keys = zip(
            part.groups.to_pylist(), part.column("source").to_pylist(), part.column("digit").to_pylist(), strict=True
        )
        row_of = {key: row for row, key in enumerate(keys)}
        for sequence in made:
            row = row_of.get((sequence.group, sequence.metadata["source"], sequence.metadata["digit"]))
            if row is not None:
                wanted = part[row]
                assert np.abs(sequence.times - wanted.times).max() < 5e-5
                assert sequence.metadata["gender"] == wanted.metadata["gender"]
                found += 1
    assert found == 12


def test_cycles_of_a_hum(tmp_path):
    write_voice(tmp_path / "hum.wav", 125, 1000)
    times, frequency = audio.cycles(tmp_path / "hum.wav")
    middle = slice(10, -10)
    assert np.diff(times)[middle] == pytest.approx(1 / 125, abs=1e-4)
    assert frequency[middle] == pytest.approx(1000, abs=10)


def test_audiomnist_layout_makes_a_data_folder(tmp_path):
    for speaker in (1, 2, 3):
        for digit in (0, 1):
            for repetition in range(4):
                path = tmp_path / "raw" / f"{speaker:02d}" / f"{digit}_{speaker:02d}_{repetition}.wav"
                write_voice(path, 100 + 30 * speaker + repetition, 400 * (speaker + digit))
    (tmp_path / "raw" / "audioMNIST_meta.txt").write_text(json.dumps({"01": {"gender": "male"}}))
    made = prepare("audio", tmp_path / "raw", tmp_path / "data", marks=3, query_share=0.3)
    assert made.meta["counts"]["groups"] == 3
    assert len(made.corpus) + len(made.queries) == 24
    pairs = {(s.group, s.metadata["source"]) for s in made.corpus}
    assert not pairs & {(s.group, s.metadata["source"]) for s in made.queries}
    bands = audio.read(tmp_path / "raw", variant="bands", min_events=1)
    assert bands.lengths.mean() < 10
    assert all((np.diff(s.marks) != 0).all() for s in bands)


def test_speaker_maps(tmp_path):
    write_voice(tmp_path / "wavs" / "a.wav", 120, 800)
    write_voice(tmp_path / "wavs" / "7.wav", 150, 900)
    with pytest.raises(DataError, match=r"7\.wav: no table names the speaker"):
        audio.read(tmp_path)
    (tmp_path / "train_data.csv").write_text(",path,speakerId,transcription\n0,wavs/a.wav,anna,hello\n")
    (tmp_path / "metadata.json").write_text(json.dumps({"7": {"text": "on", "worker": {"id": "bob", "age": 30}}}))
    made = audio.read(tmp_path)
    assert sorted(made.groups.to_pylist()) == ["anna", "bob"]
    (tmp_path / "more.csv").write_text("speaker,path\ncarl\n,wavs/a.wav\n")  # lines that tell nothing
    assert audio.read(tmp_path) == made
    (tmp_path / "metadata.json").write_text("[]")
    with pytest.raises(DataError, match=r"metadata\.json: not a JSON object"):
        audio.read(tmp_path)


def test_recordings_of_one_name_have_each_its_speaker(tmp_path, monkeypatch):
    for speaker in ("alice", "bob"):
        write_voice(tmp_path / "set" / "wavs" / speaker / "001.wav", 120, 800)

    def groups(raw=tmp_path):
        made = audio.read(raw)
        return dict(zip(made.column("source").to_pylist(), made.groups.to_pylist(), strict=True))

    wanted = {f"set/wavs/{speaker}/001.wav": speaker for speaker in ("alice", "bob")}
    lines = "path,speaker\n" + "".join(f"{{}}{speaker}/001{{}},{speaker}\n" for speaker in ("alice", "bob"))
    for table, before, ending in (
        ("set/wavs/table.csv", "", ".wav"),
        ("set/data/table.csv", "wavs/", ""),  # as in Fluent Speech Commands: relative to a folder above the csv
        ("table.csv", "./set/wavs/", ".wav"),
        ("table.csv", f"{tmp_path}/set/wavs/", ".wav"),
    ):
        (tmp_path / table).parent.mkdir(exist_ok=True)
        (tmp_path / table).write_text(lines.format(before, ending, before, ending))
        assert groups() == wanted
        (tmp_path / table).unlink()
    (tmp_path / "table.csv").write_text(lines.format("set/wavs/", ".wav", "set/wavs/", ".wav"))
    monkeypatch.chdir(tmp_path / "set")
    assert list(groups(tmp_path / "set" / "..").values()) == ["alice", "bob"]
    for text, problem in (
        ("path,speaker\n001.wav,alice\n", r"alice/001\.wav: 2 recordings have this name, and it is listed for alice"),
        (lines.format("/old/", ".wav", "/old/", ".wav"), "listed for alice and bob; list each recording with its path"),
        (
            lines.format("set/wavs/", "", "set/wavs/", "") + "set/wavs/bob/001.wav,eve\n",
            "is listed for bob and for eve",
        ),
    ):
        (tmp_path / "table.csv").write_text(text)
        with pytest.raises(DataError, match=problem):
            groups()


def test_broken_files(tmp_path, shared_raw):
    with pytest.raises(DataError, match="expected wav files"):
        audio.read(tmp_path)
    with pytest.raises(UserError, match="choose cycles or bands"):
        audio.read(tmp_path, variant="notes")
    broken = tmp_path / "01" / "0_01_0.wav"
    broken.parent.mkdir()
    broken.write_bytes(b"RIFFnothing")
    with pytest.raises(DataError, match=r"0_01_0\.wav: not a readable wav file") as caught:
        audio.read(tmp_path)
    assert "\n" not in str(caught.value)
    wavfile.write(broken, 700, np.ones(700, np.int16))
    with pytest.raises(DataError, match="700 samples per second are too few"):
        audio.read(tmp_path)
    wavfile.write(broken, 16_000, np.zeros(100, np.int16))
    with pytest.raises(DataError, match="holds no sound"):
        audio.read(tmp_path)
    shutil.copy(shared_raw / "audiomnist" / "01" / "0_01_0.wav", broken)
    broken.write_bytes(broken.read_bytes()[:20])
    with pytest.raises(DataError, match="not a readable wav file"):
        audio.read(tmp_path)
