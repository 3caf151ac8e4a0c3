"""Picture of a run: path, curves over time, and the timing certificate.

It is drawn with Matplotlib's Agg backend, which needs no display and no system library, so that it is available on
every machine. The rows are read in chunks and reduced to the points drawn: memory use does not grow with the run. The
path is drawn as in Kikuuwe et al. 2006, Figs. 16 and 19, the time courses as in Figs. 17 and 20.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.shared.display import COMPUTATION, START_DELAY, durations, microseconds, verdict
from apps.shared.theme import LIGHT
from haptics.device import Causality
from haptics.files import replace_owned
from haptics.recording.recording import Recording
from haptics.records import Rows, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = "picture.png"
PNG = b"\x89PNG\r\n\x1a\n"
"""Signature of a PNG file."""

_SLIP, _STICK, _FRICTION, _FORCE = LIGHT.motion, LIGHT.stick, LIGHT.friction, LIGHT.force
_INK = "#222222"
"""Colours of the light theme (`apps.shared.theme`), as in the window."""

_STRETCHES = 1000
"""Number of intervals of a time course whose extremes are drawn; the axes are about 550 pixels wide."""

_STRETCHES_OF_PATH = 5000
"""Number of such intervals of the path, which may cross the picture many times."""

_PATH_STEP = 0.02
"""Maximum time between consecutive points of the path that are joined by a line [s]."""

_DOTS = 20000
"""Maximum number of samples of the path tested for sticking; sticking samples are drawn as dots."""

_VECTOR_EVERY = 0.02
_MILLI = 1e3
_DECADES = range(-1, 5)
"""Exponents of the decades of the histogram [us]."""

_EDGES = np.logspace(_DECADES[0], _DECADES[-1], 80)
"""Edges of the bins of the histogram [us]."""

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
"""Modules of Matplotlib and its dependencies, ordered such that each import is short."""


@contextlib.contextmanager
def preloading(permitted: threading.Event) -> Iterator[None]:
    """Import Matplotlib for `draw` in a thread, module by module, while `permitted` is set.

    The thread ends with the context; `draw` imports the remaining modules.
    """
    left = threading.Event()

    def load() -> None:
        for name in _IMPORTS:
            if left.is_set() or not permitted.is_set():
                return
            with contextlib.suppress(ImportError):  # `draw` reports it
                importlib.import_module(name)
            if name == "matplotlib":
                import matplotlib

                # Without a font cache, Matplotlib would search the machine for fonts for seconds.
                if not any(Path(matplotlib.get_cachedir()).glob("fontlist-*.json")):
                    return

    thread = threading.Thread(target=load, name="haptics picture")
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def draw(recording: Recording) -> str | None:
    """Draw the picture of `recording` into its folder; return its path, or None without usable ticks."""
    run = _Run(recording)
    if run.count == 0:
        return None
    collecting = gc.isenabled()
    gc.disable()  # garbage collection would take a seventh of the time and free almost nothing
    try:
        drawn = _drawn(run)
    finally:
        if collecting:
            gc.enable()
    path = recording.folder / PICTURE
    replace_owned(path, drawn, PNG)
    return str(path)


class _Run:
    """Plotted data of a recording: points of the curves, intervals of the flags, and histograms.

    Attributes
    ----------
    metadata : dict
        Content of ``recording.json``.
    impedance : bool
        Whether the device takes forces.
    count : int
        Number of rows drawn; rows with non-finite samples are skipped.
    begin, end : float
        Time of the first and the last of these rows [s].
    visited : _Cells or None
        Cells visited by the handle, for a run too long to be drawn as a line without cutting corners.
    """

    COLUMNS = (
        *("time", "position", "force", "command", "friction_force", "sliding_velocity", "injected_energy"),
        *("status", "sticking", "period_error", "tick_time"),
    )

    def __init__(self, recording: Recording) -> None:
        self.metadata, length = recording.metadata, len(recording)
        self.impedance = self.metadata["device"]["causality"] == Causality.IMPEDANCE
        self.count = 0
        self.begin = self.end = 0.0
        self._stretch = max(-(-length // _STRETCHES), 1)
        self._stretch_of_path = max(-(-length // _STRETCHES_OF_PATH), 1)
        is_long = self._stretch_of_path > _PATH_STEP * self.metadata["rate_hz"]
        self.visited = _Cells() if is_long else None
        self._vector_every = max(1, round(_VECTOR_EVERY * self.metadata["rate_hz"]), length // 4000)
        self._dot_every = max(-(-length // _DOTS), 1)
        self._points: dict[str, list[NDArray[Any]]] = {}
        self._seen = 0
        self._spans = {flag: _Spans() for flag in Status}
        self.sticking = _Spans(shortest=0.01)
        self.lateness = np.zeros(len(_EDGES) - 1, np.int64)
        self.computation = np.zeros(len(_EDGES) - 1, np.int64)
        for rows in recording.chunks(self.COLUMNS):
            usable = np.ones(len(rows), dtype=bool)
            for name in ("position", "force", "command"):
                usable &= np.isfinite(rows[name]).all(axis=1)
            self._add(rows if usable.all() else rows[usable])

    @property
    def flags(self) -> list[Status]:
        """The flags that occurred, in the order of their bits."""
        return [flag for flag in Status if self._seen & int(flag)]

    def points(self, name: str) -> NDArray[np.float64]:
        """Return the points of a curve, (n, 2): time [s] and value, or x and y."""
        return np.concatenate(self._points[name])

    def spans(self, flag: Status) -> NDArray[np.float64]:
        """Return start and duration of each bar that shows when a flag was set [s], (n, 2)."""
        spans = self._spans[flag]
        found = spans.closed(self.end)
        if spans.total <= spans.MOST:
            return found
        shares = spans.shares
        return np.asarray(shares[shares[:, 2] > 0.0, :2])

    def _add(self, rows: Rows) -> None:
        """Add the data of the next rows."""
        if not len(rows):
            return
        times = rows["time"].copy()
        if not self.count:
            self.begin = float(times[0])
        places = rows["position"] * _MILLI
        if self.visited is None:
            self._keep("path", places[_extremes(places[:, 0], places[:, 1], length=self._stretch_of_path)])
        else:
            self.visited.add(places)
        courses = {
            "x": places[:, 0],
            "y": places[:, 1],
            "friction": _norm(rows["friction_force"]),
            "sliding": _norm(rows["sliding_velocity"]) * _MILLI,
            "energy": np.nan_to_num(rows["injected_energy"]) * _MILLI,
        }
        if not self.impedance:
            courses["force"] = _norm(rows["force"])
        for name, values in courses.items():
            picked = _extremes(values, length=self._stretch)
            self._keep(name, np.column_stack((times[picked], values[picked])))
        every = slice(-self.count % self._vector_every, None, self._vector_every)
        self._keep("vector starts", places[every])
        self._keep("vectors", rows["command" if self.impedance else "force"][every])
        every = slice(-self.count % self._dot_every, None, self._dot_every)
        self._keep("dots", places[every][rows["sticking"][every] != 0])
        status = rows["status"].copy()
        present = int(np.bitwise_or.reduce(status))
        for flag, spans in self._spans.items():
            if present & int(flag) or spans.open:
                spans.add(times, (status & int(flag)) != 0, self._stretch)
        self._seen |= present
        self.sticking.add(times, rows["sticking"] != 0, self._stretch)
        self.lateness += _histogram(rows["period_error"])
        self.computation += _histogram(rows["tick_time"])
        self.count += len(rows)
        self.end = float(times[-1])

    def _keep(self, name: str, points: NDArray[Any]) -> None:
        self._points.setdefault(name, []).append(np.array(points))


def _histogram(durations: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.histogram(np.maximum(durations * 1e6, _EDGES[0]), _EDGES)[0]


class _Cells:
    """Square cells that contain points, as small as the maximum number of cells permits."""

    MOST = 100_000

    def __init__(self) -> None:
        self.size = 0.125
        self._cells = np.empty(0, np.complex128)  # real and imaginary part are the two indices of a cell

    def add(self, points: NDArray[np.float64]) -> None:
        """Add points, (n, 2) [mm]."""
        while True:
            found = np.clip(np.floor(points / self.size), -(2.0**40), 2.0**40)
            cells = np.unique(np.concatenate((self._cells, found[:, 0] + 1j * found[:, 1])))
            if len(cells) <= self.MOST:
                break
            self.size *= 2.0
            self._cells = np.floor(self._cells.real / 2.0) + 1j * np.floor(self._cells.imag / 2.0)
        self._cells = cells

    @property
    def centres(self) -> NDArray[np.float64]:
        """The centre of each cell, (n, 2) [mm]."""
        return np.column_stack((self._cells.real, self._cells.imag)) * self.size + 0.5 * self.size


class _Spans:
    """Intervals in which a flag is set, with start and duration [s], from rows added in chunks.

    Only the first `MOST` intervals are kept. If there are more (`total`), `shares` is drawn instead.
    """

    MOST = 2000

    def __init__(self, shortest: float = 0.0) -> None:
        self.total = 0
        self.open = False
        self._shortest, self._since = shortest, 0.0
        self._kept: list[NDArray[np.float64]] = []
        self._shares: list[NDArray[np.float64]] = []

    def add(self, times: NDArray[np.float64], flags: NDArray[np.bool_], stretch: int) -> None:
        """Add the next rows: their times, whether the flag was set, and the number of rows per pixel."""
        edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=np.int8(self.open)))
        at = times[edges]
        if self.open:
            at = np.concatenate(([self._since], at))
        if len(at) % 2:
            self._since, at = float(at[-1]), at[:-1]
        self._enter(at.reshape(-1, 2))
        self.open = bool(flags[-1])
        starts = np.arange(0, len(flags), stretch)
        counts = np.add.reduceat(flags, starts, dtype=np.int64)
        ends = np.minimum(starts + stretch, len(flags) - 1)
        sizes = np.diff(starts, append=len(flags))
        self._shares.append(np.column_stack((times[starts], times[ends] - times[starts], counts / sizes)))

    def closed(self, end: float) -> NDArray[np.float64]:
        """Return start and duration of each interval, (n, 2); an interval that is still open ends at `end`."""
        if self.open:
            self._enter(np.array([[self._since, end]]))
            self.open = False
        return np.concatenate([np.zeros((0, 2)), *self._kept])[: self.MOST]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Start and duration of each pixel's time [s], and the fraction of it in which the flag was set."""
        return np.concatenate(self._shares)

    def _enter(self, spans: NDArray[np.float64]) -> None:
        found = np.column_stack((spans[:, 0], spans[:, 1] - spans[:, 0]))
        found = found[found[:, 1] >= self._shortest]
        if self.total < self.MOST:
            self._kept.append(found[: self.MOST - self.total])
        self.total += len(found)


