"""Simulated rows of a session: a hand moves the handle along a path and feels the friction of model C."""

from pathlib import Path

import numpy as np

import haptics
from haptics import Coulomb, MasslessImpedance
from haptics.records import ROW, Status
from haptics.trace import Trace

PERIOD = 1e-3
FORCE = 4.0
STIFFNESS = 6000.0
DAMPING = 10.0

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

_CORNERS = np.array([(-0.038, 0.025), (0.005, 0.03), (0.045, 0.012), (0.03, -0.03), (-0.01, -0.012), (-0.036, -0.03)])
STROKE, REST = 0.55, 0.35


def hand_path(times):
    """Return the position of the hand: straight strokes between the corners, with rests; (n, 2) [m]."""
    number, phase = np.divmod(times, STROKE + REST)
    share = np.clip(phase / STROKE, 0.0, 1.0)[:, None]
    start, end = (_CORNERS[(number.astype(int) + k) % len(_CORNERS)] for k in (0, 1))
    return start + share**3 * (10 - 15 * share + 6 * share**2) * (end - start)


def simulate(count):
    """Return `count` rows of an impedance device at 1 kHz, whose handle follows the hand."""
    rows = np.zeros(count, ROW)
    rows["tick"] = np.arange(count)
    rows["time"] = PERIOD * rows["tick"]
    rows["position"] = hand_path(rows["time"])
    rows["velocity"] = np.gradient(rows["position"], PERIOD, axis=0)
    felt = haptics.simulate(MasslessImpedance(Coulomb(FORCE), STIFFNESS, DAMPING), rows["velocity"])
    rows["friction_force"], rows["displacement"], rows["sticking"] = (
        felt.friction_force,
        felt.displacement,
        felt.sticking,
    )
    rows["command"] = rows["command_unlimited"] = -felt.friction_force
    rows["proxy"] = rows["position"] - felt.displacement
    rows["sliding_velocity"] = felt.velocity
    _add_timing(rows, np.random.default_rng(1))
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
