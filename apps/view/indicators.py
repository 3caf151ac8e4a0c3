"""Indicators: notices, dead-man's switch, lamps of flags, energy meter, and the certificate at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.front_ends.run import RunInfo
from apps.shared.display import QUANTILES, certificate, durations, grouped, millijoules, verdict
from apps.view.charts import Panel
from apps.view.feed import Feed
from apps.view.history import FLAGS, Column, Counts, Floats
from apps.view.qt import QtCore, QtGui, QtWidgets, current_theme, label, lay_out, px, remove_all, restyle, tool_button
from haptics.device import Causality
from haptics.records import Status

GLOW = 1.0
"""Time for which a lamp stays lit after its flag [s]."""

FALL = 0.4
"""Time constant of the fall of the energy bar after a peak [s]: a peak of one millisecond remains visible."""

_LAMP_HEIGHT = 21

_MARK = 2.0
"""Width of the mark on the energy bar [pixel]."""

_LEAST_HEIGHT = 84
"""Minimum height of the certificate [pixel]."""

_SHORT = {"computation time": "computation", "time to command": "to command"}
"""Short names of durations that fit into the first column of the certificate."""

_SWITCHES = {"key": "the space bar", "button": "the device's button"}
_WITHOUT: dict[str, str] = {
    Causality.IMPEDANCE: "Without it there is no force; when you let go, the force fades out.",
    Causality.ADMITTANCE: "Without it the device holds its position; when you let go, it brakes.",
}


class Notice(QtWidgets.QFrame):
    """Bar with one sentence that hides automatically."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("notice")
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(12, 7, 12, 7)
        self.words = label("", 11, wrap=True)
        row.addWidget(label("!", 15, bold=True))
        row.addSpacing(8)
        row.addWidget(self.words, 1)
        self._timer = QtCore.QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.hide)
        self.hide()

    def show_notice(self, sentence: str, seconds: float = 8.0) -> None:
        """Show `sentence` for a limited time [s]."""
        self.words.setText(sentence)
        self.show()
        self._timer.start(round(1000 * seconds))


class DeadManBanner(QtWidgets.QFrame):
    """Banner of the dead-man's switch: prominent while it is released, plain while it is held.

    Its height is constant, so that no control moves under the mouse when the key is pressed.

    Parameters
    ----------
    past : bool
        Whether it describes a recorded run.
    """

    def __init__(self, past: bool = False) -> None:
        super().__init__()
        self.setObjectName("deadman")
        self._past = past
        self._words = ("", "", "")
        self.order = label("", 17, bold=True)
        self.reason = label("", 11, wrap=True)
        lay_out(QtWidgets.QHBoxLayout(self), self.order, (self.reason, 1), margins=(14, 8, 14, 8), spacing=18)
        self.hide()

    def configure(self, info: RunInfo) -> None:
        """Prepare the banner for a run; hide it if the run has no dead-man's switch."""
        switch = _SWITCHES.get(info.dead_man, "")
        if self._past:
            self._words = f"{switch} was not held".upper(), f"{switch} was held".capitalize(), ""
        else:
            without = _WITHOUT.get(info.causality, "")
            self._words = f"hold {switch}".upper(), f"{switch} is held".capitalize(), without
        self.setVisible(bool(switch))
        self.show_state(released=True)

    def show_state(self, released: bool) -> None:
        """Show whether the switch is released."""
        loud, quiet, without = self._words
        restyle(self, "released", released)
        self.order.setText(loud if released else quiet)
        self.reason.setText(without)


# --- safety -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lamp:
    """Description of a lamp.

    Attributes
    ----------
    flag : Status
        Flag of a tick that lights the lamp.
    name, meaning : str
        Text on the lamp and its tool tip.
    ordinary : bool
        Whether the flag also occurs in undisturbed runs; if so, the lamp has a less prominent colour.
    """

    flag: Status
    name: str
    meaning: str
    ordinary: bool = False


TIMING = (
    Lamp(Status.STARTED_LATE, "LATE START", "the tick started more than half a period late"),
    Lamp(Status.ENDED_LATE, "LATE END", "the tick ended after the next deadline"),
    Lamp(Status.AFTER_SKIP, "SKIPPED", "deadlines before this tick were skipped"),
)
"""Flags of timing faults, which a punctual run does not have."""

