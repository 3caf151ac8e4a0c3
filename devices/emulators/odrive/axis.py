"""One axis of the emulated drive: encoder, control law, watchdog and errors, one control iteration at a time."""

from __future__ import annotations

import math
from typing import Any

RATE = 8000.0
"""Control iterations per second [Hz]."""

STEP = 1.0 / RATE

IDLE, CLOSED_LOOP = 1, 8
TORQUE_CONTROL, VELOCITY_CONTROL, POSITION_CONTROL = 1, 2, 3
PASS_THROUGH = 1

INVALID_STATE, MOTOR_FAILED, ENCODER_FAILED, CONTROLLER_FAILED, WATCHDOG_EXPIRED = 0x1, 0x40, 0x100, 0x200, 0x800
OVERSPEED, INVALID_INPUT_MODE = 0x1, 0x2
DRIVER_FAULT, NOT_A_NUMBER = 0x8, 0x10000

_DEFAULTS: dict[str, Any] = {
    "current_state": IDLE,
    "motor.is_calibrated": True,
    "motor.effective_current_lim": 10.0,
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


class Axis:
    """An axis.

    Attributes
    ----------
    values : dict
        What its properties hold, by name.
    torque : float
        What the motor does now [N m].
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = dict(_DEFAULTS)
        self.switch_on(0.0)

    def switch_on(self, turns: float) -> None:
        """Begin with the motor loose and the encoder at zero, wherever the shaft is; settings are what they were."""
        self.values = _DEFAULTS | {name: value for name, value in self.values.items() if "config." in name}
        self.values["config.enable_watchdog"] = False
        self.torque = 0.0
        self._left = 0
        self._offset = -turns
        self._position = self._speed = self._integral = 0.0

    # --- what the host can do ----------------------------------------------------------------------------------------

    def feed(self) -> None:
        """Feed the watchdog."""
        self._left = round(self.values.get("config.watchdog_timeout", 0.0) * RATE)

    def request(self, state: int) -> None:
        """Go to another state, or refuse to."""
        held = self.values
        if state == IDLE:
            self._disarm()
        elif state == CLOSED_LOOP and held["motor.is_calibrated"] and held["encoder.is_ready"]:
            if not held.get("error", 0):
                self._begin()
        elif state:
            self.fail(INVALID_STATE)

    def set_count(self, count: int) -> None:
        """Have the encoder count from `count` on."""
        turns = count / self.values["encoder.config.cpr"]
        self._offset += turns - self._position
        self._position = turns

    def jump(self, turns: float) -> None:
        """Have the encoder count what was none."""
        self._offset += turns
        self._position += turns

    def clear_errors(self) -> None:
        """Forget all errors."""
        for part in ("", "motor.", "encoder.", "controller."):
            self.values[f"{part}error"] = 0

    # --- what it does by itself --------------------------------------------------------------------------------------

    def fail(self, bits: int, part: str = "", part_bits: int = 0) -> None:
        """Note an error, of which part, and disarm the motor."""
        held = self.values
        held["error"] = held.get("error", 0) | bits
        if part:
            held[f"{part}.error"] = held.get(f"{part}.error", 0) | part_bits
        self._disarm()

    def iterate(self, turns: float) -> None:
        """Run one control iteration with the shaft at `turns`."""
        self._estimate(turns + self._offset)
        held = self.values
        if held.get("config.enable_watchdog", False):
            if self._left <= 0:
                self.fail(WATCHDOG_EXPIRED)
            self._left -= 1
        if held.get("error", 0):
            self._disarm()
        if held["current_state"] == CLOSED_LOOP:
            self._control()

    def _begin(self) -> None:
        """Hold where the motor is."""
        held = self.values
        held["current_state"], held["motor.is_armed"] = CLOSED_LOOP, True
        if held["controller.config.control_mode"] == POSITION_CONTROL:
            held["controller.input_pos"] = self._position
        self._integral = 0.0
        self.feed()

    def _disarm(self) -> None:
        held = self.values
        held["current_state"], held["motor.is_armed"] = IDLE, False
        self.torque = 0.0

    def _estimate(self, turns: float) -> None:
        """Follow the encoder's counts with position and speed, as a tracking loop does."""
        held = self.values
        counts, gain = held["encoder.config.cpr"], 2.0 * held["encoder.config.bandwidth"]
        self._position += STEP * self._speed
        count = math.floor(turns * counts)
        error = (count - math.floor(self._position * counts)) / counts
        self._position += STEP * gain * error
        self._speed += STEP * 0.25 * gain * gain * error
        if abs(self._speed) * counts < 0.125 * STEP * gain * gain:  # less than half a count can add
            self._speed = 0.0
        held["encoder.shadow_count"] = count
        held["encoder.pos_estimate"], held["encoder.vel_estimate"] = self._position, self._speed
        held["encoder.pos_estimate_counts"] = self._position * counts
        held["encoder.vel_estimate_counts"] = self._speed * counts

    def _control(self) -> None:
        """Make a torque of what the host wants and what the encoder says."""
        held = self.values
        mode, config = held["controller.config.control_mode"], "controller.config."
        if held[config + "input_mode"] != PASS_THROUGH:
            self.fail(CONTROLLER_FAILED, "controller", INVALID_INPUT_MODE)
            return
        limit = held[config + "vel_limit"]
        if held[config + "enable_overspeed_error"] and abs(self._speed) > held[config + "vel_limit_tolerance"] * limit:
            self.fail(CONTROLLER_FAILED, "controller", OVERSPEED)
            return
        wanted = held.get("controller.input_vel", 0.0)
        if mode == POSITION_CONTROL:
            wanted += held[config + "pos_gain"] * (held.get("controller.input_pos", 0.0) - self._position)
        if held[config + "enable_vel_limit"]:
            wanted = _clamp(wanted, limit)
        error = wanted - self._speed
        torque = held.get("controller.input_torque", 0.0)
        if mode >= VELOCITY_CONTROL:
            torque += held[config + "vel_gain"] * error + self._integral
        elif held[config + "enable_torque_mode_vel_limit"]:
            gain = held[config + "vel_gain"]
            torque = min(max(torque, (-limit - self._speed) * gain), (limit - self._speed) * gain)
        self._drive(mode, error, torque)
        held["controller.vel_setpoint"], held["controller.pos_setpoint"] = wanted, held.get("controller.input_pos", 0.0)

    def _drive(self, mode: int, error: float, torque: float) -> None:
        held = self.values
        if not math.isfinite(torque):
            self.fail(MOTOR_FAILED, "motor", NOT_A_NUMBER)
            return
        strongest = held["motor.config.current_lim"] * held["motor.config.torque_constant"]
        strongest = min(strongest, held["motor.config.torque_lim"])
        self.torque = _clamp(torque, strongest)
        if mode < VELOCITY_CONTROL:
            self._integral = 0.0
        elif self.torque != torque:
            self._integral *= 0.99
        else:
            self._integral += STEP * held["controller.config.vel_integrator_gain"] * error
            self._integral = _clamp(self._integral, held["controller.config.vel_integrator_limit"])
        held["controller.torque_setpoint"] = self.torque
        held["controller.vel_integrator_torque"] = self._integral
        held["motor.current_control.Iq_setpoint"] = self.torque / held["motor.config.torque_constant"]
        held["motor.current_control.Iq_measured"] = held["motor.current_control.Iq_setpoint"]


def _clamp(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)
