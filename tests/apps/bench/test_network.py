from __future__ import annotations

import json

import numpy as np
import pytest

from apps.bench import network
from apps.bench.reference import Reference
from haptics.elements.network.network import Network


def _nothing(done: float, words: str) -> None:
    pass


def test_about_half_of_the_contacts_slide(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Network] = []

    class Watched(Network):
        def __post_init__(self) -> None:
            super().__post_init__()
            made.append(self)

    monkeypatch.setattr(network, "Network", Watched)
    tick = network.network_tick(network.friction_forces(100))
    shares = []
    for _ in range(200):
        tick()
        shares.append(made[0].sticking.mean())
    assert made[0].stability_number < 1.0
    assert 0.3 < np.mean(shares) < 0.7
    assert np.std(shares) < 0.1  # every tick is as much work as any other


def test_contacts_in_one_millisecond(few_rounds: None, reference: Reference) -> None:
    outcome = network.run(_nothing)
    (row,) = outcome.result["rows"]
    assert row["contacts"] <= 30
    assert row["contacts_per_tick"] == pytest.approx(1e6 / row["ns_per_step"], rel=1e-2)
    assert row["ratio"] > 0.0
    json.dumps(outcome.result, allow_nan=False)


def test_without_a_compiler_the_contacts_remain(few_rounds: None, no_compiler: None) -> None:
    outcome = network.run(_nothing)
    (row,) = outcome.result["rows"]
    assert row["contacts_per_tick"] > 0 and row["ratio"] is None
    assert "no C compiler" in outcome.text
