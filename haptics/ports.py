"""Ports: access of the compiled loop to a device without Python.

A device with a `Port` exchanges its newest sample and its command with the loop through one record. A virtual device
provides parts (`haptics.parts`) that compute the sample and apply the command within the call. A driver provides parts
that assemble the sample from the data last received by its threads and pass the command to them
(`devices.common.driver`). Threads may also write and read the record directly, protected by a seqlock. On an error the
device sets ``fault``; the loop then returns to Python, where the device's ``read`` or ``write`` raises the exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from haptics.device import MAX_CHANNELS
from haptics.records import Rows

PORT_FIELDS: list[tuple[Any, ...]] = [
    ("sequence", "<i8"),
    ("fault", "<i8"),
    ("time", "<f8"),
    ("position", "<f8", (2,)),
    ("velocity", "<f8", (2,)),
    ("force", "<f8", (2,)),
    ("hand_force", "<f8", (2,)),
    ("buttons", "<i8"),
    ("command", "<f8", (2,)),
    ("assistance", "<f8"),
    ("commands", "<i8"),
    ("channels", "<f8", (MAX_CHANNELS,)),
]
"""First fields of the record of a port.

``sequence`` is odd while a thread writes the sample and even otherwise (always 0 if a part provides the sample).
``fault`` is nonzero if ``read`` would raise. ``time`` to ``buttons`` are the sample (`haptics.device.State`);
``hand_force`` is the true force of the hand [N] if known, else nan. ``command`` and ``assistance`` come from the servo
(`haptics.device.FrictionCompensator.compensate`); ``commands`` is odd while the servo writes them for a thread.
``channels`` begins with the values of the device's channels (`haptics.device.DeviceSpec.channels`), which belong to the
sample.
"""


@dataclass(frozen=True)
class Port:
    """The port of an opened device.

    Attributes
    ----------
    record : (1,) structured array
        Begins with `PORT_FIELDS`; its address is fixed until the device is closed.
    take : int
        Address of the part ``(record, now, elapsed)`` that updates the sample for the nominal time `now`, with the time
        `elapsed` since the start [s]; 0 if a thread does.
    give : int
        Address of the part ``(record, x, y)`` that applies a command; 0 if a thread does.
    wake : int
        File descriptor of an event (``eventfd(2)``) to be signalled after each command; -1 for none.
    """

    record: Rows
    read_part: int = 0
    write_part: int = 0
    wake: int = -1


@runtime_checkable
class Ported(Protocol):
    """Extension of the device interface for devices that the compiled loop can serve."""

    def port(self) -> Port | None:
        """Return the port of the open device; None if its present configuration has no port."""
        ...


def port_of(device: object) -> Port | None:
    """Return the port of an open `device`, or None without a port equivalent to ``read`` and ``write``.

    A subclass or wrapper that overrides ``read`` or ``write`` of a device with a port expects these methods to be
    called. The port is therefore valid only if it is defined in the same class as both methods, or in a subclass of it.
    """
    order = type(device).__mro__
    if not all(any(name in vars(cls) for cls in order) for name in ("port", *_METHODS)):
        return None
    last = {name: next(k for k, cls in enumerate(order) if name in vars(cls)) for name in ("port", *_METHODS)}
    replaced = any(last[name] < last["port"] or name in vars(device) for name in _METHODS)
    port: Port | None = None if replaced else device.port()  # type: ignore[attr-defined]
    return port


_METHODS = ("read", "write")
