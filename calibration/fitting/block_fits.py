"""Cross-validation of linear least squares on blocks, fast enough to compare hundreds of models.

The products of all columns are summed once for every block. A fit is then the solution of a small system. Such normal
equations lose precision if columns are nearly collinear. This suffices to choose a model, but the chosen one should be
fitted by `calibration.fitting.regression.least_squares`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import blocks

Array = NDArray[np.float64]

_PRESENT = 0.02
"""Minimum fraction of a column's sum of squares in the fitted samples, below which it is undetermined."""
_RIDGE = 1e-10


class BlockFits:
    """Least squares fits to subsets of columns, each leaving out one block.

    Parameters
    ----------
    matrix : array, (n, p)
        All candidate columns.
    target : array, (n,)
        Dependent variable.
    lengths : sequence of int
        Number of samples of each recording, in the order of the rows.
    folds : int
        Blocks per recording.
    gap : float
        Samples omitted on both sides of a test block, as a fraction of its length.
    """

    def __init__(self, matrix: Array, target: Array, lengths: Sequence[int], folds: int, gap: float) -> None:
        self.scales = np.sqrt(np.mean(matrix**2, axis=0))
        self.scales[self.scales == 0.0] = 1.0
        whole = np.column_stack((matrix / self.scales, target))
        self.products = whole.T @ whole
        judged, unfitted = [], []
        for start, length in zip(np.cumsum([0, *lengths[:-1]]), lengths, strict=True):
            every = np.ones(length, bool)
            for fit, test in blocks(length, folds, round(gap * length / folds)):
                left = every.copy()
                left[fit] = False
                judged.append(_products(whole[start : start + length][test]) / len(test))
                unfitted.append(_products(whole[start : start + length][left]))
        self.judged = np.array(judged)
        self.fitted = self.products - np.array(unfitted)

    def coefficients(self, columns: Sequence[int]) -> Array:
        """Return the coefficients (k,) of some columns, fitted to all samples."""
        return np.asarray(self._solve(self.products[None], list(columns))[0] / self.scales[list(columns)])

    def left_out(self, columns: Sequence[int]) -> Array:
        """Return the coefficients (blocks, k) of some columns, each fitted without one block."""
        return np.asarray(self._solve(self.fitted, list(columns)) / self.scales[list(columns)])

    def errors(self, columns: Sequence[int]) -> Array:
        """Return the mean squared test error (blocks,) on every block of the fit without it."""
        chosen = list(columns)
        solution = np.column_stack((self._solve(self.fitted, chosen), np.full(len(self.fitted), -1.0)))
        rows = [*chosen, -1]
        within = self.judged[:, rows][:, :, rows]
        return np.asarray(np.maximum(np.einsum("bi,bij,bj->b", solution, within, solution), 0.0))

    def _solve(self, products: Array, columns: list[int]) -> Array:
        energy = np.diagonal(products, axis1=1, axis2=2)[:, columns]
        total = np.diag(self.products)[columns]
        present = (energy > _PRESENT * total) & (total > 0.0)
        both = present[:, :, None] & present[:, None, :]
        system = np.where(both, products[:, columns][:, :, columns], 0.0)
        side = np.where(present, products[:, columns, -1], 0.0)
        diagonal = np.where(present, _RIDGE * total, 1.0)
        system[:, range(len(columns)), range(len(columns))] += diagonal
        return np.asarray(np.linalg.solve(system, side[:, :, None])[:, :, 0])


def _products(rows: Array) -> Array:
    return np.asarray(rows.T @ rows)
