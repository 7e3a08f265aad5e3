"""Files of `torch.save` come out as arrays, without torch."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.readers import strided
from neuroseqret.errors import DataError
from neuroseqret.readers import read
from neuroseqret.readers.pickles import torch_file


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"])
def test_tensors_and_views_come_out_as_arrays(zipped: bool, dtype: str) -> None:
    base = torch.arange(12).to(getattr(torch, dtype)).reshape(3, 4)
    views = [base, base.T, base[1:, ::2], base[0, :0], torch.tensor(3.0, dtype=torch.float64)]
    stream = io.BytesIO()
    torch.save(views, stream, _use_new_zipfile_serialization=zipped)
    stream.seek(0)
    for mine, theirs in zip(torch_file.load(stream), views, strict=True):
        assert mine.dtype == theirs.numpy().dtype
        assert np.array_equal(mine, theirs.numpy())


@given(
    offset=st.integers(0, 6),
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
@settings(max_examples=50)
def test_a_tensor_never_looks_beyond_its_storage(offset: int, size: tuple[int, int], stride: tuple[int, int]) -> None:
    storage = torch_file._Storage(np.dtype("<f8"), 12)
    storage.data = np.arange(12.0)
    tensor = torch_file._Tensor(storage, offset, size, stride)
    last = offset + (size[0] - 1) * stride[0] + (size[1] - 1) * stride[1]
    if last >= 12 or size[0] * size[1] > 12:
        with pytest.raises(DataError, match="beyond its storage"):
            tensor.finished()
    else:
        assert tensor.finished().tolist() == strided(storage.data.tolist(), offset, size, stride)


def test_a_module_in_a_torch_file_is_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "a.pt")
    with pytest.raises(DataError, match=r"asks for torch.nn.modules.linear.Linear"):
        read(tmp_path / "a.pt", allow_pickle=True)


def test_reading_a_torch_file_does_not_load_torch(tmp_path: Path) -> None:
    torch.save({"sequences": [{"arrival_times": torch.tensor([0.25, 4.5])}]}, tmp_path / "a.pt")
    code = (
        "import sys; from neuroseqret.readers.pickles import torch_file; import io; "
        f"torch_file.load(io.BytesIO(open({str(tmp_path / 'a.pt')!r}, 'rb').read())); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
