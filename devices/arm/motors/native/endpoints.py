"""Endpoint table of a drive: its properties and functions by name, read once and cached on disk.

The table is a JSON text of about 50 kB, transferred in pieces of at most 61 bytes, which takes a second. Its
identification is read first: two checksums, by which a cached copy is verified.
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
"""Value of a property."""

_FORMS = {
    "float": "<f",
    "bool": "<?",
    **{f"{sign}int{8 * size}": f"<{letter}" for sign, letters in (("", "bhiq"), ("u", "BHIQ"))
       for size, letter in zip((1, 2, 4, 8), letters, strict=True)},
}  # fmt: skip
"""Format for `struct` by type name."""

_HIGHEST = 0x7FFF
"""Highest address: the bit above requests an acknowledgement."""

_LONGEST = 1 << 20
"""Maximum length of a table [byte]."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Property of a drive.

    Attributes
    ----------
    name : str
        Full name with dots.
    number : int
        Address.
    form : struct.Struct
        Format of its value.
    writable : bool
        Whether it can be written.
    """

    name: str
    number: int
    form: struct.Struct
    writable: bool

    def pack(self, value: Value) -> bytes:
        """Return a value as bytes."""
        return self.form.pack(value)

    def unpack(self, data: bytes) -> Any:
        """Return the value in bytes."""
        return self.form.unpack(data)[0]


@dataclass(frozen=True, slots=True)
class Function:
    """Function of a drive: write the inputs, then write to `number`, then read the outputs."""

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
        Trailer of requests to the endpoints.
    properties : mapping of str to Endpoint
        Properties by name.
    functions : mapping of str to Function
        Functions by name.
    """

    checksum: int
    properties: Mapping[str, Endpoint]
    functions: Mapping[str, Function]


def identification(text: bytes) -> int:
    """Return the identification that a drive with this table reports."""
    first = checksum(text, TABLE_TRAILER)
    return first << 16 | checksum(text, first)


def parse_table(text: bytes) -> Table:
    """Return the table that a JSON text describes; members of unknown type are left out.

    Raises
    ------
    DeviceOpenError
        If the text is not a table of endpoints.
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
    """Return the address in a member of the table; raise `ValueError` if it is invalid."""
    number = member["id"]
    if type(number) is not int or not 0 <= number <= _HIGHEST:
        raise ValueError(f"{name} has the address {str(number)[:20]}")
    return number


def fetch(version: int, page: Callable[[int], bytes], folder: Path | None) -> Table:
    """Return the table with this identification, from the cache if available.

    Parameters
    ----------
    version : int
        Identification that the drive reports.
    page : callable
        Reads the piece of the text at an offset; empty at the end.
    folder : Path or None
        Folder of the cached tables, None for no cache.

    Raises
    ------
    DeviceOpenError
        If the text does not match the identification.
    """
    file = folder / f"{version:08x}.json" if folder is not None else None
    text = _read_cache(file, version)
    if text is None:
        text = _read(page)
        if identification(text) != version:
            raise DeviceOpenError(
                f"the drive's table of endpoints was garbled on its way ({len(text)} bytes): check cable and hub, "
                "start again."
            )
        _write_cache(file, text)
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
    """Return the cache folder of the tables, None if there is no home directory."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base / "haptics" / "odrive"


def _read_cache(file: Path | None, version: int) -> bytes | None:
    """Return the text in the cache if its identification matches, otherwise None."""
    try:
        text = file.read_bytes() if file is not None else b""
    except OSError:
        return None
    return text if text and identification(text) == version else None


def _write_cache(file: Path | None, text: bytes) -> None:
    """Write a text to the cache atomically, ignoring errors; without it, the drive is read again."""
    if file is None:
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text)
        Path(name).replace(file)
