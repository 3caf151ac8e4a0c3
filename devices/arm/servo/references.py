"""References for a drive that controls the positions of its motors itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from devices.arm.flatness.joint import MOTION, ElasticJoint
from devices.arm.mechanics.dynamics import Links
from devices.arm.mechanics.linkage import PlacedLinkage
from devices.arm.servo import kernels
from devices.arm.servo.servo import Pair, new_references
from devices.arm.servo.settings import FRACTIONAL, LINEARISING, PID, SLIDING, ServoSettings
from haptics.errors import ConfigurationError

Vector = NDArray[np.float64]


class MotorReferences:
    """References of the motors per tick: angles, speeds and torques, all seen at the joint.

    ===========  =============================================================================================
    `pid`        the command and its speed; the torque holds the weight, depending on the settings
    `flatness`   angle and speed of the motor of an elastic joint, (25), and its torque (20) (Weigand et al. 2020)
    `rigid`      angle, speed and torque of the motor of a rigid joint, (27)
    ===========  =============================================================================================

    Parameters
    ----------
    settings : ServoSettings
        Law and reference; its gains are not used, because the drive has its own.
    links, joints, placed :
        As for `devices.arm.servo.servo.new_servo`.
    period : float
        Period of the tick [s].

    Raises
    ------
    ConfigurationError
        If the law has no references for the motors: exact linearisation, fractional and sliding-mode compute torques.
    """

    def __init__(
        self,
        settings: ServoSettings,
        links: Links,
        joints: Sequence[ElasticJoint],
        period: float,
        placed: PlacedLinkage | None = None,
    ) -> None:
        if settings.kind in (LINEARISING, FRACTIONAL, SLIDING):
            raise ConfigurationError(
                f"device.servo.law = {settings.law!r}: must be one of pid, flatness, rigid for motors that control "
                "their position themselves."
            )
        self._servo = new_references(settings, links, joints, period, placed)
        self._follows = settings.kind == PID

    @property
    def motion(self) -> Vector:
        """Reference of both links and its four derivatives, (2, 5) [rad], [rad/s] and so on."""
        rows = self._servo["axis"]["wanted"][0]
        return np.stack([rows[name] for name in MOTION], axis=1)

    @property
    def places(self) -> tuple[int, int, bool]:
        """First arguments of `devices.arm.servo.kernels.refer_motors`; valid while this object exists."""
        return self._servo.ctypes.data, kernels.refer_address(self._servo), self._follows

    def start(self, angles: Pair) -> None:
        """Start at rest at the joint angles, (2,) [rad]."""
        kernels.start_servos(self._servo, np.asarray(angles, np.float64))

    def step(self, angles: ArrayLike, hand: ArrayLike = (0.0, 0.0)) -> tuple[Vector, Vector, Vector]:
        """Return the references of the motors for the command of a tick.

        Parameters
        ----------
        angles : (2,) array
            Commanded joint angles [rad].
        hand : (2,) array
            Torque of the hand on the joints [N m]; used if the law feeds it forward.

        Returns
        -------
        angles, speeds, torques : (2,) float array
            At the joint [rad], [rad/s], [N m].
        """
        told, (servo, refer, follows) = np.zeros(6), self.places
        kernels.refer_motors(servo, refer, follows, np.asarray(angles, float), np.asarray(hand, float), told)
        return told[:2], told[2:4], told[4:]
