"""Slider for a parameter of the law or the element that can be changed during a run."""

from __future__ import annotations

from apps.front_ends.messages import Parameter
from apps.shared.scale import SliderScale
from apps.view.qt import QtCore, QtWidgets, label, px


class ParameterSlider(QtWidgets.QWidget):
    """Name, number field, and slider of one parameter.

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
        spin.setFixedWidth(px(120))
        return spin

    def _lay_out(self, key: str) -> None:
        grid = QtWidgets.QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 2)
        grid.setVerticalSpacing(3)
        name = label(key.rsplit(".", 1)[-1].replace("_", " "))
        name.setToolTip(f"{key}: in force from the next tick on")
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
        """Show a value that was not set by the user; no signal is emitted."""
        with QtCore.QSignalBlocker(self.slider), QtCore.QSignalBlocker(self.spin):
            self.spin.setValue(value)
            self.slider.setValue(self.scale.position(value))

    def _slid(self, position: int) -> None:
        with QtCore.QSignalBlocker(self.spin):
            self.spin.setValue(self.scale.value(position))
        # Emit the rounded value of the number field, so that the value sent equals the value shown.
        self.changed.emit(self.key, self.spin.value())

    def _typed(self, value: float) -> None:
        with QtCore.QSignalBlocker(self.slider):
            self.slider.setValue(self.scale.position(value))
        self.changed.emit(self.key, value)
