"""Digital output of a device: codes of another process, which the thread of the driver passes to the device.

The driver has the only connection to the device. Another process writes a code to a record in shared memory, and waits
for its confirmation; the thread of the driver looks for a new code in every exchange. No tick takes part in that.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError, HapticError, reason_of
from haptics.shared import Mailbox

OUTPUT = np.dtype([("kind", "S8"), ("request", "<i8"), ("done", "<i8"), ("driven", "<i8")])
"""Record of the file: its ``kind``; number and code of the latest ``request`` (``256 * number + code``); the latest
request that is ``done``, negative if the device has refused it; 1 while the output is ``driven`` by a driver."""

_KIND = b"output-1"

_POLL = 50e-6
"""Interval in which a confirmation is awaited [s]."""


class OutputRequests:
    """Side of the process that sends codes.

    Parameters
    ----------
    path : Path
        New or empty file, which is the setting ``output`` of the device.
    timeout : float
        Longest time until a code is confirmed [s].
    """

    def __init__(self, path: Path, timeout: float = 1.0) -> None:
        self._record = Mailbox(path, OUTPUT, create=True).record
        self._record["kind"] = _KIND
        self._timeout, self._number = timeout, 0

    def set(self, code: int) -> None:
        """Set the output to a code from 0 to 255; return when the device has it.

        A closed driver has set the output to 0, so that the code 0 needs no driver.

        Raises
        ------
        DeviceFault
            If no driver is open, or the device does not accept the code in time.
        """
        record = self._record
        self._number += 1
        request = 256 * self._number + code
        record["request"] = request
        until = time.monotonic() + self._timeout
        while (done := int(record["done"][0])) != request:
            driven = bool(record["driven"][0])
            if not driven and code == 0:
                return
            if done == -request:
                raise DeviceFault(f"digital output: the device did not accept code {code}; check its connector.")
            if not driven or time.monotonic() > until:
                words = "the driver did not confirm it" if driven else "the device is closed already"
                raise DeviceFault(f"digital output: code {code} was not sent in time ({words}).")
            time.sleep(_POLL)


class OutputDriver:
    """Side of the driver.

    Parameters
    ----------
    path : str
        Setting ``output``.
    write : callable
        Sets the output of the device. Raises `HapticError` if that fails.

    Raises
    ------
    ConfigurationError
        If the file is no file of `OutputRequests`.
    DeviceOpenError
        If the device has no output.
    """

    def __init__(self, path: str, write: Callable[[int], object]) -> None:
        record = None
        with contextlib.suppress(OSError, ConfigurationError):
            if Path(path).is_file():
                record = Mailbox(Path(path), OUTPUT).record
        if record is None or record["kind"][0] != _KIND:  # nothing is written to any other file
            raise ConfigurationError(f"device.output = {path!r}: is no file for codes; leave it out.")
        self._record, self._write = record, write
        self._last = int(self._record["request"][0])
        try:
            write(0)
        except HapticError as error:
            raise DeviceOpenError(
                f"the device does not accept codes at a digital output: {reason_of(error)}."
            ) from error
        self._record["driven"] = 1

    def poll(self) -> None:
        """Pass a new code to the device."""
        request = int(self._record["request"][0])
        if request == self._last:
            return
        self._last = request
        try:
            self._write(request & 255)
        except HapticError:
            self._record["done"] = -request
        else:
            self._record["done"] = request

    def close(self) -> None:
        """Set the output to 0."""
        self._record["driven"] = 0
        self._write(0)
