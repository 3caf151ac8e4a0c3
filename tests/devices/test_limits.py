"""The virtual devices behave as the advice on their data sheets says: the two were written from different equations."""

import numpy as np
import pytest

import devices
from devices.common.velocity import ESTIMATORS, VelocityEstimator, VelocitySettings, velocity_lag
from devices.virtual.arm import VirtualArm
from devices.virtual.device import VirtualDevice
from haptics.clock import Clock
from haptics.design import Coupling, Handle, PositionServo, count_jump, mass_limit, stiffness_limit
from haptics.elements.models import Element, MasslessImpedance, RigidAdmittance
from haptics.friction.laws import Coulomb

HOLDS_STILL = {
    **{"name": "minimum-jerk", "points": [[0, 0], [0, 0]], "tremor": 0.0},
    **{"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0},
}
LETS_GO = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


def kick(device: VirtualDevice) -> None:
    """Set the handle moving at 1 mm/s along x."""
    if isinstance(device, VirtualArm):
        jacobian = device.body.linkage.jacobians(device._record["arm"]["angle"])[0]
        device._record["arm"]["speed"] = device._record["arm"]["rotor_speed"] = np.linalg.solve(jacobian, (1e-3, 0.0))
    else:
        device._record["handle_velocity"][0, 0] = 1e-3


def swing(device: VirtualDevice, element: Element, clock: Clock, ticks: int) -> np.ndarray:
    """Kick the handle, render `element` and return the path of the handle, (ticks,) [m]."""
    impedance = element.causality == "impedance"
    kick(device)
    reference = device.read().position[0]
    path = np.zeros(ticks)
    for tick in range(ticks):
        state = device.read()
        output = element.step(state.velocity if impedance else state.force)
        reference += element.period * output[0]
        device.write(-output if impedance else np.array((reference, 0.0)))
        path[tick] = device.handle[0]
        clock.wait(clock.tick + 1)
    return path


def grows(path: np.ndarray) -> bool:
    third, last = np.array_split(path, 4)[2:]
    return bool(np.ptp(last) > np.ptp(third))


@pytest.mark.parametrize(("mass", "damping", "delay"), [(0.2, 1.0, 0.5e-3), (0.2, 0.0, 2e-3), (0.05, 0.2, 0.3e-3)])
@pytest.mark.parametrize("window", [1, 3])
def test_the_joystick_buzzes_where_its_data_sheet_says(mass: float, damping: float, delay: float, window: int) -> None:
    clock = Clock(1e-3)
    own = {"mass": mass, "damping": damping, "delay": delay, "resolution": 0.0}
    own |= {"velocity_estimator": "difference", "velocity_window": window}
    for share, buzzes in ((0.9, False), (1.1, True)):
        device = devices.open_device("virtual-joystick", {"hand": LETS_GO, **own}, clock=clock)
        handle = Handle.of(device.spec)
        assert handle is not None
        element = MasslessImpedance(Coulomb(1e9), share * stiffness_limit(handle, 8.0), 8.0)
        assert grows(swing(device, element, clock, 1200)) is buzzes


IDEAL = {"coupling": "rigid", "kinetic_friction": 0.0, "static_friction": 0.0, "viscosity": 0.0, "handle_mass": 0.0}
"""An arm without friction and elasticity."""


def test_the_arm_swings_where_the_frequency_of_its_servo_says() -> None:
    """Without friction, elasticity and noise: that frequency knows nothing of them."""
    clock = Clock(1e-3)
    settings = {
        "hand": HOLDS_STILL,
        "arm": {**IDEAL, "encoder_counts": 2**30},
        "servo": {"bandwidth": 20.0, "damping_ratio": 0.3, "integral": 0.0, "speed_filter": 1e5},
        "sensor": {"noise": 0.0, "resolution": 0.0, "drift": 0.0, "bias": [0.0] * 6},
    }
    for share, swings in ((0.9, True), (1.1, False)):
        device = devices.open_device("virtual-arm", settings, clock=clock)
        servo = PositionServo.of(device.spec)
        assert servo is not None
        element = RigidAdmittance(Coulomb(0.0), share * mass_limit(servo))
        assert grows(swing(device, element, clock, 1200)) is swings


def largest_force(settings: VelocitySettings, resolution: float, counts: list[int]) -> float:
    """Return the largest force that a contact, stuck for ever, answers the encoder's `counts` with [N]."""
    estimator = VelocityEstimator(resolution, 1e-3, settings)
    element = MasslessImpedance(Coulomb(1e9), 6000.0, 10.0)
    return max(
        element.step(estimator.update(1e-3 * tick, count * resolution, 0.0).copy())[0]
        for tick, count in enumerate(counts)
    )


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_count_behind_the_windowed_difference_makes_the_jump_that_its_lag_says(window: int) -> None:
    settings = VelocitySettings(velocity_estimator="difference", velocity_window=window)
    handle = Handle(0.2, resolution=20e-6, velocity_lag=velocity_lag(settings, 20e-6, 1e-3))
    jump = largest_force(settings, 20e-6, [0] * (window + 1) + [1] * (window + 2))
    assert jump == pytest.approx(count_jump(Coupling(6000.0, 10.0), handle))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_makes_more_of_a_count_than_is_advised_for(name: str) -> None:
    settings = VelocitySettings(velocity_estimator=name)
    handle = Handle(0.2, resolution=20e-6, velocity_lag=velocity_lag(settings, 20e-6, 1e-3))
    jump = largest_force(settings, 20e-6, [0] * 50 + [1] * 50)
    assert 0.0 < jump <= count_jump(Coupling(6000.0, 10.0), handle) * (1.0 + 1e-9)
