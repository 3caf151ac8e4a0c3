"""Friction models that are linear in all parameters but one (Guedelha et al. 2018, sections 3.2.1 and 3.2.2).

With e = exp(-|w|/ws) the friction of a joint turning at w is

    F(w) =  Kc (1 - e) + Kv w + e s+     for w > 0
    F(w) = -Kc (1 - e) + Kv w - e s-     for w < 0

with Kc the Coulomb level, Kv the viscosity, s+ and s- the levels at vanishing speed. This is (29) to (31) with two
signs put right: the factor of Kc is 1 - e (printed 1 + e), and the viscous column is w on both sides (printed as the
magnitude of w, by the ramp r- of (28)). The speed ws, 1 in the paper, is the one parameter the model is not linear in.
F has the direction of w: the paper's friction torque is -F.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.normal_equations import stacked
from calibration.fitting.regression import times
from haptics.errors import ConfigurationError
from haptics.settings import check, choice, documented, flag, unknown

Array = NDArray[np.float64]

SCALE = "stribeck_velocity"
"""The parameter that a model is not linear in."""
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
    SCALE: "velocity",
    INERTIA: "inertia",
}
"""What each parameter is, whether of a joint (N m, rad/s) or of a slide (N, m/s)."""


@documented
@dataclass(frozen=True)
class FrictionModel:
    """Which terms a friction law has.

    Raises
    ------
    ConfigurationError
        Where terms exclude each other.
    """

    stribeck: str = choice(
        "none",
        ("none", "exponential", "gaussian"),
        doc="how the level falls from its static to its Coulomb value: exponential with exp(-|w|/ws), as in the "
        "paper, gaussian with exp(-(w/ws)^2)",
    )
    asymmetric_coulomb: bool = flag(
        False, doc="whether both directions have Coulomb levels of their own; static levels always do"
    )
    asymmetric_viscosity: bool = flag(False, doc="whether both directions have viscosities of their own")
    offset: bool = flag(
        False, doc="whether a constant force is there as well; not with asymmetric_coulomb: data cannot tell them apart"
    )
    plateau: bool = flag(
        False,
        doc="whether the law starts flat, dF/dw = 0 at 0+ (section 4.1.2), which ties s+ to Kc + Kv ws; "
        "exponential only",
    )
    dry: bool = flag(True, doc="whether there is any friction but the viscous one")

    def __post_init__(self) -> None:
        check(self)
        if self.offset and self.asymmetric_coulomb:
            raise ConfigurationError("offset together with asymmetric_coulomb: no data can tell them apart, choose one")
        if not self.dry and (self.scaled or self.asymmetric_coulomb):
            raise ConfigurationError("a model that is not dry has no Coulomb or static levels: leave those out")
        if self.plateau and self.stribeck != "exponential":
            raise ConfigurationError(
                f'plateau with stribeck "{self.stribeck}": only an "exponential" law can start flat'
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters: those the model is linear in, then the Stribeck velocity."""
        return self.linear_names + ((SCALE,) if self.scaled else ())

    @property
    def scaled(self) -> bool:
        """Whether there is a Stribeck velocity."""
        return self.stribeck != "none"

    @property
    def freedom(self) -> int:
        """How many parameters data have to tell."""
        return len(self.names) - self.plateau

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Names of the parameters the model is linear in, in the order of the columns."""
        names = ["coulomb_forward", "coulomb_backward"] if self.asymmetric_coulomb else ["coulomb"] * self.dry
        names += ["viscosity_forward", "viscosity_backward"] if self.asymmetric_viscosity else ["viscosity"]
        names += ["static_forward", "static_backward"] if self.scaled else []
        return (*names, *(["offset"] if self.offset else []))

    def columns(self, velocity: Array, scale: float = 1.0) -> Array:
        """Return what multiplies each linear parameter, (n, p), at a Stribeck velocity.

        No side is taken at rest: there friction is whatever holds the joint.
        """
        forward, backward = velocity > 0.0, velocity < 0.0
        static = self._static_share(velocity, scale)
        dry = np.sign(velocity) * (1.0 - static)
        columns = [dry * forward, dry * backward] if self.asymmetric_coulomb else [dry] * self.dry
        columns += [velocity * forward, velocity * backward] if self.asymmetric_viscosity else [velocity]
        if self.scaled:
            columns += [static * forward, -static * backward]
        if self.offset:
            columns.append(np.ones_like(velocity))
        return stacked(columns)

    def _static_share(self, velocity: Array, scale: float) -> Array:
        speed = np.abs(velocity) / scale
        if self.stribeck == "none":
            return np.zeros_like(speed)
        return np.exp(-speed if self.stribeck == "exponential" else -speed * speed)

    def scale_derivative(self, linear: Array, velocity: Array, scale: float) -> Array:
        """Return the derivative (n,) of the law with regard to the Stribeck velocity.

        Parameters
        ----------
        linear : array, (p,)
            By `linear_names`.
        velocity : array, (n,)
        scale : float
            The Stribeck velocity.
        """
        values = dict(zip(self.linear_names, linear, strict=True))
        excess = {side: values[f"static_{side}"] - values[self._name("coulomb", side)] for side in SIDES}
        speed = np.abs(velocity) / scale
        growth = speed if self.stribeck == "exponential" else 2.0 * speed * speed
        size = np.where(velocity > 0.0, excess["forward"], -excess["backward"])
        return np.asarray(self._static_share(velocity, scale) * growth * (size / scale))

    def reduction(self, scale: float, physical: bool) -> Array:
        """Return how the linear parameters (p) follow from those that are searched (r), (p, r).

        With `physical`, static levels are searched as what they exceed the Coulomb level by. A plateau leaves
        ``static_forward`` nothing to choose.
        """
        names = self.linear_names
        matrix = np.eye(len(names))
        if not self.scaled:
            return matrix
        for side in SIDES:
            if physical or (self.plateau and side == "forward"):
                matrix[names.index(f"static_{side}"), names.index(self._name("coulomb", side))] = 1.0
        if self.plateau:
            static = names.index("static_forward")
            matrix[static, names.index(self._name("viscosity", "forward"))] = scale
            matrix = np.delete(matrix, static, axis=1)
        return matrix

    def _name(self, kind: str, side: str) -> str:
        return kind if kind in self.linear_names else f"{kind}_{side}"

    def evaluate(self, values: Mapping[str, float], velocity: Array) -> Array:
        """Return the friction at each velocity; at rest, only the offset."""
        velocity = np.asarray(velocity, float)
        linear = np.array([values[name] for name in self.linear_names])
        return times(self.columns(velocity, values.get(SCALE, 1.0)), linear)

    def slope(self, values: Mapping[str, float], velocity: Array) -> Array:
        """Return dF/dw at each velocity, where it is not 0."""
        velocity = np.asarray(velocity, float)
        forward = velocity >= 0.0

        def sided(kind: str) -> Array:
            return np.where(forward, values[self._name(kind, "forward")], values[self._name(kind, "backward")])

        slope = sided("viscosity")
        if not self.scaled:
            return slope
        scale = values[SCALE]
        static = np.where(forward, values["static_forward"], values["static_backward"]) - sided("coulomb")
        falling = self._static_share(velocity, scale) / scale
        if self.stribeck == "gaussian":
            falling = falling * 2.0 * np.abs(velocity) / scale
        return slope - static * falling


MODELS = {
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
"""Models by name."""


def negative(values: Mapping[str, float]) -> tuple[str, ...]:
    """Return which parameters make values no friction law: levels and viscosities are at least 0."""
    return tuple(name for name, value in values.items() if name not in {"offset", INERTIA} and value < 0.0)


def named_model(model: FrictionModel | str) -> FrictionModel:
    """Return a model by its name, or as it is."""
    if isinstance(model, FrictionModel):
        return model
    if model not in MODELS:
        raise unknown("friction model", model, MODELS)
    return MODELS[model]
