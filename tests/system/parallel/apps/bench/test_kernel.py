"""Long computations for the topic of tests/apps/bench/test_kernel.py."""

from __future__ import annotations

import json

from apps.bench import kernel
from apps.bench.reference import Reference
from apps.bench.workload import elements
from tests.apps.bench.conftest import (
    compiled,  # noqa: F401
    few_rounds,  # noqa: F401
    reference,  # noqa: F401
)


def test_a_row_for_every_element_and_law(few_rounds: None, reference: Reference) -> None:
    shares: list[float] = []
    outcome = kernel.run(lambda done, words: shares.append(done))
    rows = outcome.result["rows"]
    assert {(row["element"], row["law"]) for row in rows} == {(e.model, e.law.name) for e in elements()}
    for row in (*rows, *outcome.result["classic"]):
        assert row["ns_per_step"] > 0.0 and row["reference_ns_per_step"] > 0.0 and row["ratio"] > 0.0
    assert outcome.error == ""
    assert shares == sorted(shares) and shares[0] == 0.0 and shares[-1] == 1.0
    assert all(row["element"] in outcome.text for row in (*rows, *outcome.result["classic"]))
    json.dumps(outcome.result, allow_nan=False)
