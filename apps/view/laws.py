"""Curves of the friction law in force, computed in a separate process. No Qt."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apps.view.history import Column, Floats, History
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from haptics.friction.laws import Law
    from haptics.scenes import Scene

Place = tuple[float, float]
"""A point (x, y) [m]."""


def place_of(history: History) -> Place:
    """Return the position of the contact at the newest row of a window [m], rounded to 0.1 mm."""
    x, y = (1e-3 * history.newest(column) for column in (Column.PROXY_X, Column.PROXY_Y))
    return round(x, 4), round(y, 4)


def with_background(scene: Scene, values: Mapping[str, float]) -> Scene:
    """Return a scene whose background law has the parameters in force (parameter key to value)."""
    from haptics.friction.laws import ClosedForm

    closed = isinstance(scene.law, ClosedForm)
    law: Any = scene.law.law if isinstance(scene.law, ClosedForm) else scene.law
    keys = {field.name: f"law.{field.name}" for field in dataclasses.fields(law)}
    try:
        law = dataclasses.replace(law, **{name: values[key] for name, key in keys.items() if key in values})
    except ConfigurationError:  # parameters of another scene, whose values follow in a separate message
        return scene
    return dataclasses.replace(scene, law=ClosedForm(law) if closed else law)


def levels_at(scene: Scene, place: Place) -> tuple[float, ...]:
    """Return the levels of the law [N] at a position, the break-away force first."""
    from haptics.scenes.scene import exact

    law = exact(scene.law)
    numbers = scene.numbers_at([place])[0][: law.forces if law.isotropic else 1]
    return tuple(dict.fromkeys(numbers.tolist()))


_POINTS = 160
_DIRECTIONS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0))


class Curve(NamedTuple):
    """Level of the law in one direction of motion: sliding speeds [mm/s] and forces [N], (n,) arrays."""

    speeds: Floats
    forces: Floats


@dataclass(frozen=True)
class CurveRequest:
    """Request for the curves of a law.

    Attributes
    ----------
    law : tuple of (str, value)
        Settings of the law, including ``name``, and ``source`` for a custom law.
    fastest : float
        End of the curve [mm/s].
    place : (float, float) or None
        Position of the contact [m]; None if the law is the same everywhere.
    scene : Scene or None
        Scene whose law is used instead of the settings.
    """

    law: tuple[tuple[str, Any], ...]
    fastest: float
    place: Place | None = None
    scene: Scene | None = None


def curves(request: CurveRequest) -> list[Curve]:
    """Return the level of the requested law.

    The list contains one curve, or three (along x, along y, against x) if the law is anisotropic. It is empty if the
    law is unknown or a parameter is not allowed.
    """
    from haptics.elements.tables import make_law
    from haptics.friction.kernels import isotropic_forces, plane_forces

    law: Law
    try:
        if request.scene is None or request.place is None:
            law = make_law(dict(request.law))
            record = law.record
        else:  # the parameters at the position of the contact
            law = request.scene.law
            record = law.record
            record["numbers"][0] = request.scene.numbers_at([request.place])[0]
    except Exception:  # a law of another package may raise any exception; the window then shows no curve
        return []
    # A level is a limit towards rest. The first speed is so small that the law has not decreased yet.
    speeds = np.linspace(0.0, 1e-3 * request.fastest, _POINTS)
    speeds[0] = 1e-9 * request.fastest
    found = []
    for direction in _DIRECTIONS[:1] if law.isotropic else _DIRECTIONS:
        forces = np.empty((_POINTS, 2))
        (isotropic_forces if law.isotropic else plane_forces)(record, np.outer(speeds, direction), 0.0, forces)
        found.append(Curve(1e3 * speeds, np.hypot(forces[:, 0], forces[:, 1])))
    return found


# --- process ----------------------------------------------------------------------------------------------------------

_ROOT = Path(__file__).resolve().parents[2]

_CODE = """
import os
os.nice(10)
from apps.view.laws import main
main()
"""
"""Code of the process. Its low priority leaves the processors to the window and the servo."""


class LawProcess:
    """Computes curves in a separate process, which loads and compiles the laws.

    A thread would block the interpreter for the window, where every Qt call may wait up to 5 ms to reacquire it: pauses
    of 26 to 82 ms were observed with a thread that only slept for 1 ms at a time.

    The process starts with the first request and ends with the process of the window.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def curves(self, request: CurveRequest) -> list[Curve]:
        """Return the result of `curves`; blocks. Empty if the process dies, so that the next request starts another."""
        with self._one_at_a_time:
            try:
                if self._process is None:
                    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
                    # The process stays in the session of the window: a new session would be scheduled as a separate
                    # group with its own share of the processors.
                    self._process = subprocess.Popen(
                        [sys.executable, "-c", _CODE],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,  # the process may end last, and must not keep readers waiting
                        env={**os.environ, "PYTHONPATH": path},
                    )
                requests, answers = self._process.stdin, self._process.stdout
                assert requests is not None and answers is not None
                pickle.dump(request, requests)
                requests.flush()
                answer: list[Curve] = pickle.load(answers)
                return answer
            except (OSError, EOFError, pickle.UnpicklingError):
                self.close()
                return []

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError), self._process:
                self._process = None


class LawCurves:
    """Holds the curves of the law in force.

    Attributes
    ----------
    found : list of Curve
        Curves of the last request, or of the previous one until they are computed.
    """

    _process = LawProcess()
    """Process shared by all plots, because loading the laws is slow."""

    def __init__(self) -> None:
        self.found: list[Curve] = []
        self._requested: CurveRequest | None = None
        self._done: CurveRequest | None = None
        self._lock = threading.Lock()
        self._at_work = False
        self._thread: threading.Thread | None = None

    def clear(self) -> None:
        """Clear the curves and the request."""
        with self._lock:
            self.found, self._requested, self._done = [], None, None

    def request(self, request: CurveRequest) -> None:
        """Request the curves of a law, which become available in `found`. Cheap if nothing has changed."""
        with self._lock:
            self._requested = request
            if request == self._done or self._at_work:
                return
            self._at_work = True
        self._thread = threading.Thread(target=self._work, name="law", daemon=True)
        self._thread.start()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until the requested curves are available."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self) -> None:
        """Compute curves until the latest request is answered; this thread only waits for the process."""
        while True:
            with self._lock:
                request = self._requested
                if request is None or request == self._done:
                    self._at_work = False
                    return
            found = self._process.curves(request)
            with self._lock:
                if self._requested is not None:  # otherwise the request was cleared
                    self.found, self._done = found, request


def main() -> None:
    """Answer requests until the input ends or the output is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of the terminal
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a law of another package may print to standard output
    requests: Any = sys.stdin.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pickle.dump(curves(pickle.load(requests)), answers)
            answers.flush()
