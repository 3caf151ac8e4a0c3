"""Names of measurement columns: quantity and unit, such as ``velocity_rad_per_s``.

The name of the joint may precede, separated by a dot: ``knee.torque_nm``. All unit conversions to SI are made here.
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
"""Units of every quantity, with the factor to SI and the kind of joint (rotary, prismatic or either)."""

EFFORTS = ("torque", "force")
DRIVES = ("pwm", "current", "voltage")

_SI = {"ma": "a", "mv": "v"}


@dataclass(frozen=True)
class Column:
    """Parsed name of a column.

    Attributes
    ----------
    joint : str
        Name of the joint, empty if absent.
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
        """Conversion factor to SI."""
        return UNITS[self.quantity][self.unit][0]

    @property
    def kind(self) -> str:
        """Kind of the joint: `TURNING`, `SLIDING` or `EITHER`."""
        return UNITS[self.quantity][self.unit][1]

    @property
    def si_unit(self) -> str:
        """Unit after conversion to SI; relevant for drive signals, which have several units."""
        return _SI.get(self.unit, self.unit)

    def __str__(self) -> str:
        name = f"{self.quantity}_{self.unit}"
        return f"{self.joint}.{name}" if self.joint else name


def parse_column(name: str) -> Column | None:
    """Parse the name of a column; return None if it is not a known measurement."""
    joint, _, rest = name.strip().rpartition(".")
    quantity, _, unit = rest.lower().partition("_")
    return Column(joint, quantity, unit) if unit in UNITS.get(quantity, {}) else None


def names_of(quantities: Iterable[str]) -> str:
    """Return the possible names of columns with these quantities, for messages."""
    return ", ".join(f"{quantity}_{unit}" for quantity in quantities for unit in UNITS[quantity])
