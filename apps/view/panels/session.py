"""Selection of device, model, law, and hand for the next run, with descriptions and the start button."""

from __future__ import annotations

from collections.abc import Mapping

from apps.front_ends.messages import Start
from apps.front_ends.run import RunInfo
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtWidgets, label

KINDS = ("device", "model", "law", "hand")
"""Kinds of choices."""


def restyle(widget: QtWidgets.QWidget, name: str, value: bool) -> None:
    """Set a property on which the style sheet depends, and restyle the widget."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class SessionPanel(Panel):
    """Four lists and the start button.

    Attributes
    ----------
    start_asked : signal (Start)
        Start was pressed.
    """

    start_asked = QtCore.Signal(object)

    def __init__(self) -> None:
        super().__init__("Session")
        self._choices: dict[str, tuple[str, ...]] = {}
        self._about: Mapping[str, Mapping[str, str]] = {}
        self._present = dict.fromkeys(KINDS, "")
        self._running = False
        self.head.addStretch(1)
        self.head.addWidget(label("from the next start on", 10, faint=True))
        self.boxes = {kind: QtWidgets.QComboBox() for kind in KINDS}
        self.device, self.model, self.law, self.hand = self.boxes.values()
        self._lines = {kind: label("", 10, faint=True) for kind in KINDS}
        self._names = {kind: label(kind.capitalize(), faint=True) for kind in KINDS}
        form = QtWidgets.QGridLayout()
        form.setColumnStretch(1, 1)
        form.setVerticalSpacing(2)
        for row, (kind, box) in enumerate(self.boxes.items()):
            self._add(form, 2 * row, kind, box)
        self.body.addLayout(form)
        self._end()
        self.device.currentTextChanged.connect(self._offer_models)
        for box in self.boxes.values():
            box.currentTextChanged.connect(self._show_pending)

    def _add(self, form: QtWidgets.QGridLayout, row: int, kind: str, box: QtWidgets.QComboBox) -> None:
        form.addWidget(self._names[kind], row, 0)
        form.addWidget(box, row, 1)
        box.setAccessibleName(kind.capitalize())
        box.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(8)
        line = self._lines[kind]
        line.setWordWrap(True)
        line.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        form.addWidget(line, row + 1, 0, 1, 2)

    def _end(self) -> None:
        self.start = QtWidgets.QPushButton("Start")
        self.start.setObjectName("start")
        self.start.setEnabled(False)
        self.start.setToolTip("end the present run, if any, and begin one with what is chosen here")
        self.start.clicked.connect(lambda: self.start_asked.emit(Start(**self.chosen)))
        self.pending = label("", 10)
        self.pending.setWordWrap(True)
        self.pending.hide()
        restyle(self.pending, "pending", True)

    def offer(
        self,
        choices: Mapping[str, tuple[str, ...]],
        hands: tuple[str, ...],
        laws: tuple[str, ...],
        about: Mapping[str, Mapping[str, str]],
        info: RunInfo,
    ) -> None:
        """Fill the lists and select the entries of the present run."""
        self._choices, self._about = dict(choices), about
        with QtCore.QSignalBlocker(self.device):
            self.device.clear()
            self.device.addItems(list(choices))
            self.device.setCurrentText(info.device)
        self._offer_models(self.device.currentText())
        self.model.setCurrentText(info.model)
        for kind, names, present in (("hand", hands, info.hand), ("law", laws, info.law)):
            self.boxes[kind].clear()
            self.boxes[kind].addItems(list(names))
            self.boxes[kind].setCurrentText(present)
            for widget in (self.boxes[kind], self._names[kind]):
                widget.setVisible(bool(names))
        self._explain()
        self._present = self.chosen
        self._show_pending()
        self.allow_start()

    def _explain(self) -> None:
        """Set the tool tips of all entries to their descriptions."""
        for kind, box in self.boxes.items():
            for index in range(box.count()):
                box.setItemData(index, self._line(kind, box.itemText(index)), QtCore.Qt.ItemDataRole.ToolTipRole)

    def _line(self, kind: str, name: str) -> str:
        return self._about.get(kind, {}).get(name, "")

    @property
    def chosen(self) -> dict[str, str]:
        """The selected entries, by `KINDS`."""
        return {kind: box.currentText() for kind, box in self.boxes.items()}

    def _show_pending(self) -> None:
        """Show which selections differ from the present run and are pending."""
        waits = []
        for kind, then in self.chosen.items():
            now = self._present[kind]
            differs = self._running and now != then
            words = self._line(kind, then)
            self._lines[kind].setText(words)
            self._lines[kind].setVisible(bool(words))
            self.boxes[kind].setToolTip(words)
            self._names[kind].setText(f"{kind.capitalize()} \u25cf" if differs else kind.capitalize())
            if differs and now:
                waits.append(f"{kind} {now}")
        self.start.setText(("Start again with these" if waits else "Start again") if self._running else "Start")
        self.pending.setText(f"PENDING: until then {', '.join(waits)} {'go' if len(waits) > 1 else 'goes'} on.")
        self.pending.setVisible(bool(waits))
        restyle(self.start, "pending", bool(waits))

    def allow_start(self) -> None:
        """Enable the start button if there is a device to select."""
        self.start.setEnabled(bool(self._choices))

    def _offer_models(self, device: str) -> None:
        before = self.model.currentText()
        self.model.clear()
        self.model.addItems(list(self._choices.get(device, ())))
        self.model.setCurrentText(before)
        self._explain()

    def set_running(self, running: bool) -> None:
        """Set whether a run is in progress."""
        self._running = running
        self._show_pending()
