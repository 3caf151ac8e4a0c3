"""Comparison of two runs: the same plots of both, with the same axes and at the same time."""

from __future__ import annotations

from apps.compare.comparison import OPEN_LOOP, Side
from apps.front_ends.run import RunInfo, from_metadata
from apps.shared.theme import Theme, other
from apps.view.charts import Box, Panel, box_of
from apps.view.feed import SAMPLE, ReplayFeed, table_of
from apps.view.plot import Plot
from apps.view.qt import KeyFilter, QtCore, QtGui, QtWidgets, dress, fit, label, lay_out, run_window, timer
from apps.view.time_plots import LedgerPanel, MotionPanel, SeriesPanel
from apps.view.transport import Transport
from apps.view.window import FRAME_MS, LEAST
from apps.view.xy_plots import DisplacementPanel, SpectrumPanel, SpeedPanel

PLOTS: tuple[type[Plot], ...] = (SpeedPanel, SeriesPanel, DisplacementPanel, SpectrumPanel, LedgerPanel, MotionPanel)
"""The plots that can be compared; the first two are shown initially."""


class Column(QtWidgets.QWidget):
    """One run: its title and two plots.

    Parameters
    ----------
    letter : str
        Short name.
    side : Side
        The run.
    warned : bool
        Whether either side has a warning. If so, both reserve space for it, so that the plots are aligned.

    Attributes
    ----------
    chosen : signal (place, title)
        Another plot was selected for a place on both sides.
    """

    chosen = QtCore.Signal(int, str)

    def __init__(self, letter: str, side: Side, warned: bool) -> None:
        super().__init__()
        self.info: RunInfo = from_metadata(side.metadata, table_of(side.source).read(0, SAMPLE))
        self.feed = ReplayFeed(side.source, self.info.rate, self.info.causality)
        head = Panel()
        self.title = label(f"{letter}\u2002{side.title}", 11, bold=True, wrap=True)
        head.body.addWidget(self.title)
        self.warning = label(OPEN_LOOP if side.open_loop else "", 10, bold=True)
        self.warning.setProperty("pending", True)
        self.warning.setVisible(side.open_loop)
        room = self.warning.sizePolicy()
        room.setRetainSizeWhenHidden(warned)
        self.warning.setSizePolicy(room)
        head.body.addWidget(self.warning)
        self._lines = lay_out(QtWidgets.QVBoxLayout(self), head, spacing=6)
        self.plots: list[Plot] = []

    def show_plot(self, place: int, kind: type[Plot], cursors: bool) -> Plot:
        """Show a plot in place 0 or 1."""
        if place < len(self.plots):
            before = self.plots.pop(place)
            self._lines.removeWidget(before)
            before.hide()
            before.deleteLater()
        plot = kind()
        plot.size_button.hide()
        plot.menu_button.hide()
        plot.offer([offered.title for offered in PLOTS])
        plot.chosen.connect(lambda title: self.chosen.emit(place, title))
        self.plots.insert(place, plot)
        self._lines.insertWidget(1 + place, plot, 1)
        plot.prepare(self.info, self.info.values, cursors)
        return plot


