"""Faults between a driver and the emulated service, on demand (`devices.emulators.wire_faults`).

Their times count from the first force that the driver commands, for every connection.
"""

from __future__ import annotations

WIRE_FAULTS: dict[str, str] = {
    "unplug": "the device is unplugged: the service goes on without it",
    "no-power": "the service says that the device has no power supply",
    "uncalibrated": "the service says that the device is not calibrated",
    "hang-up": "the service ends the connection without a word",
    "close": "the service closes the connection as it should",
    "dropout": "no answers, forces are taken",
    "half": "of every answer half comes at once, the rest 1 ms later",
    "fragments": "every answer comes in three fragments, with a ping between them",
    "nonsense": "answers are no JSON",
    "not-utf8": "answers are no text",
    "giant": "answers announce a length of 2^62 bytes",
    "delay-1ms": "every answer comes 1 ms later",
    "delay-5ms": "every answer comes 5 ms later",
    "delay-20ms": "every answer comes 20 ms later",
    "delay-100ms": "every answer comes 100 ms later",
}
"""Faults: name to description."""
