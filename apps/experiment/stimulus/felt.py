"""Felt: what the hand met while it slid, from what is known of the hand itself; never from our own commands alone.

What reaches the hand is the work that it does along its way, less what went into the moving mass. Where the hand's
force is known (a virtual hand, a force sensor), that is the work. Where it is not, it is that of the commands, when the
device has carried them out, and of what is left of its own friction, by the identified model and its interval. The
value of the axis that makes the ground do this work, all else being as it was set, is what was felt, in the axis's
unit. Along a wall only motion along it counts, with the normal force of the recording.
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
"""Slower motion is not sliding, whose friction is looked for [m/s]."""

_LEAST_WAY = 2e-3
"""A stretch of sliding shorter than this tells nothing [m]."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stretch:
    """A stretch of motion without a stop.

    Attributes
    ----------
    work : float
        Work of the hand against what it met, without that which went into the moving mass [J].
    way : float
        Its way [m].
    ticks : int
        How long it took.
    expected, other : float
        Work that the ground takes as it was set, and with the axis a step larger [J].
    """

    work: float
    way: float
    ticks: int
    expected: float
    other: float


@dataclass(frozen=True)
class Felt:
    """What was felt in an interval.

    Attributes
    ----------
    value, low, high : float
        In the unit of the axis, with a 95 % interval.
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
    """What was felt is not known; the text says why."""


def felt(
    rows: Rows, ground: Ground, other: Ground, step: float, value: float, spec: DeviceSpec, own: Residual | None = None
) -> Felt:
    """Return what was felt in the rows of an interval.

    Parameters
    ----------
    rows : structured array
        The rows of the interval, one tick after the other.
    ground, other : Ground
        What was in force, and the same with the axis `step` larger.
    step, value : float
        In the unit of the axis: the step, and what was set.
    spec : DeviceSpec
        The device.
    own : Residual, optional
        Its own friction, where that is known.

    Raises
    ------
    Unknown
        If it is not known, in words.
    """
    forces, source, doubt = _forces(rows, spec, own)
    mass = (spec.mass or 0.0) if source == "truth" else 0.0  # a hand moves it too; commands and friction do not
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
    """Return the force of the hand at each tick (n, 2) [N], where it is from, and the doubt about its level [N]."""
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
    """Return what the device had carried out of its commands at each tick [N], (n, 2): all, a `delay` [s] later."""
    time = rows["time"]
    return np.column_stack([np.interp(time - delay, time, rows["command"][:, axis]) for axis in range(2)])


def _stretches(rows: Rows, grounds: tuple[Ground, Ground], forces: Array, mass: float) -> list[Stretch]:
    """Return the stretches in which the hand slid, with what these forces did besides moving a mass [kg]."""
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
    """Return half the width of a 95 % interval of the mean over stretches; 0 where there is one only."""
    if len(stretches) < 2:
        return 0.0
    residuals = [(one.work - one.expected) / one.way for one in stretches]
    return float(1.96 * np.std(residuals, ddof=1) / math.sqrt(len(residuals)) / abs(force_per_unit))


def _period(rows: Rows) -> float:
    return float(np.median(np.diff(rows["time"])))
