"""Rich display of sessions and recordings in notebooks, and a figure of a recording."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.shared.display import verdict
from haptics.records import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from apps.scripting.client import SessionClient
    from haptics.recording.recording import Recording

_MOST_POINTS = 20_000
"""Maximum number of points of a curve in a figure."""
_SKETCH_POINTS = 400
_SKETCH_SIZE = 140
_VECTORS = 60
"""Number of force vectors along a path."""

_COLUMNS = ["time", "position", "velocity", "friction_force", "force", "command", "sticking"]


def recording_html(recording: Recording) -> str:
    """Return a table of the main facts of a recording, with a sketch of its path, as HTML."""
    metadata, count = recording.metadata, len(recording)
    judged = verdict(metadata.get("certificate", {}))
    device = metadata.get("device", {})
    facts = {
        "recording": str(recording.folder),
        "state": metadata.get("state", "unknown"),
        "device": f"{device.get('name', 'unknown')}, model {metadata.get('model', '?')}",
        "ticks": f"{count} at {metadata.get('rate_hz', 1000.0):g} Hz",
        "certificate": "none" if judged is None else "; ".join([judged.word, *judged.reasons]),
    }
    step = max(count // _SKETCH_POINTS, 1)
    path = np.concatenate([rows["position"][::step] for rows in recording.chunks(["position"])] or [np.zeros((0, 2))])
    return _table(facts, path)


def session_html(session: SessionClient) -> str:
    """Return the state of a session, its last force, and a sketch of its path of the last seconds, as HTML."""
    rows = session.latest(5.0)
    newest = rows[-1]
    facts = {
        "session": f"{session.device}, model {session.model}",
        "status": session.status,
        "tick": f"{int(newest['tick'])} ({float(newest['time']):.1f} s)",
        "friction force": f"{math.hypot(*newest['friction_force']):.2f} N",
        "recording": str(session.folder),
    }
    certificate = session.certificate
    if certificate is not None and (judged := verdict(certificate)) is not None:
        facts["certificate"] = "; ".join([judged.word, *judged.reasons])
    return _table(facts, rows["position"][:: max(len(rows) // _SKETCH_POINTS, 1)])


def _table(facts: Mapping[str, str], path: NDArray[np.float64]) -> str:
    left = "style='text-align:left'"
    cells = "".join(
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<div style='display:flex;gap:1em;align-items:center'><table>{cells}</table>{_sketch(path)}</div>"


def _sketch(path: NDArray[np.float64]) -> str:
    """Return a small SVG image of a path (n, 2) [m]."""
    path = path[np.isfinite(path).all(axis=1)]
    if len(path) < 2:
        return ""
    low, span = path.min(axis=0), max(float(np.ptp(path, axis=0).max()), 1e-4)
    points = (path - low - (np.ptp(path, axis=0) - span) / 2.0) / span * (_SKETCH_SIZE - 10) + 5.0
    text = " ".join(f"{x:.1f},{_SKETCH_SIZE - y:.1f}" for x, y in points.tolist())
    return (
        f"<svg width='{_SKETCH_SIZE}' height='{_SKETCH_SIZE}' role='img' aria-label='path, {1e3 * span:.3g} mm wide'>"
        f"<polyline points='{text}' fill='none' stroke='#1f6fb2' stroke-width='1.5'/></svg>"
    )


def plot(recording: Recording) -> Figure:
    """Return a Matplotlib figure of a recording: path with force vectors, force over time, force over speed."""
    import matplotlib.pyplot as plt

    step = max(math.ceil(len(recording) / _MOST_POINTS), 1)
    known = [name for name in _COLUMNS if name in recording.metadata.get("columns", {})]
    parts = [rows[::step].copy() for rows in recording.chunks(known)]
    rows: Rows = np.concatenate(parts) if parts else recording.read(0, 0, known)
    position, force = 1e3 * rows["position"], rows["friction_force"]
    magnitude, speed = np.hypot(*force.T), 1e3 * np.hypot(*rows["velocity"].T)
    figure, (path, time, curve) = plt.subplots(1, 3, figsize=(12.0, 3.8), layout="constrained")
    path.plot(*position.T, color="tab:blue", linewidth=1.0)
    every = max(len(rows) // _VECTORS, 1)
    path.quiver(*position[::every].T, *force[::every].T, color="tab:red", width=0.004, zorder=3)
    path.set(xlabel="x [mm]", ylabel="y [mm]", title="path and friction force")
    path.set_aspect("equal", adjustable="datalim")
    time.plot(rows["time"], magnitude, color="tab:red", linewidth=1.0)
    time.set(xlabel="time [s]", ylabel="friction force [N]", title="force over time", ylim=(0.0, None))
    curve.plot(speed, magnitude, ".", color="tab:red", markersize=2.0, alpha=0.4)
    curve.set(xlabel="speed [mm/s]", ylabel="friction force [N]", title="force over speed", ylim=(0.0, None))
    return figure
