"""Quantities shown on the stage: newest tick, trail, and places of sticking. No pyglet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.front_ends.run import means, runs
from haptics.device import Causality
from haptics.records import Rows, Status

Floats = NDArray[np.float64]

TRAIL_TIME = 3.0
"""Duration of the trail [s]."""

STEP = 0.008
"""Time between two points of the trail [s]."""

LEAST_STICK = 0.03
"""Minimum duration of a rest that is marked with a dot [s]."""

MOST_STICKS = 24
"""Maximum number of dots; the latest ones are shown."""


class Motion:
    """Follows the rows of one run.

    Parameters
    ----------
    rate : float
        Nominal rate [Hz].
    causality : str
        Causality of the device. It selects the force shown: the command of an impedance device, the force of the hand
        otherwise.

    Attributes
    ----------
    position, contact : (2,) float arrays
        The end effector, and the contact point at which friction acts: the end effector minus the elastic displacement
        [m].
    displacement : (2,) float array
        Elastic displacement from the contact to the end effector [m].
    trail : (n, 2) float array
        Positions of the contact, oldest first [m].
    force : (2,) float array
        Displayed force [N].
    speed, normal_force : float
        Speed of the end effector [m/s], and its normal force against a wall [N], nan without one.
    sticking, released : bool
        Whether the contact sticks, and whether the dead-man's switch is released.
    region : int
        Region of the scene, -1 without a scene.
    version : int
        Version of the settings of the newest row.
    largest : float
        Largest elastic displacement during the time of the trail [m].
    """

    def __init__(self, rate: float, causality: str) -> None:
        self._force = "command" if causality == Causality.IMPEDANCE else "force"
        self._stride = max(round(STEP * rate), 1)
        self._seconds = self._stride / rate
        self._capacity = max(round(TRAIL_TIME / self._seconds), 2)
        self._points: Floats = np.empty((0, 4))
        self.position, self.contact, self.displacement, self.force = (np.zeros(2) for _ in range(4))
        self.trail, self.largest = self._points[:, :2], 0.0
        self.speed, self.normal_force = 0.0, float("nan")
        self.sticking = self.released = False
        self.region, self.ticks, self.version = -1, 0, 0

    def add_rows(self, rows: Rows) -> None:
        """Add rows (dtype `haptics.records.ROW`), oldest first."""
        if not len(rows):
            return
        self.ticks += len(rows)
        row = rows[-1]
        position, displacement, force = row["position"], row["displacement"], row[self._force]
        speed = float(np.hypot(*row["velocity"]))
        # The envelope flags non-finite rows; here they only leave the previous values unchanged.
        if np.isfinite(position).all() and np.isfinite(displacement).all():
            self.position, self.contact = position.copy(), position - displacement
            self.displacement = self.position - self.contact
        if np.isfinite(force).all():
            self.force = force.copy()
        self.speed = speed if np.isfinite(speed) else self.speed
        self.normal_force = float(row["normal_force"])
        self.sticking, self.region = bool(row["sticking"]), int(row["region"])
        self.version = int(row["settings_version"])
        self.released = bool(row["status"] & int(Status.RELEASED))
        chosen = rows[rows["tick"] % self._stride == 0][-self._capacity :]
        contact = chosen["position"] - chosen["displacement"]
        stretch = np.hypot(chosen["displacement"][:, 0], chosen["displacement"][:, 1])
        points = np.column_stack((contact, chosen["sticking"] != 0, stretch))
        points = points[np.isfinite(points).all(axis=1)]
        self._points = np.concatenate((self._points, points))[-self._capacity :]
        self.trail = self._points[:, :2]
        self.largest = float(self._points[:, 3].max()) if len(self._points) else 0.0

    def sticks(self) -> tuple[Floats, Floats]:
        """Return the latest places of rest, (n, 2) [m], and the durations of rest, (n,) [s]."""
        intervals = runs(self._points[:, 2])
        seconds = np.asarray((intervals.stop - intervals.start) * self._seconds, np.float64)
        chosen = np.flatnonzero(seconds >= LEAST_STICK)[-MOST_STICKS:]
        places = np.column_stack([means(self._points[:, axis], intervals)[chosen] for axis in (0, 1)])
        return places, seconds[chosen]


_FACTORS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_PATIENCE = 90
_LEAST = 1e-5


class Stretch:
    """Magnification of the elastic link that makes its elongation visible.

    The factor decreases at once if the link would be too long, and increases only after a delay.

    Attributes
    ----------
    nominal : float
        Elastic displacement at which the contact breaks away [m]; zero if unknown.
    factor : int
        1, 2, 5, 10 ... 1000.
    """

    def __init__(self) -> None:
        self.nominal = 0.0
        self.factor = 1
        self._waited = 0

    def expect(self, nominal: float, room: float) -> None:
        """Set the displacement at break-away and the maximum length of the link, both [m]."""
        self.nominal = nominal
        self.factor, self._waited = _fitting(max(nominal, _LEAST), room), 0

    def follow(self, largest: float, room: float) -> bool:
        """Update the factor. Return True if it has changed.

        Parameters
        ----------
        largest : float
            Largest recent displacement [m].
        room : float
            Maximum length of the link [m].
        """
        target = _fitting(max(largest, self.nominal, _LEAST), room)
        self._waited = self._waited + 1 if target > self.factor else 0
        too_long = target < self.factor and self.factor * largest > 1.15 * room
        if too_long or self._waited > _PATIENCE:
            self.factor, self._waited = target, 0
            return True
        return False


def _fitting(displacement: float, room: float) -> int:
    """Return the largest factor with which `displacement` is at most `room`; both [m]."""
    return next((factor for factor in reversed(_FACTORS) if factor * displacement <= room), 1)
