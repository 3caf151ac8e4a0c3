"""Axes of the emulated drive: control iterations (encoder, watchdog, control law, errors), properties, and load."""

from __future__ import annotations

import math
from collections import UserDict
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from devices.emulators.odrive.endpoints import properties
from haptics.device import Vector
from haptics.jit import kernel

RATE = 8000.0
"""Control iterations per second [Hz]."""

STEP = 1.0 / RATE

IDLE, CLOSED_LOOP = 1, 8
TORQUE_CONTROL, VELOCITY_CONTROL, POSITION_CONTROL = 1, 2, 3
PASS_THROUGH = 1

INVALID_STATE, MOTOR_FAILED, CONTROLLER_FAILED, WATCHDOG_EXPIRED = 0x1, 0x40, 0x200, 0x800
OVERSPEED, INVALID_INPUT_MODE = 0x1, 0x2
DRIVER_FAULT, NOT_A_NUMBER = 0x8, 0x10000

_TYPES = {"float": "<f8", "bool": "?", "uint64": "<u8"}

PROPERTIES = {row.path.removeprefix("axis0."): row for row in properties() if row.path.startswith("axis0.")}
"""Properties of an axis by name."""

FIELDS = {name: (name.replace(".", "_"), _TYPES.get(row.kind, "<i8")) for name, row in PROPERTIES.items()}
"""Properties of an axis: name to field and type in `AXIS`."""

_INTERNAL = (("left", "<i8"), *((name, "<f8") for name in ("offset", "position", "speed", "integral", "torque")))

AXIS = np.dtype([*FIELDS.values(), *_INTERNAL])
"""State of an axis: its properties, and internal state. ``left`` is the number of iterations until the watchdog
expires, ``offset`` the encoder angle minus the shaft angle [turn], ``position`` [turn] and ``speed`` [turn/s] belong to
the tracking loop, ``integral`` to the integrator, and ``torque`` is the motor torque [N m].
"""


@kernel
def disarm(a: Any) -> None:
    """Disarm the motor."""
    a.current_state, a.motor_is_armed = IDLE, False
    a.torque = 0.0


@kernel
def _clamp(value: float, limit: float) -> float:
    """Return the value clipped to the limit; nan stays nan."""
    value = -limit if -limit > value else value
    return limit if limit < value else value


@kernel
def _refuse(a: Any, bits: int) -> None:
    """Set error bits of the controller and disarm."""
    a.error |= CONTROLLER_FAILED
    a.controller_error |= bits
    disarm(a)


@kernel
def _control(a: Any) -> None:
    """Compute the torque from the inputs of the host and the encoder estimates, within the motor's limits.

    The integrator decays at the limit.
    """
    if a.controller_config_input_mode != PASS_THROUGH:
        _refuse(a, INVALID_INPUT_MODE)
        return
    limit = a.controller_config_vel_limit
    if a.controller_config_enable_overspeed_error and abs(a.speed) > a.controller_config_vel_limit_tolerance * limit:
        _refuse(a, OVERSPEED)
        return
    wanted = a.controller_input_vel
    if a.controller_config_control_mode == POSITION_CONTROL:
        wanted += a.controller_config_pos_gain * (a.controller_input_pos - a.position)
    if a.controller_config_enable_vel_limit:
        wanted = _clamp(wanted, limit)
    error = wanted - a.speed
    a.controller_vel_setpoint, a.controller_pos_setpoint = wanted, a.controller_input_pos
    torque = a.controller_input_torque
    if a.controller_config_control_mode >= VELOCITY_CONTROL:
        torque += a.controller_config_vel_gain * error + a.integral
    elif a.controller_config_enable_torque_mode_vel_limit:
        gain = a.controller_config_vel_gain
        lowest, highest = (-limit - a.speed) * gain, (limit - a.speed) * gain
        torque = lowest if lowest > torque else torque
        torque = highest if highest < torque else torque
    if not math.isfinite(torque):
        a.error |= MOTOR_FAILED
        a.motor_error |= np.uint64(NOT_A_NUMBER)
        disarm(a)
        return
    strongest = a.motor_effective_current_lim * a.motor_config_torque_constant
    strongest = a.motor_config_torque_lim if a.motor_config_torque_lim < strongest else strongest
    a.torque = _clamp(torque, strongest)
    if a.controller_config_control_mode < VELOCITY_CONTROL:
        a.integral = 0.0
    elif a.torque != torque:
        a.integral *= 0.99
    else:
        a.integral += STEP * a.controller_config_vel_integrator_gain * error
        a.integral = _clamp(a.integral, a.controller_config_vel_integrator_limit)
    a.controller_torque_setpoint = a.torque
    a.controller_vel_integrator_torque = a.integral
    a.motor_current_control_Iq_setpoint = a.torque / a.motor_config_torque_constant
    a.motor_current_control_Iq_measured = a.motor_current_control_Iq_setpoint


