"""Friction models that are linear in all but two parameters.

The models follow Guedelha et al. 2018, sections 3.2.1 and 3.2.2. With e = exp(-|w|/ws), the friction of a joint with
velocity w is

    F(w) =  Kc (1 - e) + Kv w + e s+     for w > 0
    F(w) = -Kc (1 - e) + Kv w - e s-     for w < 0

with Kc the Coulomb level, Kv the viscosity, s+ and s- the levels at vanishing speed. This is (29) to (31) with two
signs corrected: the factor of Kc is 1 - e (printed 1 + e), and the viscous column is w on both sides (printed as the
magnitude of w, by the ramp r- of (28)). The speed ws is 1 in the paper. F has the direction of w: the paper's friction
torque is -F.

Two extensions are not in the paper. With *presliding*, a part P of the level builds up with displacement after each
reversal: P (z - sgn w) is added, with z the state of Iwan's model with mean break-away deflection l
(`calibration.friction.model.Travel.state`). With *harmonics*, a torque that depends on the angle q of the joint is
added: a1 cos q + b1 sin q + a2 cos 2q + b2 sin 2q. The model is linear in all parameters except ws and l.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.regression import stacked, times
from haptics.errors import ConfigurationError
from haptics.settings import check, choice, documented, flag, unknown_name

# --- motion -----------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_ELEMENTS, _SPREAD = 6, 0.8
"""Number of elastic-plastic elements of the presliding state, and spread of their deflections.

