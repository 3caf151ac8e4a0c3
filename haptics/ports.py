"""Ports: how the compiled loop reads a device and commands it without Python.

A device that has a `Port` offers its newest sample and takes its command in one record. A virtual device brings parts
(`haptics.parts`) that take the sample and act on the command in the very call; a driver brings parts that make the
sample of what its threads heard last, and leave them the command (`devices.common.driver`). Threads may also fill and
read the record themselves, under a seqlock. Whatever happens that takes words, the device says by ``fault``: the
loop then leaves, and the device's plain ``read`` or ``write`` has the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from haptics.device import MOST_CHANNELS
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
    ("channels", "<f8", (MOST_CHANNELS,)),
]
"""What the record of a port begins with.

``sequence`` is odd while a thread writes the sample, and as it was after each (0 for ever where a part takes it);
``fault`` is not 0 when ``read`` would raise; ``time`` to ``buttons`` are the sample (`haptics.device.State`), with
``hand_force`` the hand's true force where that is known [N], else nan; ``command`` and ``assistance`` are the servo's
(`haptics.device.Compensating.compensate`), ``commands`` is odd while it writes them for a thread. ``channels`` begins
with the numbers of the device's channels (`haptics.device.DeviceSpec.channels`); they belong to the sample."""


@dataclass(frozen=True)
class Port:
    """The port of an opened device.

    Attributes
    ----------
    record : (1,) structured array
        Begins with `PORT_FIELDS`; it stays where it is until the device is closed.
    take : int
        Address of the part ``(record, now, elapsed)`` that brings the sample up to date at the nominal time `now`, when
        so much time has gone by since the start [s]; 0 where a thread does.
    give : int
        Address of the part ``(record, x, y)`` that acts on a command; 0 where a thread does.
    wake : int
        File descriptor of an event (``eventfd(2)``) to be raised after each command; -1 for none.
    """

    record: Rows
    take: int = 0
    give: int = 0
    wake: int = -1


@runtime_checkable
class Ported(Protocol):
    """What a device has besides the contract that the compiled loop can serve."""

    def port(self) -> Port | None:
        """Return the port, once the device is open; None where, as it is set up, it has none."""
        ...


def port_of(device: object) -> Port | None:
    """Return the port of an opened `device`, None where it has none that stands for its ``read`` and ``write``.

    A class that changes one of these methods of a device with a port, or an object around such a device, means the
    methods to be called: the port counts only where it was defined together with them, or after them.
    """
    order = type(device).__mro__
    if not all(any(name in vars(cls) for cls in order) for name in ("port", *_METHODS)):
        return None
    last = {name: next(k for k, cls in enumerate(order) if name in vars(cls)) for name in ("port", *_METHODS)}
    replaced = any(last[name] < last["port"] or name in vars(device) for name in _METHODS)
    port: Port | None = None if replaced else device.port()  # type: ignore[attr-defined]
    return port


_METHODS = ("read", "write")
