"""An arm with two elastic joints under a servo: commands at 1 kHz, the servo at its rate, a plant."""

import numpy as np

from devices.arm.flatness.joint import ElasticJoint
from devices.arm.flatness.laws import SmoothBacklash, SmoothCoulomb
from devices.arm.mechanics.drive import Drive, Motor
from devices.arm.mechanics.dynamics import TwoLinks
from devices.arm.mechanics.linkage import jacobian
from devices.arm.mechanics.plant import PLANT, Surface, new_plant, step_plant
from devices.arm.servo.kernels import part_address, refer_motors, refer_part
from devices.arm.servo.servo import new_servo
from devices.common.kernels import quantise
from haptics.friction.custom_law import CustomLaw
from haptics.jit import call_part, kernel

TICK = 1e-3

_SMOOTH = """
def smooth(speed, level=1.0, viscosity=0.0, steepness=100.0):
    return viscosity * speed + level * math.tanh(0.5 * steepness * speed)
"""


def smooth_friction(level, viscosity, steepness):
    """Return friction that is smooth through zero and never sticks (Weigand et al. 2020, (4))."""
    return CustomLaw.from_table(_SMOOTH, {"level": level, "viscosity": viscosity, "steepness": steepness})


START = (0.5, 1.4)

LINKS = TwoLinks(
    length_1=0.35,
    length_2=0.35,
    mass_1=2.0,
    mass_2=1.3,
    centre_1=0.5,
    centre_2=0.6,
    inertia_1=0.02,
    inertia_2=0.02,
    joint_inertia_1=0.0,
    joint_inertia_2=0.0,
    gravity=0.0,
)
GEAR = SmoothBacklash(3e4, 1e-4, 2.0)
RATIO, ROTOR = 100.0, 6e-5
JOINT = ElasticJoint(SmoothCoulomb(10.0, 3.0, 300.0), GEAR, RATIO, ROTOR)
# The very friction that `JOINT` believes in.
SMOOTH = smooth_friction(10.0, 3.0, 300.0)

# At the servo's last step in a tick: command, joints, rotors, torques of the motors, reference.
ROW = np.dtype([(name, "<f8", (2,)) for name in ("command", "angle", "speed", "rotor", "torque", "reference")])


def refer(references, angles, hand=(0.0, 0.0)):
    """Return angles, speeds and torques of the motors, (3, 2), for commanded angles and torques of the hand."""
    found, address = np.zeros(6), references.ctypes.data
    refer_motors(
        address, part_address(references, refer_part), np.asarray(angles, float), np.asarray(hand, float), found
    )
    return found.reshape(3, 2)


@kernel
def step_servo(servos):
    """Execute one period of the first servo."""
    call_part(servos[0].step, servos[0], 0.0, 0.0)


@kernel
def _run(servos, plants, drives, before, commands, hands, counts, sizes, rows):
    s, p, w = servos[0], plants[0], np.zeros(4)
    periods, substeps = counts
    b1, b2 = before
    for k in range(len(commands)):
        p.hand_force[0], p.hand_force[1] = hands[k, 0], hands[k, 1]
        for j in range(periods):
            share = j / periods
            s.command[0], s.command[1] = b1 + share * (commands[k, 0] - b1), b2 + share * (commands[k, 1] - b2)
            xx, xy, yx, yy = jacobian(p.links.linkage, p.angle[0], p.angle[1])
            s.hand[0], s.hand[1] = xx * hands[k, 0] + yx * hands[k, 1], xy * hands[k, 0] + yy * hands[k, 1]
            for i in range(2):
                s.motor[i], s.link[i] = quantise(p.rotor[i], sizes[0]), quantise(p.angle[i], sizes[1])
            call_part(s.step, s, 0.0, 0.0)
            if j + 1 == periods:
                r = rows[k]
                for i in range(2):
                    r.command[i], r.angle[i], r.speed[i], r.rotor[i] = s.command[i], p.angle[i], p.speed[i], p.rotor[i]
                    r.torque[i], r.reference[i] = s.torque[i], s.axis[i].wanted.position
            for _ in range(substeps):
                step_plant(p, drives, s.torque, w)
        b1, b2 = commands[k, 0], commands[k, 1]


class ServoRig:
    """An arm at rest at `START` under the servo of `settings`; `rows` of a run are its states, one after each tick.

    `motor_step` and `joint_step` are encoder resolutions at the joint [rad]; `friction` is the true friction of both
    joints, `joint` the model of the servo.
    """

    def __init__(
        self,
        settings,
        *,
        friction=SMOOTH,
        joint=JOINT,
        links=LINKS,
        encoders="motor",
        motor_step=0.0,
        joint_step=0.0,
        damping=10.0,
        gear=GEAR,
        substep=5e-5,
        torque_limit=1e3,
    ):
        drive = Drive(
            Motor(inertia=ROTOR), ratio=RATIO, coupling="elastic", gear=gear, damping=damping, friction=friction
        )
        self.plant = np.zeros(1, PLANT)
        self.drives = new_plant(self.plant, links, (drive, drive), Surface(), START)
        self.plant["step"] = substep
        self.sizes = np.array([motor_step, joint_step])
        self.commanded = np.array(START)
        self.counts = round(TICK / settings.period), round(settings.period / substep)
        self.servo = new_servo(
            settings,
            links,
            (joint, joint),
            START,
            encoders=encoders,
            resolution=(motor_step, motor_step) if encoders == "motor" else (joint_step, joint_step),
            torque_limit=(torque_limit, torque_limit),
        )

    def run(self, commands, hands=(0.0, 0.0)):
        """Go through `commands`, (n, 2) [rad], one each tick, under the forces `hands`, (2,) or (n, 2) [N]."""
        angles = np.ascontiguousarray(commands, np.float64)
        forces = np.ascontiguousarray(np.broadcast_to(np.asarray(hands, np.float64), angles.shape))
        rows = np.zeros(len(angles), ROW)
        _run(self.servo, self.plant, self.drives, self.commanded, angles, forces, self.counts, self.sizes, rows)
        self.commanded = angles[-1]
        return rows

    def hold(self, seconds, hand=(0.0, 0.0)):
        """Hold the last command for some time under a force [N]."""
        count = round(seconds / TICK)
        return self.run(np.tile(self.commanded, (count, 1)), hand)


def strokes(seconds, amplitude=0.25, frequency=0.7):
    """Return commands (n, 2) [rad] to and fro about `START`, beginning and ending at rest."""
    time = TICK * np.arange(1, round(seconds / TICK) + 1)
    swell = np.sin(np.pi * time / seconds) ** 2
    wave = np.sin(2.0 * np.pi * frequency * time)
    return np.asarray(START + amplitude * (swell * wave)[:, None] * np.array([1.0, -0.7]))