They equal the defaults of `haptics.elements.classic.Iwan`, which therefore renders the identified law.
"""
_IGNORED = 1e-5
"""Reversals smaller than this fraction of the range of the path are treated as noise."""
_REMEMBERED = 16


@dataclass(frozen=True, eq=False)
class Travel:
    """Displacement over complete recordings, from which the presliding state of each sample follows.

    Attributes
    ----------
    path : (m,) float array
        Position of the joint, with the recordings concatenated [rad or m].
    starts : tuple of int
        Index of the first sample of each recording.
    chosen : (n,) int array
        Indices of the samples in `path`.
    """

    path: Array
    starts: tuple[int, ...]
    chosen: Index
    _turns: Index = field(init=False, repr=False)
    """Indices in `path` at which recordings start or the direction changes, increasing."""
    _states: dict[float, Array] = field(default_factory=dict, init=False, repr=False)
    """Cache of the latest states by distance, because searches request the same ones repeatedly."""

    def __post_init__(self) -> None:
        bounds = zip(self.starts, (*self.starts[1:], len(self.path)), strict=True)
        turns = np.concatenate([first + _reversals(self.path[first:last]) for first, last in bounds])
        object.__setattr__(self, "_turns", turns)

    @classmethod
    def whole(cls, path: Array) -> Travel:
        """Return the travel of all samples of one recording."""
        return cls(np.asarray(path, float), (0,), np.arange(len(path)))

    @property
    def range(self) -> float:
        """Largest range of the path in one recording [rad or m]."""
        return max(float(np.ptp(part)) for part in np.split(self.path, self.starts[1:]))

    def __getitem__(self, chosen: NDArray[np.bool_] | Index) -> Travel:
        """Return the travel of selected samples; their state still depends on the complete path."""
        part = object.__new__(Travel)  # bypasses __post_init__: the reversals are the same
        for name, value in (vars(self) | {"chosen": self.chosen[chosen], "_states": {}}).items():
            object.__setattr__(part, name, value)
        return part

    @staticmethod
    def joined(parts: tuple[Travel, ...]) -> Travel:
        """Concatenate the travels of several recordings."""
        offsets = np.cumsum([0, *(len(part.path) for part in parts[:-1])])
        return Travel(
            np.concatenate([part.path for part in parts]),
            tuple(int(offset) + start for offset, part in zip(offsets, parts, strict=True) for start in part.starts),
            np.concatenate([offset + part.chosen for offset, part in zip(offsets, parts, strict=True)]),
        )

    def state(self, distance: float) -> Array:
        r"""Return the presliding state z (n,), from -1 to 1, of Iwan's model (Iwan 1966).

        The state is the mean of elastic-plastic elements in parallel, :math:`z = \sum_i e_i / (n l)` with deflections
        :math:`|e_i| \le c_i l` and c_i spaced evenly from 0.2 to 1.8: z = 1 while sliding forward, -1 while sliding
        backward. Each recording starts without deflection.

        Parameters
        ----------
        distance : float
            Mean break-away deflection l [rad or m].
        """
        if distance in self._states:
            return self._states[distance]
        limits = distance * (1.0 + _SPREAD * np.linspace(-1.0, 1.0, _ELEMENTS))
        begin = np.zeros((len(self._turns), _ELEMENTS))
        ends = np.append(self._turns[1:], len(self.path) - 1)
        moved = self.path[ends] - self.path[self._turns]
        starting = np.isin(ends, self.starts)
        deflection = np.zeros(_ELEMENTS)
        for number, step in enumerate(moved):
            begin[number] = deflection
            deflection = np.zeros(_ELEMENTS) if starting[number] else np.clip(deflection + step, -limits, limits)
        segment = np.searchsorted(self._turns, self.chosen, side="right") - 1
        moved = self.path[self.chosen] - self.path[self._turns[segment]]
        state = np.clip(begin[segment] + moved[:, None], -limits, limits).mean(axis=1) / distance
        if len(self._states) == _REMEMBERED:
            self._states.clear()
        self._states[distance] = state
        return np.asarray(state)


def select(values: Any, chosen: NDArray[np.bool_] | Index) -> Any:
    """Return selected samples of optional values."""
    return None if values is None else values[chosen]


def _reversals(path: Array) -> Index:
    """Return the indices of the first sample and of all reversals larger than noise, increasing."""
    least = _IGNORED * float(np.ptp(path))
    steps = np.diff(path)
    # Only local extremes can be reversals. Those with sufficient motion in between are kept.
    extremes = 1 + np.flatnonzero(np.signbit(steps[1:]) != np.signbit(steps[:-1]))
    found, last, direction = [0], 0, 0.0
    for index in extremes.tolist():
        step = path[index] - path[last]
        if step * direction > 0.0 or (direction == 0.0 and abs(step) > least):
            last, direction = index, np.sign(step)
        elif abs(step) > least:
            found.append(last)
            last, direction = index, -direction
    if last != found[-1]:
        found.append(last)
    return np.array(found, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Motion:
    """Input of the columns of a friction model.

    Attributes
    ----------
    velocity : (n,) float array
        Velocity [rad/s] or [m/s].
    travel : Travel, optional
        Displacement for presliding. Without it presliding is complete: z is the sign of the velocity.
    angle : (n,) float array, optional
        Angle of the joint, for harmonics [rad]. Without it the harmonics are zero.
    recording : (n,) int array, optional
        Number of the recording of each sample, for its offset. Without it the offset is the mean of all recordings.
    """

    velocity: Array
    travel: Travel | None = None
    angle: Array | None = None
    recording: Index | None = None

    def __getitem__(self, chosen: NDArray[np.bool_] | Index) -> Motion:
        """Return the motion of selected samples."""
        return Motion(*(select(one, chosen) for one in vars(self).values()))

    def presliding(self, distance: float) -> Array:
        """Return the presliding state (n,) for a mean break-away deflection [rad or m]."""
        return np.sign(self.velocity) if self.travel is None else self.travel.state(distance)


SCALE, DISTANCE = "stribeck_velocity", "presliding_distance"
"""Names of the nonlinear parameters."""
PRESLIDING = "presliding"
HARMONICS = ("harmonic_1_cos", "harmonic_1_sin", "harmonic_2_cos", "harmonic_2_sin")
INERTIA = "inertia"
SIDES = ("forward", "backward")

DIMENSIONS = {
    "coulomb": "force",
    "coulomb_forward": "force",
    "coulomb_backward": "force",
    "viscosity": "viscosity",
    "viscosity_forward": "viscosity",
    "viscosity_backward": "viscosity",
    "static_forward": "force",
    "static_backward": "force",
    "offset": "force",
    PRESLIDING: "force",
    **dict.fromkeys(HARMONICS, "force"),
    SCALE: "velocity",
    DISTANCE: "distance",
    INERTIA: "inertia",
}
"""Dimension of each parameter, for a rotary joint (N m, rad/s) or a prismatic joint (N, m/s)."""


@documented
@dataclass(frozen=True)
class FrictionModel:
    """Terms of a friction law.

    Raises
    ------
    ConfigurationError
        If terms exclude each other.
    """

    stribeck: str = choice(
        "none",
        ("none", "exponential", "gaussian"),
        doc="how the level falls from its static to its Coulomb value: exponential with exp(-|w|/ws), as in the "
        "paper, gaussian with exp(-(w/ws)^2)",
    )
    asymmetric_coulomb: bool = flag(
        False, doc="whether the directions have different Coulomb levels; static levels always differ"
    )
    asymmetric_viscosity: bool = flag(False, doc="whether the directions have different viscosities")
    offset: bool = flag(
        False, doc="whether a constant force is added; not with asymmetric_coulomb: data cannot tell them apart"
    )
    plateau: bool = flag(
        False,
        doc="whether the law starts flat, dF/dw = 0 at 0+ (section 4.1.2), which ties s+ to Kc + Kv ws; "
        "exponential only",
    )
    dry: bool = flag(True, doc="whether there is any friction but the viscous one")
    presliding: bool = flag(False, doc="whether a part of the Coulomb level builds up with displacement")
    harmonics: bool = flag(False, doc="whether a torque depends on the angle of the joint, with two harmonics")

    def __post_init__(self) -> None:
        check(self)
        if self.offset and self.asymmetric_coulomb:
            raise ConfigurationError("offset together with asymmetric_coulomb: no data can tell them apart, choose one")
        if not self.dry and (self.scaled or self.asymmetric_coulomb or self.presliding):
            raise ConfigurationError("a model that is not dry has no Coulomb or static levels: leave those out")
        if self.plateau and self.stribeck != "exponential":
            raise ConfigurationError(
                f'plateau with stribeck "{self.stribeck}": only an "exponential" law can start flat'
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters: linear ones first, then nonlinear ones."""
        return (*self.linear_names, *self.nonlinear_names)

    @property
    def scaled(self) -> bool:
        """Whether the model has a Stribeck velocity."""
        return self.stribeck != "none"

    @property
    def freedom(self) -> int:
        """Number of free parameters."""
        return len(self.names) - self.plateau

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Names of the linear parameters, in the order of the columns."""
        names = ["coulomb_forward", "coulomb_backward"] if self.asymmetric_coulomb else ["coulomb"] * self.dry
        names += ["viscosity_forward", "viscosity_backward"] if self.asymmetric_viscosity else ["viscosity"]
        names += ["static_forward", "static_backward"] if self.scaled else []
        names += [PRESLIDING] if self.presliding else []
        return (*names, *(["offset"] if self.offset else []), *(HARMONICS if self.harmonics else ()))

    @property
    def nonlinear_names(self) -> tuple[str, ...]:
        """Names of the nonlinear parameters."""
        return (*((SCALE,) if self.scaled else ()), *((DISTANCE,) if self.presliding else ()))

    def columns(self, motion: Motion | Array, scale: float = 1.0, distance: float = 1.0) -> Array:
        """Return the regressor matrix (n, p) of the linear parameters.

        At rest the columns of levels are zero, because friction then balances the load.

        Parameters
        ----------
        motion : Motion, or (n,) float array of velocities
        scale, distance : float
            Stribeck velocity and presliding distance.
        """
        motion = motion if isinstance(motion, Motion) else Motion(np.asarray(motion, float))
        velocity = motion.velocity
        forward, backward = velocity > 0.0, velocity < 0.0
        static = self._static_share(velocity, scale)
        direction = np.sign(velocity)
        dry = direction * (1.0 - static)
        columns = [dry * forward, dry * backward] if self.asymmetric_coulomb else [dry] * self.dry
        columns += [velocity * forward, velocity * backward] if self.asymmetric_viscosity else [velocity]
        if self.scaled:
            columns += [static * forward, -static * backward]
        if self.presliding:
            columns.append(motion.presliding(distance) - direction)
        if self.offset:
            columns.append(np.ones_like(velocity))
        for order in (1.0, 2.0) if self.harmonics else ():
            for wave in (np.cos, np.sin):
                columns.append(np.zeros_like(velocity) if motion.angle is None else wave(order * motion.angle))
        return stacked(columns)

    def _static_share(self, velocity: Array, scale: float) -> Array:
        speed = np.abs(velocity) / scale
        if self.stribeck == "none":
            return np.zeros_like(speed)
        return np.exp(-speed if self.stribeck == "exponential" else -speed * speed)

    def scale_derivative(self, linear: Array, velocity: Array, scale: float) -> Array:
        """Return the derivative (n,) of the law with respect to the Stribeck velocity.

        Parameters
        ----------
        linear : array, (p,)
            Values in the order of `linear_names`.
        velocity : array, (n,)
        scale : float
            Stribeck velocity.
        """
        values = dict(zip(self.linear_names, linear, strict=True))
        excess = {side: values[f"static_{side}"] - values[self.sided("coulomb", side)] for side in SIDES}
        speed = np.abs(velocity) / scale
        growth = speed if self.stribeck == "exponential" else 2.0 * speed * speed
        size = np.where(velocity > 0.0, excess["forward"], -excess["backward"])
        return np.asarray(self._static_share(velocity, scale) * growth * (size / scale))

    def reduction(self, scale: float, bounded: bool) -> Array:
        """Return the matrix (p, r) that maps the searched parameters to the linear parameters.

        If `bounded`, static levels are searched as their excess over the Coulomb levels, and Coulomb levels as their
        excess over the presliding part, so that all bounds are zero. With a plateau, ``static_forward`` is not a free
        parameter.
        """
        names = self.linear_names
        matrix = np.eye(len(names))
        coulomb = {side: names.index(self.sided("coulomb", side)) for side in SIDES} if self.dry else {}
        for side in SIDES if self.scaled else ():
            if bounded or (self.plateau and side == "forward"):
                matrix[names.index(f"static_{side}"), coulomb[side]] = 1.0
        if bounded and self.presliding:
            part = names.index(PRESLIDING)
            raised = [*coulomb.values(), *(names.index(f"static_{side}") for side in SIDES if self.scaled)]
            matrix[raised, part] = 1.0
        if self.plateau:
            static = names.index("static_forward")
            matrix[static, names.index(self.sided("viscosity", "forward"))] = scale
            matrix = np.delete(matrix, static, axis=1)
        return matrix

    def sided(self, kind: str, side: str) -> str:
        """Return the name of a level or viscosity in one direction."""
        return kind if kind in self.linear_names else f"{kind}_{side}"

    def evaluate(self, values: Mapping[str, float], motion: Motion | Array) -> Array:
        """Return the friction (n,) of a motion; at rest, only the offset and harmonics.

        For velocities alone it is the sliding friction, with complete presliding.
        """
        linear = np.array([values[name] for name in self.linear_names])
        return times(self.columns(motion, values.get(SCALE, 1.0), values.get(DISTANCE, 1.0)), linear)

    def slope(self, values: Mapping[str, float], velocity: Array) -> Array:
        """Return the slope dF/dw (n,) of the sliding friction; defined for nonzero velocity."""
        velocity = np.asarray(velocity, float)
        forward = velocity >= 0.0

        def sided(kind: str) -> Array:
            return np.where(forward, *(values[self.sided(kind, side)] for side in SIDES))

        slope = sided("viscosity")
        if not self.scaled:
            return slope
        scale, static = values[SCALE], sided("static") - sided("coulomb")
        falling = self._static_share(velocity, scale) / scale
        if self.stribeck == "gaussian":
            falling = falling * 2.0 * np.abs(velocity) / scale
        return slope - static * falling


STATIC_MODELS = {
    "viscous": FrictionModel(dry=False),
    "coulomb-viscous": FrictionModel(),
    "coulomb-viscous-offset": FrictionModel(offset=True),
    "coulomb-viscous-asymmetric": FrictionModel(asymmetric_coulomb=True, asymmetric_viscosity=True),
    "stribeck": FrictionModel("exponential"),
    "stribeck-offset": FrictionModel("exponential", offset=True),
    "stribeck-asymmetric": FrictionModel("exponential", asymmetric_coulomb=True, asymmetric_viscosity=True),
    "stribeck-plateau": FrictionModel("exponential", plateau=True),
    "stribeck-gaussian": FrictionModel("gaussian"),
}
"""Models whose friction is a function of velocity alone, by name."""

MODELS = {
    **STATIC_MODELS,
    **{
        f"{name}-presliding": replace(model, presliding=True)
        for name, model in STATIC_MODELS.items()
        if model.dry and not model.plateau
    },
    **{
        f"{name}{suffix}-harmonics": replace(model, presliding=bool(suffix), harmonics=True)
        for name, model in STATIC_MODELS.items()
        if model.offset or model.asymmetric_coulomb
        for suffix in ("", "-presliding")
    },
}
"""All models by name. A name ends with its extensions, as in ``stribeck-offset-presliding-harmonics``."""


def negative(values: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of negative levels and viscosities, which are not physical."""
    free = {"offset", INERTIA, *HARMONICS}
    return tuple(name for name, value in values.items() if name not in free and value < 0.0)


def named_model(model: FrictionModel | str) -> FrictionModel:
    """Return a model by its name; a model is returned unchanged."""
    if isinstance(model, FrictionModel):
        return model
    if model not in MODELS:
        raise unknown_name("friction model", model, MODELS)
    return MODELS[model]
