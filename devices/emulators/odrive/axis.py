"""Axes of the emulated drive: control iterations (encoder, watchdog, control law, errors), properties, and load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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


# --- load of the motors -----------------------------------------------------------------------------------------------

Pair = tuple[float, float]

WHEELS = np.dtype(
    [
        ("angle", "<f8", (2,)),
        ("speed", "<f8", (2,)),
        ("load", "<f8", (2,)),
        ("per_torque", "<f8"),
        ("decay", "<f8"),
    ]
)
"""Record of two flywheels: angles [turn], speeds [turn/s], loads [N m], acceleration per torque [turn/(N m s^2)],
inverse time constant of their friction [1/s].
"""


class Plant(Protocol):
    """Two shafts that torques turn."""

    @property
    def angles(self) -> Pair:
        """Angles of the motors' shafts [turn]."""

    @property
    def speeds(self) -> Pair:
        """Speeds of the motors' shafts [turn/s]."""

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


class _Field:
    """Attribute of `Flywheels` that is stored in a field of its record."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __get__(self, wheels: Flywheels, kind: type) -> Pair:
        first, second = wheels.record[self._field][0].tolist()
        return first, second

    def __set__(self, wheels: Flywheels, values: Pair) -> None:
        wheels.record[self._field] = values


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
    angles, speeds, loads : (float, float)
        Angles [turn] and speeds [turn/s] of the shafts, and torques in addition to the motor torques [N m].
    """

    angles, speeds, loads = _Field("angle"), _Field("speed"), _Field("load")

    def __init__(self, inertia: float = 2e-4, friction: float = 1e-4) -> None:
        self.record = np.zeros(1, WHEELS)
        self.record["per_torque"] = 1.0 / (inertia * math.tau)
        self.record["decay"] = friction / inertia
        _run(np.zeros(2, AXIS), self.record.copy(), 0)  # compiled in advance

    def run(self, axes: NDArray[Any], count: int) -> None:
        """Simulate `count` control iterations; see `Plant`."""
        _run(axes, self.record, count)


# --- properties and functions of an axis from the host's view ---------------------------------------------------------


class Values(MutableMapping[str, Any]):
    """Values of properties, by name.

    Properties of the record always exist; others are 0 until they are set.

    Parameters
    ----------
    record : (1,) structured array
        Record that stores some of them.
    fields : mapping of str to str
        Field of the record by property name.
    """

    def __init__(self, record: NDArray[Any], fields: Mapping[str, str]) -> None:
        self._fields = {name: record[field] for name, field in fields.items()}
        self._others: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the value of a property."""
        field = self._fields.get(name)
        return self._others[name] if field is None else field.item()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the value of a property."""
        field = self._fields.get(name)
        if field is None:
            self._others[name] = value
        else:
            field[0] = value

    def __delitem__(self, name: str) -> None:
        """Delete a property, which must not be in the record."""
        del self._others[name]

    def clear(self) -> None:
        """Reset all properties to 0."""
        self._others.clear()
        for field in self._fields.values():
            field[0] = 0

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        yield from self._fields
        yield from self._others

    def __len__(self) -> int:
        """Return the number of properties."""
        return len(self._fields) + len(self._others)

    def __ior__(self, other: Mapping[str, Any]) -> Values:
        """Set several properties."""
        self.update(other)
        return self


_DEFAULTS: dict[str, Any] = {
    "current_state": IDLE,
    "motor.is_calibrated": True,
    "motor.config.pre_calibrated": True,
    "motor.config.pole_pairs": 7,
    "motor.config.torque_constant": 0.04,
    "motor.config.current_lim": 10.0,
    "motor.config.current_lim_margin": 8.0,
    "motor.config.torque_lim": math.inf,
    "controller.trajectory_done": True,
    "controller.config.enable_vel_limit": True,
    "controller.config.enable_torque_mode_vel_limit": True,
    "controller.config.enable_overspeed_error": True,
    "controller.config.control_mode": POSITION_CONTROL,
    "controller.config.input_mode": PASS_THROUGH,
    "controller.config.pos_gain": 20.0,
    "controller.config.vel_gain": 1.0 / 6.0,
    "controller.config.vel_integrator_gain": 1.0 / 3.0,
    "controller.config.vel_integrator_limit": math.inf,
    "controller.config.vel_limit": 2.0,
    "controller.config.vel_limit_tolerance": 1.2,
    "encoder.is_ready": True,
    "encoder.config.cpr": 8192,
    "encoder.config.bandwidth": 1000.0,
}

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
        self._state = record["state"]
        self.values = Values(record, {name: field for name, (field, _) in PROPERTIES.items()})
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
        self.values.clear()
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
            held[f"{part}.error"] = held.get(f"{part}.error", 0) | part_bits
        self._disarm()

    def _disarm(self) -> None:
        held = self.values
        held["current_state"], held["motor.is_armed"] = IDLE, False
        self._record["torque"] = 0.0
