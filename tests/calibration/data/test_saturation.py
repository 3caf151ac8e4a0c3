"""Limits of sensors: found where they are, and not where there are none; fits leave clipped samples out."""

import numpy as np
import pytest

from calibration.data.files import Source
from calibration.data.joint_recording import JointRecording
from calibration.data.saturation import find_saturation
from calibration.friction import MODELS
from calibration.identification import Wishes, identify, samples_of
from haptics.errors import ConfigurationError
from tests.calibration.hand_moved import KNEE, hand


def torque(noise: float = 0.1, law: dict[str, float] = KNEE, model: str = "stribeck", seed: int = 0) -> np.ndarray:
    _, _, velocity = hand(seed, 60.0)
    return -MODELS[model].evaluate(law, velocity) + noise * np.random.default_rng(seed).standard_normal(len(velocity))


def recording(effort: np.ndarray, seed: int = 0) -> JointRecording:
    time, _, velocity = hand(seed, 60.0)
    return JointRecording("knee", True, time, velocity, effort, Source("knee.csv", "0" * 64))


@pytest.mark.parametrize("limit", [1.5, 2.5, 4.0])
def test_a_clipped_torque_is_found_with_its_limits_and_share(limit: float) -> None:
    exact = torque()
    found = find_saturation(np.clip(exact, -limit, limit))
    assert found is not None
    assert (found.low, found.high) == (-limit, limit)
    assert found.share == np.mean(np.abs(exact) >= limit)


def test_a_limit_on_one_side_is_enough() -> None:
    found = find_saturation(np.minimum(torque(), 2.0))
    assert found is not None and found.high == 2.0 and found.low == -np.inf
    assert found.values == "2"


COULOMB = {"coulomb": 0.85, "viscosity": 0.0}
STEPS = [0.01, 0.1, 0.5, 1.0]
OTHERS = {
    "noise": torque(),
    "no noise": torque(0.0),
    "Coulomb friction without noise": torque(0.0, COULOMB, "coulomb-viscous"),
    "a torque that jumps at rest": np.where(np.arange(6000) % 700 < 80, 50.0, torque()),
    **{f"steps of {step}": step * np.round(torque() / step) for step in STEPS},
    **{
        f"Coulomb friction, steps of {step}": step * np.round(torque(0.1, COULOMB, "coulomb-viscous") / step)
        for step in STEPS
    },
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_signals_have_no_limit(name: str) -> None:
    assert find_saturation(OTHERS[name]) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_levels_are_those_of_the_joint_and_not_of_the_sensor(seed: int) -> None:
    """Fitted as if nothing were clipped, the levels are far too low, and the recording seems to drift."""
    effort = np.clip(torque(seed=seed), -2.2, 2.2)
    found = identify([recording(effort, seed)], Wishes("stribeck"))
    for name in ("coulomb", "static_forward", "static_backward"):
        low, high = found.fit.intervals[name]
        assert abs(found.fit.values[name] - KNEE[name]) < high - low
    (warning,) = found.parameters().known_friction().warnings
    share = np.mean(np.abs(effort) == 2.2)
    assert f"clipped at -2.2 and 2.2 ({100.0 * share:.1f} % of the samples are exactly there)" in warning
    assert found.fit.excluded["saturated"] > share * len(effort)


def test_a_torque_that_is_clipped_nearly_always_is_refused() -> None:
    effort = np.clip(torque(), -1.3, 1.3)
    with pytest.raises(
        ConfigurationError, match=r"knee\.csv, joint knee: the torque or force is clipped at -1.3 and 1.3"
    ):
        samples_of(recording(effort), Wishes())
