"""Plot of the plane: path of the end effector and forces, as in the figures of Kikuuwe et al. 2006.

The path is a line while the contact slips. Places of sticking are dots whose size increases with the time spent there.
Thin lines from the path are force vectors, one every 20 ms.
"""

from __future__ import annotations

import numpy as np

from apps.front_ends.run import RunInfo, means, runs
from apps.shared.theme import DARK, Theme
from apps.view.charts import Sign, Swatch, box_of, brush, chart, clear, curve, points
from apps.view.feed import Feed
from apps.view.history import Column, Floats, History, arrow, every, segments
from apps.view.plot import Cursors, Plot
from apps.view.qt import QtCore, QtGui, QtWidgets, label

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
    for x in step * np.arange(np.ceil(lower[0] / step), np.floor(upper[0] / step) + 1):
        path.moveTo(x, lower[1])
        path.lineTo(x, upper[1])
    for y in step * np.arange(np.ceil(lower[1] / step), np.floor(upper[1] / step) + 1):
        path.moveTo(lower[0], y)
        path.lineTo(upper[0], y)
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
        self._theme = DARK
        self._mouse = False
        self._buttons = 0
        self.choice.hide()
        self.state = label("", 13, bold=True)
        self.readout = label("")
        self._arrow_sign = Swatch(Sign.ARROW, "force")
        self.head.addWidget(self.state)
        self.head.addStretch(1)
        self.head.addWidget(self._arrow_sign)
        self.head.addWidget(self.readout)
        self.hint = label("Move the mouse here: it is your hand.", 11, bold=True)
        self.hint.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.hint.hide()
        self.body.addWidget(self.hint)
        self.chart = chart("y [mm]", "x [mm]")
        self.chart.getPlotItem().setAspectLocked(True)
        self._add_items()
        self.add_charts((self.chart, 150, 1))
        self.add_cursors(Cursors(self.charts, ("x", "mm"), up=("y", "mm")))
        self.chart.viewport().setMouseTracking(True)
        self.chart.viewport().installEventFilter(self)

    def _add_items(self) -> None:
        """Add raster, path, vectors, and symbols, the lowest first."""
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

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        self._theme = theme
        self._arrow_sign.apply(theme)
        self._dots.setPen(None)
        self._dots.setBrush(brush(theme.stick, 0.85))
        self._effector.setBrush(brush(theme.text))

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
        self._vectors.setData(*segments(x[chosen], y[chosen], along_x[chosen], along_y[chosen]), connect="pairs")
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
        colour = self._theme.stick if sticking else self._theme.motion
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
