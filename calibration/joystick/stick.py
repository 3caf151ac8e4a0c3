"""Access to a force-feedback stick in counts."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any, Self

from devices.common.bus import TransferError
from devices.joystick.hid.usages import X, Y
from devices.joystick.opening import THE_MOTORS, playing
from devices.joystick.settings import StickSettings
from devices.joystick.streaming import Streaming
from devices.joystick.usb.finding import connect
from devices.joystick.usb.transport import Link
from haptics.errors import DeviceFault, DeviceOpenError

Pair = tuple[float, float]

SILENCE = 0.25
"""Time without a report after which a stick has failed [s]."""

PAUSE = 1e-3
"""Time between two polls of the stick [s]."""


class RawStick:
    """Open stick with its effects running at level zero; a context manager.

    However the context is left, the force is zero afterwards and the stick is returned to the operating system. If this
    process dies inside, the stick ends its effects by itself after ``settings.force_duration``.

    Parameters
    ----------
    settings : StickSettings
        Settings that select the stick, its transport, and the duration of its effects.
    backend : usb.backend.IBackend, optional
        USB backend to use instead of libusb.
    wheel : bool
        Whether it has one axis.

    Attributes
    ----------
    link : Link
        Properties of the stick.
    ranges : tuple of (int, int)
        Minimum and maximum count of each axis.
    usages : tuple of int
        Usages of the axes.
    full_scale : int
        Number of steps of a level between 0 and 1.
    quantum : int
        Greatest common divisor of all observed steps of the counts, 0 without steps.
    """

    link: Link
    ranges: tuple[tuple[int, int], ...]
    usages: tuple[int, ...]

    def __init__(self, settings: StickSettings, backend: Any = None, *, wheel: bool = False) -> None:
        self.settings = settings
        self._axes = THE_MOTORS if wheel else (X, Y)
        self._backend = backend
        self._streaming: Streaming | None = None
        self.full_scale = 0
        self.quantum = 0
        self._first: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        """Open the stick and set it up.

        Raises
        ------
        DeviceNotFoundError, DeviceOpenError
            With the remedy.
        """
        own = self.settings
        with contextlib.ExitStack() as undo:
            transport = connect("", own.serial, own.transport, self._backend, own.port)
            undo.callback(transport.close)
            streaming = undo.enter_context(playing(transport, own.force_duration, own.keep_alive, self._axes))
            self.link, self.full_scale = transport.link, streaming.full_scale
            self.ranges, self.usages = streaming.layout.ranges, streaming.layout.usages
            self._streaming = streaming
            self._begun = time.perf_counter()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Set the force to zero and release the stick."""
        self._streaming = None
        self._undo.close()

    # --- measurement --------------------------------------------------------------------------------------------------

    def counts(self) -> tuple[int, int]:
        """Return the present counts of both axes; for a wheel the second is 0.

        Raises
        ------
        DeviceFault
            If the stick was removed or does not report.
        """
        sample = self._alive().sample
        assert sample is not None
        now = sample.x, sample.y
        first = self._first = self._first or now
        self.quantum = math.gcd(self.quantum, now[0] - first[0], now[1] - first[1])
        return now

    def start_once(self, level: float) -> None:
        """Start a force along the first axis with the given level, which is not renewed.

        Raises
        ------
        DeviceFault
            If the stick was removed or does not report.
        """
        try:
            self._alive().start_once(level)
        except TransferError as error:
            raise DeviceFault(str(error)) from error

    def _alive(self) -> Streaming:
        streaming = self._streaming
        if streaming is None:
            raise DeviceOpenError("the stick is not open.")
        if streaming.fault is not None:
            raise DeviceFault(str(streaming.fault)) from streaming.fault
        if time.perf_counter() - max(streaming.heard, self._begun) > SILENCE:
            raise DeviceFault(f"the stick has sent no complete report for {SILENCE:g} s: check cable and hub.")
        return streaming
