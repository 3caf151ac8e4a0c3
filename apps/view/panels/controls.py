"""Control panel: selection and start of a session, stop, and changes of parameters during a run."""

from __future__ import annotations

from apps.front_ends.messages import Parameter, Start
from apps.shared.theme import DARK, Theme
from apps.view.panels.charts import Panel
from apps.view.panels.parameter import ParameterSlider
from apps.view.panels.session import SessionPanel, restyle
from apps.view.qt import QtCore, QtGui, QtWidgets, font, label, px

_WIDTH = 272


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
    """Left column of the window: a scrollable part, and start and stop buttons that are always visible.

    Attributes
    ----------
    start_asked : signal (Start)
        Start was pressed.
    stop_asked : signal
        Stop was pressed.
    parameter_changed : signal (key, value)
        See `ParameterSlider.changed`.
    theme_asked : signal
        A change of the theme was requested.
    """

    start_asked = QtCore.Signal(Start)
    stop_asked = QtCore.Signal()
    parameter_changed = QtCore.Signal(str, float)
    theme_asked = QtCore.Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setFixedWidth(px(_WIDTH))
        self._running = False
        self._theme = DARK
        self.sliders: list[ParameterSlider] = []
        self.session = SessionPanel()
        self.session.start_asked.connect(self.start_asked)
        self.start = self.session.start
        column = QtWidgets.QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self._scrolled(), 1)
        column.addWidget(self.session.pending)
        column.addWidget(self.start)
        column.addWidget(self._stop_button())

    def _scrolled(self) -> QtWidgets.QWidget:
        inside = QtWidgets.QWidget()
        column = QtWidgets.QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        inside.setMaximumWidth(px(_WIDTH))
        column.addWidget(self.session)
        column.addWidget(self._parameter_panel(), 1)
        self.area = QtWidgets.QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(inside)
        return self.area

    def _parameter_panel(self) -> QtWidgets.QWidget:
        panel = Panel("Numbers")
        panel.head.addWidget(label("in force at once", 10, faint=True))
        panel.head.addStretch(1)
        self.theme_button = QtWidgets.QToolButton()
        self.theme_button.setToolTip("change between the dark and the light theme")
        self.theme_button.setFocusPolicy(QtCore.Qt.FocusPolicy.NoFocus)
        self.theme_button.clicked.connect(self.theme_asked)
        panel.head.addWidget(self.theme_button)
        self._list = QtWidgets.QVBoxLayout()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(px(5))
        panel.body.addLayout(self._list)
        panel.body.addStretch(1)
        return panel

    def _stop_button(self) -> QtWidgets.QWidget:
        self.stop = QtWidgets.QPushButton(" STOP")
        self.stop.setObjectName("stop")
        self.stop.setFont(font(21, bold=True))
        self.stop.setMinimumHeight(px(66))
        self.stop.setIcon(_stop_icon("#ffffff"))
        self.stop.setIconSize(QtCore.QSize(px(36), px(36)))
        # The signal is `pressed`, not `clicked`: a stop must not wait for the release of the button.
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

    def set_parameters(self, parameters: tuple[Parameter, ...]) -> None:
        """Show a slider for each parameter, grouped by the table name in the key."""
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
        self._dress_stop()
        for slider in self.sliders:
            slider.setEnabled(running)

    def _dress_stop(self) -> None:
        """Set the appearance of the stop button, active or idle."""
        restyle(self.stop, "idle", not self._running)
        self.stop.setIcon(_stop_icon(self._theme.on_stop if self._running else self._theme.faint))

    def apply(self, theme: Theme) -> None:
        """Apply the colours of `theme`, and label the theme button with the other theme."""
        self._theme = theme
        self._dress_stop()
        self.theme_button.setText("Light" if theme.name == "dark" else "Dark")
