"""The picture of a run: path, position, force, speed, energy and flags against time, and the timing certificate.

Drawn with Matplotlib's Agg backend, which needs no display and no system library: the picture exists on every machine.
The path is drawn as in Kikuuwe et al. 2006, Figs. 16 and 19, the time courses as in Figs. 17 and 20.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import threading
from collections.abc import Iterator
from pathlib import Path
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

_STRETCHES = 1000
"""Stretches of a time course of which the extremes are drawn; the axes are about 550 pixels wide."""

_STRETCHES_OF_PATH = 5000
"""The same for the path, which may go to and fro through the picture many times."""

_DOTS = 20000
"""Samples of the path that are looked at for dots where the contact sticks."""

_VECTOR_EVERY = 0.02
_MILLI = 1e3
_DECADES = range(-1, 5)
"""Exponents of the decades of the histogram [us]."""

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


_IMPORTS = (
    "PIL.PngImagePlugin",
    "pyparsing",
    "dateutil.parser",
    "matplotlib",
    "matplotlib.patches",
    "matplotlib.text",
    "matplotlib.widgets",
    "matplotlib.backends.backend_agg",
    "matplotlib.axis",
    "matplotlib.legend",
    "matplotlib.axes",
    "matplotlib.projections",
    "matplotlib.figure",
)
"""Modules of Matplotlib and of its dependencies in an order in which each import is short."""


@contextlib.contextmanager
def preloading(permitted: threading.Event) -> Iterator[None]:
    """Import Matplotlib for `draw` in a thread, a module at a time while `permitted` is set.

    The thread ends with the context, and `draw` imports the rest.
    """
    left = threading.Event()

    def load() -> None:
        for name in _IMPORTS:
            if left.is_set() or not permitted.is_set():
                return
            with contextlib.suppress(ImportError):  # `draw` reports it
                importlib.import_module(name)
            if name == "matplotlib" and not _fonts_are_known():
                return

    thread = threading.Thread(target=load, name="haptics picture")
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _fonts_are_known() -> bool:
    """Return False if Matplotlib would search the machine for fonts, as it does once, for seconds."""
    import matplotlib

    return any(Path(matplotlib.get_cachedir()).glob("fontlist-*.json"))


def draw(recording: Recording) -> str | None:
    """Draw the picture of `recording` into its folder; return its path, or None for a run without usable ticks."""
    rows = _finite(recording.rows)
    if len(rows) == 0:
        return None
    collecting = gc.isenabled()
    gc.disable()  # collections take a seventh of the time, and find next to nothing
    try:
        drawn = _drawn(rows, recording.metadata)
    finally:
        if collecting:
            gc.enable()
    path = recording.folder / PICTURE
    replace_own(path, drawn, PNG)
    return str(path)


def _drawn(rows: Rows, metadata: dict[str, Any]) -> bytes:
    """Return the picture as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 9.5), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    impedance = metadata["device"]["causality"] == Causality.IMPEDANCE
    flags = _flags_of(rows)
    names = [str(flag.name).lower().replace("_", " ") for flag in flags]
    # Places are in parts of the figure. A layout engine of Matplotlib would measure every text several times.
    left = 0.640 + 0.0055 * max(0, max(map(len, names), default=0) - 12)
    below = 0.1 + 0.14 * max(len(flags), 1)
    unit = 0.8 / (4.5 + below)
    times = figure.add_gridspec(
        5,
        1,
        left=left,
        right=0.997,
        bottom=0.17 + unit,
        top=0.968,
        hspace=0.16,
        height_ratios=(1.0, 1.0, 0.8, 0.7, below),
    )
    _path(figure.add_axes((0.044, 0.048, 0.53, 0.897)), rows, metadata, impedance)
    _positions(figure.add_subplot(times[0]), rows)
    _forces(figure.add_subplot(times[1]), rows, impedance)
    _speeds(figure.add_subplot(times[2]), rows)
    _energy(figure.add_subplot(times[3]), rows, metadata)
    _flags(figure.add_subplot(times[4]), rows, flags, names)
    _punctuality(figure.add_axes((0.617, 0.05, 0.38, unit)), rows, metadata)
    figure.suptitle(_title(metadata), fontsize=13, color=_INK, y=0.997)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", pil_kwargs={"compress_level": 1})
    return drawn.getvalue()


