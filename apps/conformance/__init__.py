"""Friction conformance suite: metrics of holding, break-away, sliding, direction and noise.

`evaluate` judges a renderer written in Python on the same plant and by the same metrics as the elements of this
project.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from apps.conformance.cells import Cell

    Renderer = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]


def evaluate(
    make_renderer: Callable[[float], Renderer],
    name: str = "renderer",
    cells: Sequence[Cell] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict[str, Any]]:
    """Judge a renderer written in Python.

    Parameters
    ----------
    make_renderer : callable
        ``make_renderer(period)`` returns a new renderer for a tick period of `period` [s]: a function
        ``renderer(position, velocity) -> force``. All are (2,): the position of the encoder [m], the velocity estimated
        from it [m/s], and the force on the handle [N], which opposes the motion.
    name : str
        Name in the results.
    cells : sequence of `apps.conformance.cells.Cell`, optional
        Test conditions; all cells by default.
    progress : callable, optional
        ``progress(done, total, words)``, called before each cell.

    Returns
    -------
    list of dict
        One row per cell, with the keys of ``haptics conformance --json``.

    Raises
    ------
    ConfigurationError
        If the renderer fails, or does not return two numbers.
    """
    from apps.conformance.cells import CELLS
    from apps.conformance.subjects import RendererSubject
    from apps.conformance.suite import judge_all

    return judge_all([RendererSubject(name, make_renderer)], CELLS if cells is None else cells, progress)


__all__ = ["evaluate"]
