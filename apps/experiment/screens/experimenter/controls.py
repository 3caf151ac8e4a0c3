"""Controls of the experimenter: notes, pause, repetition of a trial, end of the session."""

from __future__ import annotations

from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label


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
        self.line.returnPressed.connect(self._say)
        self.last = label("", 10, faint=True)
        self.last.setWordWrap(True)
        self.last.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        self.last.setAlignment(QtCore.Qt.AlignmentFlag.AlignTop)
        self.body.addWidget(self.line)
        self.body.addWidget(self.last, 1)
        self._notes: list[str] = []

    def _say(self) -> None:
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
    pause_asked, go_on_asked, redo_asked, abort_asked : signals
        A button was pressed, and confirmed if necessary.
    """

    pause_asked = QtCore.Signal()
    go_on_asked = QtCore.Signal()
    redo_asked = QtCore.Signal()
    abort_asked = QtCore.Signal()

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
        self.pause.clicked.connect(self._toggle)
        self.redo.clicked.connect(self.redo_asked)
        self.abort.clicked.connect(lambda: self._ask(True))
        self.no.clicked.connect(lambda: self._ask(False))
        self.sure.clicked.connect(self._abort)
        self._ask(False)
        self.allow(False)

    def allow(self, running: bool) -> None:
        """Enable the buttons if a session is running."""
        for button in (self.pause, self.redo, self.abort):
            button.setEnabled(running)
        if not running:
            self._ask(False)

    def show_paused(self, paused: bool) -> None:
        """Show whether the session is paused."""
        self._paused = paused
        self.pause.setText("Go on" if paused else "Pause")

    def _toggle(self) -> None:
        (self.go_on_asked if self._paused else self.pause_asked).emit()

    def _ask(self, sure: bool) -> None:
        for button in (self.pause, self.redo, self.abort):
            button.setVisible(not sure)
        for button in (self.sure, self.no):
            button.setVisible(sure)

    def _abort(self) -> None:
        self._ask(False)
        self.allow(False)
        self.abort_asked.emit()
