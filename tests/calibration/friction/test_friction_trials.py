"""What is said of recordings in which intervals do not hold, and that it is not said of others."""

import numpy as np
import pytest

from calibration.fitting.intervals import cosines, memory_of
from calibration.friction import choose_model, fit_friction, joined
from calibration.friction.trials import SCENARIOS, Scenario, coverage, samples, table


def codes(scenario: Scenario, seed: int) -> set[str]:
    return {doubt.code for doubt in fit_friction(joined(samples(scenario, seed)), scenario.model).doubts}


@pytest.mark.parametrize("seed", range(4))
def test_friction_that_drifts_is_doubted(seed: int) -> None:
    assert "drift" in codes(Scenario("drift", drift=0.2), seed)
    assert "drift" not in codes(Scenario("none"), seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_stribeck_zone_inside_the_dead_band_is_noticed(seed: int) -> None:
    narrow = Scenario("narrow", truth={"stribeck_velocity": 0.003}, model="coulomb-viscous")
    assert "dead-band-hides" in codes(narrow, seed)
    choice = choose_model(samples(narrow, seed), ["coulomb-viscous", "stribeck"])
    assert choice.name != "coulomb-viscous" or "dead-band-hides" in {doubt.code for doubt in choice.fit.doubts}
    assert "dead-band-hides" not in codes(Scenario("wide"), seed)


def test_a_fall_that_chance_has_made_is_doubted() -> None:
    """The zone, at 0.25 % of the top speed, lies inside the dead band."""
    doubts = {"no-fall", "scale-at-limit"}
    assert doubts & codes(Scenario("very narrow", {"stribeck_velocity": 0.001}), 10)
    assert not doubts & codes(Scenario("plain"), 10)


def test_errors_with_a_long_memory_are_reckoned_with() -> None:
    rng = np.random.default_rng(0)
    shocks, errors = rng.standard_normal(20000), np.zeros(20000)
    for k in range(1, len(errors)):
        errors[k] = 0.97 * errors[k - 1] + shocks[k]
    assert memory_of(errors) == pytest.approx(-1.0 / np.log(0.97), rel=0.2)
    assert memory_of(shocks) == 0.0
    assert cosines(20000, memory_of(errors)) < 0.5 * cosines(20000)
    long = coverage(Scenario("memory", memory=0.97), 6)
    assert np.mean([list(one.values()) for one in long.held]) > 0.7


def test_the_table_has_a_line_for_each_scenario() -> None:
    lines = list(table(SCENARIOS[:1], 2))
    assert len(lines) == 3 and lines[2].startswith(f"| {SCENARIOS[0].name} | ")
