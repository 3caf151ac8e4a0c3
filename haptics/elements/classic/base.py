"""What the classes of the classic models share; see `haptics.elements.classic.models`."""

from __future__ import annotations

from typing import Any

from haptics.elements.models import DAMPINGS, STIFFNESSES, Element
from haptics.errors import ConfigurationError
from haptics.settings import bounded


class ClassicElement(Element):
    """What the classic models share: they look the level of an isotropic law up, at a speed they know already."""

    @property
    def mobility(self) -> float:
        """Zero: the law is looked up, never solved."""
        return 0.0

    def _check_law(self) -> None:
        """Refuse a law that has no level of its own: these models know no direction."""
        if not self.law.isotropic:
            raise ConfigurationError(
                f"law.name = {self.law.name!r}: model {self.model} needs a law that is the same in all directions."
            )


def period() -> Any:
    """Declare the time between two steps."""
    return bounded(1e-3, above=0.0, maximum=1.0, unit="s", doc="time T between two steps")


def stiffness(doc: str) -> Any:
    """Declare the stiffness of a spring, by default that of the experiments in Kikuuwe et al. 2006, section V."""
    return bounded(6000.0, above=0.0, unit="N/m", slider=STIFFNESSES, doc=doc)


def damping(doc: str) -> Any:
    """Declare the damping of a spring, by default that of the experiments in Kikuuwe et al. 2006, section V."""
    return bounded(10.0, minimum=0.0, unit="N s/m", slider=DAMPINGS, doc=doc)
