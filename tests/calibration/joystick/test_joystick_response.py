"""What small pushes tell of motors, mass and friction, of handles whose truth is known."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from calibration.joystick import response
from calibration.joystick.response import Push, Response, identify

TRUTH = np.array(((30.0, 3.0), (-4.0, -25.0)))


def shape(time: np.ndarray, level: float) -> np.ndarray:
    return level * np.clip(np.minimum((time - 0.02) / 0.06, (0.2 - time) / 0.06), 0.0, 1.0)


def pushed(
    effect: int,
    level: float,
    matrix: np.ndarray = TRUTH,
    drag: float = 4.0,
    spring: float = 0.0,
    rub: float = 0.0,
    delay: float = 0.0,
    quantum: float = 0.0,
) -> Push:
    """Push a handle whose motion is integrated by another method than that which identifies it."""
    time = np.arange(0.0, 0.4, 1e-3)
    levels = shape(time, level)

    def motion(now: float, state: np.ndarray) -> np.ndarray:
        at = int(np.searchsorted(time, now - delay, side="right")) - 1
        force = matrix[:, effect] * (levels[at] if at >= 0 else 0.0)
        against = rub * np.tanh(np.hypot(*state[2:]) / 5e-4) * state[2:] / max(np.hypot(*state[2:]), 1e-12)
        return np.concatenate((state[2:], force - drag * state[2:] - against - spring * state[:2]))

    place = solve_ivp(motion, (0.0, 0.4), np.zeros(4), t_eval=time, max_step=1e-3, method="LSODA").y[:2].T
    if quantum:
        place = np.round(place / quantum) * quantum
    return Push(effect, time, levels, place)


def both(**truth: float) -> list[Push]:
    return [pushed(effect, level, **truth) for effect in (0, 1) for level in (0.03, -0.03)]  # type: ignore[arg-type]


@settings(max_examples=4, deadline=None)
@given(drag=st.floats(1.0, 10.0), spring=st.floats(0.0, 60.0), delay=st.sampled_from((0.0, 0.003, 0.009, 0.02)))
def test_motors_friction_spring_and_delay_are_found(drag: float, spring: float, delay: float) -> None:
    found = identify(both(drag=drag, spring=spring, delay=delay))
    np.testing.assert_allclose(found.acceleration, TRUTH, atol=0.02 * 30.0)
    assert found.drag == pytest.approx(drag, abs=0.4)
    assert found.spring == pytest.approx(spring, abs=4.0)
    assert found.delay == pytest.approx(delay, abs=1.1e-3)
    assert found.misfit < 0.01


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_dry_friction_does_not_turn_the_forces(share: float) -> None:
    """As a part of the peak of the push."""
    found = identify(both(rub=share * 0.03 * 30.0, delay=0.003))
    ratio = found.acceleration / found.acceleration[0, 0]
    np.testing.assert_allclose(ratio, TRUTH / TRUTH[0, 0], atol=0.05)
    assert found.rub == pytest.approx(share * 0.03 * 30.0, rel=0.3)
    assert found.misfit < 0.1


def test_counts_of_a_tenth_of_a_millimetre_are_fine_enough() -> None:
    found = identify(both(quantum=1e-4, delay=0.009))
    ratio = found.acceleration / found.acceleration[0, 0]
    np.testing.assert_allclose(ratio, TRUTH / TRUTH[0, 0], atol=0.02)


@pytest.mark.parametrize(("effects", "left"), [((0, 0, 0, 1, 1), 4), ((1, 0, 0, 0, 0), 5)])
def test_a_push_that_does_not_fit_is_left_out_unless_it_is_the_only_one(
    effects: tuple[int, ...], left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one does not fit; the fit itself is taken for granted here."""
    pushes = [Push(effect, np.zeros(1), np.zeros(1), np.zeros((1, 2))) for effect in effects]

    def fit(some: Sequence[Push]) -> Response:
        misfits = tuple(0.9 if push is pushes[0] else 0.01 for push in some)
        return Response(np.eye(2), 0.0, 0.0, 0.0, 0.0, 0.1, misfits)

    monkeypatch.setattr(response, "_fit", fit)
    assert len(identify(pushes).misfits) == left


def test_a_push_that_was_disturbed_is_left_out() -> None:
    pushes = [*both(), *both()]
    late = pushes[0]
    spoilt = Push(0, late.time, late.level, np.roll(late.displacement, 30, axis=0))
    spoilt.displacement[:30] = 0.0
    found = identify([spoilt, *pushes[1:]])
    np.testing.assert_allclose(found.acceleration, TRUTH, atol=0.02 * 30.0)
    assert len(found.misfits) == 7


def test_a_push_knows_how_far_it_went() -> None:
    push = pushed(1, 0.03)
    assert push.peak == pytest.approx(0.03)
    assert push.distance == pytest.approx(np.hypot(*push.displacement[-1]))
