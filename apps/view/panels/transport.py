"""Scrub slider, play and pause, and speed of a replay."""

from __future__ import annotations

from apps.shared.scale import clock, grouped
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label

SPEEDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class Transport(Panel):
    """The bar under a replay.

    Attributes
    ----------
    moved : signal (index)
        A person has moved the slider to this row.
    play_asked : signal
        The play button was pressed.
    """

    moved = QtCore.Signal(int)
    play_asked = QtCore.Signal()

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.button = QtWidgets.QPushButton("Play")
        self.button.setFixedWidth(84)
        self.button.setToolTip("space bar")
        self.slider = QtWidgets.QSlider(QtCore.Qt.Orientation.Horizontal)
        self.slider.setRange(0, max(rows - 1, 0))
        self.slider.setAccessibleName("place in the recording")
        self.speed = QtWidgets.QComboBox()
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g} ×", speed)
        self.speed.setCurrentIndex(SPEEDS.index(1.0))
        self.place = label("")
        self.place.setMinimumWidth(250)
        self.place.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight | QtCore.Qt.AlignmentFlag.AlignVCenter)
        for widget, stretch in ((self.button, 0), (self.slider, 1), (self.place, 0)):
            self.head.addWidget(widget, stretch)
        self.head.addWidget(label("speed", faint=True))
        self.head.addWidget(self.speed)
        help_text = "space: play or pause    ← →: one tick    Shift ← →: 0.1 s    Page: 1 s    Home, End"
        self.body.addWidget(label(help_text, 10, faint=True))
        self.slider.valueChanged.connect(self.moved)
        self.button.clicked.connect(self.play_asked)

    @property
    def factor(self) -> float:
        """Chosen speed, 1 for real time."""
        return float(self.speed.currentData())

    def show_place(self, index: int, tick: int, time: float, end: float) -> None:
        """Show where the replay is, without reporting it as a move."""
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setValue(index)
        self.place.setText(f"tick {grouped(tick)}\u2002·\u2002{clock(time)} of {clock(end)}")

    def show_playing(self, playing: bool) -> None:
        """Name what the button will do."""
        self.button.setText("Pause" if playing else "Play")
