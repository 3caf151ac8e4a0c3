r"""Base class of friction laws, and the conditions under which an element can solve them.

A law :math:`\Phi` gives the friction force of a sliding contact. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` for ``f`` (Kikuuwe et al. 2006, Theorem 1 and (16), (52)). An element of mobility ``Z`` [m/(N
s)] evaluates it at every tick. `haptics.friction.laws` defines the laws.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Vector
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction.kernels import isotropic_forces, plane_forces
from haptics.friction.sliding_kernels import LAW, LAW_NUMBERS
from haptics.settings import check


@dataclass(frozen=True)
class Law(ABC):
    """Friction law: level as a function of sliding speed, and its implicit counterpart.

    Attributes
    ----------
    name : str
        Name in settings.
    isotropic : bool
        True if the level is the same in all directions. Isotropic laws support any number of dimensions.
    """

    kind: ClassVar[int]
    name: ClassVar[str]
    isotropic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(self, "law")

    @property
    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """Parameters for the kernels, beginning with `breakaway_force`."""

    @property
    @abstractmethod
    def breakaway_force(self) -> float:
        """Largest friction force at rest over all directions, |Phi(+0)| [N]."""

    @property
    def slopes(self) -> tuple[float, float]:
        """Smallest and largest slope of the level with speed [N s/m]."""
        return 0.0, 0.0

    @property
    def mobility_limit(self) -> float:
        """Supremum of the mobilities Z [m/(N s)] for which condition (15) gives a unique solution."""
        least, _ = self.slopes
        return -1.0 / least if least < 0.0 else math.inf

    @property
    def steepest_slope(self) -> float:
        """Largest magnitude of the slope of the level [N s/m]; conditions (48), (58)."""
        return max(map(abs, self.slopes))

    def doubt(self, mobility: float) -> str:
        """Return why the force at `mobility` [m/(N s)] is not unique or not accurate, or an empty string.

        The test is condition (15), slope > -1/Z, and for `ClosedForm` condition (48), |slope| << 1/Z.
        """
        if mobility < self.mobility_limit:
            return ""
        return (
            f"law {self} falls too steeply for this element: its mobility is {mobility:.4g} m/(N s) and must be less "
            f"than {self.mobility_limit:.4g} (condition 15)"
        )

    @property
    def record(self) -> NDArray[Any]:
        """Kernel record of the law, (1,) of dtype `haptics.friction.sliding_kernels.LAW`."""
        record = np.zeros(1, LAW)
        record["kind"] = self.kind
        numbers = self.numbers
        record["numbers"][0][: len(numbers)] = numbers
        record["numbers"][0][LAW_NUMBERS - 1] = self.mobility_limit
        return record

    def __call__(self, velocity: ArrayLike) -> Vector:
        """Return the friction force Phi(v) [N].

        Parameters
        ----------
        velocity : (..., n) array, or a number
            Sliding velocity [m/s]; a number is one dimension. Anisotropic laws accept only (..., 2).

        Returns
        -------
        float array like `velocity`
            Zero at rest, the friction of a body without applied force; the law only bounds the force by
            `breakaway_force`.
        """
        return self._forces(velocity, 0.0)

    def implicit(self, x: ArrayLike, mobility: float) -> Vector:
        """Return Phi_Z(x) [N], the force f with f = Phi(x - Z f); (16), (52).

        Where condition (15) fails, there may be several solutions. Sticking then takes precedence, followed by the
        fastest sliding, and an `AmbiguousLawWarning` is issued.

        Parameters
        ----------
        x : (..., n) array, or a number
            Velocity without friction [m/s]. Anisotropic laws accept only (..., 2).
        mobility : float
            Mobility Z [m/(N s)], greater than 0.

        Raises
        ------
        ConfigurationError
            If the mobility or an argument is invalid.
        """
        warn_if_ambiguous(self, mobility)
        return self._forces(x, mobility)

    def _forces(self, x: ArrayLike, mobility: float) -> Vector:
        try:
            array = np.array(x, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.array(np.nan)
        if not np.isfinite(array).all() or array.shape[-1:] == (0,):
            raise ConfigurationError(f"velocity = {x!r}: must be a finite number, or finite vectors of one length.")
        rows = array.reshape(-1, array.shape[-1] if array.ndim else 1)
        result = np.empty_like(rows)
        if self.isotropic:
            isotropic_forces(self.record, rows, float(mobility), result)
        elif rows.shape[1] == 2:
            plane_forces(self.record, rows, float(mobility), result)
        else:
            raise ConfigurationError(f"law {self.name} exists in two dimensions only, not in {rows.shape[1]}.")
        return result.reshape(array.shape)[()]  # a scalar for a scalar


def _require_mobility(mobility: float) -> None:
    if not isinstance(mobility, int | float | np.number) or not mobility > 0.0 or not math.isfinite(mobility):
        raise ConfigurationError(f"mobility = {mobility!r}: must be a finite number greater than 0 m/(N s).")


def require_solvable(law: Law, mobility: float, remedy: str = "a smaller mobility") -> None:
    """Raise `ConfigurationError` unless condition (15) holds, so that the friction force is unique."""
    _require_mobility(mobility)
    if mobility >= law.mobility_limit:
        raise ConfigurationError(f"{law.doubt(mobility)}; choose a law that falls more gently or {remedy}.")


def warn_if_ambiguous(law: Law, mobility: float, remedy: str = "a smaller mobility", depth: int = 3) -> None:
    """Issue an `AmbiguousLawWarning` if the condition of the law fails.

    Sticking then takes precedence, followed by the fastest sliding. `depth` is the stack level of the user's code.
    """
    _require_mobility(mobility)
    doubt = law.doubt(mobility)
    if doubt:
        warnings.warn(f"{doubt}; choose a law that falls more gently or {remedy}.", AmbiguousLawWarning, depth)
