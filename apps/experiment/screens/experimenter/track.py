"""Plot of the tracks: level over trial, right and wrong answers, reversals."""

from __future__ import annotations

import html
from typing import Any

from apps.experiment.screens.experimenter.tracks import Track, Tracks, reversals
from apps.experiment.screens.messages import Outcome, SessionOutline
from apps.shared.theme import DARK, Theme
from apps.view.panels.charts import Key, Panel, Sign, brush, chart, dress_chart, pen
from apps.view.qt import QtCore, label, pg

_SYMBOLS = ("o", "s", "t", "d")
_ROLES = ("motion", "stick", "friction", "force")

HIDDEN = "Blind: condition, level, track, outcome and force stay hidden until the session is decoded."


class TrackPanel(Panel):
    """Level over trial, with a symbol and a colour for each track."""

    def __init__(self) -> None:
        super().__init__("Tracks")
        self._theme, self._plan = DARK, SessionOutline("", "", 1, 1, None)
        self._tracks = Tracks()
        self._items: list[Any] = []
        self.names = label("", 10, faint=True)
        self.hidden = label(HIDDEN, 12)
        self.hidden.setWordWrap(True)
        self.hidden.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.chart: Any = chart("level", "trial")
        self._key = Key((Sign.DISC, "text", "right"), (Sign.RING, "text", "wrong"), (Sign.RING, "notice", "reversal"))
        self.head.addWidget(self.names, 1)
        self.head.addWidget(self._key)
        self.body.addWidget(self.chart, 1)
        self.body.addWidget(self.hidden, 1)
        self.configure(self._plan)

    @property
    def tracks(self) -> dict[str, Track]:
        """Plotted tracks by name."""
        return self._tracks.all

    def configure(self, plan: SessionOutline) -> None:
        """Clear the plot for a new session."""
        self._plan, self._tracks = plan, Tracks()
        for widget in (self.chart, self.names, self._key):
            widget.setVisible(not plan.blind)
        self.hidden.setVisible(plan.blind)
        unit = f" [{plan.unit}]" if plan.unit else ""
        self.chart.plotItem.setLabel("left", "" if plan.blind else f"{plan.axis or 'level'}{unit}")
        self._draw()

    def add_trial(self, outcome: Outcome) -> None:
        """Add a trial."""
        if not self._plan.blind and self._tracks.add_outcome(outcome):
            self._draw()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        dress_chart(self.chart, theme)
        self._key.apply(theme)
        self._draw()

    def _draw(self) -> None:
        for item in self._items:
            self.chart.removeItem(item)
        self._items = []
        for number, track in enumerate(self.tracks.values()):
            self._draw_track(track, _SYMBOLS[number % 4], getattr(self._theme, _ROLES[number % 4]))
        names = enumerate(self.tracks)
        self.names.setText("   ".join(self._named(number, name) for number, name in names))
        trials = [trial for track in self.tracks.values() for trial in track.trials] or [1]
        levels = [level for track in self.tracks.values() for level in track.levels] or [1.0]
        last = max(trials[-1] + 2, self._plan.trials or 0, max(trials) + 2, 10)
        self.chart.getViewBox().setRange(xRange=(0, last), yRange=(0, 1.15 * max(levels)), padding=0)

    def _named(self, number: int, name: str) -> str:
        colour = getattr(self._theme, _ROLES[number % 4])
        return f"<span style='color:{colour}'>{'●■▼◆'[number % 4]}</span> {html.escape(name)}"

    def _draw_track(self, track: Track, symbol: str, colour: str) -> None:
        theme = self._theme
        line = pg.PlotDataItem(track.trials, track.levels, pen=pen(colour, 1.5))
        fills = [brush(colour if right else theme.panel) for right in track.correct]
        dots = pg.ScatterPlotItem(
            track.trials, track.levels, symbol=symbol, size=9, pen=pen(colour, 1.5), brush=fills, pxMode=True
        )
        self._items += [line, dots]
        turns = reversals(track.levels) if self._plan.staircase else []
        if turns:
            places = [track.trials[turn] for turn in turns], [track.levels[turn] for turn in turns]
            ring = pg.ScatterPlotItem(*places, symbol="o", size=18, pen=pen(theme.notice, 2), brush=None, pxMode=True)
            self._items.append(ring)
        for item in self._items[-3:]:
            if item.scene() is None:
                self.chart.addItem(item, ignoreBounds=True)
