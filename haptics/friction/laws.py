r"""Friction laws and their exact implicit counterparts, in any number of dimensions.

A law :math:`\Phi` gives the friction force of a sliding contact, in the direction of the velocity. At rest the force
may have any value up to the break-away level. Its *implicit counterpart* :math:`\Phi_Z` solves
:math:`f = \Phi(x - Z f)` for ``f`` (Kikuuwe et al. 2006, Theorem 1 and (16), (52)). An element of mobility ``Z`` [m/(N
s)] evaluates it at every tick. All laws are solved exactly, except `ClosedForm`, which uses the approximation of the
paper.

====================  ==================================================  ===================================
class                 level g(s) at sliding speed s                       solution
====================  ==================================================  ===================================
`Coulomb`             F                                                   (23), (53)
`CoulombViscous`      F + D s                                             (25), (55)
`Stribeck`            Fc + (Fs - Fc) exp(-s/vs) + D s                     Halley's iteration
`GaussianStribeck`    Fc + (Fs - Fc) exp(-(s/vs)^2) + D s                 bracketed search
`DeadZoneViscous`     F + D max(s - w, 0)                                 closed form, piecewise
`Elliptic`            anisotropic: an ellipse                             nearest point of the ellipse
`Asymmetric`          anisotropic: quarters of ellipses                   nearest point of the ellipse
`CustomLaw`           a user-defined function, `friction_law`             bracketed search
`ClosedForm`          the level of another law                            approximation (46), (57), (59)
====================  ==================================================  ===================================

Iterations and searches converge to machine precision.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Vector
from haptics.errors import AmbiguousLawWarning, ConfigurationError
from haptics.friction import kernels
from haptics.settings import Checked, bounded, documented

# --- base class -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law(Checked, section="law"):
    """Friction law: level as a function of sliding speed, and its implicit counterpart.

    Attributes
    ----------
    name : str
        Name in settings.
    isotropic : bool
        True if the level is the same in all directions. Isotropic laws support any number of dimensions.
    forces : int
        Number of leading `numbers` that are forces [N]. Textures of a scene and normal forces scale them.
    steepness : float
        Steepest fall of the level in units of (F_s - F_c)/v_s, for `numbers` F_s, F_c, v_s and D; 0 if it never falls.
    """

    kind: ClassVar[int]
    name: ClassVar[str]
    isotropic: ClassVar[bool] = True
    forces: ClassVar[int] = 1
    steepness: ClassVar[float] = 0.0

    @property
    def numbers(self) -> tuple[float, ...]:
        """Parameters for the kernels, beginning with the break-away force; by default the fields in order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def breakaway_force(self) -> float:
        """Largest friction force at rest over all directions, |Phi(+0)| [N]."""
        return self.numbers[0]

    @property
    def slopes(self) -> tuple[float, float]:
        """Smallest and largest slope of the level with speed [N s/m]; the viscosity for both if the law has one."""
        viscosity = float(getattr(self, "viscosity", 0.0))
        return viscosity, viscosity

    @property
    def mobility_limit(self) -> float:
        """Supremum of the mobilities Z [m/(N s)] for which condition (15) gives a unique solution."""
        least, _ = self.slopes
        return -1.0 / least if least < 0.0 else math.inf

    @property
    def steepest_slope(self) -> float:
        """Largest magnitude of the slope of the level [N s/m]; conditions (48), (58)."""
        return max(map(abs, self.slopes))

    def ambiguity(self, mobility: float) -> str:
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
        """Kernel record of the law, (1,) of dtype `haptics.friction.kernels.LAW`."""
        record = np.zeros(1, kernels.LAW)
        record["kind"] = self.kind
        numbers = self.numbers
        record["numbers"][0][: len(numbers)] = numbers
        record["numbers"][0][kernels.LAW_NUMBERS - 1] = self.mobility_limit
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
            kernels.isotropic_forces(self.record, rows, float(mobility), result)
        elif rows.shape[1] == 2:
            kernels.plane_forces(self.record, rows, float(mobility), result)
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
        raise ConfigurationError(f"{law.ambiguity(mobility)}; choose a law that falls more gently or {remedy}.")


def warn_if_ambiguous(law: Law, mobility: float, remedy: str = "a smaller mobility", depth: int = 3) -> None:
    """Issue an `AmbiguousLawWarning` if the condition of the law fails.

    Sticking then takes precedence, followed by the fastest sliding. `depth` is the stack level of the user's code.
    """
    _require_mobility(mobility)
    doubt = law.ambiguity(mobility)
    if doubt:
        warnings.warn(f"{doubt}; choose a law that falls more gently or {remedy}.", AmbiguousLawWarning, depth)


