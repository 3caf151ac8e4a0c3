"""Figure of a motor fit, modelled on Fig. 11 of Guedelha et al. 2018, with its residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.calibrate.reports.drawing import dots, legend, units_of
from apps.calibrate.reports.results import effort_word
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, PINK, dress
from apps.shared.figure import new_figure, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibration.motor.gain import MotorFit

Array = NDArray[np.float64]

_DRIVES = {
    "percent": "PWM [%]",
    "count": "PWM [counts]",
    "duty": "PWM [1]",
    "a": "current [A]",
    "v": "voltage [V]",
}


def motor_figure(fit: MotorFit) -> str:
    """Return the figure of a motor fit as SVG: hysteresis, line with the friction added, and residuals."""
    figure = new_figure(11.0, 8.4)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 0.8))
    _, effort = units_of(fit.recording.rotary)
    _hysteresis(figure.add_subplot(grid[0, 0]), fit, effort)
    _line(figure.add_subplot(grid[0, 1]), fit, effort)
    time = fit.recording.time[fit.used]
    left = figure.add_subplot(grid[1, 0])
    dots(left, time, fit.residual, BLUE)
    dress(left, "time [s]", f"residual [{effort}]", "what the fit leaves")
    by_drive = figure.add_subplot(grid[1, 1])
    dots(by_drive, fit.drive[fit.used], fit.residual, BLUE)
    dress(by_drive, _drive_label(fit), f"residual [{effort}]", "the same by the drive")
    return svg(figure)


def _drive_label(fit: MotorFit) -> str:
    return _DRIVES[fit.recording.drive_unit]


def _hysteresis(axes: Axes, fit: MotorFit, effort: str) -> None:
    """Draw the output torque, one colour for each direction.

    The branches differ by twice the friction (Fig. 11).
    """
    drive = fit.drive
    words = ("drive falling", "drive rising") if fit.held else ("moving backward", "moving forward")
    for side, colour, label in ((-1.0, PINK, words[0]), (1.0, BLUE, words[1])):
        chosen = fit.branch == side
        dots(axes, drive[chosen], fit.gross[chosen], colour, label)
    ends = np.array([drive.min(), drive.max()])
    middle = fit.values["gain"] * ends + fit.values["offset"]
    axes.plot(ends, middle, color=ORANGE, linewidth=2.0, label="identified")
    half = fit.values.get("hysteresis", 0.0)
    for side in (-1.0, 1.0) if half else ():
        axes.plot(ends, middle + side * half, color=ORANGE, linewidth=1.2, linestyle="--")
    dress(
        axes,
        _drive_label(fit),
        f"{effort_word(fit.recording.rotary)} that came out [{effort}]",
        "before the friction is added",
    )
    legend(axes, "upper left")


def _line(axes: Axes, fit: MotorFit, effort: str) -> None:
    """Draw the motor torque, with the friction added, and the fitted line."""
    drive = fit.drive
    dots(axes, drive[~fit.used], _own(fit)[~fit.used], PALE, "left out")
    dots(axes, drive[fit.used], _own(fit)[fit.used], BLUE, "motor")
    ends = np.array([drive.min(), drive.max()])
    axes.plot(ends, fit.values["gain"] * ends + fit.values["offset"], color=ORANGE, linewidth=2.0, label="identified")
    axes.axhline(0.0, color=INK, linewidth=0.8)
    dress(
        axes,
        _drive_label(fit),
        f"{effort_word(fit.recording.rotary)} of the motor [{effort}]",
        "with the friction added",
    )
    legend(axes, "upper left")


def _own(fit: MotorFit) -> Array:
    return fit.net + fit.branch * fit.values.get("hysteresis", 0.0)
