"""Access to a drive by name: properties to read and write, functions to call."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from devices.arm.motors.native import wire
from devices.arm.motors.native.endpoints import Endpoint, Function, Table, Value, fetch
from devices.arm.motors.native.line import Line
from haptics.errors import DeviceOpenError

_OFFSET = struct.Struct("<I")
_PAGE = 512


class Drive:
    """Drive whose table of endpoints is known; created by `connect`.

    Every method raises `TransferError` if the drive does not reply, and `DeviceOpenError` if the name does not exist.

    Parameters
    ----------
    line : Line
        Communication with the drive.
    table : Table
        Its endpoints.
    """

    def __init__(self, line: Line, table: Table) -> None:
        self.line, self.table = line, table

    def property(self, name: str) -> Endpoint:
        """Return the endpoint of a property."""
        found = self.table.properties.get(name)
        return found if found is not None else self._lacks(name)

    def function(self, name: str) -> Function:
        """Return the endpoints of a function."""
        found = self.table.functions.get(name)
        return found if found is not None else self._lacks(f"{name}()")

    def _lacks(self, name: str) -> Any:
        raise DeviceOpenError(
            f"the drive has no {name}: this driver is for firmware 0.5.2 to 0.5.6; update it with the maker's tool."
        )

    def get(self, name: str) -> Any:
        """Return the value of a property."""
        return self._read(self.property(name))

    def set(self, name: str, value: Value) -> None:
        """Write a property and wait for the acknowledgement."""
        self._write(self.property(name), value)

    def call(self, name: str, *arguments: Value) -> Any:
        """Call a function; return its first output, None if it has no output."""
        function = self.function(name)
        for endpoint, value in zip(function.inputs, arguments, strict=True):
            self._write(endpoint, value)
        self.line.operate(function.number)
        return self._read(function.outputs[0]) if function.outputs else None

    def _read(self, endpoint: Endpoint) -> Any:
        return endpoint.unpack(self.line.operate(endpoint.number, b"", endpoint.form.size))

    def _write(self, endpoint: Endpoint, value: Value) -> None:
        self.line.operate(endpoint.number, endpoint.pack(value))


def connect(line: Line, folder: Path | None) -> Drive:
    """Read the drive's table of endpoints, and set its checksum as the trailer of requests.

    Parameters
    ----------
    line : Line
        Communication with the drive.
    folder : Path or None
        Folder of the cached tables, None for no cache.

    Raises
    ------
    TransferError
        If the drive does not reply.
    DeviceOpenError
        If its table cannot be used.
    """

    def page(offset: int) -> bytes:
        return line.operate(wire.TABLE, _OFFSET.pack(offset), _PAGE, least=0)

    version = line.operate(wire.TABLE, _OFFSET.pack(wire.VERSION), 4)
    table = fetch(int.from_bytes(version, "little"), page, folder)
    line.trailer = table.checksum
    return Drive(line, table)
