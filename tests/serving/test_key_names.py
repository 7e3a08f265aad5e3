"""Names of keys: one key each, so that a key can be revoked by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroseqret.errors import UserError
from neuroseqret.serving import keys


def test_a_name_has_one_key_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    _, first = keys.create(file, "anna", ("read",))
    with pytest.raises(UserError, match=f"key {first.id} has the name 'anna' already; choose another name, or revoke"):
        keys.create(file, "anna", ("write",))
    assert len(keys.read(file)) == 1
    keys.revoke(file, "anna")
    keys.create(file, "anna", ("read",), days=-1)
    _, valid = keys.create(file, "anna", ("read",))
    assert keys.revoke(file, "anna").id == valid.id