@kernel
def iterate(a: Any, turns: float) -> None:
    """Execute one control iteration of an axis whose shaft is at `turns`.

    A tracking loop estimates position and speed from the counts of the encoder.
    """
    counts, gain = a.encoder_config_cpr, 2.0 * a.encoder_config_bandwidth
    a.position += STEP * a.speed
    count = math.floor((turns + a.offset) * counts)
    error = (count - math.floor(a.position * counts)) / counts
    a.position += STEP * gain * error
    a.speed += STEP * 0.25 * gain * gain * error
    if abs(a.speed) * counts < 0.125 * STEP * gain * gain:  # less than half a count can add
        a.speed = 0.0
    a.encoder_shadow_count = count
    a.encoder_pos_estimate, a.encoder_vel_estimate = a.position, a.speed
    a.encoder_pos_estimate_counts, a.encoder_vel_estimate_counts = a.position * counts, a.speed * counts
    a.motor_effective_current_lim = a.motor_config_current_lim
    if a.config_enable_watchdog:
        if a.left <= 0:
            a.error |= WATCHDOG_EXPIRED
            disarm(a)
        a.left -= 1
    if a.error != 0:
        disarm(a)
    if a.current_state == CLOSED_LOOP:
        _control(a)


# --- load of the motors -----------------------------------------------------------------------------------------------

WHEELS = np.dtype(
    [*((name, "<f8", (2,)) for name in ("angle", "speed", "load")), ("per_torque", "<f8"), ("decay", "<f8")]
)
"""Record of two flywheels: angles [turn], speeds [turn/s], loads [N m], acceleration per torque [turn/(N m s^2)],
inverse time constant of their friction [1/s].
"""


class Plant(Protocol):
    """Two shafts that torques turn."""

    @property
    def angles(self) -> Vector:
        """Angles of the motors' shafts, (2,) [turn]."""

    @property
    def speeds(self) -> Vector:
        """Speeds of the motors' shafts, (2,) [turn/s]."""

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations of both axes, (2,) array of `AXIS`, and of the load."""


@kernel
def _run(axes: Any, wheels: Any, count: int) -> None:
    """Iterate both axes, then apply their torques for a step; friction is implicit and never adds energy."""
    w = wheels[0]
    damped = 1.0 / (1.0 + w.decay * STEP)
    push = w.per_torque * STEP
    for _ in range(count):
        iterate(axes[0], w.angle[0])
        iterate(axes[1], w.angle[1])
        for i in range(2):
            w.speed[i] = (w.speed[i] + push * (axes[i].torque + w.load[i])) * damped
            w.angle[i] += STEP * w.speed[i]


class Flywheels:
    """Two inertias with viscous friction and additional loads.

    Parameters
    ----------
    inertia : float
        Inertia of each [kg m^2].
    friction : float
        Torque per speed [N m s/rad].

    Attributes
    ----------
    angles, speeds, loads : (2,) float array
        Angles [turn] and speeds [turn/s] of the shafts, and torques in addition to the motor torques [N m]; views of
        the state.
    """

    def __init__(self, inertia: float = 2e-4, friction: float = 1e-4) -> None:
        self._record = np.zeros(1, WHEELS)
        self._record["per_torque"] = 1.0 / (inertia * math.tau)
        self._record["decay"] = friction / inertia
        self.angles: Vector
        self.speeds: Vector
        self.loads: Vector
        self.angles, self.speeds, self.loads = (self._record[name][0] for name in ("angle", "speed", "load"))
        _run(np.zeros(2, AXIS), self._record.copy(), 0)  # compiled in advance

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations; see `Plant`."""
        _run(axes, self._record, count)


