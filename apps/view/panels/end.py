"""Certificate card at the end of a live or recorded run: verdict, reason for the end, and timing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.shared.summary import QUANTILES, Verdict, certificate, durations, verdict
from apps.shared.theme import DARK, Theme
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtGui, QtWidgets, label

_LEAST_HEIGHT = 84

_SHORT = {"computation time": "computation", "time to command": "to command"}
"""Short names that fit into the first column."""


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
        self._theme = DARK
        self._verdict: Verdict | None = None
        self._rows = 0
        self.badge = label("", 11, bold=True)
        # Only the scroll area may wrap text: a panel with height-for-width cannot be shrunk below that height.
        self.reason = label("", 12, bold=True)
        self.because = label("", 11)
        self.because.setWordWrap(True)
        self.head.addWidget(self.badge)
        self.head.addWidget(self.reason, 1)
        self.away = QtWidgets.QToolButton()
        self.away.setText("✕")
        self.away.setToolTip("show the plot again that was here")
        self.away.setAccessibleName("close the certificate")
        self.away.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.away.clicked.connect(self.close)
        self.head.addWidget(self.away)
        content = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(content)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(6)
        column.addWidget(self.because)
        self._grid = QtWidgets.QGridLayout()
        self._grid.setHorizontalSpacing(5)
        self._grid.setVerticalSpacing(2)
        for number in range(len(QUANTILES)):
            self._grid.setColumnStretch(1 + number, 1)
        column.addLayout(self._grid)
        column.addStretch(1)
        self.body.addWidget(_Roll(content))
        self.hide()

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:  # noqa: N802
        """Emit `closed` (Qt event handler)."""
        super().closeEvent(event)
        self.closed.emit()

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`."""
        self._theme = theme
        fit = self._verdict is not None and self._verdict.fit
        fill, ink, edge = (theme.panel, theme.text, theme.force) if fit else (theme.notice, "#000000", theme.notice)
        self.badge.setStyleSheet(
            f"QLabel {{ background: {fill}; color: {ink}; border: 2px solid {edge}; border-radius: 5px;"
            " padding: 0 7px; }"
        )

    def show_end(self, reason: str, summary: Mapping[str, Any], error: str = "") -> None:
        """Show the reason for the end of the run, the certificate, and the `error` if there is one."""
        self._verdict = verdict(summary)
        self._empty()
        self.reason.setText(reason)
        self.badge.setText("" if self._verdict is None else self._verdict.word.upper())
        self.badge.setVisible(self._verdict is not None)
        reasons = self._verdict.reasons if self._verdict is not None else ()
        self.because.setText("\n".join([error] * bool(error) + [f"• {why}" for why in reasons]))
        self.because.setVisible(bool(self.because.text()))
        for name, value in certificate(summary):
            self._add(name, value)
        self._add_table(durations(summary))
        self.apply(self._theme)
        self.show()

    def _add(self, name: str, value: str) -> None:
        """Add a line whose value spans the columns of all quantiles."""
        words = label(value, 10)
        words.setWordWrap(True)
        self._grid.addWidget(label(name, 10, faint=True), self._rows, 0, QtCore.Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(words, self._rows, 1, 1, len(QUANTILES), QtCore.Qt.AlignmentFlag.AlignTop)
        self._rows += 1

    def _add_table(self, table: Mapping[str, Mapping[str, float]]) -> None:
        """Add a row of quantiles [us] for each duration, with a header."""
        if not table:
            return
        names = list(QUANTILES.values())
        self._add_row("in µs", {name: label(name, 10, faint=True) for name in names})
        for name, values in table.items():
            self._add_row(_SHORT.get(name, name), {word: label(_number(value), 10) for word, value in values.items()})

    def _add_row(self, name: str, cells: Mapping[str, QtWidgets.QLabel]) -> None:
        self._grid.addWidget(label(name, 10, faint=True), self._rows, 0)
        for column, word in enumerate(QUANTILES.values()):
            if word in cells:
                self._grid.addWidget(cells[word], self._rows, 1 + column, QtCore.Qt.AlignmentFlag.AlignRight)
        self._rows += 1

    def _empty(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._rows = 0

    @property
    def text(self) -> str:
        """Complete text of the card, for tests and screen readers."""
        labels = [item.widget() for item in (self._grid.itemAt(n) for n in range(self._grid.count())) if item]
        told = [self.badge.text(), self.reason.text(), self.because.text()]
        return "\n".join([*told, *(w.text() for w in labels if isinstance(w, QtWidgets.QLabel))])


def _number(value: float) -> str:
    """Format a time in a column of microseconds; a long time is given in milliseconds to fit."""
    if value < 10:
        return f"{value:.2g}"
    return f"{value:.0f}" if value < 1e4 else f"{1e-3 * value:.0f}\u2009ms"
