"""Style of the pictures of the reproductions: colours, axes, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, PINK, SKY, AMBER = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
"""Okabe-Ito colours, distinguishable by colour-blind readers and by their brightness in print."""

INK, PALE, GRID = "#222222", "#8A8A8A", "#E6E6E6"


def dress(axes: Axes, x: str, y: str, title: str = "", *, legend: Any = "") -> None:
    """Set labels, a light grid and no frame on `axes`; `legend` is the place of a legend."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)
    if title:
        axes.set_title(title, fontsize=11, color=INK)
    if legend:
        axes.legend(fontsize=10, loc=legend)