# --- properties and functions of an axis from the host's view ---------------------------------------------------------


class Values(UserDict[str, Any]):
    """Values of the properties of an axis, by name.

    Parameters
    ----------
    record : (1,) structured array
        State of the axis, `AXIS`.
    """

    def __init__(self, record: NDArray[Any]) -> None:
        self.data = {name: record[field] for name, (field, _) in FIELDS.items()}

    def __getitem__(self, name: str) -> Any:
        """Return the value of a property."""
        return self.data[name].item()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the value of a property."""
        self.data[name][0] = value


_DEFAULTS = {name: row.default for name, row in PROPERTIES.items() if row.default}

_LONGEST = 1 << 31
"""Maximum number of iterations of a watchdog timeout."""


class Axis:
    """Axis of the emulated drive.

    Parameters
    ----------
    record : (1,) structured array
        Its state, `AXIS`.

    Attributes
    ----------
    values : Values
        Values of its properties, by name.
    """

    def __init__(self, record: NDArray[Any]) -> None:
        self._record = record
        self._state = record["current_state"]
        self.values = Values(record)
        self.values.update(_DEFAULTS)
        self.switch_on(0.0)

    @property
    def driven(self) -> bool:
        """Whether the axis is in closed loop."""
        return bool(self._state[0] == CLOSED_LOOP)

    @property
    def torque(self) -> float:
        """Present motor torque [N m]."""
        return float(self._record["torque"][0])

    def switch_on(self, turns: float) -> None:
        """Reset the axis: motor disarmed, encoder at zero at the angle `turns`, settings unchanged."""
        settings = {name: value for name, value in self.values.items() if "config." in name}
        self._record[:] = 0
        self.values.update(_DEFAULTS | settings)
        self.values["config.enable_watchdog"] = False
        self._record["offset"] = -turns

    # --- functions for the host --------------------------------------------------------------------------------------

    def feed(self) -> None:
        """Feed the watchdog."""
        iterations = self.values.get("config.watchdog_timeout", 0.0) * RATE
        self._record["left"] = round(min(max(iterations, 0.0), _LONGEST)) if not math.isnan(iterations) else 0

    def request(self, state: int) -> None:
        """Change to another state, or report an error if that is not possible."""
        held = self.values
        if state == IDLE:
            self._disarm()
        elif state == CLOSED_LOOP and held["motor.is_calibrated"] and held["encoder.is_ready"]:
            if not held["error"]:  # arm the motor at its present position
                held["current_state"], held["motor.is_armed"] = CLOSED_LOOP, True
                if held["controller.config.control_mode"] == POSITION_CONTROL:
                    held["controller.input_pos"] = float(self._record["position"][0])
                self._record["integral"] = 0.0
                self.feed()
        elif state:
            self.fail(INVALID_STATE)

    def set_count(self, count: int) -> None:
        """Set the encoder's present count."""
        turns = count / (self.values["encoder.config.cpr"] or 1)
        self._record["offset"] += turns - self._record["position"]
        self._record["position"] = turns

    def jump(self, turns: float) -> None:
        """Shift the encoder's position by an erroneous jump."""
        self._record["offset"] += turns
        self._record["position"] += turns

    def clear_errors(self) -> None:
        """Clear all errors."""
        for part in ("", "motor.", "encoder.", "controller."):
            self.values[f"{part}error"] = 0

    # --- internal state changes --------------------------------------------------------------------------------------

    def fail(self, bits: int, part: str = "", part_bits: int = 0) -> None:
        """Set error bits of the axis and of a `part`, and disarm the motor."""
        held = self.values
        held["error"] |= bits
        if part:
            held[f"{part}.error"] |= part_bits
        self._disarm()

    def _disarm(self) -> None:
        self.values.update({"current_state": IDLE, "motor.is_armed": False})
        self._record["torque"] = 0.0
