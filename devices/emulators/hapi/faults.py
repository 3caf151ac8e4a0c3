"""Communication faults of an emulated board, on demand (`devices.emulators.wire_faults`).

Their times count from the release of the handle, approximately when the driver starts rendering, for every host.
"""

from __future__ import annotations

WIRE_FAULTS: dict[str, str] = {
    "unplug": "the cable is pulled out, for good: the port goes away, torques stay",
    "lost-byte": "every message to the board lacks a byte in its middle",
    "lost-reply-byte": "every reply lacks a byte in its middle",
    "short": "replies are cut in half",
    "dropout": "no replies, torques are taken",
    "delay-1ms": "every reply comes 1 ms later",
    "delay-5ms": "every reply comes 5 ms later",
    "delay-20ms": "every reply comes 20 ms later",
    "delay-100ms": "every reply comes 100 ms later",
}
"""Faults: name to description."""
