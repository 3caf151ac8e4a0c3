"""Descriptions of the status word of a record.

Net F/T boxes and Axia sensors use the same records, and the same summary and latch bits; the other bits differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from devices.arm.sensors.wire import Health

LATCHED = 0x8001_0000
"""Status of a monitored condition that was met some time ago, without other errors."""

_COMMON = {16: "a monitored condition was met"}

NET_FT: Mapping[int, str] = {
    30: "processor or memory failure",
    29: "failure of the digital board",
    28: "failure of the analogue board",
    27: "failure of the link between its boards",
    26: "program memory is corrupt",
    25: "stopped by an error in its settings",
    24: "settings are not valid",
    23: "the settings do not fit the calibration",
    22: "network failure",
    21: "CAN failure",
    20: "failure of the data stream",
    19: "EtherNet/IP failure",
    18: "DeviceNet failure",
    17: "saturated: take the load away; if that does not help, its transducer or cable is broken",
    14: "watchdog has expired",
    13: "stack overflow",
    12: "settings memory does not answer",
    11: "flash memory does not answer",
    10: "watchdog of the analogue board has expired",
    9: "too much current through the strain gauges",
    8: "too little current through the strain gauges",
    7: "analogue ground is out of range",
    6: "supply of the analogue board is too high",
    5: "supply of the analogue board is too low",
    4: "the analogue board sends no data",
    3: "reference voltage or supply is out of range",
    2: "temperature is out of range",
    1: "web server failure",
    **_COMMON,
}
"""Meaning of the bits of Net F/T boxes; bit 31 only indicates that other bits are set."""

AXIA: Mapping[int, str] = {
    30: "overloaded: force or torque is out of range, take the load away",
    29: "the calibration is corrupt",
    28: "simulates an error",
    27: "overloaded: a strain gauge is out of range, take the load away",
    26: "a strain gauge is nearly out of range",
    5: "failure of hardware or firmware",
    3: "busy",
    2: "a strain gauge is broken",
    1: "supply voltage is out of range",
    0: "temperature is out of range",
    **_COMMON,
}
"""Meaning of the bits of Axia sensors; bit 31 as above."""


def health_of(status: int) -> Health:
    """Return the validity of a record with this `status`."""
    if status == 0:
        return Health.OK
    return Health.WARNING if status == LATCHED else Health.FAULT


def status_words(status: int, meanings: Mapping[int, str]) -> str:
    """Return a description of a `status`, most serious first; empty if no bit is set.

    Parameters
    ----------
    status : int
        Status word, 32 bits.
    meanings : mapping
        `NET_FT` or `AXIA`.
    """
    if status == 0:
        return ""
    bits = [bit for bit in range(30, -1, -1) if status >> bit & 1]
    said = [meanings.get(bit, f"unknown status bit {bit}") for bit in bits] or ["an error it does not name"]
    return f"{'; '.join(said)} (status {status:#010x})"
