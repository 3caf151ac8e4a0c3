"""Things that are told without a dialog: a bar that goes away by itself, and the certificate at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.view.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label
from apps.view.summary import certificate


class Notice(QtWidgets.QFrame):
    """A bar with one sentence, hidden while there is nothing to say."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("notice")
        row = QtWidgets.QHBoxLayout(self)
        row.setContentsMargins(12, 7, 12, 7)
        sign = label("!", 15, bold=True)
        self.words = label("", 11)
        self.words.setWordWrap(True)
        row.addWidget(sign)
        row.addSpacing(8)
        row.addWidget(self.words, 1)
        self._timer = QtCore.QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.hide)
        self.hide()

    def tell(self, sentence: str, seconds: float = 8.0) -> None:
        """Show `sentence` for a while."""
        self.words.setText(sentence)
        self.show()
        self._timer.start(round(1000 * seconds))


class EndCard(Panel):
    """Why a run ended and how punctual it was."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = label("", 12, bold=True)
        self.reason.setWordWrap(True)
        self.head.addWidget(self.reason, 1)
        self._grid = QtWidgets.QGridLayout()
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)
        self.body.addLayout(self._grid)
        self.hide()

    def tell(self, reason: str, summary: Mapping[str, Any]) -> None:
        """Show the reason and the certificate."""
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.reason.setText(f"Run ended: {reason}")
        for row, (name, value) in enumerate(certificate(summary)):
            words = label(value, 10)
            words.setWordWrap(True)
            self._grid.addWidget(label(name, 10, faint=True), row, 0, QtCore.Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(words, row, 1)
        self.show()

    @property
    def text(self) -> str:
        """All that the card says, for a test or a screen reader."""
        labels = [item.widget() for item in (self._grid.itemAt(n) for n in range(self._grid.count())) if item]
        return "\n".join([self.reason.text(), *(w.text() for w in labels if isinstance(w, QtWidgets.QLabel))])
