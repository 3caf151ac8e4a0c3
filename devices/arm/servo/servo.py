"""Kernel records of the servo of both joints, and references for a drive that controls its motors itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.arm.flatness.joint import ElasticJoint, FeedForwardServo, LinearisingServo, ServoLaw
from devices.arm.flatness.laws import SmoothCoulomb
from devices.arm.mechanics.dynamics import Links
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.servo import gains as design
from devices.arm.servo import kernels
from devices.arm.servo.gains import LOADED, Gains, TwoMasses
from devices.arm.servo.kernels import fill_chain
from devices.arm.servo.settings import FLATNESS, FRACTIONAL, LINEARISING, RIGID, SLIDING, ServoSettings
from haptics.errors import ConfigurationError
from haptics.jit import address_of_part

ENCODERS = {"motor": kernels.AT_MOTOR, "joint": kernels.AT_JOINT, "both": kernels.AT_BOTH}
"""Mounting places of the encoders, by the name used in settings."""

_PATIENCE = 0.05  # time for which a joint at rest must be calm until its torque is held [s]

# Time constant with which a servo at rest yields to the error of a free joint [s]; behind a spring it takes longer.
_YIELDING = 0.02

_FLICKER = 4.5  # maximum motion of a calm joint in encoder steps

_NO_FRICTION = SmoothCoulomb(0.0, 0.0, 1.0)

Pair = tuple[float, float]


def _law(settings: ServoSettings, joint: ElasticJoint, own: Gains) -> ServoLaw:
    """Return the servo law of the paper with these gains: (16) to (18), or (12) to (15)."""
    if settings.kind == LINEARISING:
        return LinearisingServo(2.0 * np.pi * settings.bandwidth)
    feed = {FLATNESS: "elastic", RIGID: "rigid"}.get(settings.kind, "none")
    feedback = settings.feedback if settings.kind == FLATNESS else "conventional"
    if settings.kind == FRACTIONAL:
        return FeedForwardServo(feed, feedback)
    return FeedForwardServo(feed, feedback, own.position / own.velocity, own.velocity / joint.gear_ratio**2)


def _breakaway(joint: ElasticJoint) -> float:
    """Return the maximum dry friction of a joint near rest [N m], which holds it against the servo."""
    speeds = np.geomspace(1e-6, 1.0, 200)
    viscosity = float(joint.friction.derivatives(speeds[-1])[1])
    dry = joint.friction(np.concatenate((speeds, -speeds))) - viscosity * np.concatenate((speeds, -speeds))
    return float(abs(dry).max())


def _model(
    settings: ServoSettings, links: Links, period: float, tick: float, placed: PlacedLinkage | None
) -> NDArray[Any]:
    """Return a record, (1,), without the joints and their gains."""
    record = np.zeros(1, kernels.SERVO)
    links.fill(record["links"], placed)
    fill_chain(record, settings.reference_frequency, period, tick)
    record["law"], record["smooth"], record["period"] = settings.kind, settings.smooth, period
    record["holds_weight"], record["knows_hand"] = settings.holds_weight, settings.knows_hand
    record["hand_pole"] = 2.0 * np.pi * settings.hand_filter
    return record


def new_servo(
    settings: ServoSettings,
    links: Links,
    joints: Sequence[ElasticJoint],
    pose: Pair,
    *,
    encoders: str = "motor",
    resolution: Pair = (0.0, 0.0),
    torque_limit: Pair = (np.inf, np.inf),
    placed: PlacedLinkage | None = None,
    tick: float = 1e-3,
) -> NDArray[Any]:
    """Return the servo of both joints, (1,) of dtype `kernels.SERVO`, at rest at `pose`.

    Parameters
    ----------
    settings : ServoSettings
        Selects the law.
    links : Links
        Rigid arm in the model of the law.
    joints : sequence of ElasticJoint
        Both joints in the model of the law.
    pose : (2,)
        Joint angles [rad] whose inertia determines the gains: the middle of the workspace.
    encoders : str
        "motor", "joint" or "both"; exact linearisation needs both, the other laws work with any.
    resolution : (2,)
        Encoder steps in the feedback, seen at the joint [rad].
    torque_limit : (2,)
        Torque limits of the motors [N m].
    placed : PlacedLinkage, optional
        Placement of the links; by default in their own coordinates.
    tick : float
        Time from one command to the next [s].

    Raises
    ------
    ConfigurationError
        If the law does not suit the joints or the encoders, or a joint is unstable with its gains.
    """
    if settings.kind == LINEARISING and encoders != "both":
        raise ConfigurationError(
            f"device.servo.law = 'linearising': must be another one with encoders at the {encoders} alone; it needs "
            "the angles of motor and link."
        )
    record = _model(settings, links, settings.period, tick, placed)
    record["encoders"], record["filter"] = ENCODERS[encoders], design.filter_share(settings)
    record["patience"] = round(_PATIENCE / settings.period)
    record["recovery"] = 1.0 - np.exp(-2.0 * np.pi * settings.bandwidth * settings.period)
    record["yielding"] = 1.0 - np.exp(-settings.period / _YIELDING)
    fir = design.law_weights(settings)
    record["resumption"] = settings.resume_time / (settings.resume_time + settings.period)
    record["count"], record["weights"][0, : len(fir)] = len(fir), fir
    inertias = np.diag(links.terms(pose, placed=placed)["inertia"][0]).tolist()
    for i, (joint, inertia) in enumerate(zip(joints, inertias, strict=True)):
        design.require_stable(settings, joint, inertia, encoders, i + 1)
        plant = TwoMasses.of(joint, inertia, settings.period, torque=LOADED, drag=0.0)
        own, axis = design.gains(settings, plant.total), record["axis"][0, i]
        model = replace(joint, friction=_NO_FRICTION) if settings.kind == LINEARISING else joint
        axis["control"], axis["friction"] = _law(settings, joint, own).record(model)[0], joint.friction.record[0]
        axis["integral_gain"], axis["trim_share"] = own.integral, design.trim_share(settings, own)
        axis["fractional_gain"], axis["proportional"] = own.fractional, own.proportional
        dry = _breakaway(joint)
        axis["rest_band"] = 2.0 * (resolution[i] + dry / design.stiffness(settings, plant))
        axis["yield_band"] = axis["rest_band"] + float(joint.stiffness.twist(dry))
        axis["calm_band"], axis["torque_limit"] = _FLICKER * resolution[i], torque_limit[i]
        if settings.kind == SLIDING:
            axis["torque_limit"] = min(torque_limit[i], settings.torque_bound / abs(joint.gear_ratio))
    record["step"] = address_of_part(kernels.step_part(kernels.kind_of(record)), kernels.SERVO)
    kernels.start_servos(record, np.asarray(pose, np.float64))
    return record


def new_references(
    settings: ServoSettings,
    links: Links,
    joints: Sequence[ElasticJoint],
    period: float,
    placed: PlacedLinkage | None = None,
) -> NDArray[Any]:
    """Return the references of motors that control their position themselves, (1,) of dtype `kernels.SERVO`.

    `kernels.start_servos` starts them, and `kernels.refer_motors` computes angles, speeds and torques per tick.

    ===========  =============================================================================================
    `pid`        the command and its speed; the torque holds the weight, depending on the settings
    `flatness`   angle and speed of the motor of an elastic joint, (25), and its torque (20) (Weigand et al. 2020)
    `rigid`      angle, speed and torque of the motor of a rigid joint, (27)
    ===========  =============================================================================================

    Parameters
    ----------
    settings : ServoSettings
        Law and reference; its gains are not used, because the drive has its own.
    links, joints, placed :
        As for `new_servo`.
    period : float
        Period of the tick [s].

    Raises
    ------
    ConfigurationError
        If the law has no references for the motors: exact linearisation, fractional and sliding-mode compute torques.
    """
    if settings.kind in (LINEARISING, FRACTIONAL, SLIDING):
        raise ConfigurationError(
            f"device.servo.law = {settings.law!r}: must be one of pid, flatness, rigid for motors that control "
            "their position themselves."
        )
    record = _model(settings, links, period, period, placed)
    for i, joint in enumerate(joints):
        record["axis"]["control"][0, i] = _law(settings, joint, Gains(velocity=1.0)).record(joint)[0]
    return record
