"""Panels of the experimenter's window."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.experiment.screens.messages import Certificate, Outcome, Progress, SessionOutline
from apps.front_ends.run import RunInfo
from apps.shared.display import grouped
from apps.shared.theme import DARK, Theme
from apps.view.charts import Key, Panel, Sign, brush, chart, curve, dress_chart, pen
from apps.view.feed import Feed
from apps.view.history import Column, every
from apps.view.qt import QtCore, QtWidgets, label, pg
from apps.view.time_plots import SeriesPanel


class HeadPanel(Panel):
    """Session, block, trial, condition and phase, with a progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.session = label("waiting for the experiment", 12, bold=True)
        self.phase = label("", 16, bold=True)
        self.trial = label("", 12)
        self.level = label("", 12, faint=True)
        self.left = label("", 12)
        self.theme_button = QtWidgets.QPushButton("Light / dark")
        self.theme_button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.bar = QtWidgets.QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.head.addWidget(self.session)
        self.head.addStretch(1)
        self.head.addWidget(self.left)
        self.head.addSpacing(12)
        self.head.addWidget(self.theme_button)
        row = QtWidgets.QHBoxLayout()
        row.setSpacing(24)
        row.addWidget(self.phase)
        row.addStretch(1)
        row.addWidget(self.trial)
        row.addWidget(self.level)
        self.body.addLayout(row)
        self.body.addWidget(self.bar)
        self._plan = SessionOutline("", "", 1, 1, None)

    def configure(self, plan: SessionOutline) -> None:
        """Reset the panel for a new session."""
        self._plan = plan
        blind = "   (blind)" if plan.blind else ""
        self.session.setText(f"{plan.experiment}   ·   {plan.participant}   ·   session {plan.session}{blind}")
        self.show_progress(Progress("before the first trial"))

    def show_progress(self, progress: Progress) -> None:
        """Show the progress of the session."""
        plan, of = self._plan, progress.of or self._plan.trials
        words = [f"block {progress.block} of {plan.blocks}"] if progress.block else []
        if progress.trial:
            words.append(f"trial {progress.trial}" + (f" of {of}" if of else ""))
        self.trial.setText("   ·   ".join(words))
        self.phase.setText(progress.phase)
        seconds = progress.remaining
        minutes = "" if seconds is None else f"about {max(round(seconds / 60), 1)} min left"
        self.left.setText("less than a minute left" if seconds is not None and seconds < 45 else minutes)
        level = "" if progress.level is None else f"level {progress.level:.4g} {plan.unit}".strip()
        self.level.setText("   ".join(filter(None, (progress.kind, progress.track or progress.condition, level))))
        self.bar.setRange(0, of or 1)
        self.bar.setValue(min(max(progress.trial - 1, 0), of) if of else 0)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        chunk = f"background: {theme.motion}; border-radius: 4px;"
        self.bar.setStyleSheet(
            f"QProgressBar {{ background: {theme.ground}; border: none; border-radius: 4px; }}"
            f"QProgressBar::chunk {{ {chunk} }}"
        )


@dataclass
class Track:
    """Run of a procedure: trials, their levels, and correctness of the answers."""

    trials: list[int] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)


def reversals(levels: list[float]) -> list[int]:
    """Return the indices at which a sequence of levels changes its direction.

    Equal levels are not reversals. The index refers to the last level before the change.
    """
    found, before = [], 0
    for index in range(len(levels) - 1):
        step = levels[index + 1] - levels[index]
        direction = (step > 0) - (step < 0)
        if direction and before and direction != before:
            found.append(index)
        before = direction or before
    return found


_SYMBOLS = ("o", "s", "t", "d")
_ROLES = ("motion", "stick", "friction", "force")

HIDDEN = "Blind: condition, level, track, outcome and force stay hidden until the session is decoded."


