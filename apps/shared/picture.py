"""The picture of a run: path, position, force, speed, energy and flags against time, and the timing certificate.

Drawn with Matplotlib's Agg backend, which needs no display and no system library: the picture exists on every machine.
The path is drawn as in Kikuuwe et al. 2006, Figs. 16 and 19, the time courses as in Figs. 17 and 20.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.shared.scale import microseconds
from apps.shared.summary import COMPUTATION, START_DELAY, durations, verdict
from apps.shared.theme import LIGHT
from haptics.device import Causality
from haptics.files import replace_own
from haptics.recording.recording import Recording
from haptics.records import Rows, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = "picture.png"
PNG = b"\x89PNG\r\n\x1a\n"
"""How every picture begins."""

_SLIP, _STICK, _FRICTION, _FORCE = LIGHT.motion, LIGHT.stick, LIGHT.friction, LIGHT.force
_INK, _PALE = "#222222", "#8A8A8A"
"""The colours of the window on a light ground (`apps.shared.theme`), so that one thing has one colour in both."""

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

    figure = Figure(figsize=(14, 9.5), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    sides = figure.add_gridspec(1, 2, width_ratios=(1.25, 1))
    flags = _flags_of(rows)
    below = 0.1 + 0.14 * max(len(flags), 1)
    right = sides[1].subgridspec(2, 1, height_ratios=(3.5 + below, 1.0))
    times = right[0].subgridspec(5, 1, height_ratios=(1.0, 1.0, 0.8, 0.7, below))
    metadata = recording.metadata
    impedance = metadata["device"]["causality"] == Causality.IMPEDANCE
    _path(figure.add_subplot(sides[0]), rows, metadata, impedance)
    _positions(figure.add_subplot(times[0]), rows)
    _forces(figure.add_subplot(times[1]), rows, impedance)
    _speeds(figure.add_subplot(times[2]), rows)
    _energy(figure.add_subplot(times[3]), rows, metadata)
    _flags(figure.add_subplot(times[4]), rows, flags)
    _punctuality(figure.add_subplot(right[1]), rows, metadata)
    figure.suptitle(_title(metadata), fontsize=13, color=_INK)
    path = recording.folder / PICTURE
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    replace_own(path, drawn.getvalue(), PNG)
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
    axes.plot(points[:, 0], points[:, 1], color=_SLIP, linewidth=2.2, label="path, slipping", zorder=2)
    every = max(1, round(_VECTOR_EVERY * metadata["rate_hz"]), len(rows) // 4000)
    picked = rows[::every]
    vectors = picked["command"] if impedance else picked["force"]
    starts = picked["position"] * _MILLI
    norm = float(np.nanmax(np.hypot(vectors[:, 0], vectors[:, 1]), initial=1e-9))
    length = 0.12 * float(max(np.ptp(points[:, 0]), np.ptp(points[:, 1]), 10.0))
    segments = np.stack((starts, starts + vectors / norm * length), axis=1)
    kind = "commanded force" if impedance else "measured hand force"
    axes.add_collection(LineCollection(list(segments), colors=_FORCE, linewidths=0.8, label=kind, zorder=3))
    held = thin[thin["sticking"] != 0]["position"] * _MILLI
    axes.plot(held[:, 0], held[:, 1], ".", color=_STICK, markersize=5, label="sticking", zorder=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    _style(axes, "y [mm]")
    axes.set_xlabel("x [mm]")
    axes.set_title(f"path and force (longest vector {norm:.2f} N)", fontsize=11, color=_INK)
    axes.legend(loc="lower right", fontsize=9, framealpha=0.9)


def _positions(axes: Axes, rows: Rows) -> None:
    thin = _thinned(rows)
    axes.plot(thin["time"], thin["position"][:, 0] * _MILLI, color=_SLIP, linewidth=1.1, label="x")
    axes.plot(thin["time"], thin["position"][:, 1] * _MILLI, color=_INK, linewidth=1.1, linestyle="--", label="y")
    _style(axes, "position [mm]")
    axes.legend(loc="upper right", fontsize=8, ncols=2)
    _shade_sticking(axes, rows)


def _forces(axes: Axes, rows: Rows, impedance: bool) -> None:
    thin = _thinned(rows)
    vectors = thin["command"] if impedance else thin["force"]
    if not impedance:
        axes.plot(thin["time"], _norm(vectors), color=_FORCE, linewidth=0.8, label="measured |h|")
    axes.plot(thin["time"], _norm(thin["friction_force"]), color=_FRICTION, linewidth=1.1, label="friction |f|")
    _style(axes, "force [N]")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower right", fontsize=8, ncols=2)
    _shade_sticking(axes, rows)


def _speeds(axes: Axes, rows: Rows) -> None:
    """Draw the speed of the proxy's contact: free of the encoder's steps."""
    thin = _thinned(rows)
    axes.plot(thin["time"], _norm(thin["sliding_velocity"]) * _MILLI, color=_SLIP, linewidth=0.9)
    _style(axes, "sliding [mm/s]")
    _shade_sticking(axes, rows)


def _energy(axes: Axes, rows: Rows, metadata: dict[str, Any]) -> None:
    """Draw what the loop had injected, in the largest of every stretch so that no peak is lost, and what it may."""
    starts = np.arange(0, len(rows), max(1, len(rows) // _LONGEST))
    energy = np.maximum.reduceat(np.nan_to_num(rows["injected_energy"]), starts) * _MILLI
    axes.fill_between(rows["time"][starts], energy, step="post", color=_SLIP, alpha=0.3, linewidth=0.0)
    axes.plot(rows["time"][starts], energy, drawstyle="steps-post", color=_SLIP, linewidth=0.9)
    _style(axes, "energy [mJ]")
    top = 1.6 * max(float(energy.max()), 0.01)  # room for the words
    limit = metadata.get("limits", {}).get("max_energy")
    if limit is not None and limit * _MILLI < 2.0 * top:
        top = max(top, 1.15 * limit * _MILLI)
        axes.axhline(limit * _MILLI, color=_INK, linestyle="--", linewidth=1.0)
    words = f"injected by the loop, at most {energy.max():.3g}" + (
        f" of {limit * _MILLI:.3g}" if limit is not None else ""
    )
    axes.set_ylim(0.0, top)
    axes.text(0.01, 0.93, f"{words} mJ", transform=axes.transAxes, ha="left", va="top", fontsize=8.5, color=_INK)
    _along_time(axes, rows)


def _flags_of(rows: Rows) -> list[Status]:
    """Return the flags that occurred, in the order of their bits."""
    seen = int(np.bitwise_or.reduce(rows["status"]))
    return [flag for flag in Status if seen & int(flag)]


def _flags(axes: Axes, rows: Rows, flags: list[Status]) -> None:
    """Draw when each of `flags` was set; a stretch is at least as wide as a hair."""
    for number, flag in enumerate(flags):
        stretches = _stretches((rows["status"] & int(flag)) != 0)[:2000]
        times = np.append(rows["time"], rows["time"][-1])
        spans = [(float(times[a]), float(times[b] - times[a])) for a, b in stretches]
        axes.broken_barh(spans, (number - 0.32, 0.64), facecolor=_STICK, edgecolor=_STICK, linewidth=0.8)
    axes.set_yticks(range(len(flags)), [str(flag.name).lower().replace("_", " ") for flag in flags])
    axes.set_ylim(max(len(flags), 1) - 0.5, -0.5)
    _style(axes, "")
    axes.set_xlabel("time [s]     (shaded above: sticking)", fontsize=9)
    _along_time(axes, rows)
    axes.tick_params(labelbottom=True)


def _norm(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _shade_sticking(axes: Axes, rows: Rows) -> None:
    times = np.append(rows["time"], rows["time"][-1])
    stretches = _stretches(rows["sticking"] != 0)
    long_enough = [(times[a], times[b]) for a, b in stretches if times[b] - times[a] >= 0.01]
    for begin, end in long_enough[:2000]:
        axes.axvspan(begin, end, color=_STICK, alpha=0.12, linewidth=0)
    _along_time(axes, rows)


def _along_time(axes: Axes, rows: Rows) -> None:
    """Let the axes span the run; only the lowest of them says the time."""
    axes.set_xlim(float(rows["time"][0]), float(rows["time"][-1]) or 1.0)
    axes.tick_params(labelbottom=False)


def _stretches(flags: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return where each stretch of set flags begins and where it has ended; (n, 2)."""
    return np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)


