"""Force filters of the service: a damper, a gate, a configurable damping, a scale.

Their order is documented, and that the first cannot be configured, but not their equations. Here the dampers subtract
a force proportional to the velocity. The gate, which should prevent oscillation of the handle, attenuates every change
of the force that is opposite to the previous change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Space = tuple[float, float, float]


@dataclass
class Filters:
    """Filters of one device.

    Attributes
    ----------
    fixed : float
        Damper that cannot be configured [N s/m].
    gate : float
        Fraction of a reversal of the force that is suppressed, 0 to 1.
    damping : float
        Configurable damping [N s/m].
    scale : float
        Factor on all forces.
    """

    fixed: float = 0.05
    gate: float = 0.3
    damping: float = 0.0
    scale: float = 1.0
    _force: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    _step: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def passed(self, force: Space, velocity: Space) -> Space:
        """Return the filtered `force` [N] at a `velocity` [m/s]; to be called once per command."""
        left = []
        for i in range(3):
            wanted = force[i] - self.fixed * velocity[i]
            step = wanted - self._force[i]
            turned = step * self._step[i] < 0.0
            self._step[i] = step
            self._force[i] += step * (1.0 - self.gate if turned else 1.0)
            left.append(self.scale * (self._force[i] - self.damping * velocity[i]))
        return left[0], left[1], left[2]

    def reset(self) -> None:
        """Reset the filters."""
        self._force, self._step = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