SAFETY = (
    Lamp(Status.NOT_FINITE, "NOT FINITE", "the sample or the element's output was not a finite number: safe output"),
    Lamp(Status.LIMITED, "LIMITED", "the norm of the command was clamped"),
    Lamp(Status.STALE, "STALE", "the sample was older than the device allows: safe output"),
    Lamp(Status.SLEW, "SLEW", "the rate of change (slew rate) of the command was limited"),
    Lamp(Status.IMPLAUSIBLE, "IMPLAUSIBLE", "implausible jump in position, speed, or force: safe output"),
    Lamp(Status.SPEED, "SPEED", "the end effector was too fast: no force may accelerate it further"),
    Lamp(Status.RELEASED, "RELEASED", "the dead-man's switch was not held: the output faded out", ordinary=True),
    Lamp(Status.ENERGY, "ENERGY", "the loop had injected all the energy it may: no force may add to it"),
    Lamp(Status.FADE, "FADE", "the output was fading in, or fading out before the end", ordinary=True),
    Lamp(Status.WORKSPACE, "WORKSPACE", "the end effector or its reference was at the edge of the workspace"),
    Lamp(Status.PASSIVITY, "PASSIVITY", "the passivity controller added damping", ordinary=True),
    Lamp(Status.ASTRAY, "ASTRAY", "a motion was not followed (following error): safe output"),
    Lamp(
        Status.FOLLOWING_ERROR,
        "NOT FOLLOWING",
        "the end effector was too far from its reference (following error): safe output",
    ),
    Lamp(Status.THERMAL, "WARM", "the motors were warm: the norm of the force was limited to a lower bound"),
)
"""Flags of the safety envelope, in the order of the strip."""


