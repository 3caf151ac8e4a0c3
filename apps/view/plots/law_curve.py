"""What the law in force says: the friction force over the sliding speed, to be drawn under what is recorded. No Qt.

The laws are those that are rendered. To load them takes a second of computing, once and only where a plot wants them;
a thread of low priority does it, so that the window goes on meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from apps.view.history import Floats
from haptics.elements.catalogue import LAWS
from haptics.errors import ConfigurationError

_POINTS = 160
_ONE_AT_A_TIME = threading.Lock()
"""Kernels must not be loaded by two threads at once."""

_DIRECTIONS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0))


class Curve(NamedTuple):
    """The level of the law in one direction of motion: sliding speeds [mm/s] and forces [N], (n,) arrays."""

    speeds: Floats
    forces: Floats


def curves(name: str, values: Mapping[str, float], fastest: float) -> list[Curve]:
    """Return the level of the law called `name` up to the speed `fastest` [mm/s].

    One curve, or three (along x, along y, backwards) if the law is not the same in all directions. None where the law
    is not one of those made from their numbers, or a number is not allowed.
    """
    if name not in LAWS:
        return []
    from haptics.elements.tables import make_law

    try:
        law = make_law({"name": name, **values})
    except ConfigurationError:
        return []
    # A level is a limit towards rest: the first speed is so small that the law has not fallen yet.
    speeds = np.linspace(0.0, 1e-3 * fastest, _POINTS)
    speeds[0] = 1e-9 * fastest
    wanted = _DIRECTIONS[:1] if law.isotropic else _DIRECTIONS
    forces = [np.linalg.norm(law(np.outer(speeds, direction)), axis=1) for direction in wanted]
    return [Curve(1e3 * speeds, np.asarray(force)) for force in forces]


class LawCurves:
    """Keeps the curves of the law in force.

    Attributes
    ----------
    found : list of Curve
        What was asked for last, or before while that is being worked out.
    """

    def __init__(self) -> None:
        self.found: list[Curve] = []
        self._asked: tuple[str, tuple[tuple[str, float], ...], float] | None = None
        self._thread: threading.Thread | None = None
        self._loaded = False

    def ask(self, name: str, values: Mapping[str, float], fastest: float) -> None:
        """Want the curves of this law; cheap if nothing has changed."""
        asked = name, tuple(sorted(values.items())), fastest
        if asked == self._asked:
            return
        self._asked = asked
        if self._loaded or name not in LAWS:
            self._work_out()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._load, name="law", daemon=True)
            self._thread.start()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until what was asked for is there."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _load(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # only Linux gives a thread a priority of its own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        done = None
        with _ONE_AT_A_TIME:
            while done != self._asked:
                done = self._asked
                self._work_out()
        self._loaded = True

    def _work_out(self) -> None:
        if self._asked is not None:
            name, values, fastest = self._asked
            self.found = curves(name, dict(values), fastest)
