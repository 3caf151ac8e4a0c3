"""Notices without a dialog: a bar that hides automatically."""

from __future__ import annotations

from apps.view.qt import QtCore, QtWidgets, label


class Notice(QtWidgets.QFrame):
    """Bar with one sentence, hidden while there is no message."""

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

    def show_notice(self, sentence: str, seconds: float = 8.0) -> None:
        """Show `sentence` for a limited time [s]."""
        self.words.setText(sentence)
        self.show()
        self._timer.start(round(1000 * seconds))
