"""Plot of the region of the contact and of the normal force against walls over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.front_ends.run import RunInfo, region_name
from apps.shared.theme import Theme
from apps.view.feed import Feed
from apps.view.history import Column, History
from apps.view.panels.charts import Key, Sign, label_below, pen
from apps.view.plots.cursors import Cursors, Reading
from apps.view.plots.plot import Plot, Table, ages, box_of, least_height
from apps.view.plots.strip import Strip, bin_size
from apps.view.qt import QtCore, QtGui, font, label, px

if TYPE_CHECKING:
    from haptics.scenes import Scene

_AXIS = "seconds before now"

_MOST_NAMES = 6
"""Maximum number of regions labelled with names; otherwise only numbers are shown."""

_NAME_WIDTH = 48
"""Width of a region's name at the axis [pixel on an ordinary screen]."""


class ContactPanel(Plot):
    """Plot of region and normal force."""

    name = "contact"
    title = "Region, normal force"
    about = (
        "Of a run on a scene: the region in which the contact is (0 is the background), and the force with which it is "
        "pressed against walls, of which their friction is a share. Bands: the contact sticks."
    )

    def __init__(self) -> None:
        super().__init__()
        self._key = Key((Sign.LINE, "motion", "region"), (Sign.WIDE, "force", "normal"), (Sign.BAND, "stick", "stick"))
        self.head.addWidget(self._key)
        self.regions = Strip("", "", 1, 1.5, floor=-0.5)
        self.normal = Strip("[N]", _AXIS, 1, 1.0)
        self.charts = [self.regions.chart, self.normal.chart]
        for shown in self.charts:
            box_of(shown).link(tuple(box_of(other) for other in self.charts))
            least_height(shown, 60)
        self.finish()
        self.here = label("")
        for widget in (self.here, *self.charts):
            self.body.addWidget(widget, 0 if widget is self.here else 1)
        self.measure(Cursors(self.charts, ("time", "s"), self.readings))

    def configure(self, info: RunInfo) -> None:
        """Clear the plot and prepare it for a run."""
        super().configure(info)
        self.normal.reset(1.0)
        self._lay_out(info)
        self._show_region(0)

    def show_scene(self, scene: Scene | None) -> None:
        """Adapt the axes to the regions and walls of another scene."""
        super().show_scene(scene)
        self._lay_out(self.info)

    def _lay_out(self, info: RunInfo) -> None:
        """Show an axis for regions and an axis for walls, as far as the scene has them."""
        regions = len(info.scene.regions) if info.scene is not None else 0
        walls = info.scene is not None and len(info.scene.walls) > 0
        self.regions.reset(max(regions, 1) + 0.5)
        self.regions.chart.setVisible(regions > 0 or not walls)
        self.normal.chart.setVisible(walls)
        label_below(self.regions.chart, "" if walls else _AXIS)
        self._name_regions(info)

    def _name_regions(self, info: RunInfo) -> None:
        """Label the axis with the names of the regions if there are few."""
        axis = self.regions.chart.getPlotItem().getAxis("left")
        count = len(info.scene.regions) if info.scene is not None else 0
        if info.scene is None or count > _MOST_NAMES:
            axis.setTicks(None)
            return
        metrics, mode = QtGui.QFontMetrics(font(10)), QtCore.Qt.TextElideMode.ElideRight
        names = [metrics.elidedText(region_name(info.scene, k), mode, px(_NAME_WIDTH)) for k in range(count + 1)]
        axis.setTicks([list(enumerate(names))])

    def _show_region(self, region: int) -> None:
        """Show the name of the region of the contact."""
        scene = self.info.scene
        words = f"now in: {region_name(scene, region)}" if scene is not None else "This run is not on a scene."
        self.here.setText(words)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        super().apply(theme)
        self._key.apply(theme)
        for strip, colour, width in ((self.regions, theme.motion, 2.0), (self.normal, theme.force, 3.0)):
            strip.apply(theme)
            strip.curves[0].setPen(pen(colour, width))

    def draw(self, history: History) -> None:
        """Draw the rows of `history`."""
        age, size, span = ages(history), bin_size(history), history.capacity / self.info.rate
        for strip, column in ((self.regions, Column.REGION), (self.normal, Column.NORMAL)):
            values = history.column(column)
            strip.draw(0, age, values, history.first, size)
            strip.follow(float(values.max()), span)
            strip.shade(history, self.info.rate)

    def refresh_texts(self, feed: Feed) -> None:
        """Show the present region of the contact."""
        super().refresh_texts(feed)
        self._show_region(round(feed.history.newest(Column.REGION)))

    def readings(self) -> list[Reading]:
        """Return region and normal force over time."""
        age = ages(self.history)
        named = (("region", "1", Column.REGION), ("normal force", "N", Column.NORMAL))
        return [Reading(name, unit, age, self.history.column(column)) for name, unit, column in named]

    def table(self, history: History) -> Table:
        """Return time, region and normal force of the window."""
        names = {"time_s": Column.TIME, "region": Column.REGION, "normal_force_n": Column.NORMAL}
        return {name: history.column(column) for name, column in names.items()}