class Lamps(QtWidgets.QWidget):
    """Lamps in rows: filled while the flag is set, bold if it was set before, otherwise outlined.

    Parameters
    ----------
    signs : tuple of Lamp
        Descriptions of the lamps.
    columns : int
        Number of lamps per row.

    Attributes
    ----------
    shown : dict
        Whether the lamp of a flag shows that the flag was ever set, and that it is set now.
    """

    def __init__(self, signs: tuple[Lamp, ...], columns: int) -> None:
        super().__init__()
        self._signs = signs
        self.shown: dict[Status, tuple[bool, bool]] = {}
        self.lamps: dict[Status, QtWidgets.QLabel] = {}
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        for number, sign in enumerate(signs):
            lamp = label(sign.name, 10, centred=True)
            lamp.setFixedHeight(px(_LAMP_HEIGHT))
            self.lamps[sign.flag] = lamp
            grid.addWidget(lamp, number // columns, number % columns)
            grid.setColumnStretch(number % columns, 1)

    def refresh(self, counts: Counts) -> None:
        """Update the lamps. Only changed lamps are restyled, because that takes longer than a frame."""
        for sign in self._signs:
            number = FLAGS.index(sign.flag)
            lamp, ticks = self.lamps[sign.flag], int(counts.flags[number])
            lamp.setToolTip(f"{sign.meaning}: {grouped(ticks)} {'tick' if ticks == 1 else 'ticks'} of this run")
            ever, now = ticks > 0, bool(counts.time - counts.last[number] < GLOW)
            self.shown[sign.flag] = ever, now
            lit = "ordinary" if sign.ordinary else "alarm"
            restyle(lamp, "lamp", lit if now else "past" if ever else "never")


class EnergyBar(QtWidgets.QWidget):
    """Slim bar of the injected energy with a mark at the maximum of the run.

    Attributes
    ----------
    filled, marked : float
        Length of the bar and position of the mark as fractions, where 1 is the limit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.filled = self.marked = 0.0
        self.setFixedHeight(px(11))

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:  # noqa: N802
        """Draw the bar (Qt event handler)."""
        theme = current_theme()
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        frame = QtCore.QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        shape = QtGui.QPainterPath()
        shape.addRoundedRect(frame, 4, 4)
        painter.fillPath(shape, QtGui.QColor(theme.ground))
        painter.setClipPath(shape)
        colour = QtGui.QColor(theme.alarm if self.filled >= 1.0 else theme.motion)
        painter.fillRect(QtCore.QRectF(frame.left(), 0, self.filled * frame.width(), self.height()), colour)
        if self.marked * frame.width() > _MARK:
            mark = frame.left() + self.marked * (frame.width() - _MARK)
            painter.fillRect(QtCore.QRectF(mark, 0, _MARK, self.height()), QtGui.QColor(theme.text))
        painter.setClipping(False)
        painter.setPen(QtGui.QPen(QtGui.QColor(theme.faint), 1.0))
        painter.drawPath(shape)


class SafetyPanel(Panel):
    """Energy injected by the loop at the left, as a number and a bar, and a strip of lamps at the right."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = 0.1
        self.lamps = Lamps(SAFETY + TIMING, columns=8)
        self.number = label("", 10)
        self.bar = EnergyBar()
        self.bar.setFixedWidth(px(180))
        meter = QtWidgets.QVBoxLayout()
        meter.addWidget(self.number)
        meter.addWidget(self.bar)
        self.head.addLayout(meter)
        self.head.addWidget(self.lamps, 1)

    def configure(self, info: RunInfo) -> None:
        """Clear the panel and prepare it for a run."""
        self.lamps.refresh(Counts())
        self._limit = info.max_energy
        self._show_energy(0.0, 0.0)

    def refresh(self, feed: Feed) -> None:
        """Show the data of `feed`."""
        self.lamps.refresh(feed.counts)
        history = feed.history
        present = lingering(history.column(Column.ENERGY), history.column(Column.TIME))
        self._show_energy(1e-3 * present, feed.counts.largest_energy)

    def _show_energy(self, present: float, largest: float) -> None:
        limit = millijoules(self._limit)
        self.number.setText(f"energy {millijoules(present, self._limit)} of {limit}\u00a0mJ")
        self.bar.filled, self.bar.marked = (min(energy / self._limit, 1.0) for energy in (present, largest))
        self.bar.update()
        meaning = (
            "energy that the loop injected: what the hand got beyond the element's store; a peak fades slowly.\n"
            f"The mark: the most in this run, {millijoules(largest, self._limit)} mJ. "
            f"Beyond {limit} mJ nothing is given any more."
        )
        for widget in (self.number, self.bar):
            widget.setToolTip(meaning)


def lingering(values: Floats, times: Floats) -> float:
    """Return the largest of `values`, each decayed with time constant `FALL`; zero if empty.

    Parameters
    ----------
    values, times : (n,) float arrays
        A non-negative signal and the times of its values [s], oldest first.
    """
    return float(np.max(values * np.exp((times - times[-1]) / FALL), initial=0.0)) if len(values) else 0.0


# --- end of a run -----------------------------------------------------------------------------------------------------


class _Roll(QtWidgets.QScrollArea):
    """Scroll area that is as high as its content if there is enough space."""

    def __init__(self, content: QtWidgets.QWidget) -> None:
        super().__init__()
        self._content = content
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Preferred, QtWidgets.QSizePolicy.Policy.Maximum)
        self.setMinimumHeight(_LEAST_HEIGHT)
        self.setWidget(content)

    def sizeHint(self) -> QtCore.QSize:  # noqa: N802
        """Return the height of the content at the present width (called by Qt)."""
        width = self.viewport().width()
        return QtCore.QSize(width, max(self._content.heightForWidth(width), _LEAST_HEIGHT))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:  # noqa: N802
        """Request another height if the width has changed (Qt event handler)."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()


class EndCard(Panel):
    """Card with verdict, reason, and certificate.

    Attributes
    ----------
    closed : signal
        The card was closed, and its space is free.
    """

    closed = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__()
        self.badge = label("", 11, bold=True)
        self.badge.setObjectName("badge")
        # Only the scroll area may wrap text: a panel with height-for-width cannot be shrunk below that height.
        self.reason = label("", 12, bold=True)
        self.because = label("", 11, wrap=True)
        self.away = tool_button("✕", "show the plot again that was here", "close the certificate")
        self.away.clicked.connect(self.close)
        for widget, stretch in ((self.badge, 0), (self.reason, 1), (self.away, 0)):
            self.head.addWidget(widget, stretch)
        self._grid = QtWidgets.QGridLayout()
        self._grid.setHorizontalSpacing(5)
        self._grid.setVerticalSpacing(2)
        for number in range(len(QUANTILES)):
            self._grid.setColumnStretch(1 + number, 1)
        content = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(content)
        lay_out(column, self.because, self._grid, margins=(0, 0, 4, 0), spacing=6)
        column.addStretch(1)
        self.body.addWidget(_Roll(content))
        self.hide()

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:  # noqa: N802
        """Emit `closed` (Qt event handler)."""
        super().closeEvent(event)
        self.closed.emit()

    def show_end(self, reason: str, summary: Mapping[str, Any], error: str = "") -> None:
        """Show the reason for the end of the run, the certificate, and the `error` if there is one."""
        found = verdict(summary)
        remove_all(self._grid)
        self.reason.setText(reason)
        self.badge.setText("" if found is None else found.word.upper())
        self.badge.setVisible(found is not None)
        restyle(self.badge, "fit", found is not None and found.fit)
        reasons = found.reasons if found is not None else ()
        self.because.setText("\n".join([error] * bool(error) + [f"• {why}" for why in reasons]))
        self.because.setVisible(bool(self.because.text()))
        names, top = list(QUANTILES.values()), QtCore.Qt.AlignmentFlag.AlignTop
        lines, table = certificate(summary), durations(summary)
        for row, (name, value) in enumerate(lines):
            words = label(value, 10, wrap=True)
            self._grid.addWidget(label(name, 10, faint=True), row, 0, top)
            self._grid.addWidget(words, row, 1, 1, len(names), top)
        rows = [("in µs", {name: label(name, 10, faint=True) for name in names})] if table else []
        for name, values in table.items():
            rows.append((_SHORT.get(name, name), {word: label(_number(one), 10) for word, one in values.items()}))
        for row, (name, cells) in enumerate(rows, len(lines)):
            self._grid.addWidget(label(name, 10, faint=True), row, 0)
            for word, cell in cells.items():
                self._grid.addWidget(cell, row, 1 + names.index(word), QtCore.Qt.AlignmentFlag.AlignRight)
        self.show()


def _number(value: float) -> str:
    """Format a time in a column of microseconds; a long time is given in milliseconds to fit."""
    if value < 10:
        return f"{value:.2g}"
    return f"{value:.0f}" if value < 1e4 else f"{1e-3 * value:.0f}\u2009ms"
