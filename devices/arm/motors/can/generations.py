r"""Differences on CAN between firmware 0.5 (ODrive v3) and the firmware of Pro and S1 (0.6 and later).

The frames that drive the motors are identical. Drives of the new generation reply to a version request; firmware 0.5
does not.

======================  =======================================  ====================================================
\                       0.5                                      Pro, S1
======================  =======================================  ====================================================
version (0x00)          not answered                             eight numbers of one byte
heartbeat (0x01)        error bits of the axis, state, flags     active errors, state, result of a procedure
errors (0x03)           of the motor; encoder 0x04, controller   active errors, and errors for which the motor
                        0x1D                                     was disarmed
rates                   ``config.can.encoder_rate_ms``           ``config.can.encoder_msg_rate_ms``
======================  =======================================  ====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from devices.arm.motors.can import codec
from devices.arm.motors.errors import WATCHDOG_EXPIRED, explain, in_words

Ask = Callable[[int, int], bytes]
"""Sends a request (node, command) and returns the data of the reply."""

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


@dataclass(frozen=True)
class Generation:
    """Firmware generation of a drive.

    Attributes
    ----------
    firmware : str
        Firmware version, as far as the drive reports it.
    watchdog : int
        Error bit of an expired watchdog.
    estimate_rate, heartbeat_rate : str
        Settings of an axis for the period of both messages [ms].
    axes : (str, str)
        Names of the first and the second axis in odrivetool.
    words : callable
        Requests the errors of an axis (its number, its node, the error bits of its heartbeat, the bits to leave out)
        and returns a description.
    """

    firmware: str
    watchdog: int
    estimate_rate: str
    heartbeat_rate: str
    axes: tuple[str, str]
    words: Callable[[Ask, int, int, int, int], str]


def _old_words(ask: Ask, axis: int, node: int, error: int, hidden: int) -> str:
    """Return a description of the errors of an axis with firmware 0.5."""
    commands: Mapping[str, int] = {
        "motor": codec.MOTOR_ERROR,
        "encoder": codec.ENCODER_ERROR,
        "controller": codec.CONTROLLER_ERROR,
    }
    found = {part: codec.bits(ask(node, command)) or 0 for part, command in commands.items()}
    return explain(axis, {"": error & ~hidden, **found})


def _new_words(ask: Ask, axis: int, node: int, error: int, hidden: int) -> str:
    """Return a description of the errors of a Pro or S1 axis and of the reason why its motor was disarmed."""
    active, reason = codec.words(ask(node, codec.ERRORS)) or (error, 0)
    told = in_words((error | active | reason) & ~hidden, NEW_ERRORS)
    return f"axis {axis}: {', '.join(told)}" if told else ""


OLD = Generation(
    "0.5",
    WATCHDOG_EXPIRED,
    "config.can.encoder_rate_ms",
    "config.can.heartbeat_rate_ms",
    ("odrv0.axis0", "odrv0.axis1"),
    _old_words,
)
"""Firmware 0.5: one drive with two axes."""


def new(version: bytes) -> Generation:
    """Return the generation of a drive from the reply to a version request."""
    firmware = ".".join(map(str, version[4:7]))
    rates = "config.can.encoder_msg_rate_ms", "config.can.heartbeat_msg_rate_ms"
    return Generation(firmware, 1 << 24, *rates, ("odrv0.axis0", "odrv1.axis0"), _new_words)
