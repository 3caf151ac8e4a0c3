"""How columns of measurements are named: the quantity, then its unit, ``velocity_rad_per_s``.

Before that may stand the joint, with a dot: ``knee.torque_nm``. Units are turned into SI here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_DEGREE = math.pi / 180.0

TURNING, SLIDING, EITHER = "turning", "sliding", "either"

_ANGLE = {"rad": (1.0, TURNING), "deg": (_DEGREE, TURNING), "m": (1.0, SLIDING), "mm": (1e-3, SLIDING)}

UNITS: Mapping[str, Mapping[str, tuple[float, str]]] = {
    "time": {"s": (1.0, EITHER), "ms": (1e-3, EITHER), "us": (1e-6, EITHER)},
    "position": _ANGLE,
    "velocity": {f"{unit}_per_s": known for unit, known in _ANGLE.items()},
    "acceleration": {f"{unit}_per_s2": known for unit, known in _ANGLE.items()},
    "torque": {"nm": (1.0, TURNING), "mnm": (1e-3, TURNING)},
    "force": {"n": (1.0, SLIDING), "mn": (1e-3, SLIDING)},
    "pwm": {"percent": (1.0, EITHER), "count": (1.0, EITHER), "duty": (1.0, EITHER)},
    "current": {"a": (1.0, EITHER), "ma": (1e-3, EITHER)},
    "voltage": {"v": (1.0, EITHER), "mv": (1e-3, EITHER)},
}
"""Of every quantity: the units, what one of each is in SI, and whether a joint that has it turns or slides."""

EFFORTS = ("torque", "force")
DRIVES = ("pwm", "current", "voltage")

_SI = {"ma": "a", "mv": "v"}


@dataclass(frozen=True)
class Column:
    """What the name of a column says.

    Attributes
    ----------
    joint : str
        Which joint, empty if the name does not say.
    quantity : str
        One of `UNITS`.
    unit : str
        One of the units of that quantity.
    """

    joint: str
    quantity: str
    unit: str

    @property
    def factor(self) -> float:
        """What one of its units is in SI."""
        return UNITS[self.quantity][self.unit][0]

    @property
    def kind(self) -> str:
        """Whether a joint that has it turns or slides, or may do either."""
        return UNITS[self.quantity][self.unit][1]

    @property
    def si_unit(self) -> str:
        """Its unit in SI, where there is a choice of them: that of what drives the motor."""
        return _SI.get(self.unit, self.unit)

    def __str__(self) -> str:
        name = f"{self.quantity}_{self.unit}"
        return f"{self.joint}.{name}" if self.joint else name


def parse_column(name: str) -> Column | None:
    """Return what the name of a column says, None if it is no measurement of ours."""
    joint, _, rest = name.strip().rpartition(".")
    quantity, _, unit = rest.lower().partition("_")
    return Column(joint, quantity, unit) if unit in UNITS.get(quantity, {}) else None


def names_of(quantities: Iterable[str]) -> str:
    """Return the names that columns of these quantities may have, for messages."""
    return ", ".join(f"{quantity}_{unit}" for quantity in quantities for unit in UNITS[quantity])
