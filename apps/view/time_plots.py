"""Plots over time: forces and speed, energies, components of the motion, and contact with a scene."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from apps.front_ends.run import RunInfo, levels, region_name, runs
from apps.shared.display import AxisTop
from apps.view.charts import Sign, box_of, chart, clear, curve, label_below, pen
from apps.view.feed import SPAN, Feed
from apps.view.history import Column, Floats, History, averages, envelope
from apps.view.laws import levels_at, place_of, with_background
from apps.view.plot import Cursors, Plot, Reading, Table
from apps.view.qt import QtCore, QtGui, QtWidgets, current_theme, font, label, px
from haptics.device import Causality

if TYPE_CHECKING:
    from haptics.scenes import Scene

POINTS = 500
"""Number of bins across a chart: about one per pixel."""

_AXIS = "seconds before now"

_LEAST_MOTION = (5.0, 20.0, 1.0, 1.0)
"""Minimum height of each axis of the motion, in its unit."""

_MOST_NAMES = 6
"""Maximum number of regions labelled with names; otherwise only numbers are shown."""

_NAME_WIDTH = 48
"""Width of a region's name at the axis [pixel on an ordinary screen]."""


class Strip:
    """One chart over time, with curves, shaded phases of sticking, and axes that follow the data.

    Parameters
    ----------
    left, bottom : str
        Labels of the axes.
    curves : int
        Number of curves.
    least : float
        Minimum upper end of the y axis.
    signed : bool
        Whether values may be negative; if so, the lower end of the axis follows them.
    floor : float
        Lower end of the y axis for non-negative values.

    Attributes
    ----------
    phases : QGraphicsPathItem
        Shaded phases of sticking.
    levels : tuple of float
        Further values that the y axis includes.
    """

    def __init__(
        self, left: str, bottom: str, curves: int, least: float, signed: bool = False, floor: float = 0.0
    ) -> None:
        self.chart: Any = chart(left, bottom)
        self.phases = QtWidgets.QGraphicsPathItem()
        self.phases.setPen(QtGui.QPen(QtCore.Qt.PenStyle.NoPen))
        self.chart.addItem(self.phases, ignoreBounds=True)
        self.curves = [curve(self.chart) for _ in range(curves)]
        self._signed, self._floor = signed, floor
        self.levels: tuple[float, ...] = ()
        self.reset(least)

    def reset(self, least: float) -> None:
        """Clear the chart."""
        self._span = SPAN
        self._top, self._bottom = AxisTop(least), AxisTop(least)
        self.phases.setPath(QtGui.QPainterPath())
        clear(*self.curves)
        self._set_range()

    def _set_range(self) -> None:
        self._low = -self._bottom.top if self._signed else self._floor
        box_of(self.chart).show_range((-self._span, 0.0), (self._low, self._top.top))

    def draw(self, history: History, span: float, *curves: Floats) -> None:
        """Draw curves of the last `span` [s] through the extremes of every bin of rows, and adapt the axes to them."""
        age, size = ages(history), max(history.capacity // POINTS, 1)
        for item, values in zip(self.curves, curves, strict=False):
            places, extremes = envelope(values, history.first, size)
            item.setData(age[places.astype(np.intp)], extremes)
        changed = self._top.follow(max((*(float(values.max()) for values in curves), *self.levels)))
        changed = (self._signed and self._bottom.follow(-min(float(values.min()) for values in curves))) or changed
        if changed or span != self._span:
            self._span = span
            self._set_range()

    def shade(self, history: History, rate: float) -> None:
        """Shade the time in which the contact sticks."""
        age, rests = ages(history), runs(history.column(Column.STICKING))
        path = QtGui.QPainterPath()
        starts, stops = age[rests.start].tolist(), (age[rests.stop - 1] + 1.0 / rate).tolist()
        for start, stop in zip(starts, stops, strict=True):
            path.addRect(QtCore.QRectF(start, self._low, stop - start, self._top.top - self._low))
        self.phases.setPath(path)


def ages(history: History) -> Floats:
    """Return the time of each row relative to the newest row of the window [s]."""
    return np.asarray(history.column(Column.TIME) - history.newest(Column.TIME))


Quantity = tuple[str, str, Floats]
"""Name, unit, and values over time."""


class TimePlot(Plot):
    """Base class of the plots over time, newest at the right edge.

    Attributes
    ----------
    strips : tuple of Strip
        Charts, from top to bottom.
    """

    strips: tuple[Strip, ...]
    shaded: ClassVar[bool] = True
    """Whether the time in which the contact sticks is shaded."""

    def add_strips(self, *strips: tuple[Strip, int, int]) -> None:
        """Add strips with their minimum heights [pixel on an ordinary screen] and their stretches, and line cursors."""
        self.strips = tuple(strip for strip, _, _ in strips)
        self.add_charts(*((strip.chart, least, stretch) for strip, least, stretch in strips))
        for strip in self.strips:
            self.add_fill(strip.phases, "stick", 0.22)
        self.add_cursors(Cursors(self.charts, ("time", "s"), self.readings))

    def quantities(self, history: History) -> list[list[Quantity]]:
        """Return the quantities that each strip draws, and that cursors can read."""
        raise NotImplementedError

    def readings(self) -> list[Reading]:
        """Return the quantities over time."""
        age = ages(self.history)
        shown = itertools.chain.from_iterable(self.quantities(self.history))
        return [Reading(name, unit, age, values) for name, unit, values in shown]

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        for strip, group in zip(self.strips, self.quantities(history), strict=True):
            strip.draw(history, history.capacity / self.info.rate, *(values for _, _, values in group))
            if self.shaded:
                strip.shade(history, self.info.rate)


class SeriesPanel(TimePlot):
    """Plot of force and speed over time, with phases of sticking shaded."""

    name = "force_and_speed"
    title = "Force, speed"
    about = (
        "Norms against time: the friction force, the force that is sent (or measured), the level of the law (in a "
        "scene that where the contact is now), and the speed with its mean over 20 ms. Bands: the contact sticks."
    )
    entries = (
        (Sign.WIDE, "friction", "friction"),
        (Sign.LINE, "force", "command"),
        (Sign.DASH, "text", "law"),
        (Sign.BAND, "stick", "stick"),
    )
    columns = (
        ("time_s", Column.TIME),
        ("friction_n", Column.FRICTION),
        ("force_n", Column.FORCE),
        ("speed_mm_per_s", Column.SPEED),
        ("sticking", Column.STICKING),
    )

    def __init__(self) -> None:
        super().__init__()
        self._scene: Scene | None = None
        self._level_lines: list[Any] = []
        self.forces = Strip("[N]", "", 2, 1.0)
        self.speeds = Strip("[mm/s]", _AXIS, 2, 20.0)
        self.add_strips((self.forces, 61, 6), (self.speeds, 76, 5))  # the least heights with readable axes
        friction, force = self.forces.curves
        samples, mean = self.speeds.curves
        self.add_stroke(friction, "friction", 3)
        self.add_stroke(force, "force")
        self.add_stroke(samples, "motion", share=0.4)
        self.add_stroke(mean, "motion", 2)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._scene = info.scene
        self.key.texts[1].setText(info.force_name)
        self.forces.reset(1.25 * info.force_scale)
        self.speeds.reset(20.0)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Draw the levels of the law as dashed horizontal lines."""
        self.forces.levels = levels(values)
        self._scene = None if self.info.scene is None else with_background(self.info.scene, values)
        self._draw_levels()

    def refresh_texts(self, feed: Feed) -> None:
        """Update the levels of the law at the contact if there is a scene."""
        super().refresh_texts(feed)
        if self._scene is not None and len(feed.history):
            self.forces.levels = levels_at(self._scene, place_of(feed.history))
            self._draw_levels()

    def _draw_levels(self) -> None:
        shown = self.forces.levels
        while len(self._level_lines) < len(shown):
            line = self.forces.chart.plotItem.addLine(y=0.0, pen=pen(current_theme().text, dashed=True))
            line.setZValue(5)
            self.add_stroke(line, "text", dashed=True)
            self._level_lines.append(line)
        for number, line in enumerate(self._level_lines):
            line.setVisible(number < len(shown))
            if number < len(shown):
                line.setValue(shown[number])

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        super().draw(history)
        # A speed from an encoder is quantized; the mean over 20 ms is easier to read.
        size = max(round(0.02 * self.info.rate), 1)
        middles, values = averages(history.column(Column.SPEED), history.first, size)
        self.speeds.curves[1].setData(ages(history)[middles.astype(np.intp)], values)

    def quantities(self, history: History) -> list[list[Quantity]]:
        """Return both forces and the speed."""
        friction, force, speed = (history.column(one) for one in (Column.FRICTION, Column.FORCE, Column.SPEED))
        return [[("friction", "N", friction), (self.info.force_name, "N", force)], [("speed", "mm/s", speed)]]


class LedgerPanel(TimePlot):
    """Plot of the energies: work of the hand, dissipated, stored, and injected by the loop."""

    name = "energy"
    title = "Energy"
    about = (
        "Energies since the left edge of the plot: the work that the moving end effector gave to the element, what "
        "sliding dissipated, what its spring holds, and what the loop injected beyond that, as recorded. Work is "
        "stored, or dissipated by sliding or by the damper of the element; what the loop injects should stay near zero."
    )
    entries = (
        (Sign.LINE, "motion", "work"),
        (Sign.WIDE, "friction", "dissipated"),
        (Sign.LINE, "stick", "stored"),
        (Sign.LINE, "force", "injected"),
    )
    shaded = False

    def __init__(self) -> None:
        super().__init__()
        self._stiffness = 0.0
        self.strip = Strip("[mJ]", _AXIS, len(self.entries), 1.0, signed=True)
        self.add_strips((self.strip, 100, 1))
        for item, (_, role, _), width in zip(self.strip.curves, self.entries, (2.0, 3.0, 2.0, 1.5), strict=True):
            self.add_stroke(item, role, width)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self.strip.reset(1.0)

    def show_values(self, values: Mapping[str, float]) -> None:
        """Update the stiffness of the element, if it has one."""
        self._stiffness = values.get("element.stiffness", 0.0)

    def quantities(self, history: History) -> list[list[Quantity]]:
        """Return work, dissipated, stored and injected energy in the window [mJ]."""
        work, dissipated = (history.column(column) for column in (Column.WORK, Column.DISSIPATED))
        # Half of N/m times square millimetres is in microjoules.
        stored = 0.5e-3 * self._stiffness * history.column(Column.STRETCH) ** 2
        return [
            [
                ("work of the hand", "mJ", work - work[:1]),
                ("dissipated", "mJ", dissipated - dissipated[:1]),
                ("stored", "mJ", stored),
                ("injected by the loop", "mJ", history.column(Column.ENERGY)),
            ]
        ]

    def table(self, history: History) -> Table:
        """Return time and energies of the window."""
        names = ("work_mj", "dissipated_mj", "stored_mj", "injected_mj")
        energies = (values for _, _, values in self.quantities(history)[0])
        return {"time_s": history.column(Column.TIME), **dict(zip(names, energies, strict=True))}


class MotionPanel(TimePlot):
    """Plot of position, velocity, force, and command in four charts with x and y components."""

    name = "motion"
    title = "Position, velocity, force, command"
    about = (
        "Both components against time: position and velocity of the end effector, the friction force (or the measured "
        "hand force, where the device takes positions) and the command. The charts zoom together along time."
    )
    entries = ((Sign.LINE, "motion", "x"), (Sign.WIDE, "stick", "y"))
    shaded = False

    def __init__(self) -> None:
        super().__init__()
        strips = [Strip("", "", 2, least, signed=True) for least in _LEAST_MOTION]
        label_below(strips[-1].chart, _AXIS)
        self.add_strips(*((strip, 34, 1) for strip in strips))
        self.body.setSpacing(0)
        for strip in strips:
            along, up = strip.curves
            self.add_stroke(along, "motion")
            self.add_stroke(up, "stick", 2)
        self._name_axes()

    def _name_axes(self) -> None:
        admittance = self.info.causality == Causality.ADMITTANCE
        self._shown = (
            ("position", "mm", Column.X),
            ("velocity", "mm/s", Column.VELOCITY_X),
            ("hand force", "N", Column.MEASURED_X) if admittance else ("friction", "N", Column.FRICTION_X),
            ("reference", "mm", Column.COMMAND_X) if admittance else ("command", "N", Column.COMMAND_X),
        )
        for strip, (name, unit, _) in zip(self.strips, self._shown, strict=True):
            strip.chart.plotItem.setLabel("left", f"[{unit}]")
            strip.chart.setToolTip(f"{name} [{unit}]: x thin, y wide\n{self.about}")

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self._name_axes()
        for strip, least in zip(self.strips, _LEAST_MOTION, strict=True):
            strip.reset(least)

    def quantities(self, history: History) -> list[list[Quantity]]:
        """Return both components of all quantities."""
        return [
            [(f"{name} {axis}", unit, history.column(Column(first + k))) for k, axis in enumerate("xy")]
            for name, unit, first in self._shown
        ]

    def table(self, history: History) -> Table:
        """Return time and all quantities of the window."""
        table = {"time_s": history.column(Column.TIME)}
        for name, unit, values in itertools.chain.from_iterable(self.quantities(history)):
            table[f"{name}_{unit}".lower().replace(" ", "_").replace("/", "_per_")] = values
        return table


class ContactPanel(TimePlot):
    """Plot of the region of the contact and of the normal force against walls."""

    name = "contact"
    title = "Region, normal force"
    about = (
        "Of a run on a scene: the region in which the contact is (0 is the background), and the force with which it is "
        "pressed against walls, of which their friction is a share. Bands: the contact sticks."
    )
    entries = ((Sign.LINE, "motion", "region"), (Sign.WIDE, "force", "normal"), (Sign.BAND, "stick", "stick"))
    columns = (("time_s", Column.TIME), ("region", Column.REGION), ("normal_force_n", Column.NORMAL))

    def __init__(self) -> None:
        super().__init__()
        self.regions = Strip("", "", 1, 1.5, floor=-0.5)
        self.normal = Strip("[N]", _AXIS, 1, 1.0)
        self.here = label("")
        self.body.addWidget(self.here)
        self.add_strips((self.regions, 60, 1), (self.normal, 60, 1))
        self.add_stroke(self.regions.curves[0], "motion", 2.0)
        self.add_stroke(self.normal.curves[0], "force", 3.0)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self.normal.reset(1.0)
        self._show_axes(info.scene)
        self._show_region(0)

    def change(self, info: RunInfo) -> None:
        """Adapt the axes to the regions and walls of another scene."""
        if info.scene is not self.info.scene:
            self._show_axes(info.scene)
        super().change(info)

    def _show_axes(self, scene: Scene | None) -> None:
        """Show an axis for regions, with their names if there are few, and for walls, as far as the scene has them."""
        regions = len(scene.regions) if scene is not None else 0
        walls = scene is not None and len(scene.walls) > 0
        self.regions.reset(max(regions, 1) + 0.5)
        self.regions.chart.setVisible(regions > 0 or not walls)
        self.normal.chart.setVisible(walls)
        label_below(self.regions.chart, "" if walls else _AXIS)
        axis = self.regions.chart.getPlotItem().getAxis("left")
        if scene is None or regions > _MOST_NAMES:
            axis.setTicks(None)
            return
        metrics, mode = QtGui.QFontMetrics(font(10)), QtCore.Qt.TextElideMode.ElideRight
        names = [metrics.elidedText(region_name(scene, k), mode, px(_NAME_WIDTH)) for k in range(regions + 1)]
        axis.setTicks([list(enumerate(names))])

    def _show_region(self, region: int) -> None:
        """Show the name of the region of the contact."""
        scene = self.info.scene
        words = f"now in: {region_name(scene, region)}" if scene is not None else "This run is not on a scene."
        self.here.setText(words)

    def refresh_texts(self, feed: Feed) -> None:
        """Show the present region of the contact."""
        super().refresh_texts(feed)
        self._show_region(round(feed.history.newest(Column.REGION)))

    def quantities(self, history: History) -> list[list[Quantity]]:
        """Return region and normal force."""
        return [
            [("region", "1", history.column(Column.REGION))],
            [("normal force", "N", history.column(Column.NORMAL))],
        ]
