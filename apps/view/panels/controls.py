"""What a person can do: choose and start, stop, and turn the parameters while the run goes on."""

from __future__ import annotations

from apps.front_ends.messages import Parameter
from apps.shared.scale import SliderScale
from apps.shared.theme import DARK, Theme
from apps.view.panels.charts import Panel
from apps.view.qt import QtCore, QtGui, QtWidgets, font, label
from apps.view.run import RunInfo


class ParameterSlider(QtWidgets.QWidget):
    """Name, number and slider of one parameter.

    Attributes
    ----------
    changed : signal (key, value)
        A person has changed the value (SI); sent at once while the slider is dragged.
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
        self.spin = self._spin(parameter, lower, upper)
        self._lay_out(parameter.key)
        self.show_value(parameter.value)
        self.slider.valueChanged.connect(self._slid)
        self.spin.valueChanged.connect(self._typed)

    def _spin(self, parameter: Parameter, lower: float, upper: float) -> QtWidgets.QDoubleSpinBox:
        spin = QtWidgets.QDoubleSpinBox()
        spin.setDecimals(self.scale.decimals)
        spin.setRange(lower, upper)
        spin.setKeyboardTracking(False)
        spin.setStepType(QtWidgets.QAbstractSpinBox.StepType.AdaptiveDecimalStepType)
        spin.setAlignment(QtCore.Qt.AlignmentFlag.AlignRight)
        if parameter.unit and parameter.unit != "1":
            spin.setSuffix(f" {parameter.unit}")
        spin.setFixedWidth(120)
        return spin

    def _lay_out(self, key: str) -> None:
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 2)
        grid.setVerticalSpacing(3)
        name = label(key.rsplit(".", 1)[-1].replace("_", " "))
        name.setToolTip(key)
        name.setBuddy(self.spin)
        self.slider.setAccessibleName(key)
        self.spin.setAccessibleName(key)
        grid.addWidget(name, 0, 0)
        grid.addWidget(self.spin, 0, 1)
        grid.addWidget(self.slider, 1, 0, 1, 2)

    @property
    def value(self) -> float:
        """The present value (SI)."""
        return self.spin.value()

    def show_value(self, value: float) -> None:
        """Show a value that the person did not set; nothing is sent."""
        with QtCore.QSignalBlocker(self.slider), QtCore.QSignalBlocker(self.spin):
            self.spin.setValue(value)
            self.slider.setValue(self.scale.position(value))

    def _slid(self, position: int) -> None:
        with QtCore.QSignalBlocker(self.spin):
            self.spin.setValue(self.scale.value(position))
        # What is sent is what the box shows: rounded to its digits.
        self.changed.emit(self.key, self.spin.value())

    def _typed(self, value: float) -> None:
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setValue(self.scale.position(value))
        self.changed.emit(self.key, value)


def _restyle(widget: QtWidgets.QWidget, name: str, value: bool) -> None:
    """Set a property on which the style sheet depends."""
    widget.setProperty(name, value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)


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


class ControlPanel(QtWidgets.QWidget):
    """The left column.

    Parameters
    ----------
    above_stop : QWidget
        What has its place between the parameters and the stop button.

    Attributes
    ----------
    start_asked : signal (device, model, hand)
        Start was pressed.
    stop_asked : signal
        Stop was pressed.
    parameter_changed : signal (key, value)
        See `ParameterSlider.changed`.
    theme_asked : signal
        The other theme is wanted.
    """

    start_asked = QtCore.Signal(str, str, str)
    stop_asked = QtCore.Signal()
    parameter_changed = QtCore.Signal(str, float)
    theme_asked = QtCore.Signal()

    def __init__(self, above_stop: QtWidgets.QWidget) -> None:
        super().__init__()
        self.setFixedWidth(264)
        self._choices: dict[str, tuple[str, ...]] = {}
        self._present: tuple[str, str, str] = ("", "", "")
        self._running = False
        self._theme = DARK
        self.sliders: list[ParameterSlider] = []
        column = QtWidgets.QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._session_panel())
        column.addWidget(self._parameter_panel(), 1)
        column.addWidget(above_stop)
        column.addWidget(self._stop_button())

    def _session_panel(self) -> QtWidgets.QWidget:
        panel = Panel("Session")
        self.theme_button = QtWidgets.QToolButton()
        self.theme_button.setToolTip("change between the dark and the light theme")
        self.theme_button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.theme_button.clicked.connect(self.theme_asked)
        panel.head.addStretch(1)
        panel.head.addWidget(self.theme_button)
        form = QtWidgets.QGridLayout()
        form.setColumnStretch(1, 1)
        form.setVerticalSpacing(5)
        self.device, self.model, self.hand = (QtWidgets.QComboBox() for _ in range(3))
        for row, (name, box) in enumerate((("Device", self.device), ("Model", self.model), ("Hand", self.hand))):
            form.addWidget(label(name, faint=True), row, 0)
            form.addWidget(box, row, 1)
            box.setAccessibleName(name)
        self.device.currentTextChanged.connect(self._offer_models)
        self.start = QtWidgets.QPushButton("Start")
        self.start.setObjectName("start")
        self.start.setEnabled(False)
        self.start.clicked.connect(self._start)
        panel.body.addLayout(form)
        panel.body.addSpacing(3)
        panel.body.addWidget(self.start)
        self.pending = label("", 10)
        self.pending.setWordWrap(True)
        self.pending.hide()
        panel.body.addWidget(self.pending)
        for box in (self.device, self.model, self.hand):
            box.currentTextChanged.connect(self._show_pending)
        return panel

    def _parameter_panel(self) -> QtWidgets.QWidget:
        panel = Panel("Parameters")
        self._list = QtWidgets.QVBoxLayout()
        self._list.setContentsMargins(0, 0, 8, 0)
        self._list.setSpacing(7)
        inside = QtWidgets.QWidget()
        inside.setLayout(self._list)
        area = QtWidgets.QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        panel.body.addWidget(area, 1)
        return panel

    def _stop_button(self) -> QtWidgets.QWidget:
        self.stop = QtWidgets.QPushButton(" STOP")
        self.stop.setObjectName("stop")
        self.stop.setFont(font(21, bold=True))
        self.stop.setMinimumHeight(74)
        self.stop.setIcon(_stop_icon("#ffffff"))
        self.stop.setIconSize(QtCore.QSize(38, 38))
        # Pressed, not clicked: a stop does not wait until the button is let go.
        self.stop.pressed.connect(self.stop_asked)
        column = QtWidgets.QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        self.stop_key = label("", 10, faint=True)
        self.stop_key.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.name_stop_key("space bar")
        column.addWidget(self.stop)
        column.addWidget(self.stop_key)
        holder = QtWidgets.QWidget()
        holder.setLayout(column)
        return holder

    def offer(self, choices: dict[str, tuple[str, ...]], hands: tuple[str, ...], info: RunInfo) -> None:
        """Fill the lists, with the present run chosen."""
        self._choices = dict(choices)
        with QtCore.QSignalBlocker(self.device):
            self.device.clear()
            self.device.addItems(list(choices))
            self.device.setCurrentText(info.device)
        self._offer_models(self.device.currentText())
        self.model.setCurrentText(info.model)
        self.hand.clear()
        self.hand.addItems(list(hands))
        self.hand.setCurrentText(info.hand)
        self._present = self._chosen
        self._show_pending()
        self.allow_start()

    @property
    def _chosen(self) -> tuple[str, str, str]:
        return self.device.currentText(), self.model.currentText(), self.hand.currentText()

    def _show_pending(self) -> None:
        """Say that what is chosen does not run yet, if it is so."""
        pending = self._running and self._chosen != self._present
        device, model, hand = self._present
        self.start.setText(("Start again with these" if pending else "Start again") if self._running else "Start")
        self.pending.setText(f"still running: model {model} on {device}{f', {hand}' if hand else ''}")
        self.pending.setVisible(pending)
        _restyle(self.start, "pending", pending)

    def allow_start(self) -> None:
        """Let Start be pressed, if there is something to start."""
        self.start.setEnabled(bool(self._choices))

    def _offer_models(self, device: str) -> None:
        before = self.model.currentText()
        self.model.clear()
        self.model.addItems(list(self._choices.get(device, ())))
        self.model.setCurrentText(before)

    def _start(self) -> None:
        self.start_asked.emit(*self._chosen)

    def set_parameters(self, parameters: tuple[Parameter, ...]) -> None:
        """Show a slider for each parameter, grouped by the first word of the key."""
        while (item := self._list.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
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
        self._list.addStretch(1)

    def show_values(self, values: dict[str, float]) -> None:
        """Show these values (parameter key to value) on the sliders that have one of the keys."""
        for slider in self.sliders:
            if slider.key in values:
                slider.show_value(values[slider.key])

    def name_stop_key(self, key: str) -> None:
        """Say which key does what the stop button does."""
        self.stop.setToolTip(f"bring the device to its safe output and end the run ({key})")
        self.stop_key.setText(f"or {key}, anywhere in the window")

    def set_running(self, running: bool) -> None:
        """Say whether there is a run. The stop button only looks idle without one: a run may be about to start."""
        self._running = running
        self._show_pending()
        self._dress_stop()
        for slider in self.sliders:
            slider.setEnabled(running)

    def _dress_stop(self) -> None:
        """Let the stop button look as if there were something to stop, or not."""
        _restyle(self.stop, "idle", not self._running)
        self.stop.setIcon(_stop_icon(self._theme.on_stop if self._running else self._theme.faint))

    def apply(self, theme: Theme) -> None:
        """Take the colours of `theme` and name the theme that the button leads to."""
        self._theme = theme
        self._dress_stop()
        self.theme_button.setText("Light" if theme.name == "dark" else "Dark")
