"""An address where a file is needed is one line that says what may be at an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.readers import read, sniff


@pytest.mark.parametrize(
    "address", ["s3://bucket/a.csv", "ftp://host/a.csv", "http://host/a.csv", "https://u:pw@host/a"]
)
def test_an_address_is_not_a_file(address: str) -> None:
    for place in (address, Path(address)):
        for reading in (read, sniff):
            with pytest.raises(UserError, match=r"first\. Only an index can be at an address: s3://") as told:
                reading(place)
            assert "pw" not in str(told.value)


def test_an_index_is_not_on_an_ftp_server() -> None:
    with pytest.raises(UserError, match=r"\(ftp://...\) cannot be read.*Only an index can be at an address"):
        Index.open("ftp://host/index")
