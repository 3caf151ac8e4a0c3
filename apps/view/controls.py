"""Control panel: selection and start of a session, stop, and changes of parameters during a run."""

from __future__ import annotations

from collections.abc import Mapping

from apps.front_ends.messages import Parameter, SessionStarted, Start
from apps.front_ends.run import RunInfo
from apps.shared.display import SliderScale
from apps.shared.theme import Theme
from apps.view.charts import Panel
from apps.view.qt import (
    QtCore,
    QtGui,
    QtWidgets,
    current_theme,
    font,
    label,
    lay_out,
    px,
    remove_all,
    restyle,
    tool_button,
)

KINDS = ("device", "model", "law", "hand")
"""Kinds of choices."""

_WIDTH = 272


class ParameterSlider(QtWidgets.QWidget):
    """Name, number field, and slider of a parameter of the law or the element.

    Attributes
    ----------
    changed : signal (key, value)
        The user has changed the value (SI); emitted continuously while the slider is dragged.
    """

    changed = QtCore.Signal(str, float)

    def __init__(self, parameter: Parameter) -> None:
        super().__init__()
        self.key = parameter.key
        lower, upper = min(parameter.minimum, parameter.value), max(parameter.maximum, parameter.value)
        self.scale = SliderScale(lower, upper, parameter.logarithmic, parameter.whole)
        self.slider = QtWidgets.QSlider(QtCore.Qt.Orientation.Horizontal)
        self.slider.setRange(0, self.scale.steps)
        self.slider.setPageStep(max(self.scale.steps // 20, 1))
        self.spin = QtWidgets.QDoubleSpinBox()
        self.spin.setDecimals(self.scale.decimals)
        self.spin.setRange(lower, upper)
        self.spin.setKeyboardTracking(False)
        self.spin.setStepType(QtWidgets.QAbstractSpinBox.StepType.AdaptiveDecimalStepType)
        self.spin.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight)
        if parameter.unit and parameter.unit != "1":
            self.spin.setSuffix(f" {parameter.unit}")
        self.spin.setFixedWidth(px(120))
        name = label(self.key.rsplit(".", 1)[-1].replace("_", " "))
        name.setToolTip(f"{self.key}: in force from the next tick on")
        name.setBuddy(self.spin)
        self.slider.setAccessibleName(self.key)
        self.spin.setAccessibleName(self.key)
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 2)
        grid.setVerticalSpacing(3)
        grid.addWidget(name, 0, 0)
        grid.addWidget(self.spin, 0, 1)
        grid.addWidget(self.slider, 1, 0, 1, 2)
        self.show_value(parameter.value)
        self.slider.valueChanged.connect(self._set_by_slider)
        self.spin.valueChanged.connect(self._set_by_number)

    def show_value(self, value: float) -> None:
        """Show a value that was not set by the user; no signal is emitted."""
        with QtCore.QSignalBlocker(self.slider), QtCore.QSignalBlocker(self.spin):
            self.spin.setValue(value)
            self.slider.setValue(self.scale.position(value))

    def _set_by_slider(self, position: int) -> None:
        with QtCore.QSignalBlocker(self.spin):
            self.spin.setValue(self.scale.value(position))
        # Emit the rounded value of the number field, so that the value sent equals the value shown.
        self.changed.emit(self.key, self.spin.value())

    def _set_by_number(self, value: float) -> None:
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setValue(self.scale.position(value))
        self.changed.emit(self.key, value)


