"""Stiffness laws of a gearbox with lost motion and backlash, each with its exact inverse.

The twist is the motor angle at the link's side minus the link angle: theta/u - q.

==================  ==============================  ========  ==============================================
class               Weigand et al. 2020             given as  smooth enough for the feed-forward
==================  ==============================  ========  ==============================================
`SmoothBacklash`    (11)                            twist     yes
`RampBacklash`      (7), (8), (9)                   torque    only with some stiffness inside the play
`LostMotion`        (6), (10)                       both      no: its twist jumps where the torque changes sign
==================  ==============================  ========  ==============================================

(9) and (11) are not inverse to each other: they differ by up to a third of the backlash. A feed-forward is exact only
if it uses the stiffness law of the joint. Each law here is therefore inverted numerically, to machine precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness.law_kernels import SMOOTH
from devices.arm.flatness.stiffness_kernels import BROKEN, KNEE, LAGGING, torque_of, twist_of, values_of
from devices.arm.flatness.values import Values, finite
from haptics.settings import bounded, check, documented


@dataclass(frozen=True)
class Stiffness(ABC):
    """Torque in a gearbox as an increasing function of its twist, and the inverse function."""

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        check(self, "stiffness")

    @property
    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """Parameters of the law in the order in which the kernels read them."""

    @property
    def obstacle(self) -> str:
        """Reason why the twist is not twice differentiable with respect to the torque; empty if it is."""
        return ""

    @property
    def record(self) -> NDArray[Any]:
        """Kernel record of the law, (1,) of dtype `devices.arm.flatness.law_kernels.SMOOTH`."""
        record = np.zeros(1, SMOOTH)
        record["kind"] = self.kind
        record["numbers"][0][: len(self.numbers)] = self.numbers
        return record

    def torque_derivatives(self, twist: ArrayLike) -> Values:
        """Return torque [N m] and its two derivatives [N m/rad], [N m/rad^2], (..., 3), at `twist` [rad]."""
        return self._values(torque_of(self.kind), finite(twist, "twist"))

    def twist_derivatives(self, torque: ArrayLike) -> Values:
        """Return twist [rad] and its two derivatives [rad/(N m)], [rad/(N m)^2], (..., 3), at `torque` [N m]."""
        return self._values(twist_of(self.kind), finite(torque, "torque"))

    def torque(self, twist: ArrayLike) -> Values:
        """Return the torque in the gearbox [N m] at `twist` [rad]."""
        return np.asarray(self.torque_derivatives(twist)[..., 0])[()]

    def twist(self, torque: ArrayLike) -> Values:
        """Return the twist of the gearbox [rad] under `torque` [N m]."""
        return np.asarray(self.twist_derivatives(torque)[..., 0])[()]

    def _values(self, function: Callable[..., Any], arguments: Values) -> Values:
        results = np.empty((arguments.size, 3))
        values_of(function)(self.record, arguments.ravel(), results)
        return results.reshape(*arguments.shape, 3)


@documented
@dataclass(frozen=True)
class SmoothBacklash(Stiffness):
    """Stiffness with a soft knee: twist tau/c + 2 phi/(1 + exp(-s tau)) - phi (Weigand et al. 2020, (11))."""

    kind: ClassVar[int] = KNEE
    stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c of the loaded gearbox")
    backlash: float = bounded(
        minimum=0.0, unit="rad", doc="half the play phi, lost motion included; with 0 the gearbox is a linear spring"
    )
    smoothness: float = bounded(
        1.0, above=0.0, unit="1/(N m)", doc="s, how soon a torque takes up the play: about 4/s do"
    )

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.stiffness, self.backlash, self.smoothness


@documented
@dataclass(frozen=True)
class RampBacklash(Stiffness):
    """Stiffness that increases like the response of three equal lags to a ramp.

    See Weigand et al. 2020, (7) to (9). The odd continuation of (7) is itself three times continuously differentiable.
    The tanh of (9) only approximates it: this law is (9) for an infinite slope factor.
    """

    kind: ClassVar[int] = LAGGING
    stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c of the loaded gearbox")
    backlash: float = bounded(above=0.0, unit="rad", doc="half the play phi, lost motion included")
    slack_stiffness: float = bounded(
        0.0,
        minimum=0.0,
        unit="N m/rad",
        doc="stiffness in the middle of the play, added everywhere; without any, as in the paper, the twist rises "
        "infinitely steeply at zero torque, which no motor can follow",
    )

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.stiffness, self.backlash, self.slack_stiffness

    @property
    def obstacle(self) -> str:  # noqa: D102 (inherited)
        return "" if self.slack_stiffness > 0.0 else "without slack_stiffness its backlash has no stiffness"


@documented
@dataclass(frozen=True)
class LostMotion(Stiffness):
    """Play, lost motion and full contact as a piecewise linear law (Weigand et al. 2020, (6), (10)).

    As printed, (6) and (10) are discontinuous. Here they are continuous and inverse to each other. Without torque, any
    twist within the play is possible; 0 is returned.
    """

    kind: ClassVar[int] = BROKEN
    stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c_TR in full contact")
    lost_motion_stiffness: float = bounded(above=0.0, unit="N m/rad", doc="stiffness c_LM while not all teeth touch")
    backlash: float = bounded(minimum=0.0, unit="rad", doc="half the play phi_B*")
    lost_motion: float = bounded(minimum=0.0, unit="rad", doc="further twist phi_LM until all teeth touch")

    @property
    def numbers(self) -> tuple[float, ...]:  # noqa: D102 (inherited)
        return self.stiffness, self.lost_motion_stiffness, self.backlash, self.lost_motion

    @property
    def obstacle(self) -> str:  # noqa: D102 (inherited)
        return "its twist jumps where the torque changes its sign"
