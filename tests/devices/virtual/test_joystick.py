"""The virtual joystick against the contract and against closed-form physics."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import devices
from devices.virtual.hands.registry import HAND_TARGET
from devices.virtual.joystick import STOP_STIFFNESS
from devices.virtual.joystick import stop_force as stop_force_of
from haptics.clock import Clock
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb
from haptics.jit import kernel
from haptics.shared import Mailbox
from tests.contract import VirtualDeviceContract
from tests.devices.inverse3.services import holding

MASS, DAMPING, SUBSTEP = 0.2, 1.0, 1e-4
NO_HAND = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


@kernel
def stop_force(record, i):
    return stop_force_of(record[0], i)


class TestVirtualJoystick(VirtualDeviceContract):
    name = "virtual-joystick"
    highest_rate = 8000.0


def joystick(period=1e-3, **changes):
    clock = Clock(period)
    patient = {"watchdog": 10.0}  # the tests below leave a command standing
    return devices.open_device("virtual-joystick", {"hand": NO_HAND, **patient, **changes}, clock=clock), clock


def wait(device, clock, ticks):
    """Advance some ticks with an unchanged command."""
    for _ in range(ticks):
        clock.wait(clock.tick + 1)
        device.read()


def test_free_handle_accelerates_by_mass_and_damping():
    device, clock = joystick()
    force = np.array((0.6, -0.3))
    device.read()
    device.write(force)
    delay = device.spec.delay
    for tick in range(1, 151):
        clock.wait(tick)
        device.read()
        time = max(tick * 1e-3 - delay, 0.0)
        decay = math.exp(-DAMPING * time / MASS)
        np.testing.assert_allclose(device.handle_velocity, force / DAMPING * (1.0 - decay), rtol=2e-3)
        travel = force / DAMPING * (time - MASS / DAMPING * (1.0 - decay))
        # A method of first order in the position: right to within the travel of one substep.
        within = SUBSTEP * np.hypot(*device.handle_velocity)
        assert np.hypot(*(device.handle - travel)) <= within


@pytest.mark.parametrize("substeps", [0, 1, 5, 20, 255])
def test_force_is_delayed_by_exactly_the_set_number_of_substeps(substeps):
    device, clock = joystick(period=SUBSTEP, delay=substeps * SUBSTEP)
    device.read()
    device.write(np.array((1.0, -1.0)))
    wait(device, clock, substeps)
    np.testing.assert_array_equal(device.handle_velocity, (0.0, 0.0))
    wait(device, clock, 1)
    np.testing.assert_allclose(device.handle_velocity, (SUBSTEP / MASS, -SUBSTEP / MASS), rtol=1e-12)


def test_delayed_forces_keep_their_order():
    device, clock = joystick(period=SUBSTEP, delay=3 * SUBSTEP, damping=0.0)
    forces = np.array([1.0, -2.0, 3.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    speeds = []
    for force in forces:
        device.write(np.array((force, 0.0)))
        wait(device, clock, 1)
        speeds.append(device.handle_velocity[0])
    felt = np.diff(speeds, prepend=0.0) * MASS / SUBSTEP
    np.testing.assert_allclose(felt, [0.0, 0.0, 0.0, 1.0, -2.0, 3.0, 0.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("resolution", [20e-6, 1e-4, 0.0])
def test_position_is_on_the_grid_of_the_encoder_or_exact(resolution):
    device, clock = joystick(resolution=resolution, hand={"name": "minimum-jerk"})
    for _ in range(600):
        wait(device, clock, 1)
        position = device.read().position
        if resolution:
            counts = position / resolution
            np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        assert np.abs(position - device.handle).max() <= resolution / 2.0 * (1.0 + 1e-9)


def test_saturation_keeps_the_direction():
    device, clock = joystick(max_force=10.0)
    device.write(np.array((300.0, -400.0)))
    wait(device, clock, 20)
    limited, clock = joystick(max_force=10.0)
    limited.write(np.array((6.0, -8.0)))
    wait(limited, clock, 20)
    assert np.hypot(*device.handle_velocity) > 0.1
    np.testing.assert_allclose(device.handle_velocity, limited.handle_velocity, rtol=1e-12)


@pytest.mark.parametrize("direction", [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.7, 0.7)])
def test_end_stop_holds_the_handle(direction):
    push = 50.0 * np.array(direction)
    device, clock = joystick(hand={"name": "scripted-force", "script": [[0.0, *push]]})
    device.write(10.0 * np.array(direction))
    worst = 0.0
    for _ in range(1500):
        wait(device, clock, 1)
        beyond = np.abs(device.handle) - device.workspace.upper
        worst = max(worst, float(beyond.max()))
    assert 0.0 < worst < 2e-3  # it arrives with up to 6 m/s
    pushed_along = np.abs(push + 10.0 * np.array(direction))
    expected = np.where(pushed_along > 0.0, np.array(device.workspace.upper) + pushed_along / STOP_STIFFNESS, 0.0)
    np.testing.assert_allclose(np.abs(device.handle), expected, atol=1e-6)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_end_stop_only_pushes(side):
    device, _ = joystick()
    record = device._record.copy()
    record["handle"], record["handle_velocity"] = (side * (0.1 + 1e-5), 0.0), (-side * 3.0, 0.0)
    assert stop_force(record, 0) == 0.0
    record["handle_velocity"] = (side * 3.0, 0.0)
    damping = device.settings.stop_damping
    assert stop_force(record, 0) == pytest.approx(-side * (STOP_STIFFNESS * 1e-5 + damping * 3.0), rel=1e-6)
    record["handle"] = (side * (0.1 - 1e-5), 0.0)
    assert stop_force(record, 0) == 0.0


@pytest.mark.parametrize("period", [1e-3, 1e-2])
def test_hand_target_and_velocity_advance_within_a_tick(tmp_path, period):
    path = tmp_path / "straight.csv"
    path.write_text("t,x,y\n" + "".join(f"{t},{0.1 * t - 0.05:.17g},0\n" for t in np.linspace(0.0, 1.0, 11)))
    hand = {"name": "recorded", "file": str(path), "centre": False, "stiffness": 400.0, "damping": 8.0}
    device, clock = joystick(period, hand=hand, resolution=0.0)
    wait(device, clock, round(0.8 / period))
    assert device.handle_velocity[0] == pytest.approx(0.1, rel=1e-4)
    lag = 0.8 * 0.1 - 0.05 - device.handle[0]
    assert lag == pytest.approx(DAMPING * 0.1 / 400.0, abs=0.1 * SUBSTEP)


def test_open_resets_the_state_of_the_hand(tmp_path):
    lane = Mailbox(tmp_path / "target", HAND_TARGET, create=True)
    device = devices.create_device("virtual-joystick", {"hand": {"name": "mouse", "target": str(lane.path)}})
    runs = []
    for _ in range(2):
        run = []
        for x in (0.05, -0.03):
            lane.publish(np.array([((x, 0.02), 1, 0, 0.0)], HAND_TARGET)[0])
            device.open()
            run += [tuple(device.read().position) for _ in range(100)]
        device.close()
        runs.append(run)
    assert runs[0] == runs[1]
    assert runs[0][99][0] > 0.01 > runs[0][199][0]


def test_grip_pulls_the_handle_to_its_target():
    device, clock = joystick(hand=holding([0.03, 0.02]) | {"stiffness": 400.0, "damping": 20.0})
    np.testing.assert_allclose(device.read().position, (0.03, 0.02), atol=1e-5)
    device.write(np.array((4.0, -2.0)))
    wait(device, clock, 2000)
    np.testing.assert_allclose(device.handle, (0.03 + 4.0 / 400.0, 0.02 - 2.0 / 400.0), atol=1e-7)
    np.testing.assert_allclose(device.hand_force, (-4.0, 2.0), atol=1e-5)
    np.testing.assert_array_equal(device.read().hand_force, device.hand_force)
    device.write(np.zeros(2))
    wait(device, clock, 2000)
    np.testing.assert_allclose(device.handle, (0.03, 0.02), atol=1e-7)


@settings(max_examples=5, deadline=None)
@given(
    stiffness=st.floats(0.0, 3000.0), damping=st.floats(0.0, 50.0), mass=st.floats(0.05, 20.0), own=st.floats(0.0, 20.0)
)
def test_never_diverges_within_the_allowed_settings(stiffness, damping, mass, own):
    hand = {"name": "minimum-jerk", "stiffness": stiffness, "damping": damping}
    device, clock = joystick(hand=hand, mass=mass, damping=own)
    wait(device, clock, 400)
    assert np.abs(device.handle).max() < 0.2


def friction_loop(model, device, clock, ticks):
    """Render `model` on the joystick; return (time, sticking, hand force, friction force, slip) per tick, (n, 5)."""
    rows = []
    for tick in range(ticks):
        clock.wait(tick)
        friction = model.step(device.read().velocity)
        device.write(-friction)
        rows.append(
            (
                clock.time,
                model.sticking,
                np.hypot(*device.hand_force),
                *map(np.hypot.reduce, (friction, model.velocity)),
            )
        )
    return np.array(rows)


def test_default_hand_makes_model_c_stick_and_slip():
    device, clock = joystick(hand={"name": "minimum-jerk"}, seed=1)
    rows = friction_loop(MasslessImpedance(Coulomb(4.0), stiffness=6000.0, damping=10.0), device, clock, 4000)
    time, sticking = rows[:, 0], rows[:, 1]
    assert 0.2 < sticking.mean() < 0.8
    slipping = sticking == 0.0
    np.testing.assert_allclose(rows[slipping, 3], 4.0, rtol=1e-12)
    rest = next(phase for phase in device.hand.phases if phase.rest)
    relaxed = (time > rest.start + 0.3) & (time < rest.start + rest.duration - 0.3)
    assert sticking[relaxed].all()
    assert 0.5 < np.ptp(rows[relaxed, 2])
    assert rows[relaxed, 2].max() < 4.0
