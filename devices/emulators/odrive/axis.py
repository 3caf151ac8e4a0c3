"""Axis of the emulated drive from the host's view: its properties and functions.

Its control iterations are in `devices.emulators.odrive.control_kernels`.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from devices.emulators.odrive.control_kernels import (
    CLOSED_LOOP,
    CONTROLLER_FAILED,
    DRIVER_FAULT,
    ENCODER_FAILED,
    IDLE,
    INVALID_INPUT_MODE,
    INVALID_STATE,
    MOTOR_FAILED,
    NOT_A_NUMBER,
    OVERSPEED,
    PASS_THROUGH,
    POSITION_CONTROL,
    PROPERTIES,
    RATE,
    STEP,
    TORQUE_CONTROL,
    VELOCITY_CONTROL,
    WATCHDOG_EXPIRED,
)
from devices.emulators.odrive.values import Values

__all__ = [
    "CLOSED_LOOP",
    "CONTROLLER_FAILED",
    "DRIVER_FAULT",
    "ENCODER_FAILED",
    "IDLE",
    "INVALID_INPUT_MODE",
    "INVALID_STATE",
    "MOTOR_FAILED",
    "NOT_A_NUMBER",
    "OVERSPEED",
    "PASS_THROUGH",
    "POSITION_CONTROL",
    "RATE",
    "STEP",
    "TORQUE_CONTROL",
    "VELOCITY_CONTROL",
    "WATCHDOG_EXPIRED",
    "Axis",
]

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
        Its state, `devices.emulators.odrive.control_kernels.AXIS`.

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
            if not held["error"]:
                self._begin()
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

    def _begin(self) -> None:
        """Arm the motor at its present position."""
        held = self.values
        held["current_state"], held["motor.is_armed"] = CLOSED_LOOP, True
        if held["controller.config.control_mode"] == POSITION_CONTROL:
            held["controller.input_pos"] = float(self._record["position"][0])
        self._record["integral"] = 0.0
        self.feed()

    def _disarm(self) -> None:
        held = self.values
        held["current_state"], held["motor.is_armed"] = IDLE, False
        self._record["torque"] = 0.0
