"""Figures for reports: Matplotlib without a display, written as SVG."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of the given size [inch]."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def svg(figure: Figure) -> str:
    """Return a figure as SVG. The output is reproducible."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "haptics"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
