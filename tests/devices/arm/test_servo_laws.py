"""What the servo laws are worth on an arm with elastic joints: following, holding, resting."""

import dataclasses

import numpy as np
import pytest

from devices.arm.flatness.friction import SmoothStribeck
from devices.arm.servo.settings import ServoSettings
from haptics import Stribeck
from tests.devices.arm.servo_rig import JOINT, LINKS, START, ServoRig, strokes
from tests.sampling import sample

DRY = Stribeck(10.0, 11.0, 0.03, 3.0)
"""Set-valued friction like that of a harmonic drive; the servo believes in a smooth one."""

STEPS = {"motor_step": 7.7e-6, "joint_step": 6e-6}
LAWS = ("pid", "flatness", "rigid", "linearising", "fractional", "sliding-mode")
HANGING = dataclasses.replace(LINKS, gravity=9.81)


def following(law, reality="matched", **settings):
    """Return the rms error of the joints to what the law wants of them, and to the command [rad]."""
    others = {"friction": DRY, "torque_limit": 1.9, **STEPS} if reality == "dry" else {}
    encoders = "both" if law == "linearising" else "motor"
    rows = ServoRig(ServoSettings(law=law, **settings), encoders=encoders, **others).run(strokes(4.0))
    wanted, commanded = rows["reference"] - rows["angle"], rows["command"] - rows["angle"]
    return np.sqrt(np.mean(wanted**2)), np.sqrt(np.mean(commanded**2))


@pytest.mark.parametrize("law", ["linearising", "fractional"])
def test_all_laws_follow(law):
    assert following(law)[1] < 1e-3
    assert following(law, "dry")[1] < 1e-3


@pytest.mark.parametrize("encoders", ["motor", "both"])
@pytest.mark.parametrize("law", sample(LAWS, 2))
def test_at_rest_nothing_hunts(law, encoders):
    """Dry friction that falls with speed, an integrator and a coarse encoder: left alone they would never rest."""
    encoders = "both" if law == "linearising" else encoders
    rig = ServoRig(ServoSettings(law=law), friction=DRY, encoders=encoders, torque_limit=1.9, **STEPS)
    rig.run(strokes(1.5))
    rig.hold(2.0)
    rows = rig.hold(1.0)
    assert np.ptp(rows["angle"], axis=0).max() == 0.0
    assert np.ptp(rows["torque"], axis=0).max() == 0.0
    assert np.ptp(rows["rotor"], axis=0).max() < 1e-6


@pytest.mark.parametrize("always", [True, False])
def test_an_integrator_that_always_works_hunts(always):
    """Stick, wind up, break away, overshoot: with an encoder on the joint, and friction that falls far."""
    believed = dataclasses.replace(JOINT, friction=SmoothStribeck(10.0, 20.0, 0.03, 300.0, 3.0))
    rig = ServoRig(ServoSettings(), friction=Stribeck(10.0, 20.0, 0.03, 3.0), joint=believed, encoders="both")
    if always:
        rig.servo["axis"]["rest_band"] = rig.servo["axis"]["yield_band"] = -1.0
    rig.run(strokes(1.5))
    rig.hold(1.0)
    moved = np.ptp(rig.hold(3.0)["angle"], axis=0).max()
    assert moved > 1e-5 if always else moved == 0.0


def test_a_load_beyond_friction_is_held_where_friction_could_have_kept_the_joint():
    """30 N m at the joint: it gives way, insists, and then stays where it is."""
    rig = ServoRig(ServoSettings(), friction=DRY, encoders="both")
    rig.hold(3.0, (0.0, 60.0))
    rows = rig.hold(1.0, (0.0, 60.0))
    assert np.ptp(rows["angle"], axis=0).max() == 0.0
    assert (abs(rows["angle"][-1] - START) <= rig.servo["axis"]["rest_band"][0]).all()


def tremor(seconds):
    time = 1e-3 * np.arange(round(seconds / 1e-3))
    wave = 1.0 + 0.3 * np.sin(2.0 * np.pi * 9.0 * time)
    return 4.5 * wave[:, None] * np.array([0.6, 0.8])


@pytest.mark.parametrize("law", LAWS)
def test_a_trembling_hand_does_not_move_an_arm_at_rest(law):
    rig = ServoRig(ServoSettings(law=law), friction=DRY, encoders="both", torque_limit=1.9, **STEPS)
    rig.run(strokes(1.5))
    rig.hold(1.0)
    rows = rig.run(np.tile(START, (2000, 1)), tremor(2.0))
    assert np.ptp(rows["angle"], axis=0).max() == 0.0


@pytest.mark.parametrize("law", sample(LAWS, 1))
def test_the_weight_is_held_from_the_first_moment(law):
    rig = ServoRig(ServoSettings(law=law), links=HANGING, encoders="both")
    rows = rig.hold(1.0)
    assert abs(rows["angle"] - START).max() < 1e-3
    weight = HANGING.terms(START)["gravity"][0]
    np.testing.assert_allclose(100.0 * rows["torque"][-1], weight, rtol=0.05)


def test_a_torque_limit_is_kept_and_forgotten_at_once():
    """A command out of the motors' power; back within it the integrator has not wound up."""
    rig = ServoRig(ServoSettings(), torque_limit=0.3)
    jump = np.tile(np.add(START, (0.3, -0.2)), (400, 1))
    rows = rig.run(jump)
    assert abs(rows["torque"]).max() == 0.3
    assert (rows["angle"][-1] - START)[0] < 0.45
    rows = rig.hold(0.6)
    assert abs(rows["angle"][-1] - jump[0]).max() < 2e-3


def test_order_one_with_one_term_is_proportional_and_derivative():
    """D^1 with one past sample is the difference of two samples."""
    law = ServoSettings(
        law="fractional", order=1.0, terms=1, position_gain=600.0, proportional=9e4, speed_filter=1e5, period=1e-4
    )
    pd = ServoSettings(position_gain=9e4, velocity_gain=600.0, speed_filter=1e5, period=1e-4)
    commands = strokes(1.0, amplitude=0.05)
    velocity = np.gradient(commands, 1e-3, axis=0)
    mine, other = ServoRig(law).run(commands), ServoRig(pd).run(commands)
    assert np.ptp(velocity) > 0.1
    np.testing.assert_allclose(mine["angle"], other["angle"], atol=2e-6)
