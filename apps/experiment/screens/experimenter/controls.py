"""What the experimenter can do: write notes, pause, have a trial done again, and end the session."""

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
    """A line to write in, and the last notes; each goes into the journal when Enter is pressed.

    Attributes
    ----------
    written : signal (text)
        A note.
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
    """Pause or go on, redo, abort; to abort asks once more.

    Attributes
    ----------
    pause_asked, go_on_asked, redo_asked, abort_asked : signals
        A button was pressed, and confirmed.
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
            # Space and Enter must never press what happens to have the focus.
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
        """Say whether there is a session on which the buttons act."""
        for button in (self.pause, self.redo, self.abort):
            button.setEnabled(running)
        if not running:
            self._ask(False)

    def show_paused(self, paused: bool) -> None:
        """Say whether the session waits."""
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
