"""Plot two recordings: friction force against time, speed and displacement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.compare.comparison import Comparison, norm_of
from apps.shared.theme import LIGHT
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 20_000
_STYLES = ((LIGHT.motion, "-", 1.6), (LIGHT.stick, "--", 1.1))
"""Colour, line style and width of A and B. The narrow dashed line leaves the wide line below it visible."""


def draw(comparison: Comparison, path: Path) -> None:
    """Plot a comparison into a PNG file.

    Raises
    ------
    ConfigurationError
        If the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.8, 7.2), dpi=100, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2)
    over_time, speed, stretch = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
    for letter, recording, style in zip("AB", comparison.recordings, _STYLES, strict=True):
        _one(over_time, speed, stretch, f"{letter}: {_title(recording)}", _thinned(recording), style)
    _label(over_time, "time [s]", "friction force [N]")
    _label(speed, "sliding speed [mm/s]", "friction force [N]")
    _label(stretch, "along the motion [mm]", "friction along it [N]")
    over_time.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=9, frameon=False)
    speed.set_ylim(bottom=0.0)
    try:
        with rc_context({"agg.path.chunksize": 2000}):  # bounds the memory of long lines
            figure.savefig(path, format="png")
    except OSError as error:
        raise ConfigurationError(f"--out = {str(path)!r}: cannot be written ({error.strerror or error}).") from error


def _one(over_time: Axes, speed: Axes, stretch: Axes, name: str, rows: Rows, style: tuple[str, str, float]) -> None:
    colour, line, width = style
    force = norm_of(rows, "friction_force")
    over_time.plot(rows["time"], force, line, color=colour, linewidth=width, label=name)
    sliding = rows["sticking"] == 0
    milli = 1e3 * norm_of(rows, "sliding_velocity")[sliding]
    speed.plot(milli, force[sliding], ".", color=colour, markersize=2.0, alpha=0.5)
    axis = _main_axis(rows)
    stretch.plot(1e3 * rows["position"] @ axis, rows["friction_force"] @ axis, line, color=colour, linewidth=0.9)


def _thinned(recording: Recording) -> Rows:
    """Return every n-th row, at most `_MOST_POINTS` rows."""
    columns = ("time", "position", "friction_force", "sliding_velocity", "sticking")
    every, place, kept = max(1, -(-len(recording) // _MOST_POINTS)), 0, [recording.read(0, 0, columns)]
    for rows in recording.chunks(columns):
        kept.append(rows[-place % every :: every].copy())
        place += len(rows)
    return np.concatenate(kept)


def _main_axis(rows: Rows) -> NDArray[np.float64]:
    """Return the unit vector, (2,), of the main direction of motion; x without motion."""
    position = np.asarray(rows["position"])
    position = position[np.isfinite(position).all(axis=1)]
    if len(position) < 2 or not np.ptp(position, axis=0).any():
        return np.array([1.0, 0.0])
    axis = np.linalg.svd(position - position.mean(axis=0), full_matrices=False)[2][0]
    return np.asarray(axis if axis[np.argmax(np.abs(axis))] > 0.0 else -axis)


def _title(recording: Recording) -> str:
    law = recording.metadata.get("configuration", {}).get("law", {})
    return f"model {recording.metadata.get('model', '?')}, {law.get('name', '?')} ({recording.folder.name})"


def _label(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
