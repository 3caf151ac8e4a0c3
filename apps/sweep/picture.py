"""Picture of a sweep: each outcome as a curve over one axis or as a map over two.

Outcomes are averaged over the other axes.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apps.shared.theme import LIGHT
from apps.sweep.agreement import BOUND, Table
from apps.sweep.design import Sweep
from apps.sweep.settings import AxisSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = "sweep.png"
MOST_PANELS = 9
_MOST_SLICES, _OF_SLICES = 6, 4
_DPI = {False: 100, True: 64}
_NOT_DRAWN = {"seed", "flags", "unusable_ticks"}


def draw(sweep: Sweep, table: Table, folder: Path) -> str | None:
    """Draw the outcomes of a sweep.

    Return the path of the picture, or None if nothing can be drawn.
    """
    axes = [axis for axis in sweep.axes if _is_number(table[axis.setting]) and len(np.unique(table[axis.setting])) > 1]
    axis_names = {axis.setting for axis in sweep.axes}
    names = [name for name in table if name not in _NOT_DRAWN | axis_names and _has_numbers(table[name])]
    if not axes or not names:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    slices = _slices(sweep, table, axes)
    names = names[: MOST_PANELS if len(slices) == 1 else _OF_SLICES]
    columns = min(3, len(names)) if len(slices) == 1 else len(names)
    lines = math.ceil(len(names) * len(slices) / columns)
    figure = Figure(figsize=(4.6 * columns, 3.6 * lines), dpi=_DPI[len(slices) > 1], facecolor="white")
    figure.set_layout_engine("constrained")
    FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(lines, columns)).ravel()
    wanted = [(title, part, name) for title, part in slices for name in names]
    for panel, (title, part, name) in zip(panels, wanted, strict=False):
        _panel(panel, sweep, part, name, axes)
        panel.set_title(name.replace("_", " ") + title, fontsize=10)
    for panel in panels[len(wanted) :]:
        panel.set_axis_off()
    path = folder / PICTURE
    figure.savefig(path, format="png")
    return str(path)


def _slices(sweep: Sweep, table: Table, axes: list[AxisSettings]) -> list[tuple[str, Table]]:
    """Split the table into slices with titles, one for each combination of the axes that no panel shows.

    The table stays whole if there would be too many slices. The panels then show means.
    """
    rest = [axis.setting for axis in sweep.axes if axis not in axes[:2] and len(np.unique(table[axis.setting])) > 1]
    values = [list(dict.fromkeys(table[name].tolist())) for name in rest]
    if sweep.settings.design != "grid" or not rest or math.prod(map(len, values)) > _MOST_SLICES:
        return [("", table)]
    found = []
    for point in itertools.product(*values):
        chosen = np.all([table[name] == value for name, value in zip(rest, point, strict=True)], axis=0)
        words = ", ".join(f"{name} = {value}" for name, value in zip(rest, point, strict=True))
        found.append((f"\n{words}", {name: column[chosen] for name, column in table.items()}))
    return found


def _panel(panel: Axes, sweep: Sweep, table: Table, name: str, axes: list[AxisSettings]) -> None:
    if sweep.settings.design != "grid":
        _points(panel, table, name, axes)
    elif len(axes) > 1:
        _map(panel, table, name, axes[0], axes[1])
    else:
        _curve(panel, table, name, axes[0])


def _is_number(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "fiub"


def _has_numbers(values: NDArray[Any]) -> bool:
    return _is_number(values) and bool(np.isfinite(values.astype(float)).any())


def _scale(axes: Axes, across: AxisSettings, up: AxisSettings | None = None) -> None:
    axes.set_xlabel(across.setting)
    axes.set_xscale(across.scale)
    if up is not None:
        axes.set_ylabel(up.setting)
        axes.set_yscale(up.scale)


def _means(values: NDArray[Any], places: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Return the mean of the finite `values` at each place, shape (count,), nan without values."""
    values = values.astype(float)
    finite = np.isfinite(values)
    number = np.bincount(places[finite], minlength=count)
    total = np.bincount(places[finite], values[finite], minlength=count)
    return np.where(number > 0, total / np.maximum(number, 1), math.nan)


def _curve(axes: Axes, table: Table, name: str, axis: AxisSettings) -> None:
    """Draw the mean over the axis, and every job as a pale dot."""
    x = table[axis.setting].astype(float)
    levels, places = np.unique(x, return_inverse=True)
    axes.plot(x, table[name].astype(float), ".", color=LIGHT.border, markersize=3)
    axes.plot(levels, _means(table[name], places, len(levels)), "-", color=LIGHT.motion, linewidth=1.6)
    _scale(axes, axis)


def _map(axes: Axes, table: Table, name: str, across: AxisSettings, up: AxisSettings) -> None:
    columns, column = np.unique(table[across.setting].astype(float), return_inverse=True)
    lines, line = np.unique(table[up.setting].astype(float), return_inverse=True)
    places = line * len(columns) + column
    means = _means(table[name], places, len(columns) * len(lines)).reshape(len(lines), len(columns))
    mesh = axes.pcolormesh(columns, lines, means, shading="nearest", cmap="viridis")
    axes.figure.colorbar(mesh, ax=axes)
    if BOUND in table and name != BOUND and np.isfinite(table[BOUND].astype(float)).all():
        bound = _means(table[BOUND], places, means.size).reshape(means.shape)
        axes.contour(columns, lines, bound, levels=[0.0], colors=LIGHT.force, linewidths=1.6)
    _scale(axes, across, up)


def _points(axes: Axes, table: Table, name: str, names: list[AxisSettings]) -> None:
    """Draw the points of a random design, coloured by the outcome if there are two axes."""
    values = table[name].astype(float)
    if len(names) == 1:
        axes.plot(table[names[0].setting].astype(float), values, ".", color=LIGHT.motion, markersize=4)
        _scale(axes, names[0])
        return
    x, y = (table[axis.setting].astype(float) for axis in names[:2])
    dots = axes.scatter(x, y, c=values, s=12, cmap="viridis")
    axes.figure.colorbar(dots, ax=axes)
    _scale(axes, names[0], names[1])