class TrackPanel(Panel):
    """Level over trial, with a symbol and a colour for each track."""

    def __init__(self) -> None:
        super().__init__("Tracks")
        self._theme, self._plan = DARK, SessionOutline("", "", 1, 1, None)
        self.tracks: dict[str, Track] = {}
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

    def configure(self, plan: SessionOutline) -> None:
        """Clear the plot for a new session."""
        self._plan, self.tracks = plan, {}
        for widget in (self.chart, self.names, self._key):
            widget.setVisible(not plan.blind)
        self.hidden.setVisible(plan.blind)
        unit = f" [{plan.unit}]" if plan.unit else ""
        self.chart.plotItem.setLabel("left", "" if plan.blind else f"{plan.axis or 'level'}{unit}")
        self._draw()

    def add_trial(self, outcome: Outcome) -> None:
        """Add a test trial that counts.

        A repeated trial replaces the previous attempt.
        """
        counts = outcome.outcome == "ok" and outcome.kind == "test"
        if self._plan.blind or not counts or outcome.track is None or outcome.level is None:
            return
        track = self.tracks.setdefault(outcome.track, Track())
        if track.trials and track.trials[-1] == outcome.trial:
            for row in (track.trials, track.levels, track.correct):
                del row[-1]
        track.trials.append(outcome.trial)
        track.levels.append(outcome.level)
        track.correct.append(bool(outcome.correct))
        self._draw()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        dress_chart(self.chart, theme)
        self._draw()

    def _draw(self) -> None:
        for item in self._items:
            self.chart.removeItem(item)
        self._items = []
        names = []
        for number, (name, track) in enumerate(self.tracks.items()):
            colour = getattr(self._theme, _ROLES[number % 4])
            self._draw_track(track, _SYMBOLS[number % 4], colour)
            names.append(f"<span style='color:{colour}'>{'●■▼◆'[number % 4]}</span> {html.escape(name)}")
        self.names.setText("   ".join(names))
        trials = [trial for track in self.tracks.values() for trial in track.trials] or [1]
        levels = [level for track in self.tracks.values() for level in track.levels] or [1.0]
        last = max(trials[-1] + 2, self._plan.trials or 0, max(trials) + 2, 10)
        self.chart.getViewBox().setRange(xRange=(0, last), yRange=(0, 1.15 * max(levels)), padding=0)

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


LATE = 1e-3
"""Fraction of late ticks above which they are marked."""

ANSWERS = 9
"""Number of trials in the list."""

_BELOW = 100
"""Index of the stretch row below all other rows."""

_SIGNS = {True: "✓ right", False: "✗ wrong", None: ""}
_VERDICTS = {"good": "✓", "doubtful": "?", "": ""}


class Table(QtWidgets.QWidget):
    """Rows of text in columns, with optional headings."""

    def __init__(self, columns: Sequence[str] = ()) -> None:
        super().__init__()
        self._grid = QtWidgets.QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(3)
        self._first = 1 if columns else 0
        self._cells: dict[tuple[int, int], QtWidgets.QLabel] = {}
        for number, words in enumerate(columns):
            self._grid.addWidget(label(words, 10, faint=True), 0, number)
        self._grid.setColumnStretch(len(columns) - 1 if columns else 2, 1)
        self._grid.setRowStretch(_BELOW, 1)

    def fill(self, rows: Sequence[Sequence[str]]) -> None:
        """Replace the displayed rows."""
        for cell in self._cells.values():
            cell.setText("")
        for number, row in enumerate(rows):
            for column, words in enumerate(row):
                if (number, column) not in self._cells:
                    cell = label("", 10.5)
                    cell.setTextInteractionFlags(QtCore.Qt.TextInteractionFlag.NoTextInteraction)
                    self._grid.addWidget(cell, self._first + number, column)
                    self._cells[number, column] = cell
                self._cells[number, column].setText(words)


