"""Replay window: the panels for a recording, with a slider and an overview strip for navigation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from apps.front_ends.run import RunInfo, from_metadata
from apps.shared.theme import Theme, other
from apps.view.charts import Panel
from apps.view.dashboard import Dashboard
from apps.view.feed import SAMPLE, ReplayFeed, Source, table_of
from apps.view.overview import Overview, OverviewScan
from apps.view.qt import KeyFilter, QtCore, QtGui, QtWidgets, dress, fit, label, lay_out, px, run_window, timer
from apps.view.transport import OverviewStrip
from apps.view.window import FRAME_MS, LEAST
from haptics.errors import RecordingError
from haptics.recording.recording import Recording

_GROWING_MS = 200
"""Interval at which the strip shows the progress of the scan [ms]."""

_RESULT = ("rate_hz", "force_n", "stick_fraction")
"""Keys of the metadata that describe the whole run besides its certificate."""


def _about(info: RunInfo) -> QtWidgets.QWidget:
    """Return a panel that describes the recorded run."""
    panel = Panel("Recording")
    grid = QtWidgets.QGridLayout()
    grid.setHorizontalSpacing(12)
    lines = [("device", info.device), ("model", info.model), ("rate", f"{info.rate:g} Hz")]
    if info.hand:
        lines.append(("hand", info.hand))
    if info.scene is not None:
        lines.append(("scene", info.scene.name or "without a name"))
    lines += [(p.key.replace("_", " "), f"{p.value:.6g} {p.unit}") for p in info.parameters]
    for row, (name, value) in enumerate(lines):
        words = label(value, wrap=True)
        grid.addWidget(label(name, 10, faint=True), row, 0)
        grid.addWidget(words, row, 1)
    panel.body.addLayout(grid)
    panel.body.addStretch(1)
    return panel


class ReplayWindow(QtWidgets.QWidget):
    """Window that replays a recording.

    Parameters
    ----------
    source : Recording, table or structured array
        A recording of any length, its table of ticks, or rows in memory.
    metadata : mapping
        See `run`.
    theme : Theme
        Initial colours.

    Attributes
    ----------
    index : int
        Index of the newest row shown.
    """

    def __init__(self, source: Source, metadata: Mapping[str, Any], theme: Theme) -> None:
        super().__init__()
        table = table_of(source)
        if not len(table):
            raise RecordingError("the recording holds no ticks, so there is nothing to replay")
        info = from_metadata(metadata, table.read(0, SAMPLE))
        overview = Overview(table, info.causality)
        self._scan = OverviewScan(overview, source if isinstance(source, Recording) else None)
        self._scan.start()
        self._feed = ReplayFeed(source, info.rate, info.causality, overview)
        self.strip = OverviewStrip(overview, len(table), info.rate)
        self._per_second = max(round(info.rate), 1)
        self._now = 0.0
        self._stamp = 0.0
        self.theme = theme
        self.playing = False
        self.dashboard = Dashboard(len(table))
        self.transport = self.dashboard.transport
        self.theme_button = QtWidgets.QPushButton()
        self.theme_button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.theme_button.clicked.connect(lambda: self.apply(other(self.theme)))
        about = _about(info)
        about.setFixedWidth(px(240))
        side = lay_out(QtWidgets.QVBoxLayout(), (about, 1), self.theme_button, spacing=8)
        lay_out(QtWidgets.QHBoxLayout(self), side, (self.dashboard, 1), margins=(8, 8, 8, 6), spacing=8)
        self.transport.body.insertWidget(1, self.strip)
        self.setMinimumSize(*LEAST)
        fit(self, 1340, 800)
        self.setWindowTitle(f"haptics: replay of {info.title}")
        self.dashboard.configure(info)
        self.dashboard.show_ended()
        # The end of the run, if its recording was closed, with its certificate if available.
        found = metadata.get("certificate")
        certificate = found if isinstance(found, Mapping) else {}
        if certificate or "reason" in metadata:
            summary = {**{name: metadata[name] for name in _RESULT if name in metadata}, **certificate}
            reason, error = metadata.get("reason", "unknown"), metadata.get("error") or ""
            self.dashboard.show_end(f"Run ended: {reason}", summary, str(error))
        self.dashboard.places.show_values(info.values)
        self.transport.slider.valueChanged.connect(self.seek)
        self.transport.button.clicked.connect(self.toggle)
        self.transport.previous.clicked.connect(lambda: self.go_to_mark(-1))
        self.transport.next.clicked.connect(lambda: self.go_to_mark(1))
        self.strip.moved.connect(self.seek)
        self._growing = timer(self, _GROWING_MS, self._grow)
        self._growing.start()
        self._timer = timer(self, FRAME_MS, self._play_on)
        self._keys = KeyFilter(self._key, repeats=True, parent=self)
        self.apply(theme)
        self.seek(len(table) - 1)

    @property
    def index(self) -> int:
        """Index of the newest row shown."""
        return self._feed.index

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self.theme = theme
        self.theme_button.setText("Light theme" if theme.name == "dark" else "Dark theme")
        dress(self, theme)
        self.transport.show_legend(self.strip.legend())
        if self._feed.index >= 0:
            self._show()

    def seek(self, index: int) -> None:
        """Make row `index` the newest row shown."""
        self._feed.seek(index)
        self._now = self._feed.time
        self._show()

    def _show(self) -> None:
        feed = self._feed
        self.dashboard.refresh(feed, everything=not self.playing)
        self.transport.show_place(feed.index, feed.tick, feed.time, feed.end)
        self.strip.show_place(feed.index, feed.history.capacity)

    def _grow(self) -> None:
        """Update the strip with the progress of the scan."""
        over = self._scan.over
        self.strip.refresh()
        self.transport.show_legend(self.strip.legend())
        if over:
            self._growing.stop()
        if over and not self._feed.counted:
            self.seek(self.index)

    def go_to_mark(self, direction: int) -> None:
        """Seek to the next mark (1) or the previous mark (-1) and centre it in the plots."""
        ahead = self._feed.history.capacity // 2
        last = len(self._feed) - 1
        rows = sorted({min(mark.row + ahead, last) for mark in self._scan.overview.marks})
        if direction > 0:
            rows = [row for row in rows if row > self.index]
        else:
            rows = [row for row in reversed(rows) if row < self.index]
        if rows:
            self.seek(rows[0])

    def toggle(self) -> None:
        """Start or pause the replay; at the end, restart it from the beginning."""
        if not self.playing and self.index == len(self._feed) - 1:
            self.seek(0)
        self._set_playing(not self.playing)

    def _set_playing(self, playing: bool) -> None:
        self.playing = playing
        self._stamp = time.monotonic()
        if playing:
            self._timer.start()
        else:
            self._timer.stop()
            self._show()
        self.transport.button.setText("Pause" if playing else "Play")

    def _play_on(self) -> None:
        now = time.monotonic()
        self.advance(now - self._stamp)
        self._stamp = now

    def advance(self, seconds: float) -> None:
        """Advance by `seconds` of wall-clock time multiplied by the selected speed; stop at the end."""
        self._now += seconds * self.transport.factor
        self._feed.seek(max(self._feed.index_at(self._now), self.index))
        self._show()
        if self.index == len(self._feed) - 1:
            self._set_playing(False)

    def _key(self, key: QtCore.Qt.Key, modifiers: QtCore.Qt.KeyboardModifier) -> bool:
        keys = QtCore.Qt.Key
        step = self._per_second // 10 if modifiers & QtCore.Qt.KeyboardModifier.ShiftModifier else 1
        targets = {
            keys.Key_Right: self.index + step,
            keys.Key_Left: self.index - step,
            keys.Key_PageUp: self.index - self._per_second,
            keys.Key_PageDown: self.index + self._per_second,
            keys.Key_Home: 0,
            keys.Key_End: len(self._feed) - 1,
        }
        if key == keys.Key_Space:
            self.toggle()
        elif key in (keys.Key_N, keys.Key_P):
            self.go_to_mark(1 if key == keys.Key_N else -1)
        elif key in targets:
            self.seek(targets[key])
        else:
            return self.dashboard.handle_key(key)
        return True

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:  # noqa: N802
        """Stop timers and threads (Qt event handler)."""
        self._timer.stop()
        self._growing.stop()
        self._scan.stop()
        self._keys.remove()
        super().closeEvent(event)


def run(source: Source, metadata: Mapping[str, Any], theme: str = "auto") -> None:
    """Show a recording in a window until it is closed.

    Parameters
    ----------
    source : Recording, table or structured array
        Data to show.
    metadata : mapping
        Content of ``recording.json``. The keys used are ``device`` (a table with ``name``, ``workspace_min`` and
        ``workspace_max``), ``model``, ``causality``, ``rate_hz``, ``hand``, ``parameters``, ``limits`` and
        ``certificate``; missing entries are estimated or omitted.
    theme : str
        ``dark``, ``light`` or ``auto``.

    Raises
    ------
    RecordingError
        If there are no ticks.
    """
    run_window(lambda colours: ReplayWindow(source, metadata, colours), theme)
