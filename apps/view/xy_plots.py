"""Plots over other quantities than time: plane, force over speed and displacement, spectrum, and timing.

The plane shows path and forces as in the figures of Kikuuwe et al. 2006. The path is a line while the contact slips.
Places of sticking are dots whose size increases with the time spent there. Thin lines from the path are force vectors,
one every 20 ms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from apps.front_ends.run import RunInfo, means, region_name, runs
from apps.shared.display import AxisTop, microseconds
from apps.view.charts import Lines, Sign, Swatch, box_of, chart, clear, curve, points
from apps.view.feed import Feed
from apps.view.history import Column, Counts, Durations, Floats, History, Spectrum, arrow, every, welch
from apps.view.laws import CurveRequest, LawCurves, place_of, with_background
from apps.view.plot import Cursors, Plot, Reading, Table
from apps.view.qt import QtCore, QtGui, QtWidgets, current_theme, label, pg

if TYPE_CHECKING:
    from haptics.scenes import Scene

_BUTTONS = {
    QtCore.Qt.MouseButton.LeftButton: 1 << 1,
    QtCore.Qt.MouseButton.RightButton: 1 << 2,
    QtCore.Qt.MouseButton.MiddleButton: 1 << 3,
}
"""Bits of the mouse buttons as buttons of a device."""

_BANDS = 6
_PATH_STEP = 0.004
_VECTOR_STEP = 0.020
_LEAST_STICK = 0.010
_MOST_DOTS = 150


def _raster(lower: Floats, upper: Floats) -> QtGui.QPainterPath:
    """Return all lines of the raster inside the workspace (corners in mm) as one path."""
    path = QtGui.QPainterPath()
    step = 20.0 if (upper - lower).max() <= 400 else 100.0  # between the lines [mm]
    for axis in (0, 1):
        for at in step * np.arange(np.ceil(lower[axis] / step), np.floor(upper[axis] / step) + 1):
            ends = [(at, end) if axis == 0 else (end, at) for end in (lower[1 - axis], upper[1 - axis])]
            path.moveTo(*ends[0])
            path.lineTo(*ends[1])
    return path


class PlanePanel(Plot):
    """Plot of the plane with path, vectors, end effector and proxy.

    Attributes
    ----------
    pointer_moved : signal (x, y)
        Position of the mouse on the plane [m], clipped to the workspace; emitted only while the mouse acts as the hand.
    buttons_changed : signal (bits)
        Buttons of the device held by the mouse, as in `apps.front_ends.messages.HandButtons`; emitted only while the
        mouse acts as the hand.
    """

    name = "plane"
    title = "Path and force vectors"
    about = (
        "The plane from above: the path of the end effector, dots where it stuck, a force vector every 20 ms, "
        "and the proxy, which is the end effector less the elastic displacement."
    )
    entries = (
        (Sign.LINE, "motion", "slip"),
        (Sign.DOT, "stick", "stick"),
        (Sign.DISC, "text", "end effector"),
        (Sign.RING, "text", "proxy"),
    )
    columns = (
        ("time_s", Column.TIME),
        ("position_x_mm", Column.X),
        ("position_y_mm", Column.Y),
        ("proxy_x_mm", Column.PROXY_X),
        ("proxy_y_mm", Column.PROXY_Y),
        ("force_x_n", Column.VECTOR_X),
        ("force_y_n", Column.VECTOR_Y),
        ("sticking", Column.STICKING),
    )

    pointer_moved = QtCore.Signal(float, float)
    buttons_changed = QtCore.Signal(int)

    def __init__(self) -> None:
        super().__init__(key_below=True)
        self._mouse, self._buttons = False, 0
        self.choice.hide()
        self.state = label("", 13, bold=True)
        self.readout = label("")
        self.head.addWidget(self.state)
        self.head.addStretch(1)
        self.head.addWidget(Swatch(Sign.ARROW, "force"))
        self.head.addWidget(self.readout)
        self.hint = label("Move the mouse here: it is your hand.", 11, bold=True, centred=True)
        self.hint.hide()
        self.body.addWidget(self.hint)
        self.chart = chart("y [mm]", "x [mm]")
        self.chart.getPlotItem().setAspectLocked(True)
        # Raster, path, vectors, and symbols, the lowest first.
        self._raster = QtWidgets.QGraphicsPathItem()
        self._outline = QtWidgets.QGraphicsPathItem()
        for item in (self._raster, self._outline):
            self.chart.addItem(item, ignoreBounds=True)
        self._vectors = curve(self.chart)
        self._tail = [curve(self.chart) for _ in range(_BANDS)]
        self._held = curve(self.chart)
        self._arrow = curve(self.chart)
        self._dots = points(self.chart)
        self._proxy = points(self.chart, 17)
        self._effector = points(self.chart, 11)
        self.add_stroke(self._raster, "raster")
        self.add_stroke(self._outline, "faint", 1.5)
        for number, item in enumerate(self._tail):
            self.add_stroke(item, "motion", 2, share=0.3 + 0.7 * ((number + 1) / _BANDS) ** 1.5)
        self.add_stroke(self._held, "stick", 2)
        self.add_stroke(self._vectors, "force", share=0.7)
        self.add_stroke(self._arrow, "force", 3)
        self._arrow.opts["antialias"] = True  # only three lines, so antialiasing is cheap, and this item rotates
        self.add_stroke(self._proxy, "text", 2)
        self._proxy.setBrush(None)
        self.add_stroke(self._effector, "panel", 1)
        self._dots.setPen(None)
        self.add_fill(self._dots, "stick", 0.85)
        self.add_fill(self._effector, "text")
        self.add_charts((self.chart, 150, 1))
        self.add_cursors(Cursors(self.charts, ("x", "mm"), up=("y", "mm")))
        self.chart.viewport().setMouseTracking(True)
        self.chart.viewport().installEventFilter(self)

    def configure(self, info: RunInfo) -> None:
        """Clear the plane and prepare it for a run."""
        super().configure(info)
        self.set_mouse(info.mouse)
        lower, upper = 1e3 * np.array(info.workspace)
        self._raster.setPath(_raster(lower, upper))
        frame = QtGui.QPainterPath()
        frame.addRect(QtCore.QRectF(lower[0], lower[1], upper[0] - lower[0], upper[1] - lower[1]))
        self._outline.setPath(frame)
        self._millimetres_per_newton = 0.14 * float((upper - lower).min()) / max(info.force_scale, 1e-9)
        self.chart.plotItem.setLabel("bottom", f"x [mm]\u2003(vectors: {self._millimetres_per_newton:.2g} mm per N)")
        edge = 0.04 * (upper - lower)
        lower, upper = (lower - edge).tolist(), (upper + edge).tolist()
        box_of(self.chart).show_range((lower[0], upper[0]), (lower[1], upper[1]))
        shape = QtCore.Qt.CursorShape.CrossCursor if info.mouse else QtCore.Qt.CursorShape.ArrowCursor
        self.chart.viewport().setCursor(shape)
        clear(*self._tail, self._vectors, self._held, self._arrow, self._dots, self._proxy, self._effector)

    def set_mouse(self, active: bool) -> None:
        """Set whether the mouse over the plane acts as the hand."""
        self._mouse = active
        self.chart.getPlotItem().setMouseEnabled(not active, not active)  # otherwise the hand would pan the plot
        self.hint.setVisible(active)
        if not active:
            self._hold(0)

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        rate = self.info.rate
        x, y = history.column(Column.X), history.column(Column.Y)
        sticking = history.column(Column.STICKING)
        chosen = every(history.first, len(x), max(round(_PATH_STEP * rate), 1))
        path_x, path_y, slips = x[chosen], y[chosen], (sticking[chosen] == 0).astype(np.int32)
        edges = np.linspace(0, len(chosen), _BANDS + 1).astype(int)
        for item, start, stop in zip(self._tail, edges[:-1], edges[1:], strict=True):
            band = slice(start, min(stop + 1, len(chosen)))
            item.setData(path_x[band], path_y[band], connect=slips[band])
        self._held.setData(path_x, path_y, connect=1 - slips)

        rests = runs(sticking)
        seconds = (rests.stop - rests.start) / rate
        long = np.flatnonzero(seconds >= _LEAST_STICK)[-_MOST_DOTS:]
        sizes = np.clip(5.0 + 9.0 * np.sqrt(seconds[long]), 5.0, 15.0)
        self._dots.setData(means(x, rests)[long], means(y, rests)[long], size=sizes)

        scale = self._millimetres_per_newton
        chosen = every(history.first, len(x), max(round(_VECTOR_STEP * rate), 1))
        along_x, along_y = (scale * history.column(column) for column in (Column.VECTOR_X, Column.VECTOR_Y))
        ends = (
            np.stack((start[chosen], (start + along)[chosen]), axis=1).ravel()
            for start, along in ((x, along_x), (y, along_y))
        )
        self._vectors.setData(*ends, connect="pairs")
        barb = 0.3 * scale * self.info.force_scale
        self._arrow.setData(*arrow(x[-1], y[-1], along_x[-1], along_y[-1], barb), connect="pairs")

        self._effector.setData([x[-1]], [y[-1]], symbol="s" if sticking[-1] else "o")
        self._proxy.setData([history.newest(Column.PROXY_X)], [history.newest(Column.PROXY_Y)])

    def refresh_texts(self, feed: Feed) -> None:
        """Show the newest values."""
        super().refresh_texts(feed)
        history = feed.history
        if not len(history):
            return
        sticking = bool(history.newest(Column.STICKING))
        colour = current_theme().stick if sticking else current_theme().motion
        self.state.setText(f"<span style='color:{colour}'>{'■ STICK' if sticking else '● SLIP'}</span>")
        self.readout.setText(
            f"{self.info.force_name} {history.newest(Column.FORCE):.2f} N"
            f"\u2002·\u2002{history.newest(Column.SPEED):.0f} mm/s"
        )

    def place(self, point: QtCore.QPointF) -> tuple[float, float]:
        """Return the point of the plane [m] under a pixel of the chart's viewport, clipped to the workspace."""
        view = self.chart.getViewBox().mapSceneToView(self.chart.mapToScene(point.toPoint()))
        lower, upper = self.info.workspace
        return (
            float(np.clip(1e-3 * view.x(), lower[0], upper[0])),
            float(np.clip(1e-3 * view.y(), lower[1], upper[1])),
        )

    def eventFilter(self, watched: QtCore.QObject, event: QtCore.QEvent) -> bool:  # noqa: N802
        """Handle mouse events over the chart (Qt event handler)."""
        if not self._mouse or not isinstance(event, QtGui.QMouseEvent):
            return False
        if event.type() == QtCore.QEvent.Type.MouseMove:
            self.pointer_moved.emit(*self.place(event.position()))
        else:
            self._hold(sum(bit for button, bit in _BUTTONS.items() if event.buttons() & button))
        return False

    def _hold(self, buttons: int) -> None:
        """Report the device buttons held by the mouse if they have changed."""
        if buttons != self._buttons:
            self._buttons = buttons
            self.buttons_changed.emit(buttons)