class AnswersPanel(Panel):
    """The last trials, newest first."""

    def __init__(self) -> None:
        super().__init__("Last answers")
        self.table = Table(("trial", "answer", "", "reaction", "kind", "condition", "remark"))
        self._rows: list[tuple[str, ...]] = []
        self.body.addWidget(self.table, 1)

    def clear(self) -> None:
        """Clear the list for a new session."""
        self._rows = []
        self.table.fill([])

    def add_trial(self, outcome: Outcome) -> None:
        """Add a trial."""
        time = "" if outcome.reaction_time is None else f"{outcome.reaction_time:.2f} s"
        remark = "" if outcome.outcome == "ok" else f"{outcome.outcome}: {', '.join(outcome.reasons)}".rstrip(": ")
        name = f"{outcome.trial}" + (f" ({outcome.attempt})" if outcome.attempt > 1 else "")
        sign = _SIGNS[outcome.correct]
        self._rows.insert(0, (name, outcome.response, sign, time, outcome.kind, outcome.condition, remark))
        del self._rows[ANSWERS:]
        self.table.fill(self._rows)


class CertificatePanel(Panel):
    """Quality of the stimuli rendered in the session."""

    def __init__(self) -> None:
        super().__init__("Certificate so far")
        self.table = Table()
        self.body.addWidget(self.table, 1)
        self._figures: list[tuple[str, ...]] = []
        self._timing: list[tuple[str, ...]] = []
        self.show_figures(Certificate(()))

    def show_figures(self, certificate: Certificate) -> None:
        """Replace the displayed figures."""
        self._figures = [(_VERDICTS[figure.verdict], figure.name, figure.value) for figure in certificate.figures]
        self._fill()

    def refresh(self, feed: Feed) -> None:
        """Show the timing of the current block."""
        counts = feed.counts
        if not counts.ticks:
            return
        share = counts.late / counts.ticks
        timing: list[tuple[str, ...]] = [
            ("", "ticks of this block", grouped(counts.ticks)),
            ("✓" if share <= LATE else "?", "late ticks", f"{100 * share:.2g} %"),
            ("✓" if not counts.skipped else "?", "ticks left out", grouped(counts.skipped)),
        ]
        if timing != self._timing:
            self._timing = timing
            self._fill()

    def _fill(self) -> None:
        self.table.fill([*self._figures, *self._timing] or [("", "none yet", "")])


_PATH_STEP = 0.008

_LEAST_HEIGHTS = 78, 92
"""Minimum heights of the plots over time [pixel], less than in the live view because of other panels."""


