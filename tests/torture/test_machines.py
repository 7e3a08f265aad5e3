"""kill -9 on a writer and on a server over an object store, one round each; `machines.py` is the long form.

`tests/index/engines/test_milvus.py` kills writers with an engine, and Milvus itself.
"""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest

from torture.machines import Machines

KINDS = ("bucket-writer", "bucket-server")


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    with patch.dict(os.environ):
        made = Machines(tmp_path_factory.mktemp("machines"), KINDS)
        yield made
        made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_is_there_once(machines, kind):
    assert machines.round(kind, 0) >= 1
    assert machines.acknowledged[kind] >= 1
