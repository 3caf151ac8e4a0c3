"""Descriptions of a drive's error bits (firmware 0.5.6, Pro and S1), with remedies."""

from __future__ import annotations

from collections.abc import Mapping

SYSTEM = {
    0: "it missed a control iteration",
    1: "the supply's voltage is too low",
    2: "the supply's voltage is too high",
    3: "too much current flows back into the supply",
    4: "too much current is drawn from the supply",
    5: "the timing of the brake resistor is wrong",
    6: "the duty cycle of the brake resistor is not a number",
    7: "the value of the brake resistor is wrong",
}
AXIS = {
    0: "a state was asked for that it cannot be in",
    6: "the motor failed",
    7: "the sensorless estimator failed",
    8: "the encoder failed",
    9: "the controller failed",
    11: "the watchdog expired",
    12: "the lower end stop was pressed",
    13: "the upper end stop was pressed",
    14: "an emergency stop was asked for",
    17: "it has no end stop to home to",
    18: "it is too hot",
    19: "its position is not known",
}
MOTOR = {
    0: "phase resistance out of range",
    1: "phase inductance out of range",
    3: "fault of the gate driver",
    4: "control deadline missed",
    7: "the supply's voltage does not suffice for the current",
    10: "current sensor saturated",
    12: "current above its limit",
    16: "modulation is not a number",
    17: "motor too hot",
    18: "power stage too hot",
    19: "timer update missed",
    20: "no measurement of the current",
    21: "current controller failed",
    22: "current from the supply out of range",
    23: "brake resistor disarmed",
    24: "fault of the whole drive",
    25: "out of step with the main loop",
    26: "phase not known",
    27: "phase velocity not known",
    28: "torque not known",
    29: "current command not known",
    30: "current not known",
    31: "supply's voltage not known",
    32: "voltage command not known",
    33: "gains not known",
    34: "controller still initialising",
    35: "phases not balanced",
}
ENCODER = {
    0: "gain unstable",
    1: "counts per turn and pole pairs do not fit together",
    2: "no response",
    3: "mode not supported",
    4: "illegal Hall state",
    5: "index not found yet",
    6: "SPI timeout",
    7: "SPI communication failed",
    8: "SPI not ready",
    9: "Hall sensors not calibrated yet",
}
CONTROLLER = {
    0: "overspeed",
    1: "wrong input mode",
    2: "gain unstable",
    3: "wrong axis to mirror",
    4: "wrong load encoder",
    5: "no valid estimate",
    6: "wrong circular range",
    7: "spinout: encoder and motor do not agree",
}
NEW_ERRORS = {
    0: "it is still starting",
    1: "fault of the whole drive",
    2: "an iteration of its control took too long",
    3: "an estimate is missing: position or phase not known, calibrate it with the maker's tool",
    4: "its configuration is wrong",
    5: "fault of the gate driver",
    6: "an input is missing",
    8: "the supply's voltage is too high",
    9: "the supply's voltage is too low",
    10: "too much current is drawn from the supply",
    11: "too much current flows back into the supply",
    12: "current above its limit",
    13: "motor too hot",
    14: "power stage too hot",
    15: "speed above its limit: move more slowly, or raise the drive's vel_limit",
    16: "position beyond its limit",
    24: "the watchdog expired: the host was silent for too long; start again",
    25: "an emergency stop was asked for",
    26: "spinout: encoder and motor do not agree",
    27: "brake resistor disarmed",
    28: "thermistor disconnected",
    30: "calibration failed",
}
"""Error bits of Pro and S1 (``ODrive.Error`` of their documentation)."""

PARTS: Mapping[str, Mapping[int, str]] = {"": AXIS, "motor": MOTOR, "encoder": ENCODER, "controller": CONTROLLER}
"""Error bits by part of an axis; "" is the axis itself."""

WATCHDOG_EXPIRED, NEW_WATCHDOG_EXPIRED = 1 << 11, 1 << 24
"""Bit of an expired watchdog in the errors of an axis, of firmware 0.5 and of Pro and S1."""

_CONSEQUENCES = sum(1 << bit for bit in (6, 8, 9))  # bits of an axis that only refer to one of its parts

_REMEDIES = {
    ("", 11): "the host was silent for too long; start again",
    ("", 0): "calibrate motor and encoder with the maker's tool",
    ("controller", 0): "move more slowly, or raise its speed limit (device.motors.speed_limit)",
    ("controller", 7): "check the encoder's coupling, calibrate its offset anew",
    ("motor", 12): "lower its gains, or raise its current limit",
    ("motor", 17): "let the motor cool down",
    ("motor", 18): "let the drive cool down",
    ("encoder", 2): "check the encoder's cable",
}


def in_words(bits: int, words: Mapping[int, str]) -> list[str]:
    """Return descriptions of the bits that are set; unknown bits by their number."""
    return [words.get(bit, f"error bit {bit}") for bit in range(bits.bit_length()) if bits >> bit & 1]


def explain(axis: int, errors: Mapping[str, int]) -> str:
    """Return a description of the errors of an axis, in one line; empty if none.

    Parameters
    ----------
    axis : int
        Number of the axis.
    errors : mapping of str to int
        Error bits by part (a key of `PARTS`).
    """
    own = errors.get("", 0)
    if any(bits for part, bits in errors.items() if part):
        own &= ~_CONSEQUENCES
    found = {part: errors.get(part, 0) if part else own for part in PARTS}
    texts = {part: ", ".join(in_words(bits, PARTS[part])) for part, bits in found.items() if bits}
    if not texts:
        return ""
    remedies = [f" ({remedy})" for (part, bit), remedy in _REMEDIES.items() if found[part] >> bit & 1]
    listed = "; ".join(f"{part}: {text}" if part else text for part, text in texts.items())
    return f"axis {axis}: {listed}{''.join(remedies)}"
