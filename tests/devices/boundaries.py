"""What advice says of a device, and where the device itself begins to swing, to shake, or is driven no faster."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from calibration.motions import Mover, Procedure, drive
from haptics import Coulomb, MasslessImpedance, RigidAdmittance
from haptics.design import advise
from haptics.device import Causality, DeviceSpec
from haptics.elements.models import Element
from haptics.rendering.motion import Motion, holding, reference

FRICTION = 6.0
"""Of a contact that slides on an arm [N]."""

LIGHTEST, HEAVIEST = 0.05, 3.2
"""Masses among which the least one that does not shake is looked for [kg]."""

NEAR = 1.2
"""A mass that shakes and one that does not are as near as that: factor."""

ROUND, RADIUS, TURNING = 3.0, 0.05, 1500
"""A hand leads the arm round a circle [m] for so long [s]; so many of the last ticks are judged."""

LOUD, HUM = 4.0, 40.0
"""An arm shakes whose force has more than that [N rms] above that frequency [Hz]."""

TOO_MUCH = 1e9
"""A stiffness that no device stands [N/m]."""

PART, REST, EASED = 0.7, 0.05, 0.15
"""Part of the way to the edge along which a handle is pushed; times before that, of which one is to come up [s]."""

WINDOW = 10
"""Ticks over which a speed is told from positions."""

USUAL_MASS = 0.2
"""Where a data sheet states none [kg]."""

CIRCLE = tuple(f"hand.{name}" for name in ("name=recorded", "stiffness={:g}", "damping={:g}", "file={}"))


# --- what is advised -------------------------------------------------------------------------------------------------


def _limit(element: Element, spec: DeviceSpec, bound: str) -> float | None:
    return next((one.limit for one in advise(element, spec) if one.bound == bound), None)


def advised_stiffness(spec: DeviceSpec, damping: float) -> float | None:
    """Return the stiffness above which advice warns of a contact with this `damping` [N/m]; None where it is mute."""
    return _limit(MasslessImpedance(Coulomb(1.0), TOO_MUCH, damping), spec, "stiffness")


def advised_mass(spec: DeviceSpec) -> float | None:
    """Return the virtual mass below which advice warns [kg]; None where it is mute."""
    return _limit(RigidAdmittance(Coulomb(FRICTION), 1.0 / TOO_MUCH), spec, "mass")


# --- an arm that shakes ----------------------------------------------------------------------------------------------


def circle(folder: Path, spec: DeviceSpec) -> tuple[str, ...]:
    """Return the settings of a hand that leads an arm round a circle once in a second, as firmly as advice expects."""
    from haptics.design import FIRM_GRIP

    grip = spec.grip_stiffness or FIRM_GRIP[0], spec.grip_damping or FIRM_GRIP[1]
    time = np.arange(0.0, ROUND + 1.0, 2e-3)
    turn = 2.0 * math.pi * np.where(time < 0.5, time**2, time - 0.25)
    file = folder / "circle.csv"
    rows = np.column_stack((time, RADIUS * np.cos(turn), RADIUS * np.sin(turn)))
    np.savetxt(file, rows, delimiter=",", header="time,x,y", comments="")
    name, stiffness, damping, path = CIRCLE
    return name, stiffness.format(grip[0]), damping.format(grip[1]), path.format(file)


def hum(rows: np.ndarray) -> float:
    """Return what the force of a hand's last ticks has above `HUM` [N rms]; infinite if a limit has ended the run."""
    if len(rows) < TURNING + 1000:
        return math.inf
    steady = rows["force"][-TURNING:] - rows["force"][-TURNING:].mean(axis=0)
    spectrum = np.fft.rfft(steady * np.hanning(TURNING)[:, None], axis=0)
    loud = spectrum[np.fft.rfftfreq(TURNING, 1e-3) > HUM]
    return math.sqrt(2.0 * float((np.abs(loud) ** 2).sum()) / (0.375 * TURNING**2))


def least_mass(shakes: Callable[[float], bool]) -> str:
    """Return the least mass that does not shake, in words, found by bisection."""
    low, high = LIGHTEST, HEAVIEST
    while high > NEAR * low:
        middle = math.sqrt(low * high)
        if shakes(middle):
            low = middle
        else:
            high = middle
    if low == LIGHTEST:
        return f"less than {high:.2g} kg"
    return f"{math.sqrt(low * high):.2g} kg" if high < HEAVIEST else f"more than {low:.2g} kg"


# --- a handle that is driven no faster -------------------------------------------------------------------------------


def fastest_driven(mover: Mover, folder: Path) -> float:
    """Return how fast a device's own motors drive its handle that nobody holds [m/s], as the envelope lets them."""
    found: list[float] = []
    drive(mover, _driven(mover.spec, found), folder)
    return found[0]


def _driven(spec: DeviceSpec, found: list[float]) -> Procedure:
    """Push the handle with all force towards the farther edge, and catch it."""
    move = functools.partial(Motion, Causality.IMPEDANCE, bound=spec.max_force)
    rows = yield move(holding(REST), relative=True, label="rest")
    place = float(rows["position"][-1, 0])
    forwards, back = spec.workspace_max[0] - place, place - spec.workspace_min[0]
    ticks = _ticks(spec, PART * max(forwards, back))
    force = np.zeros((round(EASED / 1e-3) + 2 * ticks, 2))
    force[-2 * ticks :, 0] = np.repeat(math.copysign(spec.max_force, forwards - back), 2 * ticks)
    force[-ticks:] *= -1.0
    rows = yield move(reference(np.zeros_like(force), force=force), relative=True, label="push")
    found.append(top_speed(rows))


def top_speed(rows: np.ndarray) -> float:
    """Return the greatest speed along x, by the places of the handle [m/s]."""
    moved, ticks = (values[WINDOW:] - values[:-WINDOW] for values in (rows["position"][:, 0], rows["tick"]))
    return float(np.max(np.abs(moved) / (1e-3 * ticks)))


def _ticks(spec: DeviceSpec, way: float) -> int:
    """Return how many ticks a push lasts that drives the handle to the largest speed, if it can, and on along `way`."""
    acceleration, speed = spec.max_force / (spec.mass or USUAL_MASS), spec.max_speed
    rising = speed**2 / (2.0 * acceleration)
    if rising > way:
        return round(math.sqrt(2.0 * way / acceleration) / 1e-3)
    return round((speed / acceleration + (way - rising) / speed) / 1e-3)
