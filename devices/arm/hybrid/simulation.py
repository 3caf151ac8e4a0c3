"""Simulation of an arm on a surface under hybrid control, with the whole run in one compiled call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from devices.arm.hybrid.control import (
    CONTROL_FIELDS,
    Hybrid,
    advance_rings,
    control_position,
    recall_force,
    remember_force,
)
from devices.arm.mechanics.dynamics import Links, centrifugal, frame_jacobian, gravity
from devices.arm.mechanics.joint import Drive
from devices.arm.mechanics.joint_kernels import RIGID, encoder_angle
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.mechanics.plant import (
    PLANT_FIELDS,
    mobilities,
    mobility,
    new_plant,
    step_plant,
)
from devices.arm.mechanics.surface import Surface, contact_motion, contact_offset, frame_position
from haptics.errors import ConfigurationError
from haptics.friction.laws import warn_if_ambiguous
from haptics.jit import kernel
from haptics.records import Rows
from haptics.settings import unknown_name

ELASTIC_FORCE, SAMPLED_FORCE, SOLVED_FORCE = 0, 1, 2

SENSORS = {"elastic": ELASTIC_FORCE, "sampled": SAMPLED_FORCE, "solved": SOLVED_FORCE}
"""Force feedback of F = M x'' + B x' + K x: B x' + K x only, all terms with the x'' of the last step, or all terms with
the x'' that the torque of the present sample causes.
"""

RUNAWAY = 1e3
"""Joint speed at which a run ends [rad/s]."""

LONGEST, MOST_SUBSTEPS, LEAST_BEND = 3600.0, 100_000, 1e-3

LOOP = np.dtype([*PLANT_FIELDS, *CONTROL_FIELDS, ("sensor", "<i8"), ("substeps", "<i8"), ("start_along", "<f8")])
"""Record of arm, controller and loop."""

RESULT = np.dtype(
    [
        ("time", "<f8"),
        ("force", "<f8"),
        ("contact_force", "<f8"),
        ("depth", "<f8"),
        ("along", "<f8"),
        ("torque", "<f8", (2,)),
        ("angle", "<f8", (2,)),
        ("rotor", "<f8", (2,)),
        ("speed", "<f8", (2,)),
        ("load", "<f8", (2,)),
        ("friction", "<f8", (2,)),
        ("sticking", "<i8", (2,)),
    ]
)
"""Row of a run at every sample: the force that is fed back and the true force [N], depth in the surface and deviation
along it [m], torques of controller, coupling and friction [N m], angles [rad] and speeds [rad/s] of the joints.
"""


@kernel
def _torque_to_force(s: Any, drives: Rows) -> tuple[float, float, float]:
    """Return (F, a, b): the contact force is F + a t_1 + b t_2 [N] under the drive torques t [N m]; (3)."""
    q1, q2, w1, w2 = s.angle[0], s.angle[1], s.speed[0], s.speed[1]
    m11, m12, m22 = mobility(s, drives, 0.0)
    jx, jy, _, _ = frame_jacobian(s.links, s.plane, q1, q2)
    c1, c2 = centrifugal(s.links, q1, q2, w1, w2)
    g1, g2 = gravity(s.links, q1, q2)
    x, v, turning = contact_motion(s)
    F = s.contact_mass * turning + s.contact_damping * v + s.contact_stiffness * x
    t1, t2 = -c1 - g1 - jx * F, -c2 - g2 - jy * F
    a, b = s.contact_mass * (jx * m11 + jy * m12), s.contact_mass * (jx * m12 + jy * m22)
    # The torque of a rigid drive acts on the joint at once. Other drives transmit the present torque of the coupling.
    if drives[0].coupling == RIGID:
        t1 -= drives[0].drag * w1
    else:
        t1 += s.load[0]
    if drives[1].coupling == RIGID:
        t2 -= drives[1].drag * w2
    else:
        t2 += s.load[1]
    F += a * t1 + b * t2
    return F, a if drives[0].coupling == RIGID else 0.0, b if drives[1].coupling == RIGID else 0.0


@kernel
def _sense(s: Any, drives: Rows, t1: float, t2: float, k1: float, k2: float) -> float:
    """Return the force that is fed back [N] if the drive torques are t + k (F_d - F)."""
    if s.sensor == SAMPLED_FORCE:
        return float(s.contact_force)
    if s.sensor == SOLVED_FORCE:
        F, a, b = _torque_to_force(s, drives)
        through = a * k1 + b * k2
        return float((F + a * t1 + b * t2 + through * s.target_force) / (1.0 + through))
    x, v, _ = contact_motion(s)
    return float(s.contact_damping * v + s.contact_stiffness * x)


@kernel
def _look(s: Any, drives: Rows) -> None:
    for i in range(2):
        s.measured_angle[i] = encoder_angle(drives[i], s.angle[i], s.rotor[i])


@kernel
def _stay_here(loop: Rows, drives: Rows) -> None:
    """Set the target along the surface to the measured position, and the start to the true position."""
    s = loop[0]
    _look(s, drives)
    s.target_along = frame_position(s, s.measured_angle[0], s.measured_angle[1])[1]
    s.start_along = frame_position(s, s.angle[0], s.angle[1])[1]


@kernel
def _control(s: Any, drives: Rows, wp: Any, past_p: Any, wf: Any, past_f: Any) -> None:
    """Sample angles and force, and compute the torques."""
    _look(s, drives)
    p1, p2 = control_position(s, wp, past_p)
    t1, t2, k1, k2 = recall_force(s, wf, past_f)
    F = _sense(s, drives, p1 + t1, p2 + t2, k1, k2)
    s.measured_force = F
    remember_force(s, past_f)
    s.torque[0], s.torque[1] = p1 + t1 + k1 * (s.target_force - F), p2 + t2 + k2 * (s.target_force - F)
    advance_rings(s, len(wp), len(wf))


@kernel
def _record(s: Any, time: float, r: Any) -> None:
    r.time, r.force, r.contact_force, r.depth = time, s.measured_force, s.contact_force, contact_offset(s)
    r.along = frame_position(s, s.angle[0], s.angle[1])[1] - s.start_along
    for i in range(2):
        r.torque[i], r.angle[i], r.rotor[i], r.speed[i] = s.torque[i], s.angle[i], s.rotor[i], s.speed[i]
        r.load[i], r.friction[i], r.sticking[i] = s.load[i], s.friction[i], s.sticking[i]


@kernel
def run_loop(loop: Rows, drives: Rows, wp: Any, past_p: Any, wf: Any, past_f: Any, results: Rows) -> int:
    """Run the loop `loop[0]` for up to ``len(results)`` samples; return the number of samples completed.

    The run ends early when a joint is faster than `RUNAWAY`. ``wp``, (n,), and ``wf``, (m,), are the weights of the
    laws; ``past_p``, (2, n), and ``past_f``, (2, m), their histories.
    """
    s = loop[0]
    u, w = np.zeros(2), np.zeros(4)
    for k in range(len(results)):
        _control(s, drives, wp, past_p, wf, past_f)
        _record(s, k * s.period, results[k])
        u[0], u[1] = s.torque[0] / drives[0].gain, s.torque[1] / drives[1].gain
        for _ in range(s.substeps):
            step_plant(s, drives, u, w)
        if not max(abs(s.speed[0]), abs(s.speed[1])) < RUNAWAY:
            return k + 1
    return len(results)


@dataclass(frozen=True)
class Run:
    """Result of a simulation of hybrid control.

    Attributes
    ----------
    rows : (n,) structured array
        One row of dtype `RESULT` for every sample of the controller, from time 0 on; it ends where the arm ran away.
    ran_away : bool
        Whether a joint became faster than `RUNAWAY`, which ended the run.
    """

    rows: Rows
    ran_away: bool


def simulate_hybrid(
    links: Links,
    drives: tuple[Drive, Drive],
    surface: Surface,
    control: Hybrid,
    *,
    start: tuple[float, float],
    force: float,
    duration: float,
    sensor: str = "elastic",
    substeps: int = 50,
) -> Run:
    """Simulate a force step from time 0 on an arm at rest on a surface.

    The position along the surface is held.

    Parameters
    ----------
    links, drives, surface, control
        The parts of the loop. At the start the surface is unloaded and the arm at rest. If the controller compensates
        gravity, elastic couplings start at their static deflection.
    start : (float, float)
        Joint angles [rad].
    force : float
        F_d [N].
    duration : float
        Duration [s].
    sensor : str
        Kind of force feedback, see `SENSORS`. "solved" requires joints without friction.
    substeps : int
        Steps of the simulation per sample of the controller.

    Returns
    -------
    Run

    Raises
    ------
    ConfigurationError
        If an argument is invalid.

    Warns
    -----
    AmbiguousLawWarning
        If a friction law falls so steeply that the torque is not unique at this step size.
    """
    _check(links, drives, start, force, duration, sensor, substeps)
    loop = np.zeros(1, LOOP)
    rows = new_plant(loop, links, drives, surface, start, control.holds_weight)
    control.fill(loop)
    loop["sensor"], loop["substeps"] = SENSORS[sensor], substeps
    loop["step"] = control.period / substeps
    loop["target_force"] = force
    _warn_where_ambiguous(drives, mobilities(loop, rows), control.period / substeps)
    _stay_here(loop, rows)
    wp, wf = control.position.weights(control.period), control.force.weights(control.period)
    results = np.zeros(round(duration / control.period), RESULT)
    count = run_loop(loop, rows, wp, np.zeros((2, len(wp))), wf, np.zeros((2, len(wf))), results)
    return Run(results[:count], bool(count < len(results)))


def _warn_where_ambiguous(drives: tuple[Drive, Drive], joints: tuple[float, float], step: float) -> None:
    """Warn about friction laws that fall too steeply for this step size; see `haptics.friction.laws`."""
    for drive, joint in zip(drives, joints, strict=True):
        motor = drive.motor
        shaft = joint * drive.ratio**2 if drive.coupling == "rigid" else step / motor.inertia
        for law in (drive.friction, drive.backward_friction):
            if law is not None:
                warn_if_ambiguous(law, joint, "more substeps", 4)
        for law in (motor.friction, motor.backward_friction):
            if law is not None:
                warn_if_ambiguous(law, shaft, "more substeps", 4)


def _check(
    links: Links,
    drives: tuple[Drive, Drive],
    start: tuple[float, float],
    force: float,
    duration: float,
    sensor: str,
    substeps: int,
) -> None:
    numbers = (*start, force, duration)
    if len(start) != 2 or not np.isfinite(numbers).all() or not 0.0 < duration <= LONGEST:
        raise ConfigurationError(
            f"start = {start!r}, force = {force!r}, duration = {duration!r}: must be two finite angles [rad], a finite "
            f"force [N] and a time up to {LONGEST:g} s."
        )
    if sensor not in SENSORS:
        raise unknown_name("sensor", sensor, SENSORS)
    if isinstance(substeps, bool) or not isinstance(substeps, int) or not 1 <= substeps <= MOST_SUBSTEPS:
        raise ConfigurationError(f"substeps = {substeps!r}: must be a whole number from 1 to {MOST_SUBSTEPS}.")
    if len(drives) != 2:
        raise ConfigurationError(f"drives: must be two, one for each joint, not {len(drives)}.")
    if sensor == "solved" and any(drive.rubs for drive in drives):
        raise ConfigurationError("sensor = 'solved': needs drives without friction; choose 'elastic' or 'sampled'.")
    if not (PlacedLinkage(links.linkage).clearance(start) >= LEAST_BEND).all():
        raise ConfigurationError(
            f"start = {start!r}: the links are in one line there; hybrid control cannot hold that."
        )
