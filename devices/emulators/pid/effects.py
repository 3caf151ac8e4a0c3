"""Effects of the PID class: force of a stored effect as a fraction of full scale.

Times are in milliseconds, which are the frames of the bus. Deflections and speeds of the conditions are in the device's
own axes: 1 is half the travel, and half the travel per quarter of a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Pair = tuple[float, float]

CONSTANT, RAMP, SQUARE, SINE, TRIANGLE, SAW_UP, SAW_DOWN, SPRING, DAMPER, INERTIA, FRICTION, CUSTOM = range(1, 13)
"""Types of effects, by their position in the list of the report."""

ENDLESS_LOOPS = 255
"""Loop count of an endless effect."""

UNIT_SPEED = 4.0
"""Speed that corresponds to 1 for a damper, in half travels per second."""

_FRICTION_SPEED = 0.05
"""Speed below which friction decreases, to prevent chatter."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One axis of a spring, damper or friction, as fractions of full scale."""

    centre: float = 0.0
    positive: float = 0.0
    negative: float = 0.0
    positive_saturation: float = 1.0
    negative_saturation: float = 1.0
    dead_band: float = 0.0

    def force(self, metric: float) -> float:
        """Return the force against `metric`, the deflection or the speed."""
        beyond = metric - self.centre
        if abs(beyond) <= self.dead_band:
            return 0.0
        if beyond > 0.0:
            force = -self.positive * (beyond - self.dead_band)
        else:
            force = -self.negative * (beyond + self.dead_band)
        return max(-self.positive_saturation, min(self.negative_saturation, force))


@dataclass(frozen=True, slots=True)
class Envelope:
    """Attack and fade of an effect: levels as fractions of full scale, times in ms."""

    attack_level: float = 0.0
    attack_time: float = 0.0
    fade_level: float = 0.0
    fade_time: float = 0.0


@dataclass(slots=True)
class Effect:
    """Effect in a block of the pool."""

    kind: int
    duration: float = math.inf
    start_delay: int = 0
    gain: float = 1.0
    direction: Pair = (0.0, 0.0)
    magnitude: float = 0.0
    ramp: Pair = (0.0, 0.0)
    offset: float = 0.0
    phase: float = 0.0
    period: float = 1.0
    envelope: Envelope | None = None
    conditions: dict[int, Condition] = field(default_factory=dict)
    playing: bool = False
    started: int = 0
    loops: int = 1

    def start(self, now: int, loops: int) -> None:
        """Play from the beginning, also if already playing."""
        self.playing, self.started, self.loops = True, now, max(loops, 1)

    def over(self, now: int) -> bool:
        """Return True if the effect has ended."""
        if self.loops == ENDLESS_LOOPS:
            return False
        return now - self.started >= self.start_delay + self.duration * self.loops

    def level(self, now: int, place: Pair, speed: Pair) -> Pair:
        """Return the force along the device's axes, before saturation."""
        elapsed = now - self.started - self.start_delay
        if elapsed < 0:
            return 0.0, 0.0
        if self.kind in {SPRING, DAMPER, FRICTION}:
            push = self._resistance(0, place, speed), self._resistance(1, place, speed)
        else:
            time = elapsed % self.duration if self.duration < math.inf else elapsed
            size = self._size(time)
            push = size * self.direction[0], size * self.direction[1]
        return self.gain * push[0], self.gain * push[1]

    def _resistance(self, axis: int, place: Pair, speed: Pair) -> float:
        condition = self.conditions.get(axis)
        if condition is None:
            return 0.0
        if self.kind == SPRING:
            return condition.force(place[axis])
        if self.kind == DAMPER:
            return condition.force(speed[axis])
        return condition.force(max(-1.0, min(1.0, speed[axis] / _FRICTION_SPEED)))

    def _size(self, time: float) -> float:
        if self.kind == CONSTANT:
            return self._enveloped(self.magnitude, time)
        if self.kind == RAMP:
            part = time / self.duration if self.duration < math.inf else 0.0
            return self._enveloped(self.ramp[0] + part * (self.ramp[1] - self.ramp[0]), time)
        if SQUARE <= self.kind <= SAW_DOWN:
            turn = (time / self.period + self.phase) % 1.0
            return self.offset + self._enveloped(self.magnitude, time) * _wave(self.kind, turn)
        return 0.0  # inertia requires an acceleration, a custom force its samples: stored, not played

    def _enveloped(self, size: float, time: float) -> float:
        """Return `size` with attack and fade applied; its sign is unchanged."""
        envelope = self.envelope
        if envelope is None:
            return size
        if time < envelope.attack_time:
            edge, part = envelope.attack_level, time / envelope.attack_time
        elif self.duration - time < envelope.fade_time:
            edge, part = envelope.fade_level, (self.duration - time) / envelope.fade_time
        else:
            return size
        return math.copysign(edge + part * (abs(size) - edge), size)


def _wave(kind: int, turn: float) -> float:
    """Return a wave of amplitude 1 at the fraction `turn` of its period, 0 to 1."""
    if kind == SQUARE:
        return 1.0 if turn < 0.5 else -1.0
    if kind == SINE:
        return math.sin(2.0 * math.pi * turn)
    if kind == TRIANGLE:
        return 4.0 * abs(turn - 0.5) - 1.0
    return 2.0 * turn - 1.0 if kind == SAW_UP else 1.0 - 2.0 * turn
