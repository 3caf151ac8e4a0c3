"""Long computations for the topic of tests/apps/experiment/power/test_people.py."""

from __future__ import annotations

from apps.experiment.power.pool import simulate_pool
from apps.shared.workers import workers
from tests.apps.experiment.power.test_people import STUDY


def test_nor_on_processes() -> None:
    with workers("processes", 2) as (executor, count):
        assert count == 2
        assert (simulate_pool(STUDY, 45, executor=executor) == simulate_pool(STUDY, 45)).all()
