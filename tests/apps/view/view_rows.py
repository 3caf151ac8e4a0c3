"""Simulated rows of a session: a hand moves a small mass with the friction of model C along a path.

Model C is the massless impedance: a spring that is loaded up to the Coulomb force and then slides.
"""

from pathlib import Path

import numpy as np

from haptics.records import ROW, Status
from haptics.trace import Trace

PERIOD = 1e-3
FORCE = 4.0
STIFFNESS = 6000.0
DAMPING = 10.0
MASS = 0.15
HAND_STIFFNESS, HAND_DAMPING = 1500.0, 15.0

METADATA = {
    "device": {"name": "virtual-joystick", "workspace_min": [-0.06, -0.045], "workspace_max": [0.06, 0.045]},
    "model": "C",
    "configuration": {"law": {"name": "coulomb"}},
    "causality": "impedance",
    "rate_hz": 1000.0,
    "limits": {"max_energy": 0.02, "dead_man": "none"},
    "hand": "tracing",
    "parameters": {"law.force": FORCE, "element.stiffness": STIFFNESS, "element.damping": DAMPING},
    "choices": {"virtual-joystick": ["B", "C"], "virtual-arm": ["A", "D"]},
    "hands": ["tracing", "mouse"],
    "recording": "recordings/2026-11-20_15-04-12_virtual-joystick_C",
}

_CORNERS = [(-0.038, 0.025), (0.005, 0.03), (0.045, 0.012), (0.03, -0.03), (-0.01, -0.012), (-0.036, -0.03)]

STROKE, REST = 0.55, 0.35


def grip(times):
    """Return the firmness of the hand from 0 to 1, which decreases at rest; (n,)."""
    phase = np.mod(times, STROKE + REST) - STROKE
    return np.where(phase > 0, 1 - 0.75 * np.sin(np.pi * np.clip(phase / REST, 0, 1)) ** 2, 1.0)


def hand_path(times):
    """Return the target of the hand: strokes between corners with rests, the third along an arc; (n, 2) [m]."""
    number, phase = np.divmod(times, STROKE + REST)
    share = np.clip(phase / STROKE, 0.0, 1.0)
    smooth = share**3 * (10 - 15 * share + 6 * share**2)
    corners = np.array(_CORNERS)
    start, end = (corners[(number.astype(int) + k) % len(corners)] for k in (0, 1))
    bow = np.where(number.astype(int) % 3 == 2, 0.012, 0.0) * np.sin(np.pi * smooth)
    across = np.stack((-(end - start)[:, 1], (end - start)[:, 0]), axis=1)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return start + smooth[:, None] * (end - start) + bow[:, None] * across


def simulate(count, seed=1):
    """Return `count` rows of an impedance device at 1 kHz."""
    random = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    rows["time"] = PERIOD * rows["tick"]
    tremor = np.cumsum(random.normal(0, 2e-5, (count, 2)), axis=0)
    tremor -= np.linspace(0, 1, count)[:, None] * tremor[-1]
    target = hand_path(rows["time"]) + np.clip(tremor, -6e-4, 6e-4)
    firm = grip(rows["time"])
    position, velocity, spring = target[0].copy(), np.zeros(2), np.zeros(2)
    for k in range(count):
        reach = spring + PERIOD * velocity
        bound = FORCE / STIFFNESS
        stretch = np.linalg.norm(reach)
        sticking = stretch <= bound
        moved = reach if sticking else reach * bound / stretch
        friction = STIFFNESS * moved + DAMPING * (moved - spring) / PERIOD
        norm = np.linalg.norm(friction)
        friction *= min(1.0, FORCE / norm) if norm > 0 else 1.0
        spring = moved
        row = rows[k]
        row["position"], row["velocity"] = position, velocity
        row["friction_force"], row["command"], row["command_unlimited"] = friction, -friction, -friction
        row["proxy"], row["displacement"], row["sticking"] = position - spring, spring, sticking
        hand = firm[k] * HAND_STIFFNESS * (target[k] - position) - HAND_DAMPING * velocity
        velocity = velocity + PERIOD * (hand - friction) / MASS
        position = position + PERIOD * velocity
    rows["sliding_velocity"][1:] = np.diff(rows["proxy"], axis=0) / PERIOD
    _add_timing(rows, random)
    return rows


def numbered(first, count):
    """Return rows whose x position [mm] is their number."""
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(first, first + count)
    rows["time"] = 1e-3 * rows["tick"]
    rows["position"][:, 0] = 1e-3 * rows["tick"]
    return rows


def _add_timing(rows, random):
    count = len(rows)
    late = random.lognormal(np.log(22e-6), 0.45, count)
    bursts = random.random(count) < 0.002
    late[bursts] *= random.uniform(5, 40, int(bursts.sum()))
    rows["period_error"] = late
    rows["tick_time"] = random.lognormal(np.log(8e-6), 0.2, count)
    rows["sample_age"] = 4e-4
    rows["status"][late > 0.5 * PERIOD] |= np.uint32(Status.STARTED_LATE)
    fast = np.linalg.norm(np.diff(rows["command"], axis=0, prepend=0.0), axis=1) > 0.35
    rows["status"][fast] |= np.uint32(Status.SLEW)


def write_trace(path, count):
    """Write `count` rows through a real trace; the target of a second process."""
    trace = Trace.create(Path(path))
    for row in simulate(count):
        trace.append(row)
