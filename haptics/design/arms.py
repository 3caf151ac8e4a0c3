"""Minimum virtual mass of a sliding contact on an arm that is known as a linear system.

A device with a model of its servo, gears and force sensor describes them, together with the hand that holds it, as one
linear system per tick (`SampledArm`). While model A or D slides under friction of constant level, its mass is an
admittance 1/(M s) between the measured force and the reference, and closes the loop. The handle is the usual limit: its
inertia is beyond the force sensor, which measures it as a force against the motion, delayed by the lag of the arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampledArm:
    """Servo-controlled arm in a motionless hand: s_(k+1) = transition s_k + command r_k, h_k = force s_k.

    Attributes
    ----------
    transition : (n, n) array
        State transition over one tick.
    command : (n, 2) array
        Input matrix of the position reference r [1/m].
    force : (2, n) array
        Output matrix of the force sensor [N].
    period : float
        Duration of a tick [s].
    """

    transition: Matrix
    command: Matrix
    force: Matrix
    period: float

    def sliding(self, mass: float) -> Matrix:
        """Return the matrix of one tick of a sliding mass M [kg] on this arm, (n + 4, n + 4).

        Under friction of constant level :math:`u_k = u_{k-1} + T h_k / M` (Kikuuwe et al. 2006, (12)) and
        :math:`r_k = r_{k-1} + T u_k`. The state is s, u and r. The slope of the friction law is neglected: at the
        frequencies at which arms oscillate it is small compared with M times the angular frequency.
        """
        n, T = len(self.transition), self.period
        matrix = np.zeros((n + 4, n + 4))
        velocity, eye = matrix[n : n + 2], np.eye(2)
        velocity[:, :n], velocity[:, n : n + 2] = T / mass * self.force, eye
        matrix[n + 2 :] = T * velocity
        matrix[n + 2 :, n + 2 :] += eye
        matrix[:n] = self.command @ matrix[n + 2 :]
        matrix[:n, :n] += self.transition
        return matrix
