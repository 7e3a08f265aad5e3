from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import datasets as naive
from neuroseqret.datasets import amazon
from neuroseqret.datasets.amazon_files import read_reviews
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError, UserError

DAY = 86_400


def reviews(products=4, each=25, seed=0):
    rng = np.random.default_rng(seed)
    days = rng.integers(10_000, 12_000, (products, each))
    stars = rng.integers(1, 6, (products, each))
    return [
        (f"B{product:09d}", f"A{rng.integers(10**12):012d}", float(stars[product, k]), int(days[product, k]) * DAY)
        for product in range(products)
        for k in range(each)
    ]


def test_raw_sample_with_classes_and_ratings(shared_raw, tmp_path):
    made = amazon.read(shared_raw / "amazon")
    assert made.mark_names == tuple(amazon.BINARY)  # two of the files rate by 0 and 1
    assert len(made) == 945
    assert (made.lengths.min(), made.lengths.max()) == (20, 100)
    groups = set(made.groups.to_pylist())
    assert len(groups) == 30
    assert {"Magazine_Subscriptions", "Toys_13", "Tools_02"} <= groups
    assert max(np.unique(made.column("source").to_pylist(), return_counts=True)[1]) == 3
    counts = prepare("amazon", shared_raw / "amazon", tmp_path / "a").meta["counts"]
    assert counts["corpus"] + counts["queries"] == 943  # two groups of one
    with pytest.raises(DataError, match="rates by 0 and 1"):
        amazon.read(shared_raw / "amazon", variant="stars")


def test_published_forms_say_the_same(tmp_path):
    rows = reviews()
    made = []
    for form in ("2014.csv", "2018.csv", "2014.json", "2018.json.gz", "2023.jsonl", "2023.csv"):
        folder = tmp_path / form
        folder.mkdir()
        if form.endswith(".csv"):
            order = {"2014.csv": (1, 0, 2, 3), "2018.csv": (0, 1, 2, 3), "2023.csv": (1, 0, 2, 3)}[form]
            lines = [
                ",".join(str(row[k] * 1000 if form[:4] == "2023" and k == 3 else row[k]) for k in order) for row in rows
            ]
            head = ["user_id,parent_asin,rating,timestamp"] if form == "2023.csv" else []
            (folder / "ratings_Beauty.csv").write_text("\n".join(head + lines) + "\n")
        else:
            names = ("asin", "reviewerID", "overall", "unixReviewTime")
            if form == "2023.jsonl":
                names = ("parent_asin", "user_id", "rating", "timestamp")
            scale = 1000 if form == "2023.jsonl" else 1
            objects = [
                dict(zip(names, (a, u, r, t * scale), strict=True), reviewText=f"say {k}", style={"Color:": k})
                for k, (a, u, r, t) in enumerate(rows)
            ]
            text = "\n".join(map(json.dumps, objects)) + "\n"
            if form.endswith(".gz"):
                with gzip.open(folder / "Beauty_5.json.gz", "wt") as stream:
                    stream.write(text)
            else:
                (folder / ("reviews_Beauty_5" + form[4:])).write_text(text)
        made.append(amazon.read(folder))
    assert all(other == made[0] for other in made[1:])
    assert made[0].mark_names == tuple(amazon.STARS)
    assert made[0].groups.to_pylist() == ["Beauty"] * 4
    product = sorted((t // DAY, r) for a, _, r, t in rows if a == "B000000000")
    first = made[0][0]
    assert first.times.tolist() == [d - product[0][0] for d, _ in product]
    assert sorted(first.marks.tolist()) == sorted(int(r) - 1 for _, r in product)
    binary = amazon.read(tmp_path / "2018.csv", variant="binary", min_events=10, events=10, most=1)
    assert set(binary.lengths.tolist()) <= {8, 9}  # 25 reviews in three
    assert len(binary) == 4
    assert binary.num_marks == 2


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(5, 7)), max_size=40))
def test_variants_are_those_of_the_loop(rows):
    item, user, day = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(3))
    found = amazon.variants(item, user, day, np.ones(len(rows), bool))
    assert set(np.flatnonzero(found).tolist()) == naive.variants(rows, amazon.SHARED)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", '{"asin": "B1", "overall": ', "not JSON lines"),
        ("a.json", '{"asin": "B1", "reviewerID": "A", "unixReviewTime": 5}\n', "no column overall or rating"),
        (
            "a.json",
            '{"asin": "B1", "reviewerID": "A", "overall": 9, "unixReviewTime": 5}\n',
            "ratings are 9 to 9, not 1 to 5",
        ),
        ("a.csv", "B1,A1,5.0\n", "3 columns without known names"),
        ("a.csv", "B1,A1,five,12\n", "not a ratings csv"),
        ("a.csv", "user_id,parent_asin,rating,timestamp\n", "holds no reviews"),
        ("a.csv", "user_id,item_id,class,reviewTime,overall\nu,i,-1,2014-01-01,1\n", "a class is -1"),
    ],
)
def test_broken_files(tmp_path, name, content, problem):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=problem) as caught:
        read_reviews(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_nothing_to_read(tmp_path):
    with pytest.raises(DataError, match=r"expected review \.json"):
        amazon.read(tmp_path)
    with pytest.raises(UserError, match="choose stars or binary"):
        amazon.read(tmp_path, variant="x")
    (tmp_path / "x.csv").write_text("B000000001,A1,5.0,86400\n")
    with pytest.raises(DataError, match="no product has 20 reviews"):
        amazon.read(tmp_path)
    damaged = bytearray(gzip.compress(b"".join(b'{"asin": "%d"}\n' % i for i in range(3000))))
    damaged[300:340] = b"\xff" * 40
    (tmp_path / "y.json.gz").write_bytes(damaged)
    with pytest.raises(DataError, match=r"y\.json\.gz: not JSON lines .*decompress"):
        amazon.read(tmp_path)
    (tmp_path / "y.json.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match=r"y\.json\.gz: not JSON lines"):
        amazon.read(tmp_path)
