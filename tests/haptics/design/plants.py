"""Devices that are integrated exactly from one event to the next, as a reference for the matrices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

Array = NDArray[np.float64]


class _Plant:
    """A device between two samples: every command acts from its time plus `delay` until the next one does."""

    def __init__(self, delay):
        self.time, self.delay = 0.0, delay
        self._coming: list[tuple[float, float]] = []

    def command(self, value):
        """Command a force [N] or a velocity of the reference [m/s]."""
        self._coming.append((self.time + self.delay, value))

    def advance(self, duration):
        end = self.time + duration
        while self._coming and self._coming[0][0] < end - 1e-12:
            when, value = self._coming.pop(0)
            self._move(when - self.time)
            self.time = when
            self._apply(value)
        self._move(end - self.time)
        self.time = end


class ExactHandle(_Plant):
    """A mass with viscous friction in one dimension, by the closed solution of its equation of motion."""

    def __init__(self, handle, velocity):
        super().__init__(handle.total_delay)
        self.mass, self.damping = handle.mass, handle.damping
        self.position, self.velocity, self.force = 0.0, velocity, 0.0

    def _apply(self, force):
        self.force = force

    def _move(self, t):
        m, b, f, v = self.mass, self.damping, self.force, self.velocity
        if b == 0.0:
            self.position += v * t - f * t * t / (2.0 * m)
            self.velocity -= f * t / m
            return
        reach = -math.expm1(-b * t / m) * m / b  # how far it coasts per velocity
        self.position += v * reach - f / b * (t - reach)
        self.velocity = v * math.exp(-b * t / m) - f * reach / m


class ExactArm(_Plant):
    """A servo-driven arm in one dimension: the reference moves linearly between commands, and comes `delay` late."""

    def __init__(self, servo, velocity):
        super().__init__(servo.delay)
        w = 2.0 * math.pi * servo.frequency
        damper = 2.0 * servo.damping_ratio * w
        self._field = np.zeros((4, 4))
        self._field[0, 1] = self._field[2, 3] = 1.0
        self._field[1] = -w * w, -damper, w * w, damper * servo.knows_velocity
        self._servo = servo
        self.state = np.array([0.0, velocity, 0.0, 0.0])  # of the arm and of its reference: position and velocity
        self._last_velocity = velocity

    def shown_force(self, period):
        """Return the measured force: the hand force less the inertial force of the handle since the last sample."""
        _, v, _, _ = self.state
        grip = -self._servo.grip_stiffness * self.state[0] - self._servo.grip_damping * v
        took = self._servo.handle_mass * (v - self._last_velocity) / period
        self._last_velocity = v
        return float(grip - took)

    def _apply(self, velocity):
        self.state[3] = velocity

    def _move(self, t):
        self.state = expm(self._field * t) @ self.state


def held_path(handle, force, period, ticks):
    """Kick the handle and return its positions at the samples, (ticks,) [m]; `force` maps velocity to force."""
    plant = ExactHandle(handle, velocity=0.01)
    path = np.zeros(ticks)
    last = 0.0
    for tick in range(ticks):
        path[tick] = plant.position
        plant.command(force((plant.position - last) / period))
        last = plant.position
        plant.advance(period)
    return path


def decays(path):
    """Tell whether the last quarter of a path swings less than the quarter before."""
    third, last = np.array_split(path, 4)[2:]
    return bool(np.ptp(last) < np.ptp(third))
