"""A sliding contact on an arm that is known as a linear system: the smallest virtual mass that the loop bears.

A device that knows its own servo, gears and force sensor describes them, in the hand that holds it, as one linear
system per tick (`SampledArm`). While model A or D slides under friction of constant level, its mass is an admittance
1/(M s) between the measured force and the reference, and closes the loop. What limits it is as a rule the handle: its
inertia lies beyond the force sensor, which shows it as a force, against the motion and as late as the arm follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampledArm:
    """An arm under its servo, in a hand that holds still: s_(k+1) = transition s_k + command r_k, h_k = force s_k.

    Attributes
    ----------
    transition : (n, n) array
        What a tick does to the state s.
    command : (n, 2) array
        What the position reference r adds [1/m].
    force : (2, n) array
        What the force sensor shows of the state [N].
    period : float
        From tick to tick [s].
    """

    transition: Matrix
    command: Matrix
    force: Matrix
    period: float

    def sliding(self, mass: float) -> Matrix:
        r"""Return the matrix of one tick of a sliding mass M [kg] on this arm, (n + 4, n + 4).

        Under friction of constant level :math:`u_k = u_{k-1} + T h_k / M` (Kikuuwe et al. 2006, (12)) and :math:`r_k =
        r_{k-1} + T u_k`; the state is s, u and r. A slope of the friction law changes little: at the frequencies at
        which arms shake it is small beside M times the angular frequency.
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
