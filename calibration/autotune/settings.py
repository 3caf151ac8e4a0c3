"""Settings of the tuning of a device: limits of the motion, and scope of the measurement."""

from __future__ import annotations

from dataclasses import dataclass

from haptics.settings import bounded, check, choice, documented, flag

AXES = ("x", "y")
TABLE = "autotune"
"""Name of the settings table."""


@documented
@dataclass(frozen=True)
class Autotune:
    """Settings of the tuning."""

    force: float = bounded(
        4.0, minimum=0.01, maximum=100.0, unit="N", doc="friction force that the suggestion is to render"
    )
    axes: str = choice("both", ("both", *AXES), doc="axes that are measured")
    travel: float = bounded(
        0.02, minimum=0.002, maximum=0.2, unit="m", doc="a push may move the handle by half of this to either side"
    )
    speed: float = bounded(0.2, minimum=0.01, maximum=1.0, unit="m/s", doc="fastest motion of a push")
    strength: float = bounded(0.4, minimum=0.05, maximum=0.6, doc="part of the device's largest force that pushes use")
    pushes: int = bounded(40, minimum=16, maximum=400, doc="pushes for the identification of an axis")
    rise: float = bounded(1.25, minimum=1.05, maximum=2.0, doc="factor between two stiffnesses on the way up")
    bracket: float = bounded(
        0.05, minimum=0.01, maximum=0.3, doc="relative distance of a stable and an unstable stiffness that ends it"
    )
    boundary: bool = flag(True, doc="whether the boundary is measured, or parameters are identified only")

    def __post_init__(self) -> None:
        check(self, TABLE)

    @property
    def measured_axes(self) -> tuple[str, ...]:
        """Names of the measured axes."""
        return AXES if self.axes == "both" else (self.axes,)
