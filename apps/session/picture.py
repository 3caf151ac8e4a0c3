"""The picture of a run: path with force vectors, position, force and speed against time, and the timing certificate.

Drawn with Matplotlib's Agg backend, which needs no display and no system library: the picture exists on every machine.
The path is drawn as in Kikuuwe et al. 2006, Figs. 16 and 19, the time courses as in Figs. 17 and 20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality
from haptics.recording import Recording
from haptics.trace import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = "picture.png"

_SLIP, _STICK, _FORCE, _SECOND, _INK, _PALE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222", "#8A8A8A"
"""Okabe-Ito colours: told apart by colour-blind people, and by their brightness in print."""

_LONGEST = 20000
_VECTOR_EVERY = 0.02
_MILLI = 1e3


def draw(recording: Recording) -> str | None:
    """Draw the picture of `recording` into its folder; return its path, or None for a run without usable ticks."""
    rows = _finite(np.array(recording.rows))
    if len(rows) == 0:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 8), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(4, 2, width_ratios=(1.25, 1), height_ratios=(1, 1, 0.8, 0.9))
    metadata = recording.metadata
    impedance = metadata["device"]["causality"] == Causality.IMPEDANCE
    _path(figure.add_subplot(grid[:, 0]), rows, metadata, impedance)
    _positions(figure.add_subplot(grid[0, 1]), rows)
    _forces(figure.add_subplot(grid[1, 1]), rows, impedance)
    _speeds(figure.add_subplot(grid[2, 1]), rows)
    _punctuality(figure.add_subplot(grid[3, 1]), rows, metadata)
    figure.suptitle(_title(metadata), fontsize=13, color=_INK)
    path = recording.folder / PICTURE
    figure.savefig(path)
    return str(path)


def _finite(rows: Rows) -> Rows:
    """Return the rows that can be drawn: a sample that was no number has no place in a picture."""
    usable = np.ones(len(rows), dtype=bool)
    for name in ("position", "force", "command"):
        usable &= np.isfinite(rows[name]).all(axis=1)
    return rows[usable]


def _title(metadata: dict[str, Any]) -> str:
    law = metadata["configuration"]["law"]
    words = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in law.items() if not isinstance(value, str))
    element = ", ".join(f"{key} {value:g}" for key, value in metadata["configuration"]["element"].items())
    return f"model {metadata['model']} on {metadata['device']['name']}: {law['name']} ({words} N), {element} (SI)"


def _style(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)


def _thinned(rows: Rows) -> Rows:
    """Return at most `_LONGEST` rows, evenly chosen: a picture cannot show more."""
    return rows[:: max(1, -(-len(rows) // _LONGEST))]


def _path(axes: Axes, rows: Rows, metadata: dict[str, Any], impedance: bool) -> None:
    from matplotlib.collections import LineCollection

    thin = _thinned(rows)
    points = thin["position"] * _MILLI
    axes.plot(points[:, 0], points[:, 1], color="#9A9A9A", linewidth=2.2, label="end effector", zorder=2)
    every = max(1, round(_VECTOR_EVERY * metadata["rate_hz"]), len(rows) // 4000)
    picked = rows[::every]
    vectors = picked["command"] if impedance else picked["force"]
    starts = picked["position"] * _MILLI
    norm = float(np.nanmax(np.hypot(vectors[:, 0], vectors[:, 1]), initial=1e-9))
    length = 0.12 * float(max(np.ptp(points[:, 0]), np.ptp(points[:, 1]), 10.0))
    segments = np.stack((starts, starts + vectors / norm * length), axis=1)
    sticks = picked["sticking"] != 0
    for chosen, colour, what in ((~sticks, _SLIP, "slipping"), (sticks, _STICK, "sticking")):
        kind = "commanded force" if impedance else "measured hand force"
        lines = LineCollection(list(segments[chosen]), colors=colour, linewidths=0.8, label=f"{kind}, {what}", zorder=3)
        axes.add_collection(lines)
    held = thin[thin["sticking"] != 0]["position"] * _MILLI
    axes.plot(held[:, 0], held[:, 1], ".", color=_STICK, markersize=4, zorder=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    _style(axes, "y [mm]")
    axes.set_xlabel("x [mm]")
    axes.set_title(f"path and force (longest vector {norm:.2f} N)", fontsize=11, color=_INK)
    axes.legend(loc="lower right", fontsize=9, framealpha=0.9)


def _positions(axes: Axes, rows: Rows) -> None:
    thin = _thinned(rows)
    axes.plot(thin["time"], thin["position"][:, 0] * _MILLI, color=_INK, linewidth=1.1, label="x")
    axes.plot(thin["time"], thin["position"][:, 1] * _MILLI, color=_SECOND, linewidth=1.1, linestyle="--", label="y")
    _style(axes, "position [mm]")
    axes.legend(loc="upper right", fontsize=8, ncols=2)
    _shade_sticking(axes, rows)


def _forces(axes: Axes, rows: Rows, impedance: bool) -> None:
    thin = _thinned(rows)
    vectors = thin["command"] if impedance else thin["force"]
    if not impedance:
        axes.plot(thin["time"], _norm(vectors), color=_PALE, linewidth=0.8, label="measured |h|")
    axes.plot(thin["time"], _norm(thin["friction_force"]), color=_FORCE, linewidth=1.1, label="friction |f|")
    _style(axes, "force [N]")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower right", fontsize=8, ncols=2)
    _shade_sticking(axes, rows)


def _speeds(axes: Axes, rows: Rows) -> None:
    """Draw the speed of the proxy's contact: free of the encoder's steps."""
    thin = _thinned(rows)
    axes.plot(thin["time"], _norm(thin["sliding_velocity"]) * _MILLI, color=_SLIP, linewidth=0.9)
    _style(axes, "sliding [mm/s]")
    axes.set_xlabel("time [s]     (shaded: sticking)", fontsize=9)
    _shade_sticking(axes, rows)


def _norm(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _shade_sticking(axes: Axes, rows: Rows) -> None:
    sticking = np.concatenate(([0], (rows["sticking"] != 0).astype(np.int8), [0]))
    edges = np.flatnonzero(np.diff(sticking)).reshape(-1, 2)
    times = np.append(rows["time"], rows["time"][-1])
    long_enough = [(times[a], times[b]) for a, b in edges if times[b] - times[a] >= 0.01]
    for begin, end in long_enough[:2000]:
        axes.axvspan(begin, end, color=_STICK, alpha=0.12, linewidth=0)
    axes.set_xlim(float(times[0]), float(times[-1]) or 1.0)


def _punctuality(axes: Axes, rows: Rows, metadata: dict[str, Any]) -> None:
    errors = np.maximum(rows["period_error"] * 1e6, 0.1)
    axes.hist(errors, bins=np.logspace(-1, 4, 80).tolist(), color=_SLIP, alpha=0.85)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _style(axes, "ticks")
    axes.set_xlabel("lateness of a tick [us]", fontsize=9)
    axes.text(0.98, 0.95, _certificate_text(metadata), transform=axes.transAxes, ha="right", va="top", fontsize=8.5)


def _certificate_text(metadata: dict[str, Any]) -> str:
    certificate = metadata.get("certificate", {})
    period, tick = certificate.get("period_error_us"), certificate.get("tick_us")
    if not period or not tick:
        return "no certificate: the run was not closed"
    return (
        f"{certificate['ticks']} ticks, {certificate['skipped']} skipped, {certificate['overruns']} late, "
        f"{certificate['lost_ticks']} lost\n"
        f"lateness: median {period['p50']:.0f}, 99 % {period['p99']:.0f}, max {period['max']:.0f} us\n"
        f"tick: median {tick['p50']:.0f}, 99 % {tick['p99']:.0f} us; "
        f"scheduling: {certificate.get('scheduling', 'other')}"
    )
