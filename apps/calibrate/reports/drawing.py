"""Shared parts of the calibration figures: units, sample dots and legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_MOST_POINTS = 6000


def units_of(rotary: bool) -> tuple[str, str]:
    """Return the units of velocity and of torque or force."""
    return ("rad/s", "N m") if rotary else ("m/s", "N")


def _thinned(*series: Array) -> list[Array]:
    """Return every n-th sample, so that at most `_MOST_POINTS` are plotted.

    A figure cannot show more.
    """
    every = max(1, -(-len(series[0]) // _MOST_POINTS))
    return [one[::every] for one in series]


def dots(axes: Axes, x: Array, y: Array, colour: str, label: str = "") -> None:
    """Draw samples as rasterized dots, because thousands of vector dots would make the file large."""
    x, y = _thinned(x, y)
    axes.plot(x, y, ".", color=colour, markersize=2.2, alpha=0.5, rasterized=True, label=label or None)


def legend(axes: Axes, place: Literal["upper left", "upper right", "center"]) -> None:
    """Add a legend with enlarged dots."""
    shown = axes.legend(loc=place, fontsize=8.5, framealpha=0.9)
    for handle in shown.legend_handles:
        if handle is not None and hasattr(handle, "set_markersize"):
            handle.set_markersize(6.0)
