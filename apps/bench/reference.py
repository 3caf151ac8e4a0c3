"""Reference loops in C, compiled at run time with ``cc -O3`` and called with the same inputs.

The ratio to compiled C shows the cost of Python, numba and the generality of the records, independently of the machine.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from haptics.elements.models import Element
from haptics.records import Rows

SOURCE = Path(__file__).with_name("reference.c")
_FLAGS = ("-O3", "-shared", "-fPIC")

ELEMENT = np.dtype(
    [
        *((name, "<f8") for name in ("period", "mass", "stiffness", "damping", "mobility")),
        ("law", "<f8", (4,)),
        ("level", "<u8"),
        ("velocity", "<f8", (2,)),
        ("displacement", "<f8", (2,)),
    ]
)
"""``struct element`` of the source."""


class NoReference(Exception):
    """No C compiler was found, or it failed.

    The message contains the reason.
    """


class Reference:
    """The compiled loops.

    Raises
    ------
    NoReference
        If they cannot be compiled.
    """

    def __init__(self) -> None:
        command = _compiler()
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "reference.so"
            _call([*command, *_FLAGS, "-o", str(library), str(SOURCE), "-lm"])
            try:
                self._library = ctypes.CDLL(str(library))  # the library stays loaded after the file is deleted
            except OSError as error:
                raise NoReference(f"the library built with {command[0]} cannot be loaded ({error})") from error
        version = _call([*command, "--version"]).strip().splitlines()
        self.compiler = f"{' '.join(command)} -O3: {version[0] if version else 'unknown version'}"

    def record(self, element: Element) -> Rows:
        """Return the record of one of the four elements at rest for the C loops, (1,) of `ELEMENT`."""
        record = np.zeros(1, ELEMENT)
        for name in ("period", "mass", "stiffness", "damping", "mobility"):
            record[name] = getattr(element, name, 0.0)
        numbers = element.law.numbers
        record["law"][0][: len(numbers)] = numbers
        record["level"] = ctypes.cast(self._library.rubber, ctypes.c_void_p).value
        return record

    def loop(self, name: str, elements: Rows, inputs: NDArray[np.float64], rows: Rows) -> Callable[[], None]:
        """Return a function that calls the C function `name`, which fills `rows` from `inputs`."""
        function = getattr(self._library, name)
        function.restype = None
        count = ctypes.c_size_t(len(rows))
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (elements, inputs, rows)]  # kept referenced
        return lambda: function(*pointers, count)


def _compiler() -> list[str]:
    wanted = shlex.split(os.environ.get("CC", ""))
    if wanted:
        return wanted
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise NoReference("there is no C compiler here (cc, gcc, clang or $CC)")


def _call(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60.0)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoReference(f"the C compiler cannot be run ({error})") from error
    if done.returncode != 0:
        raise NoReference(f"the C compiler failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout
