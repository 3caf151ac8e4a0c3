"""Friction along the axes of a handle: the implicit solution, and the virtual joystick that has it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from devices.common.friction import AxisFriction, axis_friction, law_kinds, parse_friction
from haptics.clock import Clock
from haptics.errors import ConfigurationError
from haptics.jit import kernel
from tests.devices.felt import FRICTION

PUSHING = {"name": "scripted-force"}


_solution = axis_friction(law_kinds((AxisFriction().laws, AxisFriction().laws)))


@kernel
def solved(law: Any, x: float, Z: float) -> Any:
    return _solution(law[0], x, Z)


@settings(max_examples=15)
@given(
    coulomb=st.floats(0.0, 5.0),
    more=st.floats(0.0, 2.0),
    speed=st.floats(1e-2, 1.0),
    x=st.floats(-2.0, 2.0),
    mobility=st.floats(1e-5, 4e-3),
)
def test_it_is_the_force_of_the_law_at_the_velocity_that_it_leaves(
    coulomb: float, more: float, speed: float, x: float, mobility: float
) -> None:
    law, _ = AxisFriction(coulomb, coulomb, coulomb + more, coulomb + more, speed).laws
    f, v = solved(law.record, x, mobility)
    assert v == pytest.approx(x - mobility * f, abs=1e-12)
    assert f * v >= 0.0
    if v == 0.0:
        assert abs(f) <= law.breakaway_force * (1.0 + 1e-12)
    else:
        assert abs(f) == pytest.approx(float(np.abs(law(np.array([[v, 0.0]])))[0, 0]), rel=1e-9)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"z": {}}, "unknown axis 'device.friction.z'"),
        ({"x": 1.0}, "device.friction.x = 1.0: must be a table"),
        ({"x": {"coulomb_forward": -1.0}}, "device.friction.x.coulomb_forward = -1.0"),
        ({"x": {"coulomb": 1.0}}, "unknown setting 'device.friction.x.coulomb'"),
        ("sticky", "device.friction = 'sticky': must be a table"),
    ],
)
def test_a_wrong_friction_is_refused_in_words(table: Any, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        devices.create_device("virtual-joystick", {"friction": table})


def test_no_friction_is_none() -> None:
    assert parse_friction(None) is None
    assert parse_friction({"x": {}, "y": {"stribeck_velocity": 0.02}}) is None


def test_a_friction_too_steep_for_the_substep_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"smaller device\.substep"):
        devices.create_device(
            "virtual-joystick", {"friction": {"x": {"static_forward": 5.0, "stribeck_velocity": 1e-4}}}
        )


# --- the virtual joystick ---------------------------------------------------------------------------------------------


def moved(script: list[list[float]], ticks: int, **changes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return place and velocity of the handle in every tick, (n, 2), under a hand that pushes by a script."""
    device = devices.open_device("virtual-joystick", {"hand": PUSHING | {"script": script}, **changes})
    rows = []
    for _ in range(ticks):
        device.read()
        device.write(np.zeros(2))
        rows.append((device.handle, device.handle_velocity))  # type: ignore[attr-defined]
    places, velocities = np.array(rows).transpose(1, 0, 2)
    return places, velocities


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_handle_breaks_away_at_the_level_of_its_axis_and_direction(axis: int, side: float) -> None:
    levels = FRICTION["xy"[axis]]
    static = levels["static_forward" if side > 0.0 else "static_backward"]
    ramp = [0.0, 0.0, 0.0], [1.0, *(side * 2.0 * static * np.eye(2)[axis])]
    places, velocities = moved([list(map(float, row)) for row in ramp], 520, friction=FRICTION)
    assert not places[:490].any()
    assert not velocities[:490].any()
    assert side * velocities[519, axis] > 0.0
    assert not velocities[:, 1 - axis].any()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_sliding_handle_is_braked_by_the_law(side: float) -> None:
    """Power balance: what the hand did less what moves is what friction took; then the handle rests for ever."""
    mass, force = 0.5, 3.0
    script = [[0.0, side * force, 0.0], [0.2, side * force, 0.0], [0.2001, 0.0, 0.0]]
    places, velocities = moved(script, 1500, friction=FRICTION, mass=mass, damping=0.0)
    coulomb = FRICTION["x"]["coulomb_forward" if side > 0.0 else "coulomb_backward"]
    acceleration = (velocities[180, 0] - velocities[130, 0]) / 0.05
    assert side * acceleration == pytest.approx((force - coulomb) / mass, rel=1e-3)
    assert not velocities[-200:].any()
    assert (places[-200:] == places[-1]).all()


def test_without_friction_nothing_changes_to_the_last_bit() -> None:
    script = [[0.0, 0.3, 0.1], [0.3, -0.4, 0.2], [0.6, 0.1, -0.3]]
    bare, bare_velocity = moved(script, 600)
    none, none_velocity = moved(script, 600, friction={"x": {}, "y": {}})
    np.testing.assert_array_equal(bare, none)
    np.testing.assert_array_equal(bare_velocity, none_velocity)


def test_it_does_not_matter_how_often_the_device_is_looked_at() -> None:
    def end(period: float) -> np.ndarray:
        clock = Clock(period)
        hand = PUSHING | {"script": [[0.0, 2.5, 1.5]]}
        device = devices.open_device("virtual-joystick", {"hand": hand, "friction": FRICTION}, clock=clock)
        for tick in range(round(0.1 / period) + 1):
            clock.wait(tick)
            device.read()
        return device.handle  # type: ignore[attr-defined,no-any-return]

    np.testing.assert_array_equal(end(1e-3), end(2e-3))