class PlacePanel(Panel):
    """Workspace with the path of the last seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._rate = 1000.0
        self.chart: Any = chart("y [mm]", "x [mm]")
        self.chart.getPlotItem().setAspectLocked(True)
        self._outline, self.path = curve(self.chart), curve(self.chart)
        self.effector = pg.ScatterPlotItem(pxMode=True, symbol="o", size=11)
        self.chart.addItem(self.effector, ignoreBounds=True)
        self.body.addWidget(self.chart, 1)

    def configure(self, info: RunInfo) -> None:
        """Clear the plot for a new run."""
        self._rate = info.rate
        (left, low), (right, high) = [[1e3 * part for part in corner] for corner in info.workspace]
        self._outline.setData([left, right, right, left, left], [low, low, high, high, low])
        self.chart.getViewBox().setRange(xRange=(left, right), yRange=(low, high), padding=0.06)
        self.path.setData([], [])
        self.effector.setData([], [])

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        dress_chart(self.chart, theme)
        self._outline.setPen(pen(theme.faint, 1.5))
        self.path.setPen(pen(theme.motion, 2))
        self.effector.setPen(pen(theme.panel, 1))
        self.effector.setBrush(brush(theme.text))

    def refresh(self, feed: Feed) -> None:
        """Draw the newest rows."""
        history = feed.history
        if not len(history):
            return
        x, y = history.column(Column.X), history.column(Column.Y)
        chosen = every(history.first, len(x), max(round(_PATH_STEP * self._rate), 1))
        self.path.setData(x[chosen], y[chosen])
        self.effector.setData([x[-1]], [y[-1]])


class MotionPanel(SeriesPanel):
    """Force and speed over time, only the speed in blind mode."""

    def __init__(self) -> None:
        super().__init__()
        for widget in (self.choice, self.size_button, self.menu_button):
            widget.hide()
        for strip, least in zip((self.forces, self.speeds), _LEAST_HEIGHTS, strict=True):
            strip.chart.setMinimumHeight(least)
        self.speeds.chart.plotItem.setLabel("left", "[mm/s]")  # there is no space for a longer label

    def blind(self, blind: bool) -> None:
        """Hide or show the force."""
        self.forces.chart.setVisible(not blind)
        self.key.setVisible(not blind)


def _button(words: str, name: str = "") -> QtWidgets.QPushButton:
    button = QtWidgets.QPushButton(words)
    button.setMinimumHeight(36)
    if name:
        button.setObjectName(name)
    return button


class NotesPanel(Panel):
    """Input line and list of the last notes.

    Enter adds a note to the journal.

    Attributes
    ----------
    written : signal (text)
        A note was entered.
    """

    written = QtCore.Signal(str)

    def __init__(self) -> None:
        super().__init__("Notes")
        self.line = QtWidgets.QLineEdit()
        self.line.setPlaceholderText("Write a note and press Enter")
        self.line.setMaxLength(2000)
        self.line.returnPressed.connect(self._add_note)
        self.last = label("", 10, faint=True)
        self.last.setWordWrap(True)
        self.last.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        self.last.setAlignment(QtCore.Qt.AlignmentFlag.AlignTop)
        self.body.addWidget(self.line)
        self.body.addWidget(self.last, 1)
        self._notes: list[str] = []

    def _add_note(self) -> None:
        text = self.line.text().strip()
        if text:
            self.written.emit(text)
            self._notes = [text if len(text) < 80 else f"{text[:77]}...", *self._notes][:2]
            self.last.setText("\n".join(self._notes))
            self.line.clear()


class Buttons(QtWidgets.QWidget):
    """Buttons to pause, continue, repeat a trial and abort.

    Abort requires a confirmation.

    Attributes
    ----------
    requested : signal (text)
        A button was pressed, and confirmed if necessary: ``pause``, ``go on``, ``redo`` or ``abort``.
    """

    requested = QtCore.Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.pause = _button("Pause", "start")
        self.redo = _button("Redo last trial")
        self.abort = _button("End the session ...")
        self.sure = _button("End it now", "stop")
        self.no = _button("No, go on")
        self._paused = False
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self.pause, self.redo, self.abort, self.sure, self.no):
            # Space and Enter must not activate the focused button.
            button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
            row.addWidget(button, 1)
        self.pause.clicked.connect(lambda: self.requested.emit("go on" if self._paused else "pause"))
        self.redo.clicked.connect(lambda: self.requested.emit("redo"))
        self.abort.clicked.connect(lambda: self._confirm(True))
        self.no.clicked.connect(lambda: self._confirm(False))
        self.sure.clicked.connect(self._abort)
        self._confirm(False)
        self.allow(False)

    def allow(self, running: bool) -> None:
        """Enable the buttons if a session is running."""
        for button in (self.pause, self.redo, self.abort):
            button.setEnabled(running)
        if not running:
            self._confirm(False)

    def show_paused(self, paused: bool) -> None:
        """Show whether the session is paused."""
        self._paused = paused
        self.pause.setText("Go on" if paused else "Pause")

    def _confirm(self, asking: bool) -> None:
        """Show the buttons of the confirmation, or the others."""
        for button in (self.pause, self.redo, self.abort):
            button.setVisible(not asking)
        for button in (self.sure, self.no):
            button.setVisible(asking)

    def _abort(self) -> None:
        self.allow(False)
        self.requested.emit("abort")
