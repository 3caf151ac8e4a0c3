"""Families: laws whose numbers can be mixed, and the indices of their forces."""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.elements.tables import CLOSED_FORM_SUFFIX, LAWS
from haptics.errors import ConfigurationError
from haptics.friction.closed_form import ClosedForm
from haptics.friction.law import Law
from haptics.friction.sliding_kernels import (
    CLOSED_FORM,
    DEAD_ZONE,
    ELLIPTIC,
    GAUSSIAN,
    LAW_NUMBERS,
    STRIBECK,
    VISCOUS,
)
from haptics.scenes.shapes import Floats

FORCES: dict[int, tuple[int, ...]] = {
    VISCOUS: (0,),
    STRIBECK: (0, 1),
    DEAD_ZONE: (0,),
    GAUSSIAN: (0, 1),
    ELLIPTIC: (0, 1, 2, 3, 4),
}
"""Indices of the forces, which a texture or a normal force scales, in the numbers of each kind of law."""


def numbers_of(law: Law) -> Floats:
    """Return the numbers of a law, (`LAW_NUMBERS`,), with 0 in place of the mobility limit."""
    numbers = np.array(law.record["numbers"][0])
    numbers[LAW_NUMBERS - 1] = 0.0
    return numbers


def forces_of(law: Law) -> tuple[int, ...]:
    """Return the indices of the numbers of a law that are forces."""
    return FORCES[int(law.record["kind"][0]) & (CLOSED_FORM - 1)]


def exact(law: Law) -> Law:
    """Return the law that a closed form approximates, or the law itself."""
    return law.law if isinstance(law, ClosedForm) else law


def title_of(law: Law) -> str:
    """Return the name of a law in settings."""
    return f"{exact(law).name}{CLOSED_FORM_SUFFIX}" if isinstance(law, ClosedForm) else law.name


def require_family(law: Any) -> None:
    """Raise `ConfigurationError` unless the numbers of a law can be mixed by kernels."""
    if not isinstance(law, Law):
        raise ConfigurationError(f"scene.law = {law!r:.60}: must be a friction law such as Coulomb(4.0).")
    if type(exact(law)) not in LAWS.values():
        raise ConfigurationError(
            f"scene.law: {title_of(law)!r} is a law of one's own. A scene mixes the numbers of its laws, and of such a "
            f"law nobody can say whether what lies between two is solvable; must be one of {', '.join(LAWS)}."
        )
