"""Settings shared by several devices."""

from __future__ import annotations

from dataclasses import dataclass

from haptics.settings import bounded, documented, string


@documented
@dataclass(frozen=True)
class RunSettings:
    """Settings of the run that every device needs."""

    period: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="s", doc="period of a tick where there is no clock")
    log: str = string("", allowed="a file", doc="where to log what was commanded and when")


@documented
@dataclass(frozen=True)
class SeedSettings:
    """Seed of the random numbers of a simulated device."""

    seed: int = bounded(0, minimum=0, maximum=2**62, doc="seed of everything random")
