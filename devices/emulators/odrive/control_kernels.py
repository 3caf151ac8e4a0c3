"""Kernels for control iterations of the emulated drive: encoder, watchdog, control law and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from haptics.jit import kernel

RATE = 8000.0
"""Control iterations per second [Hz]."""

STEP = 1.0 / RATE

IDLE, CLOSED_LOOP = 1, 8
TORQUE_CONTROL, VELOCITY_CONTROL, POSITION_CONTROL = 1, 2, 3
PASS_THROUGH = 1

INVALID_STATE, MOTOR_FAILED, ENCODER_FAILED, CONTROLLER_FAILED, WATCHDOG_EXPIRED = 0x1, 0x40, 0x100, 0x200, 0x800
OVERSPEED, INVALID_INPUT_MODE = 0x1, 0x2
DRIVER_FAULT, NOT_A_NUMBER = 0x8, 0x10000

PROPERTIES: dict[str, tuple[str, str]] = {
    "error": ("error", "<i8"),
    "current_state": ("state", "<i8"),
    "config.enable_watchdog": ("watchdog_on", "?"),
    "motor.error": ("motor_error", "<u8"),
    "motor.is_armed": ("armed", "?"),
    "motor.effective_current_lim": ("effective_current_limit", "<f8"),
    "motor.current_control.Iq_setpoint": ("current_setpoint", "<f8"),
    "motor.current_control.Iq_measured": ("current", "<f8"),
    "motor.config.torque_constant": ("torque_constant", "<f8"),
    "motor.config.current_lim": ("current_limit", "<f8"),
    "motor.config.torque_lim": ("torque_limit", "<f8"),
    "controller.error": ("controller_error", "<i8"),
    "controller.input_pos": ("input_position", "<f8"),
    "controller.input_vel": ("input_speed", "<f8"),
    "controller.input_torque": ("input_torque", "<f8"),
    "controller.pos_setpoint": ("position_setpoint", "<f8"),
    "controller.vel_setpoint": ("speed_setpoint", "<f8"),
    "controller.torque_setpoint": ("torque_setpoint", "<f8"),
    "controller.vel_integrator_torque": ("integrator_torque", "<f8"),
    "controller.config.enable_vel_limit": ("limits_speed", "?"),
    "controller.config.enable_torque_mode_vel_limit": ("limits_speed_of_torque", "?"),
    "controller.config.enable_overspeed_error": ("minds_overspeed", "?"),
    "controller.config.control_mode": ("control_mode", "<i8"),
    "controller.config.input_mode": ("input_mode", "<i8"),
    "controller.config.pos_gain": ("position_gain", "<f8"),
    "controller.config.vel_gain": ("speed_gain", "<f8"),
    "controller.config.vel_integrator_gain": ("integrator_gain", "<f8"),
    "controller.config.vel_integrator_limit": ("integrator_limit", "<f8"),
    "controller.config.vel_limit": ("speed_limit", "<f8"),
    "controller.config.vel_limit_tolerance": ("speed_tolerance", "<f8"),
    "encoder.shadow_count": ("count", "<i8"),
    "encoder.pos_estimate": ("position_estimate", "<f8"),
    "encoder.vel_estimate": ("speed_estimate", "<f8"),
    "encoder.pos_estimate_counts": ("position_counts", "<f8"),
    "encoder.vel_estimate_counts": ("speed_counts", "<f8"),
    "encoder.config.cpr": ("counts_per_turn", "<i8"),
    "encoder.config.bandwidth": ("bandwidth", "<f8"),
}
"""Properties of an axis that its control iterations read or write: name to field and type in `AXIS`."""

AXIS = np.dtype(
    [
        *PROPERTIES.values(),
        ("left", "<i8"),
        ("offset", "<f8"),
        ("position", "<f8"),
        ("speed", "<f8"),
        ("integral", "<f8"),
        ("torque", "<f8"),
    ]
)
"""State of an axis: its properties, and internal state. ``left`` is the number of iterations until the watchdog
expires, ``offset`` the encoder angle minus the shaft angle [turn], ``position`` [turn] and ``speed`` [turn/s] belong to
the tracking loop, ``integral`` to the integrator, and ``torque`` is the motor torque [N m].
"""


@kernel
def disarm(a: Any) -> None:
    """Disarm the motor."""
    a.state, a.armed = IDLE, False
    a.torque = 0.0


@kernel
def _clamp(value: float, limit: float) -> float:
    """Return the value clipped to the limit; nan stays nan."""
    value = -limit if -limit > value else value
    return limit if limit < value else value


@kernel
def _estimate(a: Any, turns: float) -> None:
    """Update position and speed from the encoder's counts with a tracking loop."""
    counts, gain = a.counts_per_turn, 2.0 * a.bandwidth
    a.position += STEP * a.speed
    count = math.floor(turns * counts)
    error = (count - math.floor(a.position * counts)) / counts
    a.position += STEP * gain * error
    a.speed += STEP * 0.25 * gain * gain * error
    if abs(a.speed) * counts < 0.125 * STEP * gain * gain:  # less than half a count can add
        a.speed = 0.0
    a.count = count
    a.position_estimate, a.speed_estimate = a.position, a.speed
    a.position_counts, a.speed_counts = a.position * counts, a.speed * counts


