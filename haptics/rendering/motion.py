"""Motions: programs that drive a device along a reference, for calibration, homing and guidance.

A run executes one *program* at a time behind the envelope, an element or a motion, and switches between two ticks
(`haptics.rendering.programs`). A motion stops at the end of its reference and stays there.

An impedance device is pulled to the reference by a PID controller (spring, damper and slow integrator) plus a
feedforward force per row of the reference. An admittance device is commanded the velocity that takes its reference to
the next point.

A motion injects energy deliberately, so the energy limit for passive elements does not apply. It has other bounds: on
its force or the speed of its reference, on the following error, and on speeds that last longer than
`haptics.rendering.kernels.OVERSPEED_TIME`. If one of the last two is exceeded, the output becomes the safe output and
the run ends. The dead-man's switch and all limits of the device apply as for any program. While the output is not fully
applied (fades, a gate, a transition from another force, a released dead-man's switch, untrusted samples), the reference
waits. After missed deadlines, the reference of an impedance device follows the elapsed time, since the handle continued
to move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Causality
from haptics.elements.kernels import ELEMENT
from haptics.errors import ConfigurationError
from haptics.parts import address_of_part
from haptics.rendering.kernels import CORE, MODEL_MOTION, TABLE_COLUMNS, step_motion
from haptics.settings import bounded, check, documented

Table = NDArray[np.float64]

MAX_ROWS = 2_000_000
"""Maximum number of rows of a reference: half an hour at 1 kHz."""


def _limit(default: float, unit: str, doc: str, **bounds: Any) -> Any:
    return bounded(default, unit=unit, doc=doc, **bounds)


@documented
@dataclass(frozen=True, eq=False)
class Motion:
    """A reference with its controller gains and bounds.

    Attributes
    ----------
    causality : Causality
        Causality of the device.
    table : (n, 6) float array
        Reference with one row per period: position [m], velocity [m/s] and feedforward force [N] (velocity and force
        for impedance devices only); see `reference`. After the last row its position is held with zero velocity.
    relative : bool
        Whether positions are relative to the initial position of the end effector (impedance) or its reference
        (admittance).
    contact : bool
        Whether the following error is the integral of the velocity error, as in a sticking element, instead of the
        position error.
    label : str
        Description of the motion in the recording.

    Raises
    ------
    ConfigurationError
        If a value is not allowed.
    """

    model: ClassVar[str] = "motion"
    causality: Causality
    table: Table
    bound: float = bounded(
        above=0.0, unit="N or m/s", doc="norm of its own force (impedance), speed of its reference (admittance)"
    )
    max_error: float = _limit(
        1.0, "m", "farther from the reference than this the end effector does not follow", above=0.0
    )
    max_speed: float = _limit(10.0, "m/s", "faster than this the end effector runs away", above=0.0)
    relative: bool = False
    stiffness: float = _limit(0.0, "N/m", "force per error of the position, of an impedance device only", minimum=0.0)
    damping: float = _limit(0.0, "N s/m", "force per error of the velocity, likewise", minimum=0.0)
    integration: float = _limit(
        0.0,
        "N/(m s)",
        "rate at which an error adds up, likewise; above 0 the force goes on from what it was before",
        minimum=0.0,
    )
    contact: bool = False
    trip: float = _limit(
        0.0, "m", "off its reference by more than this it rests from that tick on; 0: never", minimum=0.0
    )
    rest: float = _limit(0.0, "s", "for so long it rests at its end, and after that: with the gains below", minimum=0.0)
    rest_stiffness: float = _limit(0.0, "N/m", "stiffness with which it rests after that", minimum=0.0)
    rest_damping: float = _limit(0.0, "N s/m", "damping with which it rests after that", minimum=0.0)
    period: float = _limit(1e-3, "s", "time between two rows", above=0.0, maximum=1.0)
    label: str = ""

    def __post_init__(self) -> None:
        check(self, "motion")
        table = np.ascontiguousarray(self.table, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != TABLE_COLUMNS or not 1 <= len(table) <= MAX_ROWS:
            raise ConfigurationError(
                f"motion.table has the shape {table.shape}: must be of (n, {TABLE_COLUMNS}), with 1 to {MAX_ROWS} rows."
            )
        if not np.isfinite(table).all():
            raise ConfigurationError("motion.table: has values that are not finite numbers.")
        object.__setattr__(self, "table", table)  # the dataclass is frozen

    @property
    def duration(self) -> float:
        """Duration without waiting [s]."""
        return len(self.table) * self.period

    @property
    def facts(self) -> dict[str, Any]:
        """Attributes for the journal of a recording, without table and period."""
        left_out = {"table", "period", "causality"}
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}

    def fill(self, record: NDArray[Any]) -> None:
        """Write the parameters into a (1,) `record` with the fields of `PARAMETERS`.

        The motion must outlive the record, which contains the address of its table.
        """
        record["step"] = address_of_part(step_motion, CORE)
        record["model"] = MODEL_MOTION
        for name in ("stiffness", "damping", "period"):
            record[name] = getattr(self, name)
        own = record["motion"]
        own["resting"] = round(self.rest / self.period)
        own["table"], own["rows"] = self.table.ctypes.data, len(self.table)
        for name in (
            *("relative", "integration", "bound", "max_error", "max_speed"),
            *("contact", "trip", "rest_stiffness", "rest_damping"),
        ):
            own[name] = getattr(self, name)

    def copy_record(self) -> NDArray[Any]:
        """Return a kernel record, (1,) of dtype `ELEMENT`, in the initial state."""
        record = np.zeros(1, ELEMENT)
        self.fill(record)
        return record


def reference(
    position: ArrayLike, velocity: ArrayLike | None = None, force: ArrayLike | None = None, *, period: float = 1e-3
) -> Table:
    """Return the table of a reference, shape (n, 6).

    Parameters
    ----------
    position : (n, 2) array
        Position at each tick [m].
    velocity : (n, 2) array, optional
        Velocity at each tick [m/s]; by default the backward difference of the positions.
    force : (n, 2) array, optional
        Feedforward force [N]; zero by default.
    period : float
        Time between two rows [s].
    """
    places = np.asarray(position, dtype=np.float64)
    table = np.zeros((len(places), TABLE_COLUMNS))
    table[:, 0:2] = places
    table[:, 2:4] = np.diff(places, axis=0, prepend=places[:1]) / period if velocity is None else velocity
    if force is not None:
        table[:, 4:6] = force
    return table


def constant_reference(duration: float, period: float = 1e-3) -> Table:
    """Return the table of a constant reference that lasts `duration` [s], for a relative motion."""
    return np.zeros((max(math.ceil(duration / period), 1), TABLE_COLUMNS))
