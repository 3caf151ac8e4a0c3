"""Servos of the arm: sliding-mode and flatness control, stiffness, and the blocked arm."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.arm.flatness.laws import SmoothCoulomb
from devices.arm.servo.servo import TwoMasses, stiffness
from devices.arm.servo.settings import ServoSettings
from devices.emulators.odrive.axis import IDLE
from haptics import CompliantAdmittance, Coulomb, RigidAdmittance, Servo
from haptics.errors import DeviceFault
from haptics.records import Status
from haptics.rendering.envelope import UNUSABLE
from haptics.trace import Trace
from tests.devices.arm.arm_rig import let_go_by, opened
from tests.devices.arm.odrive_rig import states
from tests.devices.arm.servo_rig import GEAR, JOINT, LINKS, RATIO, START, TICK, ServoRig, smooth_friction, strokes
from tests.devices.arm.test_servo_laws import DRY, STEPS

# --- sliding-mode control --------------------------------------------------------------------------------------------

# A torque bound that is never reached [N m].
ENOUGH = 1e6
PERIOD = 2e-4
JUMP = np.array((0.3, -0.2))


def sliding(**own):
    return ServoSettings(law="sliding-mode", period=PERIOD, **own)


@pytest.mark.parametrize("encoders", ["motor", "both"])
def test_sliding_mode_within_its_bound_is_pid_control(encoders):
    """Along strokes, at rest, and under a hand, with the integrator."""
    rows = []
    for servo in (ServoSettings(period=PERIOD), sliding(torque_bound=ENOUGH)):
        rig = ServoRig(servo, encoders=encoders, **STEPS)
        rows.append(np.concatenate((rig.run(strokes(2.0)), rig.hold(0.5), rig.hold(0.5, (0.0, 40.0)))))
    for name in ("torque", "angle", "rotor"):
        np.testing.assert_allclose(rows[1][name], rows[0][name], rtol=1e-6, atol=1e-9)


def jumped(servo, seconds=3.0):
    """Return the motion after a jump of the reference, as when a blocked arm is released."""
    return ServoRig(servo, torque_limit=1.9).run(np.tile(START + JUMP, (round(seconds / TICK), 1)))


@pytest.mark.parametrize("bound", [20.0, 60.0, 150.0])
@pytest.mark.parametrize("resume", [0.1, 0.3])
def test_sliding_mode_returns_exponentially_without_overshoot(bound, resume):
    rows = jumped(sliding(torque_bound=bound, resume_time=resume), 10.0 * resume + 1.0)
    left = (START + JUMP - rows["angle"]) / JUMP
    assert abs(RATIO * rows["torque"]).max() <= bound * (1.0 + 1e-12)
    assert left.min() > -0.005, "only friction and gears overshoot"
    assert abs(left[-1]).max() < 0.005
    time, left = TICK * np.arange(len(rows)), (START + JUMP - rows["rotor"]) / JUMP  # encoders are on the motors
    window = (time > 2.0 * resume + 0.1) & (left > 0.01).all(axis=1)
    assert window.sum() > 50
    for joint in left.T:
        slope = np.polyfit(time[window], np.log(joint[window]), 1)[0]
        assert -1.0 / slope == pytest.approx(resume, rel=0.1)


def test_pid_control_overshoots_after_a_jump():
    left = (START + JUMP - jumped(ServoSettings(period=PERIOD))["angle"]) / JUMP
    assert left.min() < -0.1


@given(st.tuples(st.floats(-0.4, 0.4), st.floats(-0.4, 0.4)), st.floats(20.0, 190.0), st.floats(0.1, 0.4))
@settings(max_examples=6)
def test_sliding_mode_settles_from_any_distance_within_its_bound(jump, bound, resume):
    rig = ServoRig(sliding(torque_bound=bound, resume_time=resume), torque_limit=1.9)
    rows = rig.run(np.tile(np.add(START, jump), (round((12.0 * resume + 0.5) / TICK), 1)))
    assert abs(RATIO * rows["torque"]).max() <= bound * (1.0 + 1e-12)
    assert abs(rows["angle"][-1] - START - jump).max() < 2e-3
    assert abs(rows["speed"][-1]).max() < 0.02


def test_sliding_mode_follows_like_pid_after_catching_up():
    rig = ServoRig(sliding(torque_bound=60.0, resume_time=0.1), torque_limit=1.9)
    rig.run(np.tile(START + JUMP, (1500, 1)))
    wanted = strokes(3.0) + JUMP
    rows, other = rig.run(wanted), ServoRig(ServoSettings(period=PERIOD), torque_limit=1.9)
    other.hold(1.5)
    pid_rows = other.run(strokes(3.0))
    mine, theirs = abs(rows["angle"] - wanted).max(), abs(pid_rows["angle"] - strokes(3.0)).max()
    assert mine < 1.2 * theirs


# --- servo laws ------------------------------------------------------------------------------------------------------


def following(law, reality="matched", **settings):
    """Return the rms error of the joints to the reference, and to the command [rad]."""
    others = {"friction": DRY, "torque_limit": 1.9, **STEPS} if reality == "dry" else {}
    encoders = "both" if law == "linearising" else "motor"
    rows = ServoRig(ServoSettings(law=law, **settings), encoders=encoders, **others).run(strokes(4.0))
    wanted, commanded = rows["reference"] - rows["angle"], rows["command"] - rows["angle"]
    return np.sqrt(np.mean(wanted**2)), np.sqrt(np.mean(commanded**2))


def test_flatness_follows_modelled_joints_better_than_pid():
    wanted, commanded = following("flatness")
    pid = following("pid")[1]
    assert wanted < 0.02 * pid
    assert commanded < 0.03 * pid


def test_flatness_follows_dry_joints_ten_times_better_than_pid():
    assert 10.0 * following("flatness", "dry")[1] < following("pid", "dry")[1]


def test_rigid_feed_forward_misses_the_twist_of_the_gearbox():
    """Encoders are on the motors: the twist of the gearbox under 10 N m of friction is all error."""
    twist = float(GEAR.twist(10.0))
    assert following("rigid")[1] > 0.5 * twist
    assert following("flatness")[1] < 0.1 * twist


def test_flatness_follows_better_at_a_shorter_period():
    slow, fast = following("flatness", period=5e-4)[0], following("flatness", period=1e-4)[0]
    assert fast < 0.35 * slow


def test_model_based_feedback_follows_better_than_conventional():
    assert 2.0 * following("flatness")[0] < following("flatness", feedback="conventional")[0]


# Joints with viscous friction, held by the servo only.
FREE = dataclasses.replace(JOINT, friction=SmoothCoulomb(0.0, 20.0, 1.0))


def deflection(law, force=(0.0, 60.0), **settings):
    """Return the final deflection of the joints under a hand, (2,) [rad], and the servo."""
    servo = ServoSettings(law=law, **settings)
    rig = ServoRig(servo, encoders="both", joint=FREE, friction=smooth_friction(0.0, 20.0, 1.0))
    return rig.hold(3.0, force)["angle"][-1] - START, servo


@pytest.mark.parametrize("law", ["pid", "flatness", "fractional", "linearising"])
def test_servo_without_integrator_has_the_stiffness_of_gains_and_gearbox(law):
    moved, servo = deflection(law, integral=0.0)
    loads = LINKS.terms(START)["jacobian"][0].T @ (0.0, 60.0)
    for way, load, inertia in zip(moved, loads, np.diag(LINKS.terms(START)["inertia"][0]), strict=True):
        held = stiffness(servo, TwoMasses.of(FREE, inertia, servo.period, torque=load, drag=0.0))
        twist = 0.0 if law == "linearising" else float(GEAR.twist(load))  # it measures the link
        assert way == pytest.approx(load / held + twist, rel=0.03)


def test_integrator_takes_the_load_of_a_hand():
    without = abs(deflection("pid", integral=0.0)[0])
    assert (without > 2e-4).all()
    assert (abs(deflection("pid")[0]) < 0.01 * without).all()


@pytest.mark.parametrize("law", ["flatness", "linearising"])
def test_known_hand_does_not_deflect_the_joints(law):
    unknown = abs(deflection(law, integral=0.0)[0])
    assert (abs(deflection(law, integral=0.0, knows_hand=True)[0]) < 0.05 * unknown).all()


# --- the blocked arm -------------------------------------------------------------------------------------------------

PUSHED = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.3, 20.0, 0.0]]}
ELEMENTS = {
    "A": RigidAdmittance(Coulomb(6.0), 2.0),
    "D": CompliantAdmittance(Coulomb(6.0), 2.0, 20_000.0, 400.0),
}


def hold(arm, held=True):
    with arm.board.lock:
        arm.plant.clamp(held)


def servo(arm, model, folder):
    trace = Trace.create(folder / "trace", capacity=4096)
    return Servo(arm, ELEMENTS[model], trace, clock=arm.clock), trace


@pytest.mark.parametrize("model", ELEMENTS)
def test_blocked_arm_ends_the_run_and_does_not_jump(model, tmp_path, own_cache):
    with opened(hand=PUSHED) as arm:
        run, trace = servo(arm, model, tmp_path)
        hold(arm)
        with pytest.raises(DeviceFault, match=r"arm failed at tick \d+: it does not follow: since tick"):
            run.run(2.0)
        rows = trace.since(0)
        flagged = (rows["status"] & Status.FOLLOWING_ERROR) != 0
        assert flagged[-1]
        latest = rows["status"][rows["tick"] >= rows["tick"][-1] - 100]  # fewer than 101 rows where ticks were skipped
        assert (latest & UNUSABLE != 0).all()  # on a busy machine a sample may be old besides
        ahead = np.hypot(*(rows["command"] - rows["position"]).T)
        assert 0.02 < np.nanmax(ahead) < 0.021
        assert states(arm.board) == [IDLE, IDLE]
        let_go_by(arm, 0.2)  # the gears unwind
        before = arm.plant.handle
        hold(arm, held=False)
        let_go_by(arm, 0.5)
        assert np.hypot(*(arm.plant.handle - before)) < 1e-3


def test_free_arm_is_no_following_error(tmp_path, own_cache):
    with opened(hand={"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.1, 12.0, 0.0]]}) as arm:
        run, trace = servo(arm, "A", tmp_path)
        run.run(0.5)
        rows = trace.since(0)
        assert rows["position"][-1, 0] - rows["position"][0, 0] > 0.05
        assert not (rows["status"] & Status.FOLLOWING_ERROR).any()
        assert np.nanmax(np.hypot(*(rows["command"] - rows["position"]).T)) < 0.01