# --- isotropic laws ---------------------------------------------------------------------------------------------------


_LEVEL: dict[str, Any] = {"minimum": 0.0, "unit": "N", "slider": (0.0, 8.0)}
_VISCOSITY: dict[str, Any] = {"minimum": 0.0, "unit": "N s/m", "slider": (0.0, 50.0)}


@documented
@dataclass(frozen=True)
class Coulomb(Law, kind=kernels.VISCOUS, name="coulomb"):
    """Dry friction of constant level: F v/|v| (Kikuuwe et al. 2006, (2); counterpart (23), (53))."""

    force: float = bounded(usual=(6.0, 4.0), **_LEVEL, doc="friction force F")


@documented
@dataclass(frozen=True)
class CoulombViscous(Law, kind=kernels.VISCOUS, name="coulomb-viscous"):
    """Dry and viscous friction: F v/|v| + D v (Kikuuwe et al. 2006, (24), (54); counterpart (25), (55))."""

    force: float = bounded(usual=(6.0, 4.0), **_LEVEL, doc="friction force F at vanishing speed")
    viscosity: float = bounded(usual=5.0, **_VISCOSITY, doc="viscosity D")


@dataclass(frozen=True)
class _StribeckShape(Law, forces=2):
    """Law that falls from a static to a kinetic level; subclasses define the shape of the fall."""

    kinetic_force: float = bounded(usual=(5.0, 3.0), **_LEVEL, doc="friction force F_c towards high speed")
    static_force: float = bounded(usual=(6.0, 4.0), **_LEVEL, doc="break-away force F_s, at least kinetic_force")
    stribeck_velocity: float = bounded(
        above=0.0, unit="m/s", usual=0.15, slider=(1e-3, 1.0), doc="speed v_s over which the friction falls"
    )
    viscosity: float = bounded(0.0, **_VISCOSITY, doc="viscosity D")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.static_force < self.kinetic_force:
            raise ConfigurationError(
                f"law.static_force = {self.static_force!r}: must be at least law.kinetic_force = "
                f"{self.kinetic_force!r} N."
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.static_force, self.kinetic_force, self.stribeck_velocity, self.viscosity

    @property
    def slopes(self) -> tuple[float, float]:
        """Smallest and largest slope of the level [N s/m]: at its steepest fall, and at high speed."""
        fall = self.steepness * (self.static_force - self.kinetic_force) / self.stribeck_velocity
        return self.viscosity - fall, self.viscosity


@documented
@dataclass(frozen=True)
class Stribeck(_StribeckShape, kind=kernels.STRIBECK, name="stribeck", steepness=1.0):
    """Friction that falls from a static to a kinetic level: :math:`F_c + (F_s - F_c) e^{-s/v_s} + D s`.

    The law is solved to machine precision by Halley's iteration. It falls at ``(F_s - F_c)/v_s - D`` at zero speed.
    Where this is positive, condition (15) bounds the mobility of the element.
    """


@documented
@dataclass(frozen=True)
class GaussianStribeck(
    _StribeckShape, kind=kernels.GAUSSIAN, name="gaussian-stribeck", steepness=math.sqrt(2.0 / math.e)
):
    """Friction with a Gaussian fall to the kinetic level: :math:`F_c + (F_s - F_c) e^{-(s/v_s)^2} + D s`.

    The parameters are the same as for `Stribeck`. Unlike that law, the level starts with zero slope and falls fastest
    at ``v_s / sqrt(2)``. The solution has no closed form.
    """


@documented
@dataclass(frozen=True)
class DeadZoneViscous(Law, kind=kernels.DEAD_ZONE, name="dead-zone-viscous"):
    """Dry friction with a viscosity that starts above a speed w: F + D max(s - w, 0)."""

    force: float = bounded(usual=(6.0, 4.0), **_LEVEL, doc="friction force F below the speed w")
    viscosity: float = bounded(usual=10.0, **_VISCOSITY, doc="viscosity D above the speed w")
    dead_zone: float = bounded(
        minimum=0.0, unit="m/s", usual=0.1, slider=(0.0, 1.0), doc="speed w at which the viscosity sets in"
    )

    @property
    def slopes(self) -> tuple[float, float]:  # noqa: D102 (inherited)
        return 0.0, self.viscosity


# --- anisotropic laws -------------------------------------------------------------------------------------------------
#
# Friction laws in the plane whose force depends on the direction of sliding.
#
# The forces at rest fill a convex set. While sliding, the force is the point of the set with the largest dissipated
# power. Such a law is the subdifferential of a dissipation potential, and its implicit counterpart is the Yosida
# approximation of that subdifferential. The counterpart exists and is unique for every mobility, although the general
# formulation (52) of Kikuuwe et al. 2006 does not guarantee this.


_FORCE: dict[str, Any] = {"minimum": 1e-6, "maximum": 1e6, "unit": "N", "slider": (0.05, 8.0)}
_ANGLE: dict[str, Any] = {"minimum": -6.3, "maximum": 6.3, "unit": "rad", "slider": (-1.6, 1.6)}


@documented
@dataclass(frozen=True)
class Elliptic(Law, kind=kernels.ELLIPTIC, name="elliptic", isotropic=False, forces=5):
    """Dry friction with different forces along two axes: F^2 v/|F v| + D v, F = diag(F_x, F_y).

    The forces at rest fill an ellipse. While sliding, the force maximises the dissipated power, so that it is parallel
    to the velocity only along the axes.
    """

    force_x: float = bounded(usual=(6.0, 4.0), **_FORCE, doc="friction force along the first axis")
    force_y: float = bounded(usual=(3.0, 2.0), **_FORCE, doc="friction force along the second axis")
    angle: float = bounded(0.0, **_ANGLE, doc="direction of the law's first axis, counter-clockwise")
    viscosity: float = bounded(0.0, **_VISCOSITY, doc="viscosity D")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        axes = (self.force_x, self.force_x, self.force_y, self.force_y)
        return max(axes), *axes, math.cos(self.angle), math.sin(self.angle), self.viscosity


@documented
@dataclass(frozen=True)
class Asymmetric(Law, kind=kernels.ELLIPTIC, name="asymmetric", isotropic=False, forces=5):
    """Dry friction with different forces forwards, backwards and sideways.

    Along the first axis this is the one-dimensional law with different levels for v > 0 and v < 0. In the plane the
    forces at rest fill two half-ellipses that join smoothly. The solution has the properties described for `Elliptic`.
    """

    forward_force: float = bounded(
        usual=(6.0, 4.0), **_FORCE, doc="friction force while sliding in the direction of the axis"
    )
    backward_force: float = bounded(usual=(5.0, 3.0), **_FORCE, doc="friction force while sliding against the axis")
    sideways_force: float = bounded(usual=(6.0, 4.0), **_FORCE, doc="friction force across the axis")
    angle: float = bounded(0.0, **_ANGLE, doc="direction of the axis, counter-clockwise")
    viscosity: float = bounded(0.0, **_VISCOSITY, doc="viscosity D")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        axes = (self.forward_force, self.backward_force, self.sideways_force, self.sideways_force)
        return max(axes), *axes, math.cos(self.angle), math.sin(self.angle), self.viscosity


# --- laws with a formula ----------------------------------------------------------------------------------------------

CLOSED_FORM_SLOPE = 0.1
"""Largest slope, as a fraction of 1/Z, that satisfies condition (48), and bound of the relative error."""


@dataclass(frozen=True)
class ClosedForm(Law, name="closed-form"):
    """Any law, solved by the closed-form approximation: (46), (57), and (59) if anisotropic.

    The numbers refer to Kikuuwe et al. 2006. For comparison only: the approximation loses part of a break-away peak, a
    law that falls breaks away below its `breakaway_force`, and a law whose viscosity exceeds 1/Z never slips. It is
    accurate where |slope of the law| << 1/Z, condition (48), and dissipative everywhere.

    Attributes
    ----------
    law : Law
        The approximated law.
    """

    law: Law

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law) or isinstance(self.law, ClosedForm):
            raise ConfigurationError(f"law = {self.law!r}: must be an exact law such as Stribeck(3.0, 4.0, 0.1).")

    @property
    def isotropic(self) -> bool:  # type: ignore[override]  # noqa: D102 (inherited)
        return self.law.isotropic

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.law.numbers

    def ambiguity(self, mobility: float) -> str:  # noqa: D102 (inherited)
        steepest = self.law.steepest_slope
        if steepest * mobility <= CLOSED_FORM_SLOPE:
            return ""
        return (
            f"{self} is a poor approximation for this element: the slope of the law, {steepest:.4g} N s/m, is not "
            f"small against 1/mobility = {1.0 / mobility:.4g} N s/m (condition 48)"
        )

    @property
    def record(self) -> NDArray[Any]:  # noqa: D102 (inherited)
        record = self.law.record
        record["kind"] |= kernels.CLOSED_FORM
        return record
