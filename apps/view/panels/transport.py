"""Transport bar below the plots: pause or play, position, and time span, for live and recorded runs."""

from __future__ import annotations

from apps.shared.scale import clock, grouped
from apps.view.feed import SPAN, SPANS
from apps.view.history import Column, History
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label, px

SPEEDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class Transport(Panel):
    """The transport bar.

    Parameters
    ----------
    rows : int
        Number of rows of the recording; 0 for a live run, whose newest rows can be scrubbed.

    Attributes
    ----------
    moved : signal (index)
        The user has moved the slider to this row.
    play_asked : signal
        The play button was pressed.
    span_asked : signal (seconds)
        A time span was selected.
    cursors_asked : signal (bool)
        The cursors were switched on or off.
    home_asked : signal
        The whole range was requested in all plots.
    help_asked : signal
        Help was requested.
    mark_asked : signal (direction)
        The next (1) or previous (-1) mark of a recording was requested.
    """

    moved = QtCore.Signal(int)
    play_asked = QtCore.Signal()
    span_asked = QtCore.Signal(float)
    cursors_asked = QtCore.Signal(bool)
    home_asked = QtCore.Signal()
    help_asked = QtCore.Signal()
    mark_asked = QtCore.Signal(int)

    def __init__(self, rows: int = 0) -> None:
        super().__init__()
        self._past = rows > 0
        self.button = QtWidgets.QPushButton("Play" if self._past else "Pause")
        self.button.setFixedWidth(px(84))
        self.button.setToolTip(
            "play or pause (space bar)" if self._past else "hold the picture; the run goes on (F2). Back to it: again"
        )
        self.slider = QtWidgets.QSlider(QtCore.Qt.Orientation.Horizontal)
        self.slider.setRange(0, max(rows - 1, 0))
        self.slider.setAccessibleName("place in the recording" if self._past else "place in the last minutes")
        self.slider.setToolTip("drag to look at an earlier moment")
        self.place = label("")
        self.place.setMinimumWidth(px(226))
        self.place.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.speed = self._list("speed of the replay", [(f"{speed:g} ×", speed) for speed in SPEEDS], 1.0)
        self.span = self._list("seconds that are shown", [(f"{span:g} s", span) for span in SPANS], SPAN)
        self.cursors = self._tool("Cursors", "two cursors over every plot, with values and difference (F3)")
        self.cursors.setCheckable(True)
        self.home = self._tool("Fit", "show the whole range of every plot again (F4); of one: double click")
        self.help = self._tool("?", "keys, and what each panel shows (F1)")
        self.previous = self._tool("◂", "the mark before (P)")
        self.next = self._tool("▸", "the next mark (N)")
        self.legend = label("", 10)
        self._fill()
        self._connect()

    def _list(self, meaning: str, entries: list[tuple[str, float]], chosen: float) -> QtWidgets.QComboBox:
        box = QtWidgets.QComboBox()
        for words, value in entries:
            box.addItem(words, value)
        box.setCurrentIndex([value for _, value in entries].index(chosen))
        box.setAccessibleName(meaning)
        box.setToolTip(meaning)
        return box

    @staticmethod
    def _tool(words: str, meaning: str) -> QtWidgets.QToolButton:
        button = QtWidgets.QToolButton()
        button.setText(words)
        button.setToolTip(meaning)
        button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        return button

    def _fill(self) -> None:
        self.head.addWidget(self.button)
        self.head.addWidget(self.slider, 1)
        self.head.addWidget(self.place)
        self.speed.setVisible(self._past)
        for widget in (self.speed, self.span, self.cursors, self.home, self.help):
            self.head.addWidget(widget)
        if self._past:
            help_text = "space: play or pause   ← →: tick   Shift ← →: 0.1 s   Page: 1 s   Home, End   N, P: marks"
            foot = QtWidgets.QHBoxLayout()
            foot.addWidget(label(help_text, 10, faint=True))
            foot.addStretch(1)
            foot.addWidget(self.legend)
            for widget in (self.previous, self.next):
                foot.addWidget(widget)
            self.body.addLayout(foot)

    def _connect(self) -> None:
        self.slider.valueChanged.connect(self.moved)
        self.button.clicked.connect(self.play_asked)
        self.span.currentIndexChanged.connect(lambda _: self.span_asked.emit(float(self.span.currentData())))
        self.cursors.toggled.connect(self.cursors_asked)
        self.home.clicked.connect(self.home_asked)
        self.help.clicked.connect(self.help_asked)
        self.previous.clicked.connect(lambda: self.mark_asked.emit(-1))
        self.next.clicked.connect(lambda: self.mark_asked.emit(1))

    def add_strip(self, strip: QtWidgets.QWidget) -> None:
        """Insert the overview strip of the recording below the slider."""
        self.body.insertWidget(1, strip)

    def show_legend(self, words: str) -> None:
        """Show the legend of the marks on the strip; without marks, disable the buttons for navigation."""
        self.legend.setText(words)
        for widget in (self.previous, self.next):
            widget.setEnabled(bool(words))

    @property
    def factor(self) -> float:
        """Selected speed, 1 for real time."""
        return float(self.speed.currentData())

    def show_place(self, index: int, tick: int, time: float, end: float) -> None:
        """Show the position of the replay without emitting `moved`."""
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setValue(index)
        self.place.setText(f"tick {grouped(tick)}\u2002·\u2002{clock(time)} of {clock(end)}")

    def show_playing(self, playing: bool) -> None:
        """Label the button with its next action."""
        self.button.setText("Pause" if playing else "Play")

    def show_history(self, history: History, latest: float) -> None:
        """Show the position of the window in a live run, whose newest row is at `latest` [s]."""
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setRange(min(history.oldest + 1, history.count), history.count)
            self.slider.setValue(history.stop)
        self.button.setText("Go on" if history.held else "Pause")
        shown = history.newest(Column.TIME)
        if history.held:
            self.place.setText(f"<b>PAUSED</b> at {clock(shown)}, {latest - shown:.1f} s ago")
        else:
            self.place.setText(f"live\u2002·\u2002{clock(shown)}")