class CompareWindow(QtWidgets.QWidget):
    """Window with run A at the left, run B at the right, and one slider for both."""

    def __init__(self, sides: tuple[Side, Side], words: str, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        warned = any(side.open_loop for side in sides)
        self.columns = [Column(letter, side, warned) for letter, side in zip("AB", sides, strict=True)]
        self.transport = Transport(max(len(side.source) for side in sides))
        self.words = label(words, 10, wrap=True)
        row = lay_out(QtWidgets.QHBoxLayout(), *((column, 1) for column in self.columns), spacing=6)
        lay_out(QtWidgets.QVBoxLayout(self), (row, 1), self.transport, self.words, margins=(8, 8, 8, 8), spacing=6)
        self.theme_button = QtWidgets.QToolButton()
        self.theme_button.setToolTip("change between the dark and the light theme")
        self.theme_button.clicked.connect(lambda: self.apply(other(self.theme)))
        self.transport.head.addWidget(self.theme_button)
        self.transport.help.hide()
        self.setMinimumSize(*LEAST)
        fit(self, 1340, 860)
        self.setWindowTitle("haptics: two runs side by side")
        for place in (0, 1):
            self._choose(place, PLOTS[place].title)
        self.transport.slider.valueChanged.connect(self.seek)
        self.transport.button.clicked.connect(self.toggle)
        self.transport.span.currentIndexChanged.connect(lambda _: self.seek(self.transport.slider.value()))
        self.transport.cursors.toggled.connect(self._switch_cursors)
        self.transport.home.clicked.connect(self._home)
        for column in self.columns:
            column.chosen.connect(self._choose)
        self._timer = timer(self, FRAME_MS, self._play_on)
        self._keys = KeyFilter(self._key, repeats=True, parent=self)
        self.apply(theme)
        self.seek(self.transport.slider.maximum())

    def _choose(self, place: int, title: str) -> None:
        """Show a plot in a place of both sides, with the same axes."""
        kind = next(kind for kind in PLOTS if kind.title == title)
        pair = [column.show_plot(place, kind, self.transport.cursors.isChecked()) for column in self.columns]
        boxes = tuple(box_of(shown) for plot in pair for shown in plot.charts)
        for box in boxes:
            box.link(boxes)
        self._draw()

    def _draw(self) -> None:
        for column in self.columns:
            for plot in column.plots:
                plot.refresh(column.feed)
                plot.refresh_texts(column.feed)
        for one, another in zip(self.columns[0].plots, self.columns[1].plots, strict=False):
            for first, second in zip(one.charts, another.charts, strict=True):
                Box.agree(box_of(first), box_of(second))

    @property
    def plots(self) -> list[Plot]:
        """The plots of both sides."""
        return [plot for column in self.columns for plot in column.plots]

    def seek(self, index: int) -> None:
        """Make row `index` the newest row shown in both runs."""
        index = min(max(index, 0), self.transport.slider.maximum())
        for column in self.columns:
            column.feed.show_span(self.transport.seconds)
            column.feed.seek(index)
        self._draw()
        longest = max((column.feed for column in self.columns), key=len)
        self.transport.show_place(index, longest.tick, longest.time, longest.end)
        if index == self.transport.slider.maximum() and self._timer.isActive():
            self.toggle()

    def toggle(self) -> None:
        """Start or pause the replay."""
        if self._timer.isActive():
            self._timer.stop()
        else:
            if self.transport.slider.value() == self.transport.slider.maximum():
                self.seek(0)
            self._timer.start()
        self.transport.button.setText("Pause" if self._timer.isActive() else "Play")

    def _play_on(self) -> None:
        step = max(round(1e-3 * FRAME_MS * self.columns[0].info.rate * self.transport.factor), 1)
        self.seek(self.transport.slider.value() + step)

    def _switch_cursors(self, on: bool) -> None:
        for plot in self.plots:
            plot.switch_cursors(on)

    def _home(self) -> None:
        for plot in self.plots:
            plot.home()

    def _key(self, key: QtCore.Qt.Key, modifiers: QtCore.Qt.KeyboardModifier) -> bool:
        keys, place = QtCore.Qt.Key, self.transport.slider.value()
        second = round(self.columns[0].info.rate)
        step = second // 10 if modifiers & QtCore.Qt.KeyboardModifier.ShiftModifier else 1
        moves = {keys.Key_Right: step, keys.Key_Left: -step, keys.Key_PageUp: -second, keys.Key_PageDown: second}
        if key in (keys.Key_Space, keys.Key_F2):
            self.toggle()
        elif key == keys.Key_F3:
            self.transport.cursors.toggle()
        elif key == keys.Key_F4:
            self._home()
        elif key in moves:
            self.seek(place + moves[key])
        else:
            return False
        return True

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        self.theme_button.setText("Light" if theme.name == "dark" else "Dark")
        dress(self, theme)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:  # noqa: N802
        """Stop the replay (Qt event handler)."""
        self._timer.stop()
        self._keys.remove()
        super().closeEvent(event)


def run(sides: tuple[Side, Side], words: str, theme: str = "auto") -> None:
    """Show two runs in a window until it is closed; `words` summarizes the comparison."""
    run_window(lambda colours: CompareWindow(sides, words, colours), theme)
