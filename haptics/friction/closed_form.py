"""Closed-form approximations of Kikuuwe et al. 2006, as a variant of any exact law, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from haptics.errors import ConfigurationError
from haptics.friction.law import Law
from haptics.friction.sliding_kernels import CLOSED_FORM

CLOSED_FORM_SLOPE = 0.1
"""Largest slope, as a fraction of 1/Z, that satisfies condition (48), and bound of the relative error."""


@dataclass(frozen=True)
class ClosedForm(Law):
    """Any law, solved by the closed-form approximation: (46), (57), and (59) if anisotropic.

    The numbers refer to Kikuuwe et al. 2006. For comparison only: the approximation loses part of a break-away peak,
    and a law whose viscosity exceeds 1/Z never slips. It is accurate where |slope of the law| << 1/Z, condition (48),
    and dissipative everywhere.

    Attributes
    ----------
    law : Law
        The approximated law.
    """

    name: ClassVar[str] = "closed-form"
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

    @property
    def breakaway_force(self) -> float:
        """Break-away force of the exact law [N]; the approximation breaks away below it if the law falls."""
        return self.law.breakaway_force

    def doubt(self, mobility: float) -> str:  # noqa: D102 (inherited)
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
        record["kind"] |= CLOSED_FORM
        return record