def _punctuality(axes: Axes, rows: Rows, metadata: dict[str, Any]) -> None:
    bins = np.logspace(-1, 4, 80).tolist()
    lateness, work = (np.maximum(rows[name] * 1e6, 0.1) for name in ("period_error", "tick_time"))
    axes.hist(lateness, bins=bins, color=_SLIP, alpha=0.85, label=START_DELAY)
    axes.hist(work, bins=bins, color=_FRICTION, histtype="step", linewidth=1.4, label=COMPUTATION)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _style(axes, "ticks")
    axes.set_xlabel("time of a tick [µs]", fontsize=9)
    axes.legend(loc="upper right", fontsize=8)
    axes.set_title(_certificate_text(metadata), loc="left", fontsize=8.5, color=_INK)


def _certificate_text(metadata: dict[str, Any]) -> str:
    """Return the verdict, the counts and the quantiles in a line each."""
    certificate = metadata.get("certificate", {})
    found = durations(certificate)
    if not {START_DELAY, COMPUTATION} <= set(found):
        return "no certificate was made of this run"
    late, took = (
        ", ".join(f"{name} {microseconds(found[what][name])}" for name in ("p50", "p99", "max"))
        for what in (START_DELAY, COMPUTATION)
    )
    return (
        f"{_verdict_text(certificate)}\n"
        f"{certificate['ticks']} ticks, {certificate['skipped']} skipped, {certificate['overruns']} late, "
        f"{certificate['lost_ticks']} lost; scheduling: {certificate.get('scheduling', 'other')}\n"
        f"{START_DELAY} {late}\n{COMPUTATION} {took}"
    )


def _verdict_text(certificate: dict[str, Any]) -> str:
    judged = verdict(certificate)
    if judged is None:
        return "no verdict"
    return ": ".join([judged.word, *judged.reasons[:1]]) + (" ..." if len(judged.reasons) > 1 else "")