def _finite(rows: Rows) -> Rows:
    """Return the rows that can be drawn: a sample that was no number has no place in a picture."""
    usable = np.ones(len(rows), dtype=bool)
    for name in ("position", "force", "command"):
        usable &= np.isfinite(rows[name]).all(axis=1)
    return rows if usable.all() else rows[usable]


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


def _extremes(*courses: NDArray[np.float64], stretches: int = _STRETCHES) -> NDArray[np.intp]:
    """Return the indices to draw of one or several courses: the first, the last and the extremes of every stretch.

    Each stretch is at most as wide as a pixel, so that the line looks as if every sample were drawn.
    """
    count = len(courses[0])
    length = -(-count // stretches)
    starts = np.arange(0, count, length)
    picked = [np.array([0, count - 1])]
    for course in courses:
        padded = np.full(len(starts) * length, course[-1])
        padded[:count] = course
        parts = padded.reshape(-1, length)
        picked += [starts + parts.argmin(axis=1), starts + parts.argmax(axis=1)]
    return np.unique(np.minimum(np.concatenate(picked), count - 1))


def _path(axes: Axes, rows: Rows, metadata: dict[str, Any], impedance: bool) -> None:
    from matplotlib.collections import LineCollection

    places = rows["position"] * _MILLI
    points = places[_extremes(places[:, 0], places[:, 1], stretches=_STRETCHES_OF_PATH)]
    axes.plot(points[:, 0], points[:, 1], color=_SLIP, linewidth=2.2, label="path, slipping", zorder=2)
    every = max(1, round(_VECTOR_EVERY * metadata["rate_hz"]), len(rows) // 4000)
    picked = rows[::every]
    vectors = picked["command"] if impedance else picked["force"]
    starts = places[::every]
    norm = float(np.nanmax(np.hypot(vectors[:, 0], vectors[:, 1]), initial=1e-9))
    length = 0.12 * float(max(np.ptp(points[:, 0]), np.ptp(points[:, 1]), 10.0))
    segments = np.stack((starts, starts + vectors / norm * length), axis=1)
    kind = "commanded force" if impedance else "measured hand force"
    axes.add_collection(LineCollection(list(segments), colors=_FORCE, linewidths=0.8, label=kind, zorder=3))
    thin = slice(None, None, -(-len(rows) // _DOTS))
    held = places[thin][rows["sticking"][thin] != 0]
    axes.plot(held[:, 0], held[:, 1], ".", color=_STICK, markersize=5, label="sticking", zorder=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    _style(axes, "y [mm]")
    axes.set_xlabel("x [mm]")
    axes.set_title(f"path and force (longest vector {norm:.2f} N)", fontsize=11, color=_INK, y=1.0)
    axes.legend(loc="lower right", fontsize=9, framealpha=0.9)


def _positions(axes: Axes, rows: Rows) -> None:
    for axis, (name, color, line) in enumerate((("x", _SLIP, "-"), ("y", _INK, "--"))):
        _course(axes, rows, rows["position"][:, axis] * _MILLI, color=color, linewidth=1.1, linestyle=line, label=name)
    _style(axes, "position [mm]")
    axes.legend(loc="upper right", fontsize=8, ncols=2)
    _shade_sticking(axes, rows)


def _forces(axes: Axes, rows: Rows, impedance: bool) -> None:
    if not impedance:
        _course(axes, rows, _norm(rows["force"]), color=_FORCE, linewidth=0.8, label="measured |h|")
    _course(axes, rows, _norm(rows["friction_force"]), color=_FRICTION, linewidth=1.1, label="friction |f|")
    _style(axes, "force [N]")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="lower right", fontsize=8, ncols=2)
    _shade_sticking(axes, rows)


def _speeds(axes: Axes, rows: Rows) -> None:
    """Draw the speed of the proxy's contact: free of the encoder's steps."""
    _course(axes, rows, _norm(rows["sliding_velocity"]) * _MILLI, color=_SLIP, linewidth=0.9)
    _style(axes, "sliding [mm/s]")
    _shade_sticking(axes, rows)


def _course(axes: Axes, rows: Rows, values: NDArray[np.float64], **style: Any) -> None:
    """Plot `values` against time."""
    picked = _extremes(values)
    axes.plot(rows["time"][picked], values[picked], **style)


def _energy(axes: Axes, rows: Rows, metadata: dict[str, Any]) -> None:
    """Draw the energy that the loop had injected, and its limit."""
    energy = np.nan_to_num(rows["injected_energy"]) * _MILLI
    picked = _extremes(energy)
    times, energy = rows["time"][picked], energy[picked]
    axes.fill_between(times, energy, step="post", color=_SLIP, alpha=0.3, linewidth=0.0)
    axes.plot(times, energy, drawstyle="steps-post", color=_SLIP, linewidth=0.9)
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


def _flags(axes: Axes, rows: Rows, flags: list[Status], names: list[str]) -> None:
    """Draw when each of `flags` was set; a stretch is at least as wide as a hair."""
    for number, flag in enumerate(flags):
        spans = _spans(rows, (rows["status"] & int(flag)) != 0)[:2000].tolist()
        axes.broken_barh(spans, (number - 0.32, 0.64), facecolor=_STICK, edgecolor=_STICK, linewidth=0.8)
    axes.set_yticks(range(len(flags)), names)
    axes.set_ylim(max(len(flags), 1) - 0.5, -0.5)
    _style(axes, "")
    axes.set_xlabel("time [s]     (shaded above: sticking)", fontsize=9)
    _along_time(axes, rows)
    axes.tick_params(labelbottom=True)


def _norm(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _shade_sticking(axes: Axes, rows: Rows) -> None:
    spans = _spans(rows, rows["sticking"] != 0)
    long_enough = spans[spans[:, 1] >= 0.01][:2000].tolist()
    axes.broken_barh(
        long_enough, (0.0, 1.0), transform=axes.get_xaxis_transform(), color=_STICK, alpha=0.12, linewidth=0.0
    )
    _along_time(axes, rows)


def _along_time(axes: Axes, rows: Rows) -> None:
    """Let the axes span the run; only the lowest of them says the time."""
    axes.set_xlim(float(rows["time"][0]), float(rows["time"][-1]) or 1.0)
    axes.tick_params(labelbottom=False)


def _spans(rows: Rows, flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return when each stretch of set flags begins and how long it is [s]; (n, 2)."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    times = rows["time"]
    begins, ends = times[edges[:, 0]], times[np.minimum(edges[:, 1], len(rows) - 1)]
    return np.stack((begins, ends - begins), axis=1)


def _punctuality(axes: Axes, rows: Rows, metadata: dict[str, Any]) -> None:
    from matplotlib.markers import TICKDOWN, TICKLEFT
    from matplotlib.ticker import NullLocator

    edges = np.logspace(_DECADES[0], _DECADES[-1], 80)
    lateness, work = (
        np.histogram(np.maximum(rows[name] * 1e6, edges[0]), edges)[0] for name in ("period_error", "tick_time")
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.stairs(lateness, edges, fill=True, color=_SLIP, alpha=0.85, label=START_DELAY)
    axes.stairs(work, edges, color=_FRICTION, linewidth=1.4, label=COMPUTATION)
    most = int(max(lateness.max(), work.max(), 10))
    axes.set_xlim(0.5 * edges[0], 2.0 * edges[-1])
    axes.set_ylim(0.7, 1.5 * most)
    # Matplotlib sets the labels of a logarithmic axis as formulas and makes an object of every minor tick. Both take
    # longer than the rest of the picture's text.
    for axis, decades in ((axes.xaxis, _DECADES), (axes.yaxis, range(int(np.log10(1.5 * most)) + 1))):
        axis.set_minor_locator(NullLocator())
        axis.set_ticks([10.0**k for k in decades], [f"10{str(k).translate(_SUPERSCRIPTS)}" for k in decades])
    between = np.outer(10.0 ** np.arange(-2, 8), np.arange(2, 10)).ravel()
    along_x, along_y = (
        between[(between >= low) & (between <= high)] for low, high in (axes.get_xlim(), axes.get_ylim())
    )
    mark: dict[str, Any] = {"linestyle": "", "markersize": 2.0, "markeredgewidth": 0.6, "color": "k", "clip_on": False}
    axes.plot(along_x, np.zeros_like(along_x), marker=TICKDOWN, transform=axes.get_xaxis_transform(), **mark)
    axes.plot(np.zeros_like(along_y), along_y, marker=TICKLEFT, transform=axes.get_yaxis_transform(), **mark)
    _style(axes, "ticks")
    axes.set_xlabel("time of a tick [µs]", fontsize=9)
    axes.legend(loc="upper right", fontsize=8)
    axes.set_title(_certificate_text(metadata), loc="left", fontsize=8.5, color=_INK, y=1.0)


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
