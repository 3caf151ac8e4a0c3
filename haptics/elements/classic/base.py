"""Base class and shared parameters of the classic models; see `haptics.elements.classic.models`."""

from __future__ import annotations

from typing import Any

from haptics.elements.models import DAMPINGS, STIFFNESSES, Element
from haptics.errors import ConfigurationError
from haptics.settings import bounded


class ClassicElement(Element):
    """Base class of models that evaluate the level of an isotropic law at a known speed."""

    @property
    def mobility(self) -> float:
        """Zero, because the law is evaluated, not solved."""
        return 0.0

    def _check_law(self) -> None:
        """Raise `ConfigurationError` for an anisotropic law, which these models cannot evaluate."""
        if not self.law.isotropic:
            raise ConfigurationError(
                f"law.name = {self.law.name!r}: model {self.model} needs a law that is the same in all directions."
            )


def period() -> Any:
    """Return the field of the time between two steps."""
    return bounded(1e-3, above=0.0, maximum=1.0, unit="s", doc="time T between two steps")


def stiffness(doc: str) -> Any:
    """Return the field of a stiffness; default from the experiments in Kikuuwe et al. 2006, section V."""
    return bounded(6000.0, above=0.0, unit="N/m", slider=STIFFNESSES, doc=doc)


def damping(doc: str) -> Any:
    """Return the field of a damping; default from the experiments in Kikuuwe et al. 2006, section V."""
    return bounded(10.0, minimum=0.0, unit="N s/m", slider=DAMPINGS, doc=doc)
