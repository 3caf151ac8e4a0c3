"""What the service takes away of a force before the motors get it: a damper, a gate, a damping, a scale.

Documented are their order and that the first cannot be configured, not how they compute. Here the dampers take a force
against the motion, and the gate, which shall keep a handle from oscillating, holds back a part of every change of the
force that turns the one before it round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Space = tuple[float, float, float]


@dataclass
class Filters:
    """The filters of one device.

    Attributes
    ----------
    fixed : float
        The damper that cannot be configured [N s/m].
    gate : float
        The part of a turn of the force that is held back, 0 to 1.
    damping : float
        The damping that can be configured [N s/m].
    scale : float
        Of all forces.
    """

    fixed: float = 0.05
    gate: float = 0.3
    damping: float = 0.0
    scale: float = 1.0
    _force: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    _step: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def passed(self, force: Space, velocity: Space) -> Space:
        """Return what is left of a `force` [N] on a handle that moves at `velocity` [m/s]; once a command."""
        left = []
        for i in range(3):
            wanted = force[i] - self.fixed * velocity[i]
            step = wanted - self._force[i]
            turned = step * self._step[i] < 0.0
            self._step[i] = step
            self._force[i] += step * (1.0 - self.gate if turned else 1.0)
            left.append(self.scale * (self._force[i] - self.damping * velocity[i]))
        return left[0], left[1], left[2]

    def forget(self) -> None:
        """Begin anew, at rest."""
        self._force, self._step = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