_RECENT = 0.4
"""Duration of the newest part that is drawn bold [s]."""

_MOST_CURVES = 3
"""Maximum number of curves of a law."""

_FLOOR = 1e-5
"""Minimum amplitude density drawn [N/sqrt(Hz)]; smaller values are clipped."""

_DECADES = range(-5, 3)
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class ForcePlot(Plot):
    """Base class of the plots of the friction force over a quantity, with the newest part bold and a point at its end.

    Parameters
    ----------
    quantity, unit : str
        Name and unit of the quantity.
    bottom : str
        Label of its axis.
    least_height : int
        Minimum height of the chart [pixel on an ordinary screen].
    """

    step: ClassVar[float]
    """Time between two points drawn [s]."""

    least: ClassVar[float]
    """Minimum end of the axis of the quantity."""

    below: ClassVar[tuple[float, float]] = (1.0, 1.0)
    """Lower ends of both axes, as shares of the upper ones below zero."""

    def __init__(self, quantity: str, unit: str, bottom: str, least_height: int) -> None:
        super().__init__()
        self.chart: Any = chart("friction [N]", bottom)
        self.add_charts((self.chart, least_height, 1))
        self._all, self._newest = curve(self.chart), curve(self.chart)
        self._point = points(self.chart, 10)
        self._point.setPen(None)
        self.add_fill(self._point, "text")
        self.add_stroke(self._all, "motion")
        self.add_stroke(self._newest, "friction", 3)
        self.add_cursors(Cursors(self.charts, (quantity, unit), up=("friction", "N")))
        self._reset(1.0)

    def _reset(self, force: float) -> None:
        self._far, self._top = AxisTop(self.least), AxisTop(force)
        self._show_range()

    def _show_range(self) -> None:
        (left, low), far, top = self.below, self._far.top, self._top.top
        box_of(self.chart).show_range((-left * far, far), (-low * top, top))

    def course(self, history: History) -> tuple[Floats, Floats]:
        """Return the quantity and the friction force [N] of the window."""
        raise NotImplementedError

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._reset(1.25 * info.force_scale)
        clear(self._all, self._newest, self._point)

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        x, force = self.course(history)
        chosen = every(history.first, len(x), max(round(self.step * self.info.rate), 1))
        self._all.setData(x[chosen], force[chosen])
        recent = round(_RECENT * self.info.rate)
        self._newest.setData(x[-recent:].copy(), force[-recent:].copy())
        self._point.setData(x[-1:].copy(), force[-1:].copy())
        grown = self._far.follow(float(np.abs(x).max())), self._top.follow(float(np.abs(force).max()))
        if any(grown):
            self._show_range()


