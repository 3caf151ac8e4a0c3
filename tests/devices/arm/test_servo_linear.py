"""The arm as a linear system: it answers as the simulated arm does, and a mass lighter than it allows shakes that."""

import math

import numpy as np
import pytest

import devices
from devices.arm.body import ArmBody
from devices.arm.servo.driven import RATE, DrivenArm
from devices.arm.servo.mechanism import Grip
from devices.arm.servo.references import MotorReferences
from devices.arm.servo.settings import ServoSettings
from devices.arm.servo.sliding import sampled_arm
from devices.arm.settings import ArmSettings
from devices.common.settings import Workspace
from devices.emulators.arm.gains import gains_for
from devices.emulators.arm.plant import SLICES, ArmPlant
from devices.emulators.odrive.control_kernels import AXIS, CLOSED_LOOP, PASS_THROUGH, POSITION_CONTROL, iterate
from devices.virtual.arm_kernels import move_body
from haptics.clock import Clock
from haptics.jit import kernel

TICK = 1e-3
LAWS = ("pid", "flatness", "rigid", "fractional", "linearising")


def open_arm(law, clock, **tables):
    tables["arm"] = {"encoder": "both" if law == "linearising" else "motor", **tables.get("arm", {})}
    tables["servo"] = {"law": law, **tables.get("servo", {})}
    device = devices.open_device("virtual-arm", tables, clock=clock)
    return device


# --- the linear system answers as the kernels do ----------------------------------------------------------------------

GRIP = Grip(400.0, 8.0)
# An arm that is linear but for its geometry.
STRAIGHT = {
    **{"coupling": "spring", "lost_motion": 0.0, "kinetic_friction": 0.0, "static_friction": 0.0, "asymmetry": 0.0},
    **{"encoder_counts": 2**31, "joint_counts": 2**31, "model_friction": 0.0},
}

QUIET = {"noise": 0.0, "drift": 0.0, "resolution": 0.0, "bias": [0.0] * 6}


