"""Hand that replays a recorded path from a CSV file.

The file contains positions, or joint angles of a five-bar haptic device.

Between the recorded samples the path is a monotone piecewise cubic (Fritsch and Butland 1984): its velocity is
continuous, and it never leaves the bounding box of the samples. It begins and ends at rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devices.common.linkage import FiveBar, Points
from devices.common.settings import Workspace
from devices.virtual.hands.csv_table import Table, read_table
from devices.virtual.hands.hand import CompiledHand, GripSettings
from devices.virtual.hands.records import HAND_FIELDS, PIECE, TREMOR_FIELDS
from haptics.errors import ConfigurationError
from haptics.settings import bounded, documented, flag, string

POSITION_NAMES = (("x", "y"), ("x_m", "y_m"), ("position_x", "position_y"), ("px", "py"))
"""Accepted column names of positions [m]."""

_JOINT_NAMES = (("joint1", "joint2"),)  # column names of the two motor angles of a five-bar linkage [rad]

_LARGEST_SPEED = 10.0  # maximum plausible speed [m/s]; above it, the file has other units

LONGEST = 1e6
"""Maximum plausible duration [s]; above it, the time has other units."""

PATH = np.dtype(
    [*HAND_FIELDS, *TREMOR_FIELDS, ("pieces", "<i8"), ("piece_count", "<i8"), ("duration", "<f8"), ("end", "<f8", (2,))]
)
"""Record of the hand; ``pieces`` is the address of the path, ``end`` its last point [m]."""

_LENGTHS = ("a1", "a2", "a3", "a4", "a5")
_OFFSETS = ("q1", "q5")
_ASSIGNMENT = re.compile(r"((?:[A-Za-z]\w*\s*=\s*)+)([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")


@documented
@dataclass(frozen=True)
class RecordedSettings(GripSettings):
    """Settings of the hand "recorded"."""

    stiffness: float = bounded(
        3000.0,
        minimum=0.0,
        maximum=3000.0,
        unit="N/m",
        doc="stiffness of the grip; firm by default, because the path of the handle was recorded",
    )
    damping: float = bounded(40.0, minimum=0.0, maximum=50.0, unit="N s/m", doc="damping of the grip")
    file: str = string(
        "",
        allowed="a CSV file",
        doc=(
            "file with a time column and either positions (m) or the joint angles of a five-bar linkage (rad), "
            "with its geometry in # comment lines (a1=a4=0.1 a2=a3=0.165 a5=0.085)"
        ),
    )
    scale: float = bounded(1.0, above=0.0, maximum=1000.0, doc="factor on the path")
    centre: bool = flag(
        True, doc="whether to move the middle of the path's bounding box to the middle of the workspace"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.file:
            raise ConfigurationError("the hand recorded needs hand.file, a CSV file with the path of a hand.")

    def build(self, seed: int, workspace: Workspace) -> RecordedHand:
        """Read the path and fit it into `workspace`; `seed` determines the tremor."""
        table = read_table(self.file)
        times, path = table.times(), positions_of(table)
        if not times[-1] <= LONGEST:
            raise table.error(f"it lasts {times[-1]:.3g} s and may last {LONGEST:g} s; is the time in seconds?")
        with np.errstate(over="ignore", invalid="ignore"):
            middle = (path.min(axis=0) + path.max(axis=0)) / 2.0
            path = workspace.centre + self.scale * (path - middle) if self.centre else self.scale * path
        inside = ((path >= workspace.lower) & (path <= workspace.upper)).all(axis=1)
        if not inside.all():
            row, extent = int(np.argmin(inside)), np.ptp(path, axis=0)
            raise table.error(
                f"the path leaves the workspace, {workspace}, at ({path[row, 0]:.4g}, {path[row, 1]:.4g}) m; it spans "
                f"{extent[0]:.4g} m by {extent[1]:.4g} m: choose a smaller hand.scale",
                row,
            )
        with np.errstate(over="ignore", under="ignore"):
            speeds = np.hypot(*np.diff(path, axis=0).T) / np.diff(times)
        if not (speeds <= _LARGEST_SPEED).all():
            row = int(np.argmin(speeds <= _LARGEST_SPEED)) + 1
            raise table.error(f"the path moves at {speeds[row - 1]:.3g} m/s; are the columns in s, m and rad?", row)
        return RecordedHand(self, times, path, seed)


class RecordedHand(CompiledHand):
    """Hand on a recorded path, which holds the last point at the end, created by `RecordedSettings.build`.

    Attributes
    ----------
    duration : float
        Duration of the recording [s].
    """

    def __init__(self, settings: RecordedSettings, times: NDArray[np.float64], path: Points, seed: int) -> None:
        self.duration = float(times[-1])
        table, record = _pieces(times, path), np.zeros(1, PATH)
        record["pieces"], record["piece_count"] = table.ctypes.data, len(table)
        record["duration"], record["end"], record["grip"] = self.duration, path[-1], 1.0
        super().__init__("recorded", record, settings, seed, (float(path[0, 0]), float(path[0, 1])), table)


def positions_of(table: Table) -> Points:
    """Return the recorded path, (n, 2) [m].

    Raises
    ------
    ConfigurationError
        If the file has neither positions nor joint angles, or no geometry for the angles.
    """
    positions = table.find(*POSITION_NAMES)
    if positions is not None:
        return positions
    joints = table.find(*_JOINT_NAMES)
    if joints is None:
        accepted = ", ".join("/".join(names) for names in POSITION_NAMES + _JOINT_NAMES)
        raise table.missing(f"the path (one pair of {accepted})")
    path = linkage_of(table).positions(joints)
    closed = np.isfinite(path).all(axis=1)
    if not closed.all():
        raise table.error("the linkage cannot be closed at these joint angles", int(np.argmin(closed)))
    return path


def linkage_of(table: Table) -> FiveBar:
    """Return the five-bar linkage described by ``name=number`` pairs in the comments of `table`.

    Raises
    ------
    ConfigurationError
        If a length is missing or out of bounds.
    """
    given = assignments(table.comments)
    missing = [name for name in _LENGTHS if name not in given]
    if missing:
        raise table.error(
            "joint angles need the linkage's lengths in # comment lines (a1=0.1 ... a5=0.085, in m); "
            f"{missing[0]} is missing"
        )
    try:
        a1, a2, a3, a4, a5 = (given[name] for name in _LENGTHS)
        q1, q5 = (given.get(name, 0.0) for name in _OFFSETS)
        return FiveBar(a1, a2, a3, a4, a5, q1, q5)
    except ConfigurationError as error:
        raise ConfigurationError(f"{table.path}: {error}") from error


def assignments(comments: Iterable[str]) -> dict[str, float]:
    """Return the numbers in comment lines such as ``name=number`` or ``a=b=number``."""
    return {
        name.strip(): float(number)
        for line in comments
        for names, number in _ASSIGNMENT.findall(line)
        for name in names.split("=")[:-1]
    }


def _pieces(times: NDArray[np.float64], path: Points) -> NDArray[Any]:
    """Return the path as pieces, (n - 1,) of dtype `PIECE`."""
    step, change = np.diff(times)[:, None], np.diff(path, axis=0)
    slope = np.zeros_like(path)
    chord = change / step
    before, after = chord[:-1], chord[1:]
    heavy, light = step[:-1] + 2.0 * step[1:], 2.0 * step[:-1] + step[1:]
    with np.errstate(all="ignore"):
        mean = (heavy + light) / (light / before + heavy / after)
    slope[1:-1] = np.where((np.sign(before) * np.sign(after) > 0.0) & np.isfinite(mean), mean, 0.0)
    begin, end = step * slope[:-1], step * slope[1:]
    quadratic, cubic = 3.0 * change - 2.0 * begin - end, begin + end - 2.0 * change
    pieces = np.zeros(len(step), PIECE)
    pieces["begin"], pieces["end"] = times[:-1], times[1:]
    pieces["cubic"] = np.stack((path[:-1], begin, quadratic, cubic), axis=2)
    return pieces
