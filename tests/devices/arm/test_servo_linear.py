"""The arm as a linear system: it answers as the simulated arm does, and a mass lighter than it allows shakes that."""

import math

import numpy as np
import pytest

import devices
from devices.arm.body import ArmBody
from devices.arm.device import ArmSettings
from devices.arm.servo.kernels import start_servos
from devices.arm.servo.linear import RATE, DrivenArm, Grip, ServoedArm
from devices.arm.servo.servo import new_references
from devices.arm.servo.settings import ServoSettings
from devices.common.settings import Workspace
from devices.emulators import arm as arm_emulator
from devices.emulators.arm import SLICES, ArmBoard, ArmPlant, gains_for
from devices.emulators.odrive.axis import CLOSED_LOOP, iterate
from devices.virtual.arm import move_body
from haptics.clock import Clock
from haptics.jit import kernel
from tests.devices.arm.servo_rig import refer

TICK = 1e-3
LAWS = ("pid", "flatness", "rigid", "fractional", "linearising")


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


def require_equal_forces(linear, place, read, write):
    """Move the reference at random by some um: the arm must show the forces [N] that the linear system foretells."""
    generator, state, velocity, way = np.random.default_rng(1), np.zeros(len(linear.transition)), 0.0, np.zeros(2)
    shown, foretold = np.zeros((2, 60, 2))
    for tick in range(60):
        shown[tick], foretold[tick] = read(tick), linear.force @ state
        velocity = velocity + 1e-4 * generator.normal(size=2)
        way = way + TICK * velocity
        write(np.array(place) + way)
        state = linear.transition @ state + linear.command @ way
    assert np.abs(shown - foretold).max() < 0.02 * np.abs(shown).max()  # the error of the integration steps


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
    clock, encoder = Clock(TICK), {"encoder": "both"} if law == "linearising" else {}
    tables = {"arm": STRAIGHT | own | encoder, "servo": {"law": law, **servo}, "hand": holding(*place)}
    device = devices.open_device("virtual-arm", {**tables, "sensor": QUIET, "substep": 1e-5}, clock=clock)
    body = device.body
    linear = ServoedArm(body, body.model_joints, device.servo).sampled(GRIP, TICK, body.angles(*place))

    def read(tick):
        clock.wait(tick)
        return device.read().force

    require_equal_forces(linear, place, read, device.write)


# --- emulated drive ---------------------------------------------------------------------------------------------------

STEPS = round(TICK * RATE)
# Steps of the arm in an iteration of the drive.
FINE = 12
INPUTS = ("controller.input_pos", "controller.input_vel", "controller.input_torque")


@kernel
def run_finely(axes, record, first, count):
    """Simulate iterations of the drive like `devices.emulators.arm`, but with `FINE` steps of the arm in each."""
    s = record[0]
    for k in range(first, first + count):
        for i in range(2):
            iterate(axes[i], s.arm.rotor[i] * s.ratio[i] / math.tau)
        for i in range(2):
            s.motor_torque[i] = s.sign[i] * axes[i].torque
        for j in range(FINE):
            move_body(s, (k + j / FINE) / SLICES, 1.0 / TICK)


class Driven:
    """Drive and arm of the emulator in step, with commands that arrive `late` drive steps late."""

    def __init__(self, body, settings, hand, late):
        self.body, self._late, self._ratios = body, late, np.array((body.reduction, -body.reduction))
        self._plant = ArmPlant(body, tuple(self._ratios), Workspace((-0.2, -0.15), (0.2, 0.15)), hand)
        self._plant._record["substep"] = self._plant._record["arm"]["step"] = 1.0 / (RATE * FINE)
        self._drive = ArmBoard(self._plant, body).inside
        for axis in self._drive.axes:
            axis.request(CLOSED_LOOP)
        self._origin = np.array(self._plant.angles)  # where the encoders count from
        self._references = new_references(settings, body.model_links, body.model_joints, TICK, body.linkage)
        start_servos(self._references, np.array(body.angles(*self._plant.handle)))
        self._waiting = [np.zeros((3, 2))] * (late // STEPS + 1)
        self._plant.begin()
        self._velocity = self.force = np.zeros(2)

    @property
    def handle(self):
        return self._plant.handle

    def tick(self, place):
        """Command a place and advance by a tick."""
        here = self.body.angles(*self.handle)
        hand = self.body.linkage.jacobians([here])[0].T @ self.force
        angles, speeds, torques = refer(self._references, self.body.angles(*place), hand)
        turns = self._ratios / math.tau
        self._waiting.append(np.array((turns * angles - self._origin, turns * speeds, torques / self._ratios)))
        part = self._late % STEPS
        self._go_on(part)
        self._waiting.pop(0)  # the next one has arrived
        self._go_on(STEPS - part)
        before, self._velocity = self._velocity, self._plant._record["handle_velocity"][0].copy()
        self.force = self._plant.hand_force - self.body.handle_mass * (self._velocity - before) / TICK

    def _go_on(self, count):
        for axis, inputs in zip(self._drive.axes, self._waiting[0].T, strict=True):
            axis.values.update(dict(zip(INPUTS, inputs, strict=True)))
        self._drive.iterate(count)


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
def test_linear_arm_matches_the_emulated_arm(law, own, servo, place, late, monkeypatch):
    monkeypatch.setattr(arm_emulator, "_run", run_finely)
    body, settings = ArmBody(**(STRAIGHT | own)), ServoSettings(law=law, **servo)
    rig = Driven(body, settings, holding(*place), late)
    arm = DrivenArm(body, body.model_joints, settings, gains_for(body), (body.reduction,) * 2, late / RATE)
    linear = arm.sampled(GRIP, TICK, body.angles(*place))
    require_equal_forces(linear, place, lambda _: rig.force, rig.tick)


# --- force at the hand ------------------------------------------------------------------------------------------------


def least_mass(device="arm", **settings):
    return devices.create_device(device, settings).spec.least_mass


def test_least_mass_grows_with_the_handle_mass():
    limits = [least_mass("virtual-arm", arm={"handle_mass": mass}) for mass in (0.0, 0.3, 0.6)]
    assert limits[0] < 0.5 * limits[1]
    assert limits[2] > 1.5 * limits[1]


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
