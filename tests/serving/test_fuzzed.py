"""Requests that the OpenAPI document allows, and requests that it does not allow, never make the server fail."""

from __future__ import annotations

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis import GenerationMode

SETTINGS = hypothesis.settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_makes_the_server_fail(server, mode):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @SETTINGS
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def try_it(case):
            answer = case.call(base_url=server.url)
            assert answer.status_code < 500, (answer.status_code, answer.text[:300])
            if answer.status_code >= 400 and case.method != "TRACE":
                assert "application/problem+json" in answer.headers["content-type"][0], answer.text[:300]

        try:
            try_it()
        except hypothesis.errors.Unsatisfiable:  # nothing that could be wrong: no parameters and no body
            continue
        tried += 1
    assert tried >= (15 if mode is GenerationMode.POSITIVE else 8)
    assert server.get("/health/ready") == {"status": "ready"}
