"""Terms of a joint's friction model.

A term is one or several columns; a model is the sum of its terms, each multiplied by a coefficient. Terms that depend
on a scale (such as a velocity) have variants with the same `name`, of which a model contains at most one. Every term
has a `kind`, because the torque of a motor contains more than friction:

friction
    opposes the motion: sliding, sticking, presliding, increase at rest. Compensation may use these terms.
inertia, load
    errors of the inertia and load that were subtracted before.
drive
    torque by which the motor's controller reacts to ripple of the velocity, and periodic torque of motor and gear.

Sources: viscous and Coulomb friction, (21), and Stribeck friction, (29), of Guedelha et al. 2018; presliding by Dahl
1968, solved exactly for each change of position; load-dependent friction as reviewed by Bittencourt and Gunnarsson
2012; friction that increases at rest and decreases in motion: Rabinowicz 1958.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.data.joint_recording import JointRecording
from haptics.errors import ConfigurationError
from haptics.settings import unknown_name

Array = NDArray[np.float64]
Columns = Callable[[JointRecording], Array]

KINDS = ("friction", "inertia", "load", "drive")

_WIDTHS = (0.001, 0.003, 0.01, 0.03)
_BENDS = (0.1, 0.25, 0.5)
_STRIBECK = (0.01, 0.03, 0.1, 0.3)
_PRESLIDING = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
_REST = (5e-4, 1e-3, 2e-3, 4e-3, 1e-2)


@dataclass(frozen=True, eq=False)
class Term:
    """One term of a model.

    Attributes
    ----------
    name : str
        Name; a model contains at most one term per name.
    kind : str
        One of `KINDS`.
    dimension : str
        Dimension of its coefficient: ``force`` (or torque), ``viscosity``, ``cubic viscosity``, ``inertia`` (or mass),
        ``slowness`` (1/velocity) or ``ratio``.
    columns : callable
        Maps a `JointRecording` of n samples to an array (n,) or (n, count).
    positive : bool
        Whether its coefficient must be at least 0.
    once : bool
        Whether it occurs only once in a recording.
    scale : float or None
        Scale of the variant, in SI units.
    scale_dimension : str
        Dimension of the scale: ``velocity``, ``distance`` or ``order`` (1/distance); empty without a scale.
    count : int
        Number of columns.
    """

    name: str
    kind: str
    dimension: str
    columns: Columns
    positive: bool = False
    once: bool = False
    scale: float | None = None
    scale_dimension: str = ""
    count: int = 1

    @property
    def label(self) -> str:
        """Name with the scale of the variant."""
        return self.name if self.scale is None else f"{self.name} ({self.scale:.3g})"

    def matrix(self, recording: JointRecording) -> Array:
        """Return its columns, (n, count)."""
        return self.columns(recording).reshape(len(recording), self.count)


def base_terms() -> tuple[Term, ...]:
    """Return the terms of every model: offset and viscous friction."""
    return make_term("offset"), make_term("viscosity")


def candidate_terms(recording: JointRecording, ripple_orders: tuple[float, ...] = ()) -> tuple[Term, ...]:
    """Return the candidate terms in addition to `base_terms`.

    Parameters
    ----------
    recording : JointRecording
        Its top speed and total travel determine the scales of the variants; terms of missing signals are omitted.
    ripple_orders : tuple of float
        Periods of motor or gear ripple per radian (or metre) of the joint, of which at most one is selected. Requires a
        position with the same zero in every recording.
    """
    speed, travel = recording.top_speed, float(recording.travel[-1])
    scales: dict[str, tuple[float, ...]] = {
        "coulomb": tuple(share * speed for share in _WIDTHS),
        "presliding": tuple(share * travel for share in _PRESLIDING),
        "bend": tuple(share * speed for share in _BENDS),
        "stribeck": tuple(share * speed for share in _STRIBECK),
        "rest": tuple(share * travel for share in _REST) if recording.starts_at_rest else (),
        "ripple": ripple_orders if recording.position is not None else (),
    }
    plain = ["asymmetric_viscosity", "cubic_viscosity", "inertia", "drive_reaction"]
    if recording.load is not None:
        plain += ["load_coulomb", "load_viscosity", "load"]
    if recording.position is not None and recording.rotary:
        plain.append("pose")
    variants = [make_term(name, scale) for name, values in scales.items() for scale in values]
    return (*variants, *map(make_term, plain))


def make_term(name: str, scale: float | None = None) -> Term:
    """Return a term by its name and, if it has variants, its scale.

    Raises
    ------
    ConfigurationError
        If the term is unknown, or its scale is missing, superfluous or not above 0.
    """
    if name in _PLAIN:
        if scale is not None:
            raise ConfigurationError(f'term "{name}" has no scale')
        return _PLAIN[name]
    if name not in _SCALED:
        raise unknown_name("term", name, [*_PLAIN, *_SCALED])
    if scale is None or not 0.0 < scale < np.inf:
        raise ConfigurationError(f'the scale of term "{name}" is {scale}; must be a number above 0')
    return _SCALED[name](scale)


def dahl(way: Array, length: float, start: float = 0.0) -> Array:
    """Return the presliding state of Dahl 1968 along a path, from 0 (relaxed) to 1 or -1 (sliding).

    dz = dx/length (1 - z sign dx), solved exactly for each change of position.

    Parameters
    ----------
    way : array, (n,)
        Positions.
    length : float
        Distance over which the deviation from sliding decays to 37 %.
    start : float
        State at the first position.
    """
    step = np.diff(way)
    kept, toward = np.exp(-np.abs(step) / length), np.sign(step)
    state = np.full(len(way), start)
    z = start
    for index, (share, end) in enumerate(zip(kept.tolist(), toward.tolist(), strict=True), start=1):
        z = end + (z - end) * share
        state[index] = z
    return state


def _rest(seen: JointRecording, distance: float) -> Array:
    """Return additional friction after a long rest, which decays over a short travel."""
    if not seen.starts_at_rest:
        return np.zeros(len(seen))
    return seen.direction_from_rest(distance) * np.exp(-seen.travel / distance)


def _load(seen: JointRecording) -> Array:
    return np.zeros(len(seen)) if seen.load is None else seen.load


def _waves(seen: JointRecording, order: float = 1.0) -> Array:
    angle = order * (np.zeros(len(seen)) if seen.position is None else seen.position)
    return np.column_stack((np.cos(angle), np.sin(angle)))


_SCALED: Mapping[str, Callable[[float], Term]] = {
    "coulomb": lambda width: Term(
        "coulomb", "friction", "force", lambda seen: seen.direction(width), True, False, width, "velocity"
    ),
    "presliding": lambda length: Term(
        "presliding", "friction", "force", lambda seen: dahl(seen.path, length), True, False, length, "distance"
    ),
    # viscous friction that saturates at higher speed
    "bend": lambda width: Term(
        "bend", "friction", "force", lambda seen: seen.direction(width), False, False, width, "velocity"
    ),
    "stribeck": lambda width: Term(
        "stribeck",
        "friction",
        "force",
        lambda seen: seen.direction() * np.exp(-np.abs(seen.smooth_velocity) / width),
        True,
        False,
        width,
        "velocity",
    ),
    "rest": lambda distance: Term(
        "rest", "friction", "force", lambda seen: _rest(seen, distance), True, True, distance, "distance"
    ),
    "ripple": lambda order: Term(
        "ripple",
        "drive",
        "viscosity",
        lambda seen: _waves(seen, order) * np.abs(seen.smooth_velocity)[:, None],
        False,
        False,
        order,
        "order",
        2,
    ),
}

_PLAIN: Mapping[str, Term] = {
    term.name: term
    for term in (
        Term("offset", "friction", "force", lambda seen: np.ones(len(seen))),
        Term("viscosity", "friction", "viscosity", lambda seen: seen.smooth_velocity, True),
        Term("asymmetric_viscosity", "friction", "viscosity", lambda seen: np.abs(seen.smooth_velocity)),
        Term("cubic_viscosity", "friction", "cubic viscosity", lambda seen: seen.smooth_velocity**3),
        Term("load_coulomb", "friction", "ratio", lambda seen: np.abs(_load(seen)) * seen.direction(), True),
        Term("load_viscosity", "friction", "slowness", lambda seen: np.abs(_load(seen)) * seen.smooth_velocity, True),
        Term("inertia", "inertia", "inertia", lambda seen: seen.known_acceleration),
        Term("load", "load", "ratio", _load),
        Term("pose", "load", "force", _waves, count=2),
        Term("drive_reaction", "drive", "viscosity", lambda seen: -seen.ripple, True),
    )
}