class SessionPanel(Panel):
    """Selection of device, model, law, and hand for the next run, with descriptions and the start button.

    Attributes
    ----------
    start, pending : QPushButton, QLabel
        The start button, and a text on pending choices, which are shown outside the panel.
    start_requested : signal (Start)
        Start was pressed.
    """

    start_requested = QtCore.Signal(object)

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
            box.setAccessibleName(kind.capitalize())
            box.setSizeAdjustPolicy(QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)
            self._lines[kind].setWordWrap(True)
            self._lines[kind].setTextFormat(QtCore.Qt.TextFormat.PlainText)
            form.addWidget(self._names[kind], 2 * row, 0)
            form.addWidget(box, 2 * row, 1)
            form.addWidget(self._lines[kind], 2 * row + 1, 0, 1, 2)
        self.body.addLayout(form)
        self.start = QtWidgets.QPushButton("Start")
        self.start.setObjectName("start")
        self.start.setEnabled(False)
        self.start.setToolTip("end the present run, if any, and begin one with what is chosen here")
        self.start.clicked.connect(lambda: self.start_requested.emit(Start(**self.chosen)))
        self.pending = label("", 10, wrap=True)
        self.pending.hide()
        restyle(self.pending, "pending", True)
        self.device.currentTextChanged.connect(self._offer_models)
        for box in self.boxes.values():
            box.currentTextChanged.connect(self._show_pending)

    @property
    def chosen(self) -> dict[str, str]:
        """The selected entries, by `KINDS`."""
        return {kind: box.currentText() for kind, box in self.boxes.items()}

    def offer(self, message: SessionStarted, info: RunInfo) -> None:
        """Fill the lists with the choices of a session and select the entries of the present run."""
        self._choices, self._about = dict(message.choices), message.about
        with QtCore.QSignalBlocker(self.device):
            self.device.clear()
            self.device.addItems(list(self._choices))
            self.device.setCurrentText(info.device)
        self._offer_models(self.device.currentText())
        self.model.setCurrentText(info.model)
        for kind, names, present in (("hand", message.hands, info.hand), ("law", message.laws, info.law)):
            self.boxes[kind].clear()
            self.boxes[kind].addItems(list(names))
            self.boxes[kind].setCurrentText(present)
            for widget in (self.boxes[kind], self._names[kind]):
                widget.setVisible(bool(names))
        self._explain()
        self._present = self.chosen
        self._show_pending()
        self.allow_start()

    def show_present(self, **entries: str) -> None:
        """Show other entries of the present run (`KINDS`); pending selections of the user remain."""
        for kind, name in entries.items():
            box, followed = self.boxes[kind], self.boxes[kind].currentText() == self._present[kind]
            if box.findText(name) < 0:
                box.addItem(name)
            self._present[kind] = name
            if followed:
                box.setCurrentText(name)
        self._show_pending()

    def allow_start(self) -> None:
        """Enable the start button if there is a device to select."""
        self.start.setEnabled(bool(self._choices))

    def set_running(self, running: bool) -> None:
        """Set whether a run is in progress."""
        self._running = running
        self._show_pending()

    def _offer_models(self, device: str) -> None:
        before = self.model.currentText()
        self.model.clear()
        self.model.addItems(list(self._choices.get(device, ())))
        self.model.setCurrentText(before)
        self._explain()

    def _explain(self) -> None:
        """Set the tool tips of all entries to their descriptions."""
        for kind, box in self.boxes.items():
            for index in range(box.count()):
                words = self._about.get(kind, {}).get(box.itemText(index), "")
                box.setItemData(index, words, QtCore.Qt.ItemDataRole.ToolTipRole)

    def _show_pending(self) -> None:
        """Show which selections differ from the present run and are pending."""
        pending = []
        for kind, chosen in self.chosen.items():
            present = self._present[kind]
            differs = self._running and present != chosen
            words = self._about.get(kind, {}).get(chosen, "")
            self._lines[kind].setText(words)
            self._lines[kind].setVisible(bool(words))
            self.boxes[kind].setToolTip(words)
            self._names[kind].setText(f"{kind.capitalize()} \u25cf" if differs else kind.capitalize())
            if differs and present:
                pending.append(f"{kind} {present}")
        self.start.setText(("Start again with these" if pending else "Start again") if self._running else "Start")
        self.pending.setText(f"PENDING: until then {', '.join(pending)} {'go' if len(pending) > 1 else 'goes'} on.")
        self.pending.setVisible(bool(pending))
        restyle(self.start, "pending", bool(pending))


