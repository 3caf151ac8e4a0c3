"""Two friction laws: a function, compiled and kept in recordings as text, and a class of a usual kind."""

from dataclasses import dataclass
from typing import ClassVar

from haptics import Law, Stribeck, friction_law
from haptics.settings import bounded


@friction_law
def felt(speed, static=3.0, kinetic=2.0, width=0.1):
    """Level [N] that falls slowly with the sliding speed [m/s]."""
    return kinetic + (static - kinetic) / (1.0 + speed / width)


@dataclass(frozen=True)
class TwoLevels(Law):
    """The law of Stribeck with a static force that is a multiple of the kinetic one.

    Attributes
    ----------
    kinetic_force : float
        Friction force while it slides fast [N].
    ratio : float
        How many times as large the friction force at rest is.
    stribeck_velocity : float
        Speed at which most of the difference has gone [m/s].
    """

    kind: ClassVar[int] = Stribeck.kind
    name: ClassVar[str] = "two-levels"
    kinetic_force: float = bounded(2.0, minimum=0.0, unit="N", doc="friction force while it slides fast")
    ratio: float = bounded(1.5, minimum=1.0, maximum=10.0, doc="friction force at rest, in multiples of it")
    stribeck_velocity: float = bounded(0.1, above=0.0, unit="m/s", doc="speed at which most of it has gone")

    @property
    def _stribeck(self) -> Stribeck:
        return Stribeck(self.kinetic_force, self.ratio * self.kinetic_force, self.stribeck_velocity)

    @property
    def numbers(self) -> tuple[float, ...]:
        """What the kernels read."""
        return self._stribeck.numbers

    @property
    def slopes(self) -> tuple[float, float]:
        """Least and greatest slope of the level with speed [N s/m]."""
        return self._stribeck.slopes
