"""Felt stimulus: the axis value that explains the work of the hand while it slid.

The felt friction is the work of the hand along its path, less the kinetic energy of the moving mass. If the force of
the hand is known (virtual hand, force sensor), the work is computed from it. Otherwise it is computed from the commands
at the time when the device has carried them out, and from the residual friction of the device by its identified model
and interval. The felt value is the value of the axis, in its unit, for which the ground does this work with all other
settings unchanged. Along a wall, only tangential motion counts, with the recorded normal force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.experiment.stimulus.ground import Ground
from apps.experiment.stimulus.own import Residual
from haptics.device import Causality, DeviceSpec
from haptics.records import Rows

SLIDING_SPEED = 0.01
"""Speed below which a motion does not count as sliding [m/s]."""

_LEAST_WAY = 2e-3
"""Minimum length of an evaluated stretch of sliding [m]."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stretch:
    """Stretch of sliding without a stop.

    Attributes
    ----------
    work : float
        Work of the hand without the kinetic energy of the moving mass [J].
    way : float
        Length of the path [m].
    ticks : int
        Duration [ticks].
    expected, other : float
        Work of the ground with the specified value of the axis, and with the value increased by a step [J].
    """

    work: float
    way: float
    ticks: int
    expected: float
    other: float


@dataclass(frozen=True)
class Felt:
    """Felt stimulus of an interval.

    Attributes
    ----------
    value, low, high : float
        Felt value in the unit of the axis, with its 95 % interval.
    source : str
        ``truth``, ``sensor`` or ``model``.
    speed : float
        Mean speed of sliding [m/s].
    """

    value: float
    low: float
    high: float
    source: str
    speed: float


class Unknown(Exception):
    """The felt stimulus is unknown.

    The message contains the reason.
    """


def felt_stimulus(
    rows: Rows, ground: Ground, other: Ground, step: float, value: float, spec: DeviceSpec, own: Residual | None = None
) -> Felt:
    """Estimate the felt stimulus from the rows of an interval.

    Parameters
    ----------
    rows : structured array
        Consecutive rows of the interval.
    ground, other : Ground
        Ground with the specified value of the axis, and with the value increased by `step`.
    step, value : float
        Step and specified value, in the unit of the axis.
    spec : DeviceSpec
        Data sheet of the device.
    own : Residual, optional
        Residual friction of the device, if known.

    Raises
    ------
    Unknown
        If the stimulus cannot be determined. The message contains the reason.
    """
    forces, source, doubt = _forces(rows, spec, own)
    mass = (spec.mass or 0.0) if source == "truth" else 0.0  # only a hand force also moves the mass
    stretches = [one for one in _stretches(rows, (ground, other), forces, mass) if one.way >= _LEAST_WAY]
    if not stretches:
        raise Unknown("the hand did not slide")
    way = sum(one.way for one in stretches)
    per_unit = sum(one.other - one.expected for one in stretches) / step
    if not abs(per_unit) > 1e-9 * way:
        raise Unknown("the axis does not show while the hand slides")
    found = float(value + sum(one.work - one.expected for one in stretches) / per_unit)
    bound = math.hypot(_spread(stretches, per_unit / way), doubt * way / abs(per_unit))
    speed = way / (sum(one.ticks for one in stretches) * _period(rows))
    return Felt(found, found - bound, found + bound, source, speed)


def _forces(rows: Rows, spec: DeviceSpec, own: Residual | None) -> tuple[Array, str, float]:
    """Return the force of the hand at each tick, shape (n, 2) [N], its source, and its uncertainty [N]."""
    if np.isfinite(rows["hand_force"]).all():
        return rows["hand_force"], "truth", 0.0
    if spec.causality is Causality.ADMITTANCE:
        return rows["force"], "sensor", 0.0
    if own is None:
        raise Unknown(
            "the device's own friction is not known: set friction.measure_each_session, or name the file of 'haptics "
            f"calibrate friction --device {spec.name}' in device.friction_parameters"
        )
    return own.force(rows) - _carried_out(rows, spec.delay or 0.0), "model", own.doubt


def _carried_out(rows: Rows, delay: float) -> Array:
    """Return the commands carried out at each tick, shape (n, 2) [N], which are `delay` [s] late."""
    time = rows["time"]
    return np.column_stack([np.interp(time - delay, time, rows["command"][:, axis]) for axis in range(2)])


def _stretches(rows: Rows, grounds: tuple[Ground, Ground], forces: Array, mass: float) -> list[Stretch]:
    """Return the stretches of sliding with the work of the forces, less the kinetic energy of a mass [kg]."""
    contacts, period = grounds[0].contacts(rows), _period(rows)
    moving = np.hypot(rows["velocity"][:, 0], rows["velocity"][:, 1]) > SLIDING_SPEED
    moving &= (rows["sticking"] == 0) & contacts.clear
    edges = np.flatnonzero(np.diff(np.concatenate(([0], moving.view(np.int8), [0]))))
    found = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        steps = contacts.on_the_surface(np.diff(rows["position"][first:end], axis=0), first)
        way = np.hypot(steps[:, 0], steps[:, 1])
        slack = grounds[0].slack(rows[first:end], contacts.touched[first:end])
        begin = first + int(np.searchsorted(np.cumsum(way), slack)) if slack else first
        if end - begin < 3:
            continue
        steps, way = steps[begin - first :], way[begin - first :]
        mean = 0.5 * (forces[begin : end - 1] + forces[begin + 1 : end])
        speed = np.hypot(rows["velocity"][begin:end, 0], rows["velocity"][begin:end, 1])
        kinetic = 0.5 * mass * (speed[-1] ** 2 - speed[0] ** 2)
        part = rows[begin : end - 1], steps, period, contacts.touched[begin : end - 1]
        taken = [float(np.dot(ground.friction(*part), way)) for ground in grounds]
        found.append(Stretch(float((mean * steps).sum() - kinetic), float(way.sum()), len(way), *taken))
    return found


def _spread(stretches: list[Stretch], force_per_unit: float) -> float:
    """Return the half-width of the 95 % interval of the mean over stretches, or 0 for a single stretch."""
    if len(stretches) < 2:
        return 0.0
    residuals = [(one.work - one.expected) / one.way for one in stretches]
    return float(1.96 * np.std(residuals, ddof=1) / math.sqrt(len(residuals)) / abs(force_per_unit))


def _period(rows: Rows) -> float:
    return float(np.median(np.diff(rows["time"])))
