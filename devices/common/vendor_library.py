"""Find and load the closed library of a device's maker, which the user installs.

The library is taken from a setting (a file, or a folder such as the root of the maker's SDK), from the environment
variables of the maker, from the usual folders, or from the loader of the system. The first place where it exists is
used, also if it cannot be loaded there. The errors name the file and the remedy.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haptics.errors import ConfigurationError, DeviceNotFoundError, DeviceOpenError

Symbols = Mapping[str, tuple[Any, Sequence[Any]]]
"""Functions of a library: name to the type of the result and the types of the arguments."""

_MACHINES = {3: "x86", 8: "MIPS", 21: "PowerPC", 40: "ARM armhf", 62: "x86-64", 183: "ARM aarch64", 243: "RISC-V"}
_NAMED = 3  # most missing functions that an error names
_USUAL = ("~/.local/lib", "/usr/local/lib", "/usr/lib", f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64")


@dataclass(frozen=True)
class VendorLibrary:
    """Library of a maker.

    Attributes
    ----------
    backend : str
        Name of the device, for messages.
    title : str
        Name of the product that contains the library, such as "Force Dimension SDK".
    files : tuple of str
        File names of the library without their version, in the order of preference, such as ``libdrd.so``.
    variables : tuple of str
        Environment variables that name the folder of the product.
    folders : tuple of str
        Folders inside of it that may contain the library.
    usual : tuple of str
        Further folders of the product; patterns are allowed.
    """

    backend: str
    title: str
    files: tuple[str, ...]
    variables: tuple[str, ...]
    folders: tuple[str, ...] = ("lib",)
    usual: tuple[str, ...] = ()

    def find(self, setting: str = "") -> Path | None:
        """Return the path of the library; None if only the loader of the system may find it.

        Parameters
        ----------
        setting : str
            File or folder; may be empty.

        Raises
        ------
        ConfigurationError
            If the setting or a variable names a place without the library.
        """
        named = [("device.library", setting)] if setting else [(v, os.environ.get(v, "")) for v in self.variables]
        for name, place in named:
            if not place:
                continue
            path = _absolute(place)
            if os.path.isfile(path):
                return path
            found = next(self._inside(path), None)
            if found is None:
                raise ConfigurationError(f"{name} = {place!r}: {self._problem_of(path)}.")
            return found
        for pattern in self.usual:
            for folder in sorted(Path("/").glob(str(_absolute(pattern)).lstrip("/")), key=_version, reverse=True):
                found = next(self._inside(folder), None)
                if found is not None:
                    return found
        return next((path for folder in _USUAL for path in self._files_of(_absolute(folder))), None)

    def missing(self) -> str:
        """Return why the library is not found without a setting; empty if it is. It is not loaded."""
        try:
            if self.find() or any(map(_name_for_loader, self.files)):
                return ""
        except ConfigurationError as error:
            return str(error)
        return self._not_installed

    def load(self, setting: str, symbols: Symbols, optional: Symbols | None = None) -> Any:
        """Load the library and declare its functions.

        Parameters
        ----------
        setting : str
            File or folder; may be empty.
        symbols : mapping
            Functions that must exist.
        optional : mapping, optional
            Functions that old versions lack; they are then missing from the result too.

        Returns
        -------
        ctypes.CDLL
            The library, whose functions have their types.

        Raises
        ------
        ConfigurationError
            If the setting or a variable names a place without the library.
        DeviceNotFoundError
            If the library is not installed.
        DeviceOpenError
            If it cannot be loaded: permissions, another architecture, a missing dependency, a missing function.
        """
        path = self.find(setting)
        if path is not None:
            self._require_readable(path)
            names = [str(path)]
        else:
            names = [name for file in self.files for name in (file, _name_for_loader(file)) if name]
        library, refusal = None, ""
        for name in names:
            try:
                library = ctypes.CDLL(name)
                break
            except OSError as error:
                reason = str(error)
                if path is not None or not reason.startswith(f"{name}: cannot open shared object file: No such file"):
                    refusal = refusal or f"{name} cannot be loaded: {self._explained(reason, name)}"
        if library is None and refusal:
            raise DeviceOpenError(f"{self.backend}: {refusal}")
        if library is None:
            raise DeviceNotFoundError(
                f"{self.backend}: {self._not_installed}. Or do without a device: device.emulated=true."
            )
        missing = [name for name in symbols if not hasattr(library, name)]
        if missing:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            raise DeviceOpenError(
                f"{self.backend}: {path or library._name} has no function {', '.join(missing[:_NAMED])}{more}: it is "
                f"not the library of the {self.title}, or too old; install a newer version."
            )
        for name, (result, arguments) in {**symbols, **(optional or {})}.items():
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype, function.argtypes = result, tuple(arguments)
        return library

    @property
    def _not_installed(self) -> str:
        return (
            f"the {self.title} is not installed, or not found: install it from its maker, and set device.library or "
            f"{self.variables[0]} to its folder"
        )

    def _problem_of(self, path: Path) -> str:
        """Return why there is no library at `path`, with the remedy."""
        problem = f"has no {' or '.join(self.files)}"
        denied = "may not be read (permission denied): give this user access to it and to the folders above it"
        try:
            path.stat()
            if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
                return denied
        except PermissionError:  # of a folder above
            return denied
        except OSError:
            problem = "does not exist"
        return f"{problem}; it must be the folder of the {self.title}, or the file of the library"

    def _inside(self, folder: Path) -> Iterator[Path]:
        """Yield the libraries in a folder of the product."""
        for inner in (*self.folders, "."):
            yield from self._files_of(folder / inner)

    def _files_of(self, folder: Path) -> Iterator[Path]:
        """Yield the libraries in a folder, the preferred name and the newest version first."""
        for name in self.files:
            pattern = re.compile(rf"{re.escape(name)}[.\d]*")
            try:
                files = [path for path in folder.glob(f"{name}*") if pattern.fullmatch(path.name)]
            except OSError:  # the folder may not be read
                continue
            yield from sorted(files, key=_version, reverse=True)

    def _require_readable(self, path: Path) -> None:
        """Raise an error if the file may not be read or is not a library for this processor."""
        try:
            with path.open("rb") as file:
                head = file.read(20)
            with Path(sys.executable).open("rb") as file:
                own = _machine(file.read(20))
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM}:
                raise DeviceOpenError(f"{self.backend}: {path} cannot be read ({error.strerror}).") from error
            raise DeviceOpenError(
                f"{self.backend}: {path} may not be read (permission denied): run: sudo chmod a+rX "
                f"'{path.parent}' '{path}'"
            ) from error
        machine = _machine(head)
        if machine is None:
            raise DeviceOpenError(
                f"{self.backend}: {path} is not a shared library for Linux: set device.library to the "
                f"library of the {self.title}."
            )
        if own is not None and machine != own:
            raise DeviceOpenError(
                f"{self.backend}: {path} is for {_named(machine)}, but this Python is for {_named(own)}: install the "
                f"{self.title} for {_named(own)}, or set device.library to the right file."
            )

    def _explained(self, reason: str, path: str) -> str:
        """Return the reason for which the loader refused the file at `path`, as a sentence with the remedy."""
        missing = re.match(r"(\S+): cannot open shared object file: No such file", reason)
        if missing is not None and missing[1] != path:
            return f"it needs {missing[1]}, which is not installed: install the package that contains it."
        words = reason.removeprefix(f"{path}: ")
        if re.search(r"version `\S+' not found", words):
            return f"this system is too old for it ({words}): install an older version of the {self.title}."
        return f"{words}: the file may be damaged or incomplete; install the {self.title} again."


def _absolute(place: str) -> Path:
    """Return an absolute path: the loader would search for a bare file name elsewhere."""
    return Path(os.path.expanduser(place)).absolute()


def _name_for_loader(file: str) -> str:
    """Return the name, with its version, under which the loader of the system finds a library; empty if it does not."""
    return find_library(file.removeprefix("lib").removesuffix(".so")) or ""


def _machine(head: bytes) -> tuple[int, int] | None:
    """Return the processor and the number of bits in the head of an ELF file, None if it is not one."""
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    (machine,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    return machine, 64 if head[4] == 2 else 32


def _named(machine: tuple[int, int]) -> str:
    number, bits = machine
    return f"{_MACHINES.get(number, f'processor {number}')} ({bits} bits)"


def _version(path: Path) -> list[tuple[int, ...]]:
    """Return a key that sorts names by the numbers in them."""
    return [tuple(int(number) for number in re.findall(r"\d+", path.name)), (len(path.name),)]