@kernel
def _refuse(a: Any, bits: int) -> None:
    """Set error bits of the controller and disarm."""
    a.error |= CONTROLLER_FAILED
    a.controller_error |= bits
    disarm(a)


@kernel
def _control(a: Any) -> None:
    """Compute the torque from the inputs of the host and the encoder estimates."""
    if a.input_mode != PASS_THROUGH:
        _refuse(a, INVALID_INPUT_MODE)
        return
    limit = a.speed_limit
    if a.minds_overspeed and abs(a.speed) > a.speed_tolerance * limit:
        _refuse(a, OVERSPEED)
        return
    wanted = a.input_speed
    if a.control_mode == POSITION_CONTROL:
        wanted += a.position_gain * (a.input_position - a.position)
    if a.limits_speed:
        wanted = _clamp(wanted, limit)
    error = wanted - a.speed
    torque = a.input_torque
    if a.control_mode >= VELOCITY_CONTROL:
        torque += a.speed_gain * error + a.integral
    elif a.limits_speed_of_torque:
        lowest, highest = (-limit - a.speed) * a.speed_gain, (limit - a.speed) * a.speed_gain
        torque = lowest if lowest > torque else torque
        torque = highest if highest < torque else torque
    _drive(a, error, torque)
    a.speed_setpoint, a.position_setpoint = wanted, a.input_position


@kernel
def _drive(a: Any, error: float, torque: float) -> None:
    """Apply a torque within the motor's limits; the integrator decays at the limit."""
    if not math.isfinite(torque):
        a.error |= MOTOR_FAILED
        a.motor_error |= np.uint64(NOT_A_NUMBER)
        disarm(a)
        return
    strongest = a.effective_current_limit * a.torque_constant
    strongest = a.torque_limit if a.torque_limit < strongest else strongest
    a.torque = _clamp(torque, strongest)
    if a.control_mode < VELOCITY_CONTROL:
        a.integral = 0.0
    elif a.torque != torque:
        a.integral *= 0.99
    else:
        a.integral += STEP * a.integrator_gain * error
        a.integral = _clamp(a.integral, a.integrator_limit)
    a.torque_setpoint = a.torque
    a.integrator_torque = a.integral
    a.current_setpoint = a.torque / a.torque_constant
    a.current = a.current_setpoint


@kernel
def iterate(a: Any, turns: float) -> None:
    """Execute one control iteration of an axis whose shaft is at `turns`."""
    _estimate(a, turns + a.offset)
    a.effective_current_limit = a.current_limit
    if a.watchdog_on:
        if a.left <= 0:
            a.error |= WATCHDOG_EXPIRED
            disarm(a)
        a.left -= 1
    if a.error != 0:
        disarm(a)
    if a.state == CLOSED_LOOP:
        _control(a)
