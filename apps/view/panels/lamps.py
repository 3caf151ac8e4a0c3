"""Indicator lamps, one for each flag of a tick, in the groups in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass

from apps.shared.scale import grouped
from apps.shared.theme import DARK, Theme
from apps.view.counts import FLAGS, Counts
from apps.view.qt import QtCore, QtWidgets, label, px
from haptics.records import Status

GLOW = 1.0
"""Time for which a lamp stays lit after its flag [s]."""

_HEIGHT = 21


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
    Lamp(
        Status.IMPLAUSIBLE,
        "IMPLAUSIBLE",
        "implausible jump in position, speed, or force: safe output",
    ),
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
    """

    def __init__(self, signs: tuple[Lamp, ...], columns: int) -> None:
        super().__init__()
        self._theme = DARK
        self._signs = signs
        self._shown: dict[Status, tuple[bool, bool]] = {}
        self.lamps: dict[Status, QtWidgets.QLabel] = {}
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        for number, sign in enumerate(signs):
            lamp = label(sign.name, 10)
            lamp.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
            lamp.setFixedHeight(px(_HEIGHT))
            self.lamps[sign.flag] = lamp
            grid.addWidget(lamp, number // columns, number % columns)
            grid.setColumnStretch(number % columns, 1)

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        self._shown = {}

    def state(self, flag: Status) -> tuple[bool, bool]:
        """Return whether the lamp of `flag` shows that the flag was ever set, and that it is set now."""
        return self._shown[flag]

    def refresh(self, counts: Counts) -> None:
        """Update the lamps. Only changed lamps are restyled, because that takes longer than a frame."""
        for sign in self._signs:
            number = FLAGS.index(sign.flag)
            lamp, ticks = self.lamps[sign.flag], int(counts.flags[number])
            lamp.setToolTip(f"{sign.meaning}: {grouped(ticks)} {'tick' if ticks == 1 else 'ticks'} of this run")
            state = ticks > 0, bool(counts.time - counts.last[number] < GLOW)
            if state != self._shown.get(sign.flag):
                self._shown[sign.flag] = state
                lamp.setStyleSheet(self._style(sign, *state))

    def _style(self, sign: Lamp, ever: bool, now: bool) -> str:
        theme = self._theme
        if now:
            fill, ink = (theme.motion, theme.panel) if sign.ordinary else (theme.alarm, theme.on_alarm)
            look = f"background: {fill}; color: {ink}; border: 2px solid {theme.text};"
        elif ever:
            look = f"color: {theme.text}; border: 2px solid {theme.text};"
        else:
            look = f"color: {theme.faint}; border: 1px solid {theme.border};"
        return f"QLabel {{ {look} border-radius: 5px; }}"