def holding(x, y):
    still = {"rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0, "tremor": 0.0}
    return {"name": "minimum-jerk", "points": [[x, y], [x, y]], "stiffness": 400.0, "damping": 8.0, **still}


def answers(law, own, servo, place):
    """Move the reference at random by some um; return the forces shown by the device and foretold, (2, n, 2) [N]."""
    clock, generator = Clock(TICK), np.random.default_rng(1)
    device = open_arm(law, clock, arm=STRAIGHT | own, servo=servo, hand=holding(*place), sensor=QUIET, substep=1e-5)
    body = device.body
    linear = sampled_arm(body, body.model_joints, device.servo, GRIP, TICK, body.angles(*place))
    state, velocity, way = np.zeros(len(linear.transition)), np.zeros(2), np.zeros(2)
    forces = np.zeros((2, 50, 2))
    for tick in range(50):
        clock.wait(tick)
        forces[:, tick] = device.read().force, linear.force @ state
        velocity += 1e-4 * generator.normal(size=2)
        way = way + TICK * velocity
        device.write(np.array(place) + way)
        state = linear.transition @ state + linear.command @ way
    return forces


ARMS = [
    ({}, {}, (0.0, 0.0)),
    ({"kind": "serial", "rotation": 20.0, "handle_mass": 0.6}, {"knows_hand": True, "integral": 0.0}, (0.05, 0.1)),
    ({"encoder": "both", "model_inertia": 0.8}, {"reference": "smooth", "bandwidth": 30.0}, (-0.1, 0.1)),
]
VARIANTS = [
    ("pid", {"coupling": "rigid"}, {"position_gain": 3e3, "velocity_gain": 60.0, "integral_gain": 100.0}),
    ("rigid", {"encoder": "joint"}, {"bandwidth": 1.0}),
    ("flatness", {}, {"feedback": "conventional"}),
    ("fractional", {"coupling": "rigid"}, {"terms": 3, "proportional": 500.0}),
]


@pytest.mark.parametrize(
    ("law", "own", "servo", "place"),
    [(law, *arm) for law in LAWS for arm in ARMS] + [(*variant, (0.0, 0.0)) for variant in VARIANTS],
)
def test_linear_arm_matches_the_simulated_arm(law, own, servo, place):
    if law == "linearising":
        own = {**own, "encoder": "both"}
    shown, foretold = answers(law, own, servo, place)
    assert np.abs(shown - foretold).max() < 0.02 * np.abs(shown).max()  # the error of the integration steps


# --- force at the hand ------------------------------------------------------------------------------------------------


def test_least_mass_grows_with_the_handle_mass():
    limits = []
    for mass in (0.0, 0.3, 0.6):
        limit = devices.create_device("virtual-arm", {"arm": {"handle_mass": mass}}).spec.least_mass
        assert limit is not None
        limits.append(limit)
    assert limits[0] < 0.5 * limits[1]
    assert limits[2] > 1.5 * limits[1]


# --- emulated drive ---------------------------------------------------------------------------------------------------


STEPS = round(TICK * RATE)


@kernel
def _run(axes, record, first, count, fine):
    """Run iterations of the drive, each with `fine` steps of the arm."""
    s = record[0]
    for k in range(first, first + count):
        for i in range(2):
            iterate(axes[i], s.arm.rotor[i] * s.ratio[i] / math.tau)
        for i in range(2):
            s.motor_torque[i] = s.sign[i] * axes[i].torque
        for j in range(fine):
            move_body(s, (k + j / fine) / SLICES, 1.0 / TICK)


class Driven:
    """Drive and arm of the emulator in step, with commands that arrive `late` drive steps late."""

    def __init__(self, body, settings, hand, late, fine):
        self.body, ratio, self._fine = body, body.reduction, fine
        self._plant = ArmPlant(body, (ratio, -ratio), Workspace((-0.2, -0.15), (0.2, 0.15)), hand)
        self._plant._record["substep"] = self._plant._record["arm"]["step"] = 1.0 / (RATE * fine)
        self._signs, self._late = np.array((1.0, -1.0)), late
        self._references = MotorReferences(settings, body.model_links, body.model_joints, TICK, body.linkage)
        self._references.start(body.angles(*self._plant.handle))
        self._axes, gains = np.zeros(2, AXIS), gains_for(body)
        for name, value in {
            **{"state": CLOSED_LOOP, "control_mode": POSITION_CONTROL, "input_mode": PASS_THROUGH},
            **{"position_gain": gains.position, "speed_gain": gains.speed, "integrator_gain": gains.integrator},
            **{"counts_per_turn": body.encoder_counts, "bandwidth": 1000.0, "integrator_limit": math.inf},
            **{"torque_limit": body.torque_limit, "current_limit": math.inf, "torque_constant": 1.0},
        }.items():
            self._axes[name] = value
        self._axes["position"] = self._axes["input_position"] = self._plant.angles
        self._waiting = [self._axes[["input_position", "input_speed", "input_torque"]].copy()] * (late // STEPS + 1)
        self._plant.begin()
        self._velocity = np.zeros(2)
        self.force = np.zeros(2)

    @property
    def handle(self):
        return self._plant.handle

    def tick(self, place):
        """Command a place and advance by a tick."""
        angles = self.body.angles(*place)
        here = self.body.angles(*self.handle)
        hand = self.body.linkage.jacobians([here])[0].T @ self.force
        wanted = self._axes[["input_position", "input_speed", "input_torque"]].copy()
        told = self._references.step(angles, hand)
        to_motor = self.body.reduction * self._signs
        for name, value, factor in zip(
            wanted.dtype.names, told, (to_motor / math.tau, to_motor / math.tau, 1.0 / to_motor), strict=True
        ):
            wanted[name] = value * factor
        self._waiting.append(wanted)
        self._plant._ask_hand()
        self._plant._steps += STEPS
        part = self._late % STEPS
        self._go_on(0, part)
        self._waiting.pop(0)  # the next one has arrived
        self._go_on(part, STEPS - part)
        before, self._velocity = self._velocity, self._plant._record["handle_velocity"][0].copy()
        self.force = self._plant.hand_force - self.body.handle_mass * (self._velocity - before) / TICK

    def _go_on(self, first, count):
        for name in self._waiting[0].dtype.names:
            self._axes[name] = self._waiting[0][name]
        _run(self._axes, self._plant._record, first, count, self._fine)


# --- the linear system answers as the kernels do ----------------------------------------------------------------------


@pytest.mark.parametrize("law", ["pid", "flatness", "rigid"])
@pytest.mark.parametrize(
    ("own", "servo", "place", "late"),
    [
        ({}, {}, (0.0, 0.0), 0),
        ({"handle_mass": 0.6}, {"knows_hand": True}, (0.05, 0.1), 5),
        ({"model_inertia": 0.8, "stiffness": 6e3}, {"reference": "smooth"}, (-0.1, 0.1), 8),
        ({"coupling": "rigid"}, {}, (0.0, -0.1), 19),
    ],
)
def test_linear_arm_matches_the_emulated_arm(law, own, servo, place, late):
    body, settings = ArmBody(**(STRAIGHT | own)), ServoSettings(law=law, **servo)
    rig = Driven(body, settings, holding(*place), late, 12)
    arm = DrivenArm(body, body.model_joints, settings, gains_for(body), (body.reduction,) * 2, late / RATE)
    linear = arm.sampled(Grip(400.0, 8.0), TICK, body.angles(*place))
    generator, state, velocity, way = np.random.default_rng(1), np.zeros(len(linear.transition)), 0.0, np.zeros(2)
    shown, foretold = np.zeros((2, 60, 2))
    for tick in range(60):
        shown[tick], foretold[tick] = rig.force, linear.force @ state
        velocity = velocity + 1e-4 * generator.normal(size=2)
        way = way + TICK * velocity
        rig.tick(np.array(place) + way)
        state = linear.transition @ state + linear.command @ way
    assert np.abs(shown - foretold).max() < 0.02 * np.abs(shown).max()


# --- force at the hand ------------------------------------------------------------------------------------------------


def least_mass(**settings):
    return devices.create_device("arm", settings).spec.least_mass


def test_least_mass_needs_all_gains_of_the_drive():
    has = gains_for(ArmSettings().body)
    gains = {"position_gain": has.position, "speed_gain": has.speed, "integrator_gain": has.integrator}
    assert least_mass() is None
    for missing in gains:
        some = {name: value for name, value in gains.items() if name != missing}
        assert least_mass(motors=some) is None
        assert least_mass(emulated=True, motors=some) is not None
    assert least_mass(motors=gains) == pytest.approx(least_mass(emulated=True))
    assert least_mass(emulated=True, motors={"position_gain": 80.0}) != least_mass(emulated=True)
