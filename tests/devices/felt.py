"""Friction felt at a handle: a hand that moves it to and fro, and its force."""

from dataclasses import dataclass

import numpy as np

from devices.virtual.hands.hand import Hand, HandSample, HandSettings

# A handle with dry friction that falls, and differs between the directions and the axes.
FRICTION = {
    "x": {
        "coulomb_forward": 1.2,
        "coulomb_backward": 0.9,
        "static_forward": 1.8,
        "static_backward": 1.4,
        "stribeck_velocity": 0.01,
    },
    "y": {
        "coulomb_forward": 0.7,
        "coulomb_backward": 0.8,
        "static_forward": 1.0,
        "static_backward": 1.1,
        "stribeck_velocity": 0.02,
    },
}


def write_own_friction(path):
    """Write the file that a perfect calibration would make of that handle; return its path."""
    lines = ["[provenance]", "device = 'virtual-joystick'"]
    for axis, levels in FRICTION.items():
        lines += [f"[joint.{axis}]", "rotary = false", f"[joint.{axis}.friction]", "model = 'stribeck-asymmetric'"]
        for direction in ("forward", "backward"):
            lines.append(f"coulomb_force_{direction}_n = {levels[f'coulomb_{direction}']}")
            lines.append(f"static_force_{direction}_n = {levels[f'static_{direction}']}")
        lines += [f"stribeck_velocity_m_per_s = {levels['stribeck_velocity']}", "viscosity_ns_per_m = 1.0"]
    path.write_text("\n".join(lines))
    return str(path)


@dataclass(frozen=True)
class ToAndFro(HandSettings):
    """A hand that moves its target to and fro at a constant speed along one axis, until an optional release."""

    axis: int = 0
    speed: float = 0.05
    reach: float = 0.03
    lets_go_at: float = np.inf

    def build(self, seed, workspace):
        return _MovingHand(self)


class _MovingHand(Hand):
    def __init__(self, settings):
        self.stiffness, self.damping, self.start = 400.0, 8.0, (0.0, 0.0)
        self._settings = settings

    def sample(self, time, handle):
        own = self._settings
        phase = (time * own.speed / own.reach + 1.0) % 4.0
        place = [0.0, 0.0]
        place[own.axis] = own.reach * (phase - 1.0 if phase < 2.0 else 3.0 - phase)
        return HandSample(place[0], place[1], grip=0.0 if time > own.lets_go_at else 1.0)


@dataclass(frozen=True)
class Felt:
    """What a hand felt along its axis.

    Attributes
    ----------
    forward, backward : float
        Mean of its force against the motion, over all ticks of motion at no less than half the hand's speed [N].
    work : float
        Work of the hand by the length of the way [N].
    """

    forward: float
    backward: float
    work: float


def feel(device, plant, hand, ticks, element=None):
    """Render an element, or no force, and return the forces of the hand without the first quarter.

    The `plant` holds the true handle and hand. The device is open and stays open.
    """
    rows = []
    for _ in range(ticks):
        state = device.read()
        device.write(np.zeros(2) if element is None else -element.step(state.velocity))
        rows.append((plant.handle[hand.axis], plant.handle_velocity[hand.axis], plant.hand_force[hand.axis]))
    place, velocity, force = np.array(rows[ticks // 4 :]).T
    way = np.diff(place)
    fast = 0.5 * hand.speed
    return Felt(
        float(force[velocity > fast].mean()),
        float(-force[velocity < -fast].mean()),
        float(np.sum(force[1:] * way) / np.abs(way).sum()),
    )
