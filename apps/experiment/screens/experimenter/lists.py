"""Tables of the last answers and of the current certificate."""

from __future__ import annotations

from collections.abc import Sequence

from apps.experiment.screens.messages import Certificate, Outcome
from apps.shared.scale import grouped
from apps.view.feed import Feed
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label

LATE = 1e-3
"""Fraction of late ticks above which they are marked."""

ANSWERS = 9
"""Number of trials in the list."""

_BELOW = 100
"""Index of the stretch row below all other rows."""

_SIGNS = {True: "✓ right", False: "✗ wrong", None: ""}
_VERDICTS = {"good": "✓", "doubtful": "?", "bad": "✗", "": ""}


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
                self._cell(number, column).setText(words)

    @property
    def texts(self) -> list[str]:
        """All displayed texts."""
        return [cell.text() for cell in self._cells.values() if cell.text()]

    def _cell(self, row: int, column: int) -> QtWidgets.QLabel:
        if (row, column) not in self._cells:
            cell = label("", 10.5)
            cell.setTextInteractionFlags(QtCore.Qt.TextInteractionFlag.NoTextInteraction)
            self._grid.addWidget(cell, self._first + row, column)
            self._cells[row, column] = cell
        return self._cells[row, column]


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
        self._told: list[tuple[str, ...]] = []
        self._timing: list[tuple[str, ...]] = []
        self.show_figures(Certificate(()))

    def show_figures(self, certificate: Certificate) -> None:
        """Replace the displayed figures."""
        self._told = [(_VERDICTS[figure.verdict], figure.name, figure.value) for figure in certificate.figures]
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
        self.table.fill([*self._told, *self._timing] or [("", "none yet", "")])