def _drawn(run: _Run) -> bytes:
    """Return the picture as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 9.5), dpi=110, facecolor="white")
    names = [str(flag.name).lower().replace("_", " ") for flag in run.flags]
    # Positions are in fractions of the figure. A layout engine of Matplotlib would measure every text several times.
    left = 0.640 + 0.0055 * max(0, max(map(len, names), default=0) - 12)
    below = 0.1 + 0.14 * max(len(names), 1)
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
    _path(figure.add_axes((0.044, 0.048, 0.53, 0.897)), run)
    _courses([figure.add_subplot(times[row]) for row in range(5)], run, names)
    _punctuality(figure.add_axes((0.617, 0.05, 0.38, unit)), run)
    law, element = (run.metadata["configuration"][table] for table in ("law", "element"))
    numbers = ", ".join(f"{key.replace('_', ' ')} {one:g}" for key, one in law.items() if not isinstance(one, str))
    element = ", ".join(f"{key} {value:g}" for key, value in element.items())
    run_title = f"model {run.metadata['model']} on {run.metadata['device']['name']}"
    title = f"{run_title}: {law['name']} ({numbers} N), {element} (SI)"
    figure.suptitle(title, fontsize=13, color=_INK, y=0.997)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", pil_kwargs={"compress_level": 1})
    return drawn.getvalue()


def _style(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)


def _extremes(*courses: NDArray[np.float64], length: int) -> NDArray[np.intp]:
    """Return the indices to draw of curves: the ends, and the extremes of every `length` rows.

    These rows cover at most one pixel, so that the line looks as if every sample were drawn.
    """
    count = len(courses[0])
    starts = np.arange(0, count, length)
    picked = [np.array([0, count - 1])]
    for course in courses:
        padded = np.full(len(starts) * length, course[-1])
        padded[:count] = course
        parts = padded.reshape(-1, length)
        picked += [starts + parts.argmin(axis=1), starts + parts.argmax(axis=1)]
    return np.unique(np.minimum(np.concatenate(picked), count - 1))


def _path(axes: Axes, run: _Run) -> None:
    from matplotlib.collections import LineCollection

    style: dict[str, Any] = {"color": _SLIP, "linewidth": 2.2, "label": "path, slipping", "zorder": 2}
    if run.visited is None:
        points = run.points("path")
    else:
        points = run.visited.centres
        style |= {"linestyle": "", "marker": "o", "markersize": 2.2, "markeredgewidth": 0.0}
    axes.plot(points[:, 0], points[:, 1], **style)
    vectors, starts = run.points("vectors"), run.points("vector starts")
    norm = float(np.nanmax(_norm(vectors), initial=1e-9))
    length = 0.12 * float(max(np.ptp(points[:, 0]), np.ptp(points[:, 1]), 10.0))
    segments = np.stack((starts, starts + vectors / norm * length), axis=1)
    kind = "commanded force" if run.impedance else "measured hand force"
    axes.add_collection(LineCollection(list(segments), colors=_FORCE, linewidths=0.8, label=kind, zorder=3))
    held = run.points("dots")
    axes.plot(held[:, 0], held[:, 1], ".", color=_STICK, markersize=5, label="sticking", zorder=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    _style(axes, "y [mm]")
    axes.set_xlabel("x [mm]")
    axes.set_title(f"path and force (longest vector {norm:.2f} N)", fontsize=11, color=_INK, y=1.0)
    axes.legend(loc="lower right", fontsize=9, framealpha=0.9)


def _courses(axes: Sequence[Axes], run: _Run, names: list[str]) -> None:
    """Draw position, force, sliding speed, injected energy and flags over time; shade sticking in the first three.

    Sticking is shaded by its share where it is shorter than a pixel. The line width of flags keeps short ones visible.
    """
    from matplotlib.colors import to_rgb

    position, force, speed, energy, flags = axes
    for name, color, line in (("x", _SLIP, "-"), ("y", _INK, "--")):
        position.plot(*run.points(name).T, color=color, linewidth=1.1, linestyle=line, label=name)
    _style(position, "position [mm]")
    position.legend(loc="upper right", fontsize=8, ncols=2)
    if not run.impedance:
        force.plot(*run.points("force").T, color=_FORCE, linewidth=0.8, label="measured |h|")
    force.plot(*run.points("friction").T, color=_FRICTION, linewidth=1.1, label="friction |f|")
    _style(force, "force [N]")
    force.set_ylim(bottom=0.0)
    force.legend(loc="lower right", fontsize=8, ncols=2)
    speed.plot(*run.points("sliding").T, color=_SLIP, linewidth=0.9)
    _style(speed, "sliding [mm/s]")
    spans, shares = run.sticking.closed(run.end), run.sticking.shares
    colours = np.column_stack((np.tile(to_rgb(_STICK), (len(shares), 1)), 0.12 * shares[:, 2]))
    for one in (position, force, speed):
        style: dict[str, Any] = {"transform": one.get_xaxis_transform(), "linewidth": 0.0}
        if run.sticking.total <= run.sticking.MOST:
            one.broken_barh(spans.tolist(), (0.0, 1.0), color=_STICK, alpha=0.12, **style)
        else:
            one.broken_barh(shares[:, :2].tolist(), (0.0, 1.0), facecolors=colours, **style)

    times, joules = run.points("energy").T
    energy.fill_between(times, joules, step="post", color=_SLIP, alpha=0.3, linewidth=0.0)
    energy.plot(times, joules, drawstyle="steps-post", color=_SLIP, linewidth=0.9)
    _style(energy, "energy [mJ]")
    top = 1.6 * max(float(joules.max()), 0.01)  # room for the text
    limit = run.metadata.get("limits", {}).get("max_energy")
    if limit is not None and limit * _MILLI < 2.0 * top:
        top = max(top, 1.15 * limit * _MILLI)
        energy.axhline(limit * _MILLI, color=_INK, linestyle="--", linewidth=1.0)
    of_limit = f" of {limit * _MILLI:.3g}" if limit is not None else ""
    words = f"injected by the loop, at most {joules.max():.3g}{of_limit} mJ"
    energy.set_ylim(0.0, top)
    energy.text(0.01, 0.93, words, transform=energy.transAxes, ha="left", va="top", fontsize=8.5, color=_INK)

    for number, flag in enumerate(run.flags):
        bars = run.spans(flag).tolist()
        flags.broken_barh(bars, (number - 0.32, 0.64), facecolor=_STICK, edgecolor=_STICK, linewidth=0.8)
    flags.set_yticks(range(len(names)), names)
    flags.set_ylim(max(len(names), 1) - 0.5, -0.5)
    _style(flags, "")
    flags.set_xlabel("time [s]     (shaded above: sticking)", fontsize=9)
    for one in axes:
        one.set_xlim(run.begin, run.end or 1.0)
        one.tick_params(labelbottom=one is flags)


def _norm(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _punctuality(axes: Axes, run: _Run) -> None:
    from matplotlib.markers import TICKDOWN, TICKLEFT
    from matplotlib.ticker import NullLocator

    edges, lateness, work = _EDGES, run.lateness, run.computation
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.stairs(lateness, edges, fill=True, color=_SLIP, alpha=0.85, label=START_DELAY)
    axes.stairs(work, edges, color=_FRICTION, linewidth=1.4, label=COMPUTATION)
    most = int(max(lateness.max(), work.max(), 10))
    axes.set_xlim(0.5 * edges[0], 2.0 * edges[-1])
    axes.set_ylim(0.7, 1.5 * most)
    # Matplotlib renders the labels of a logarithmic axis as formulas and creates an object for every minor tick. Both
    # take longer than all other text of the picture.
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
    axes.set_title(_certificate_text(run.metadata), loc="left", fontsize=8.5, color=_INK, y=1.0)


def _certificate_text(metadata: dict[str, Any]) -> str:
    """Return the verdict, the counts, and the quantiles, one line each."""
    certificate = metadata.get("certificate", {})
    found, judged = durations(certificate), verdict(certificate)
    if not {START_DELAY, COMPUTATION} <= set(found):
        return "no certificate was made of this run"
    judgement = "no verdict"
    if judged is not None:
        judgement = ": ".join([judged.word, *judged.reasons[:1]]) + (" ..." if len(judged.reasons) > 1 else "")
    late, took = (
        ", ".join(f"{name} {microseconds(found[duration][name])}" for name in ("p50", "p99", "max"))
        for duration in (START_DELAY, COMPUTATION)
    )
    return (
        f"{judgement}\n"
        f"{certificate['ticks']} ticks, {certificate['skipped']} skipped, {certificate['overruns']} late, "
        f"{certificate['lost_ticks']} lost; scheduling: {certificate.get('scheduling', 'other')}\n"
        f"{START_DELAY} {late}\n{COMPUTATION} {took}"
    )
