"""Endpoint table of a drive: its properties and functions by name, read once and kept on disk.

The table is a JSON text of some 50 kB in pieces of 61 bytes or fewer; reading it takes a second. Its identification is
asked for first: two checksums, by which a copy on disk is known to be the very same.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devices.arm.motors.native.wire import TABLE_TRAILER, checksum
from haptics.errors import DeviceOpenError

Value = float | int | bool
"""What a property holds."""

_FORMS = {
    "float": "<f",
    "bool": "<?",
    **{f"{sign}int{8 * size}": f"<{letter}" for sign, letters in (("", "bhiq"), ("u", "BHIQ"))
       for size, letter in zip((1, 2, 4, 8), letters, strict=True)},
}  # fmt: skip
"""Name of a type to its form for `struct`."""

_HIGHEST = 0x7FFF
"""No address is higher: the bit above asks for an acknowledgement."""

_LONGEST = 1 << 20
"""No table is longer [byte]."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A property.

    Attributes
    ----------
    name : str
        Names of all it is part of, with dots.
    number : int
        Its address.
    form : struct.Struct
        How its value is packed.
    writable : bool
        Whether it can be written.
    """

    name: str
    number: int
    form: struct.Struct
    writable: bool

    def pack(self, value: Value) -> bytes:
        """Return the bytes of a value."""
        return self.form.pack(value)

    def unpack(self, data: bytes) -> Any:
        """Return the value of bytes."""
        return self.form.unpack(data)[0]


@dataclass(frozen=True, slots=True)
class Function:
    """Something the drive can be told to do: write the inputs, then to `number`, then read the outputs."""

    name: str
    number: int
    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All endpoints of a drive.

    Attributes
    ----------
    checksum : int
        What requests to them end with.
    properties : mapping of str to Endpoint
        By name.
    functions : mapping of str to Function
        By name.
    """

    checksum: int
    properties: Mapping[str, Endpoint]
    functions: Mapping[str, Function]


def identification(text: bytes) -> int:
    """Return what a drive with this table gives for its identification."""
    first = checksum(text, TABLE_TRAILER)
    return first << 16 | checksum(text, first)


def parse_table(text: bytes) -> Table:
    """Return the table that a JSON text describes; what is of an unknown type is left out.

    Raises
    ------
    DeviceOpenError
        If it is no such text.
    """
    properties: dict[str, Endpoint] = {}
    functions: dict[str, Function] = {}
    try:
        _collect(json.loads(text), "", properties, functions)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DeviceOpenError(
            f"the drive's table of endpoints cannot be understood ({error}): is its firmware 0.5?"
        ) from error
    return Table(checksum(text, TABLE_TRAILER), properties, functions)


def _collect(
    members: list[dict[str, Any]], prefix: str, properties: dict[str, Endpoint], functions: dict[str, Function]
) -> None:
    for member in members:
        kind, name = member["type"], f"{prefix}{member['name']}"
        if kind == "object":
            _collect(member["members"], f"{name}.", properties, functions)
        elif kind == "function":
            inputs, outputs = (
                tuple(_endpoint(part, f"{name}.", True) for part in member.get(key, ()))
                for key in ("inputs", "outputs")
            )
            functions[name] = Function(name, _address(member, name), inputs, outputs)
        elif kind in _FORMS:
            properties[name] = _endpoint(member, prefix, "w" in member.get("access", "r"))


def _endpoint(member: dict[str, Any], prefix: str, writable: bool) -> Endpoint:
    name = f"{prefix}{member['name']}"
    return Endpoint(name, _address(member, name), struct.Struct(_FORMS[member["type"]]), writable)


def _address(member: dict[str, Any], name: str) -> int:
    """Return the address in a member of the table; raise `ValueError` if a request cannot hold it."""
    number = member["id"]
    if type(number) is not int or not 0 <= number <= _HIGHEST:
        raise ValueError(f"{name} has the address {str(number)[:20]}")
    return number


def fetch(version: int, page: Callable[[int], bytes], folder: Path | None) -> Table:
    """Return the table with this identification, from disk if it is there.

    Parameters
    ----------
    version : int
        What the drive gave for its identification.
    page : callable
        Reads the piece of the text that begins at an offset; empty at the end.
    folder : Path or None
        Where tables are kept, if anywhere.

    Raises
    ------
    DeviceOpenError
        If what was read is not what the drive said it would be.
    """
    file = folder / f"{version:08x}.json" if folder is not None else None
    text = _kept(file, version)
    if text is None:
        text = _read(page)
        if identification(text) != version:
            raise DeviceOpenError(
                f"the drive's table of endpoints was garbled on its way ({len(text)} bytes): check cable and hub, "
                "start again."
            )
        _keep(file, text)
    return parse_table(text)


def _read(page: Callable[[int], bytes]) -> bytes:
    text = bytearray()
    while len(text) < _LONGEST:
        piece = page(len(text))
        if not piece:
            break
        text += piece
    return bytes(text)


def table_folder() -> Path | None:
    """Return where tables are kept: beside the compiled kernels; None for a person without a home."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "haptics" / "odrive"


def _kept(file: Path | None, version: int) -> bytes | None:
    """Return a text that was kept, if it is whole."""
    try:
        text = file.read_bytes() if file is not None else b""
    except OSError:
        return None
    return text if text and identification(text) == version else None


def _keep(file: Path | None, text: bytes) -> None:
    """Keep a text, all of it or nothing; where nothing can be written it is read again next time."""
    if file is None:
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text)
        Path(name).replace(file)