class ControlPanel(QtWidgets.QWidget):
    """Left column of the window: a scrollable part, and start and stop buttons that are always visible.

    Attributes
    ----------
    stop, theme_button : QPushButton, QToolButton
        Stop, which acts on `pressed`, and the other theme.
    parameter_changed : signal (key, value)
        See `ParameterSlider.changed`.
    """

    parameter_changed = QtCore.Signal(str, float)

    def __init__(self) -> None:
        super().__init__()
        self.setFixedWidth(px(_WIDTH))
        self._running = False
        self.sliders: list[ParameterSlider] = []
        self.session = SessionPanel()
        self.start = self.session.start
        numbers = Panel("Numbers")
        numbers.head.addWidget(label("in force at once", 10, faint=True))
        numbers.head.addStretch(1)
        self.theme_button = tool_button("", "change between the dark and the light theme")
        numbers.head.addWidget(self.theme_button)
        self._list = lay_out(QtWidgets.QVBoxLayout(), spacing=px(5))
        numbers.body.addLayout(self._list)
        numbers.body.addStretch(1)
        inside = QtWidgets.QWidget()
        inside.setMaximumWidth(px(_WIDTH))
        lay_out(QtWidgets.QVBoxLayout(inside), self.session, (numbers, 1), spacing=6)
        self.area = QtWidgets.QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(inside)
        self.stop = QtWidgets.QPushButton(" STOP")
        self.stop.setObjectName("stop")
        self.stop.setFont(font(21, bold=True))
        self.stop.setMinimumHeight(px(66))
        self.stop.setIconSize(QtCore.QSize(px(36), px(36)))
        self.stop_key = label("", 10, faint=True, centred=True)
        self.name_stop_key("space bar")
        stop = QtWidgets.QWidget()
        lay_out(QtWidgets.QVBoxLayout(stop), self.stop, self.stop_key, spacing=3)
        column = QtWidgets.QVBoxLayout(self)
        lay_out(column, (self.area, 1), self.session.pending, self.start, stop, spacing=6)

    def set_parameters(self, parameters: tuple[Parameter, ...]) -> None:
        """Show a slider for each parameter, grouped by the table name in the key."""
        remove_all(self._list)
        self.sliders = []
        group = ""
        for parameter in parameters:
            word = parameter.key.split(".", 1)[0] if "." in parameter.key else ""
            if word != group:
                group = word
                self._list.addWidget(label(word, 10, bold=True, faint=True))
            slider = ParameterSlider(parameter)
            slider.changed.connect(self.parameter_changed)
            self.sliders.append(slider)
            self._list.addWidget(slider)

    def show_values(self, values: dict[str, float]) -> None:
        """Show values (parameter key to value) on the corresponding sliders."""
        for slider in self.sliders:
            if slider.key in values:
                slider.show_value(values[slider.key])

    def name_stop_key(self, key: str) -> None:
        """Show the name of the key with the function of the stop button."""
        self.stop.setToolTip(f"bring the device to its safe output and end the run ({key})")
        self.stop_key.setText(f"or {key}, anywhere in the window")

    def set_running(self, running: bool) -> None:
        """Set whether a run is in progress.

        The stop button remains enabled without a run and only looks idle, because a run may be about to start.
        """
        self._running = running
        self.session.set_running(running)
        self.apply(current_theme())
        for slider in self.sliders:
            slider.setEnabled(running)

    def apply(self, theme: Theme) -> None:
        """Set the appearance of the stop button, active or idle, and label the theme button with the other theme."""
        self.theme_button.setText("Light" if theme.name == "dark" else "Dark")
        restyle(self.stop, "idle", not self._running)
        self.stop.setIcon(_stop_icon(theme.on_stop if self._running else theme.faint))


def _stop_icon(colour: str) -> QtGui.QIcon:
    """Return an octagon, the shape of a stop sign."""
    picture = QtGui.QPixmap(64, 64)
    picture.fill(QtCore.Qt.GlobalColor.transparent)
    painter = QtGui.QPainter(picture)
    painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
    painter.setPen(QtGui.QPen(QtGui.QColor(colour), 6))
    near, far, low, high = 20.0, 44.0, 4.0, 60.0
    corners = ((near, low), (far, low), (high, near), (high, far), (far, high), (near, high), (low, far), (low, near))
    painter.drawPolygon(QtGui.QPolygonF([QtCore.QPointF(x, y) for x, y in corners]))
    painter.setBrush(QtGui.QColor(colour))
    painter.drawRect(QtCore.QRectF(23, 23, 18, 18))
    painter.end()
    return QtGui.QIcon(picture)
