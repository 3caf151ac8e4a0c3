"""Measured loops: elements, their input (strokes and rests like those of a hand), the same loops in C, and their times.

The C loops are compiled at run time with ``cc -O3`` and receive the same inputs. The ratio to compiled C shows the
cost of Python, numba and the generality of the records, independently of the machine.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.elements.classic import CLASSICS
from haptics.elements.models import (
    RESULT,
    CompliantAdmittance,
    Element,
    InertialImpedance,
    MasslessImpedance,
    RigidAdmittance,
    run_element,
)
from haptics.friction.custom_law import friction_law
from haptics.friction.laws import Coulomb, Law, Stribeck
from haptics.records import Rows

STEPS = 4000
"""Number of steps of a run. The results take several hundred kilobytes and stay in the cache of a core."""

PERIOD = 1e-3
"""Time between two steps [s]."""

_PEAK = {Causality.ADMITTANCE: 7.0, Causality.IMPEDANCE: 0.06}
"""Largest input: force [N] or velocity [m/s]."""

COULOMB = Coulomb(4.0)
"""Default law."""


def rubber(speed: float, static: float = 4.0, kinetic: float = 3.0, width: float = 0.3) -> float:
    """Return the level of a law that decreases with the reciprocal of the speed; also in ``reference.c``."""
    return kinetic + (static - kinetic) / (1.0 + speed / width)


@functools.cache
def laws() -> tuple[Law, ...]:
    """Return the measured laws.

    The law `rubber` is compiled here.
    """
    return COULOMB, Stribeck(3.0, 4.0, 0.3), friction_law(rubber)()


def elements() -> list[Element]:
    """Return all combinations of the four elements and the laws."""
    return [element for law in laws() for element in _elements_under(law)]


def plainest(causality: Causality) -> Element:
    """Return the simplest of the four elements of a causality with Coulomb's law: model A or C."""
    found = (element for element in _elements_under(COULOMB) if element.causality is causality)
    return next(element for element in found if element.model in {"A", "C"})


def _elements_under(law: Law) -> list[Element]:
    mass, coupling = 2.0, {"stiffness": 6000.0, "damping": 10.0}
    return [
        RigidAdmittance(law, mass),
        InertialImpedance(law, mass=0.3, **coupling),
        MasslessImpedance(law, **coupling),
        CompliantAdmittance(law, mass, **coupling),
    ]


def classic_elements() -> list[Element]:
    """Return all classic models with Coulomb's law and their default parameters."""
    return [cls(COULOMB) for forms in CLASSICS.values() for cls in forms.values()]  # type: ignore[call-arg]


def stroke(time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a motion between -1 and 1 at `time` [s].

    It oscillates once per second, with a quarter of the time at rest.
    """
    wave = np.sin(2.0 * np.pi * time)
    return np.asarray(np.sign(wave) * np.maximum(np.abs(wave) - 0.38, 0.0) / 0.62)


def inputs(causality: Causality) -> NDArray[np.float64]:
    """Return the input of a run, (`STEPS`, 2): forces [N] or velocities [m/s] of changing direction."""
    time = PERIOD * np.arange(STEPS, dtype=np.float64)
    angle = 0.3 + 0.5 * time
    size = _PEAK[causality] * stroke(time)
    return np.stack((size * np.cos(angle), size * np.sin(angle)), axis=1)


def empty_results(count: int = STEPS) -> Rows:
    """Return an array for the results of a run, (count,)."""
    return np.zeros(count, RESULT)


def own_loop(element: Element, results: Rows) -> Callable[[], None]:
    """Return a function that runs `element` through the workload and fills `results`.

    Every call starts from the present state of the element.
    """
    start, motion = element.copy_record(), inputs(element.causality)
    record = start.copy()
    # Copied as bytes: a copy by fields in NumPy takes a tenth of the run time, in C almost nothing.
    place, first = record.view(np.uint8), start.view(np.uint8)

    def call() -> None:
        place[:] = first
        run_element(record, motion, results)

    return call


# --- the same loops in C -------------------------------------------------------------------------------------------

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
        command = shlex.split(os.environ.get("CC", "")) or [*filter(shutil.which, ("cc", "gcc", "clang"))][:1]
        if not command:
            raise NoReference("there is no C compiler here (cc, gcc, clang or $CC)")
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


def _call(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60.0)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoReference(f"the C compiler cannot be run ({error})") from error
    if done.returncode != 0:
        raise NoReference(f"the C compiler failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout


# --- time measurement -----------------------------------------------------------------------------------------------

# The speed of a machine changes from second to second. Candidates that alternate every few milliseconds run under the
# same conditions, so the ratio of two slices of a round is reliable although neither time is. The measured quantity is
# processor time, which does not include other programs. Garbage is collected between the slices only, because a full
# collection takes longer than a slice.

ROUNDS = 200
"""Default number of slices of each candidate."""

_WARM_UP = 3


def measure(candidates: Sequence[Callable[[], object]], rounds: int | None = None) -> NDArray[np.float64]:
    """Return the processor time of every slice, (rounds, candidates) [s], after several warm-up rounds."""
    times = np.empty((_WARM_UP + (rounds or ROUNDS), len(candidates)))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for row in times:
            for i, candidate in enumerate(candidates):
                start = time.thread_time_ns()
                candidate()
                row[i] = (time.thread_time_ns() - start) * 1e-9
                gc.collect(0)
    finally:
        if collecting:
            gc.enable()
    return times[_WARM_UP:]


def repeated(candidate: Callable[[], object], count: int) -> Callable[[], None]:
    """Return a function that calls `candidate` `count` times.

    A single short call would run with cold caches.
    """

    def call() -> None:
        for _ in range(count):
            candidate()

    return call


def compare(times: NDArray[np.float64], references: NDArray[np.float64]) -> dict[str, float]:
    """Return ``ratio`` and ``spread`` of the slices of two candidates, both (rounds,) [s].

    They are the median and the interquartile range of the ratios of all rounds.
    """
    low, median, high = np.percentile(times / references, [25.0, 50.0, 75.0]).tolist()
    return {"ratio": median, "spread": high - low}


def nanoseconds(times: NDArray[np.float64], count: int) -> float:
    """Return the median of `times` [s], each for `count` operations, in nanoseconds per operation."""
    return float(np.median(times)) / count * 1e9