class SpeedPanel(ForcePlot):
    """Plot of friction force over sliding speed, together with the curve of the law."""

    name = "force_over_speed"
    title = "Force over speed"
    about = (
        "The friction force over the sliding speed: what was rendered (line; the newest 0.4 s bold) on what the law "
        "says (dashed); in a scene, what it says where the contact is. While the contact sticks the speed is zero and "
        "the force anything up to the level at rest."
    )
    entries = ((Sign.DASH, "text", "law"), (Sign.LINE, "motion", "rendered"), (Sign.WIDE, "friction", "newest"))
    columns = (("time_s", Column.TIME), ("sliding_speed_mm_per_s", Column.SLIDING), ("friction_n", Column.FRICTION))
    step, least, below = 0.004, 20.0, (0.02, 0.0)

    def __init__(self) -> None:
        super().__init__("sliding speed", "mm/s", "sliding speed [mm/s]", 92)
        self.law = LawCurves()
        self._values: dict[str, float] = {}
        self._scene: Scene | None = None
        self._laws = [curve(self.chart) for _ in range(_MOST_CURVES)]
        for item in self._laws:
            item.setZValue(-1)
            item.setSegmentedLineMode("off")  # in segmented mode, the dash pattern would restart at every point
            self.add_stroke(item, "text", 2, dashed=True)

    def course(self, history: History) -> tuple[Floats, Floats]:
        """Return sliding speed [mm/s] and friction force [N]."""
        return history.column(Column.SLIDING), history.column(Column.FRICTION)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._scene = info.scene
        self.law.clear()
        clear(*self._laws)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update the parameters of the law that is drawn."""
        self._values = dict(values)
        self._scene = None if self.info.scene is None else with_background(self.info.scene, values)

    def refresh_texts(self, feed: Feed) -> None:
        """Request the law in force, draw the available curves, and label them."""
        super().refresh_texts(feed)
        numbers = {key.partition(".")[2]: value for key, value in self._values.items() if key.startswith("law.")}
        table = {"name": self.info.law, **self.info.law_settings, **numbers}
        place = place_of(feed.history) if self._scene is not None else None
        self.law.request(CurveRequest(tuple(sorted(table.items())), self._far.top, place, self._scene))
        found = self.law.found
        for number, item in enumerate(self._laws):
            item.setData(*(found[number] if number < len(found) else (np.zeros(0), np.zeros(0))))
        region = round(feed.history.newest(Column.REGION))
        here = "" if self._scene is None else f" in {region_name(self._scene, region)}"
        self.key.texts[0].setText("no law" if not found else "law here" if here else "law")
        self.key.texts[0].setToolTip(f"{self.info.law}{here}")


class DisplacementPanel(ForcePlot):
    """Plot of friction force over displacement (hysteresis loops) along the main direction of motion."""

    name = "force_over_displacement"
    title = "Force over displacement"
    about = (
        "Hysteresis: the friction force along the direction in which the end effector moved most, over its "
        "displacement in that direction from the middle of the workspace. The area of a loop is the energy it took. "
        "Zoom into a turning point to see the element being wound up before it slides."
    )
    entries = ((Sign.LINE, "motion", "rendered"), (Sign.WIDE, "friction", "newest"))
    step, least = 0.002, 5.0

    def __init__(self) -> None:
        self._axis: Floats = np.array([1.0, 0.0])
        self._middle: Floats = np.zeros(2)
        super().__init__("displacement", "mm", "displacement along 0° [mm]", 100)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._middle = 1e3 * np.mean(info.workspace, axis=0)

    def course(self, history: History) -> tuple[Floats, Floats]:
        """Return displacement [mm] and friction force [N] along the main direction of motion."""
        x, y = history.column(Column.X) - self._middle[0], history.column(Column.Y) - self._middle[1]
        self._axis = _main_axis(x, y, self._axis)
        across, up = self._axis
        force = across * history.column(Column.FRICTION_X) + up * history.column(Column.FRICTION_Y)
        return across * x + up * y, force

    def refresh_texts(self, feed: Feed) -> None:
        """Show the direction of the displacement in the axis label."""
        super().refresh_texts(feed)
        degrees = math.degrees(math.atan2(self._axis[1], self._axis[0]))
        self.chart.plotItem.setLabel("bottom", f"displacement along {degrees:.0f}° [mm]")

    def table(self, history: History) -> Table:
        """Return time, and displacement and friction force along the main direction, of the window."""
        place, force = self.course(history)
        return {"time_s": history.column(Column.TIME), "displacement_mm": place, "friction_along_n": force}


def _main_axis(x: Floats, y: Floats, previous: Floats) -> Floats:
    """Return the direction, (2,), of the largest variance of motion along (x, y).

    Its sign follows `previous`, which is returned if there is no motion.
    """
    if len(x) < 2:
        return previous
    (xx, xy), (_, yy) = np.cov(x, y)
    if not xx + yy > 0:
        return previous
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    axis = np.array([np.cos(angle), np.sin(angle)])
    return axis if axis @ previous >= 0 else -axis


class SpectrumPanel(Plot):
    """Plot of the amplitude spectral density of the forces, which shows tremor, ringing, and buzz of the contact."""

    name = "spectrum"
    title = "Spectrum"
    about = (
        "Amplitude spectral density of the friction force and of the force that is sent (or measured), both components "
        "together, by Welch's method over what is shown. A peak is a vibration: a ringing grip, a buzz, a tremor."
    )
    entries = ((Sign.WIDE, "friction", "friction"), (Sign.LINE, "force", "command"))

    def __init__(self) -> None:
        super().__init__()
        self.chart: Any = chart("[N/√Hz]", "frequency [Hz]")
        self.method = Lines(faint=True)
        self.method.setWordWrap(True)
        self.add_charts((self.chart, 90, 1), below=[self.method])
        self._curves = curve(self.chart), curve(self.chart)
        for item, (_, role, _), width in zip(self._curves, self.entries, (2.5, 1), strict=True):
            self.add_stroke(item, role, width)
        self._found: list[Spectrum | None] = [None, None]
        self.add_cursors(Cursors(self.charts, ("log₁₀ of frequency", "Hz"), self.readings))
        self._set_axes()

    def _set_axes(self) -> None:
        axes, half = self.chart.getPlotItem(), self.info.rate / 2
        marks = [(float(np.log10(step * 10**power)), step, power) for power in range(5) for step in (1, 2, 5)]
        axes.getAxis("bottom").setTicks([[(at, f"{step * 10**power:g}") for at, step, power in marks]])
        axes.getAxis("left").setTicks([[(float(p), f"10{str(p).translate(_POWERS)}") for p in _DECADES]])
        box_of(self.chart).show_range((0.0, float(np.log10(half))), (-5.0, 1.0))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self.key.texts[1].setText(info.force_name)
        self._found = [None, None]
        clear(*self._curves)
        self.method.set_lines("")
        self._set_axes()

    def _spectra(self, history: History) -> list[Spectrum | None]:
        """Return the spectra of the friction force, and of the command or measured force."""
        vectors = ((Column.FRICTION_X, Column.FRICTION_Y), (Column.VECTOR_X, Column.VECTOR_Y))
        return [welch(history.column(x), history.column(y), self.info.rate) for x, y in vectors]

    def refresh_texts(self, feed: Feed) -> None:
        """Compute and draw the spectra of the window; describe the method, the peak and missing ticks."""
        history = feed.history
        self._found = self._spectra(history)
        for item, found in zip(self._curves, self._found, strict=True):
            if found is not None:
                amplitude = np.maximum(np.sqrt(found.density[1:]), _FLOOR)
                item.setData(np.log10(found.frequency[1:]), np.log10(amplitude))
        friction, force = self._found
        if friction is not None:
            words = friction.method
            fast = force.frequency >= 5.0 if force is not None else np.zeros(1, bool)  # above the motion of the hand
            if force is not None and fast.any() and force.density[fast].max() > _FLOOR**2:
                peak = force.frequency[fast][force.density[fast].argmax()]
                words += f"; largest above 5 Hz: {peak:.3g} Hz"
            missing = int(np.count_nonzero(np.diff(history.column(Column.TIME)) > 1.5 / self.info.rate))
            words += f"; {missing} gaps were closed up" if missing else ""
            self.method.set_lines(f"{words}.")
        super().refresh_texts(feed)

    def readings(self) -> list[Reading]:
        """Return frequency and both densities over the logarithm of the frequency."""
        readings: list[Reading] = []
        for found, name in zip(self._found, ("friction", self.info.force_name), strict=True):
            if found is not None:
                where = np.log10(found.frequency[1:])
                if not readings:
                    readings.append(Reading("frequency", "Hz", where, found.frequency[1:]))
                readings.append(Reading(name, "N/√Hz", where, np.sqrt(found.density[1:])))
        return readings

    def table(self, history: History) -> Table:
        """Return frequency and the power spectral densities."""
        friction, force = self._spectra(history)
        if friction is None or force is None:
            return {}
        return {
            "frequency_hz": friction.frequency,
            "friction_n2_per_hz": friction.density,
            "force_n2_per_hz": force.density,
        }


class TimingPanel(Plot):
    """Histograms of the timing of the servo, start delay (jitter) and computation time, with quantiles."""

    name = "start_delay"
    title = "Start delay"
    about = (
        "How late the ticks started (filled: those that are shown, thin line: the whole run) and how long their "
        "computation took (wide line). What lies outside the axis is in its first and last bin."
    )
    entries = (
        (Sign.BAND, "motion", "shown"),
        (Sign.LINE, "text", "whole run"),
        (Sign.WIDE, "friction", "computation"),
        (Sign.DASH, "faint", "one period"),
    )

    def __init__(self) -> None:
        super().__init__(key_below=True)
        self.quantiles = label("", 10)
        self.head.addStretch(1)
        self.head.addWidget(self.quantiles)
        self.chart: Any = chart("ticks", "")
        axes = self.chart.getPlotItem()
        named = ((-1, "0.1 µs"), (0, "1 µs"), (1, "10 µs"), (2, "100 µs"), (3, "1 ms"), (4, "10 ms"))
        minor = [(decade + np.log10(step), "") for decade in range(-1, 4) for step in range(2, 10)]
        axes.getAxis("bottom").setTicks([list(named), minor])
        # Counts are on a logarithmic axis, as log(1 + n), so that one late tick in a million is visible. Labels are
        # short, because hours at 8 kHz are tens of millions of ticks.
        words = ("1", "10", "100", "1k", "10k", "100k", "1M", "10M", "100M")
        ticks = [(float(np.log10(1 + 10**power)), word) for power, word in enumerate(words)]
        axes.getAxis("left").setTicks([ticks])
        box_of(self.chart).show_range((-1.12, 4.12), (0.0, 4.2))
        edges, nothing = Durations.EDGES, np.zeros(len(Durations.EDGES) - 1)
        # A step curve without data raises an error when it is painted, so all curves start with data.
        self._steps: dict[str, Any] = {}
        for name, fill in (("shown", {"fillLevel": 0}), ("computation", {}), ("run", {})):
            item = pg.PlotCurveItem(edges, nothing, stepMode="center", skipFiniteCheck=True, **fill)
            self.chart.addItem(item, ignoreBounds=True)
            self._steps[name] = item
        self._period = axes.addLine(x=3.0)
        self._steps["shown"].setPen(None)
        self.add_fill(self._steps["shown"], "motion", 0.65)
        self.add_stroke(self._steps["run"], "text")
        self.add_stroke(self._steps["computation"], "friction", 2)
        self.add_stroke(self._period, "faint", dashed=True)
        self.add_charts((self.chart, 80, 1))
        self._counts = dict.fromkeys(("shown", "run", "computation"), Durations().counts)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._period.setValue(float(np.log10(1e6 / info.rate)))
        self.quantiles.setText("")
        self._draw(Counts(), Durations().counts)

    def refresh_texts(self, feed: Feed) -> None:
        """Draw the histograms of `feed`."""
        super().refresh_texts(feed)
        recent = feed.history.column(Column.LATENESS)
        if not len(recent):
            return
        self._draw(feed.counts, Durations.histogram(recent))
        half, most = np.percentile(recent, (50, 99))
        named = (("p50", half), ("p99", most), ("max", feed.counts.lateness.maximum))
        self.quantiles.setText("\u2002·\u2002".join(f"{name} {microseconds(value)}" for name, value in named))
        self.quantiles.setToolTip("p50 and p99 of the ticks that are shown, the maximum of the whole run")

    def _draw(self, counts: Counts, recent: Any) -> None:
        run, work = counts.lateness.counts.copy(), counts.tick_times.counts.copy()
        self._counts = {"shown": recent, "run": run, "computation": work}
        for name, item in self._steps.items():
            item.setData(Durations.EDGES, np.log10(1.0 + self._counts[name]), stepMode="center")
        largest = max(run.max(), work.max())
        box_of(self.chart).show_range(y=(0.0, max(round(float(np.log10(1.0 + largest)), 1) + 0.3, 3.2)))

    def table(self, history: History) -> Table:
        """Return the edges of the bins and the number of ticks in each."""
        edges = 10.0**Durations.EDGES
        ticks = {f"{name}_ticks": counts.astype(np.float64) for name, counts in self._counts.items()}
        return {"from_us": edges[:-1], "to_us": edges[1:], **ticks}
