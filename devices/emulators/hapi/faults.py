"""What may go wrong on the wire of an emulated board, on demand (`devices.emulators.wire_faults`).

Their time counts from when the handle is let go, that is, about when the driver begins to render; anew for every host.
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
"""Fault name to what it is."""
