"""The page of an evaluation, opened from disk in a real browser."""

from __future__ import annotations

from dataclasses import replace

import pytest

import neuroseqret as nsr
from neuroseqret.evaluation.report_page import write_page
from page.conftest import EVIL
from page.test_page import accessible, fits, picture


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two methods on data with a hostile name."""
    found = nsr.evaluate(nsr.simulate(3, 12, 6, seed=0), ["histogram", "mass"], cache=False)
    return write_page(replace(found, data=EVIL), tmp_path_factory.mktemp("report") / "report")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_it_opens_without_a_server_and_is_accessible(browser, report, tmp_path, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert page.locator("h1").inner_text() == f"Evaluation of {EVIL}"
    assert page.locator("table").first.get_by_text("mass").count() == 1
    assert page.locator("svg .dot").count() > 10
    assert page.evaluate("window.broken") is None
    assert asked == [report.as_uri()]
    fits(page)
    accessible(page)
    picture(page, tmp_path, f"report-{scheme}")
    page.close()
