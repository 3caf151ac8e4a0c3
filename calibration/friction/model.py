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
(`calibration.friction.motion.Travel.state`). With *harmonics*, a torque that depends on the angle q of the joint is
added: a1 cos q + b1 sin q + a2 cos 2q + b2 sin 2q. The model is linear in all parameters except ws and l.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.normal_equations import stacked
from calibration.fitting.regression import times
from calibration.friction.motion import Motion
from haptics.errors import ConfigurationError
from haptics.settings import check, choice, documented, flag, unknown_name

Array = NDArray[np.float64]

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
        motion = Motion.of(motion)
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
        if self.harmonics:
            angle = motion.angle
            columns += [
                np.zeros_like(velocity) if angle is None else wave(order * angle)
                for order in (1.0, 2.0)
                for wave in (np.cos, np.sin)
            ]
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
            return np.where(forward, values[self.sided(kind, "forward")], values[self.sided(kind, "backward")])

        slope = sided("viscosity")
        if not self.scaled:
            return slope
        scale = values[SCALE]
        static = np.where(forward, values["static_forward"], values["static_backward"]) - sided("coulomb")
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
