"""Simulated response of a handle to pushes from the commands alone, vectorized over pushes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NAMES = ("mass", "damping", "friction", "offset", "delay")

_STEP = 0.25e-3
"""Maximum time step of the simulation [s]."""


@dataclass(frozen=True)
class Push:
    """Recording of one push along one axis.

    Attributes
    ----------
    command : (h + n,) float array
        Commands at the ticks of the push, preceded by the commands at the `history` ticks before it [N].
    position : (n,) float array
        Position of the handle at the ticks of the push [m]; nan if unknown.
    history : int
        Number of ticks before the push that `command` includes.
    """

    command: Array
    position: Array
    history: int


@dataclass(frozen=True)
class Plant:
    """Parameters of the handle in the order of `NAMES` [kg, N s/m, N, N, s]."""

    mass: float
    damping: float = 0.0
    friction: float = 0.0
    offset: float = 0.0
    delay: float = 0.0

    @property
    def numbers(self) -> Array:
        """Parameters in the order of `NAMES`."""
        return np.array([self.mass, self.damping, self.friction, self.offset, self.delay])


class PushSimulator:
    """Simulator of several pushes at once.

    Parameters
    ----------
    pushes : sequence of Push
        At least one push.
    period : float
        Time between two ticks [s].
    """

    def __init__(self, pushes: Sequence[Push], period: float) -> None:
        self.period = period
        self.parts = math.ceil(period / _STEP - 1e-9)
        length = max(len(push.position) for push in pushes)
        self.position = np.full((len(pushes), length), np.nan)
        before = max(push.history for push in pushes)
        command = np.zeros((len(pushes), before + length))
        for row, push in enumerate(pushes):
            self.position[row, : len(push.position)] = push.position
            command[row, before - push.history : before + len(push.position)] = push.command
            command[row, : before - push.history] = push.command[0]
        self.known = np.isfinite(self.position)
        self._impulse = np.concatenate((np.zeros((len(pushes), 1)), np.cumsum(command, axis=1)), axis=1) * period
        self._before = before

    def forces(self, delay: float) -> Array:
        """Return the mean force over each step of the simulation, (steps, pushes) [N]."""
        count, step = (self.position.shape[1] - 1) * self.parts, self.period / self.parts
        time = self._before * self.period + step * np.arange(count + 1) - delay
        place = np.clip(time / self.period, 0.0, self._impulse.shape[1] - 1.001)
        whole = place.astype(np.int64)
        impulse = self._impulse[:, whole]
        impulse = impulse + (place - whole) * (self._impulse[:, whole + 1] - impulse)
        return np.asarray(np.diff(impulse, axis=1).T / step)

    def simulate(self, plants: Sequence[Plant], velocity: Array) -> Array:
        """Return the displacement of the handle (plants, pushes, ticks) [m].

        The initial `velocity` is (plants, pushes) [m/s]. The result is exact for a force that is constant over a step,
        except for the damping in a step with a reversal.
        """
        m, b, c, g, _ = (column[:, None] for column in np.array([plant.numbers for plant in plants]).T)
        delays = [plant.delay for plant in plants]
        forces = {delay: self.forces(delay) for delay in set(delays)}
        force = np.stack([forces[delay] for delay in delays], axis=1) - g[None]
        h = self.period / self.parts
        z = b * h / m
        first, second = 1.0 - z / 2.0 + z**2 / 6.0 - z**3 / 24.0, 0.5 - z / 6.0 + z**2 / 24.0 - z**3 / 120.0
        kept, gain, way, push = 1.0 - z * first, h / m * first, h * first, h * h / m * second
        v, x = velocity.copy(), np.zeros_like(velocity)
        out = np.zeros((*velocity.shape, self.position.shape[1]))
        for k in range(len(force)):
            pull = force[k]
            driven = pull - np.clip(pull, -c, c)  # for a handle that dry friction may hold
            net = np.where(v == 0.0, driven, pull - c * np.sign(v))
            after = kept * v + gain * net
            moved = way * v + push * net
            turned = v * after < 0.0
            if turned.any():  # dry friction reverses with the motion, within the step
                part = np.where(turned, v / np.where(turned, v - after, 1.0), 0.0)
                again = gain * (1.0 - part) * driven
                moved = np.where(turned, 0.5 * h * (part * v + (1.0 - part) * again), moved)
                after = np.where(turned, again, after)
            x += moved
            v = after
            if (k + 1) % self.parts == 0:
                out[..., (k + 1) // self.parts] = x
        return out
