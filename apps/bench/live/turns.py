"""Settings of benchmarks with alternating real-time slices: slice length and servo scheduling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented

_LONGEST_SLICE = 10.0
_SHORTEST_SLICE = 0.5


@documented
@dataclass(frozen=True)
class Turns:
    """Settings of a benchmark with real-time slices."""

    where: ClassVar[str] = "bench"

    duration: float = bounded(80.0, minimum=1.0, maximum=1e5, unit="s", doc="length of all slices together")
    slice: float = bounded(0.0, minimum=0.0, maximum=1e4, unit="s", doc="length of a slice; 0: 10 s, or what fits")
    rate: float = bounded(1000.0, minimum=100.0, maximum=8000.0, unit="Hz", doc="wake-ups in a second")
    scheduling: str = choice(
        "auto", ("auto", "fifo", "other"), doc="scheduling class of what is measured, as of the servo process"
    )
    cpu: int = bounded(-1, minimum=-1, doc="processor that it stays on; -1: any")

    def __post_init__(self) -> None:
        check(self, self.where)
        turns = self.turns
        if not _SHORTEST_SLICE <= self.length <= self.duration / turns * (1 + 1e-9):
            raise ConfigurationError(
                f"{self.where}: {turns} slices of {self.length:g} s in {self.duration:g} s: a slice must be at least "
                f"{_SHORTEST_SLICE:g} s long, and all {turns} must fit into the duration."
            )

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        raise NotImplementedError

    @property
    def length(self) -> float:
        """Length of a slice [s]."""
        return self.slice or min(_LONGEST_SLICE, self.duration / self.turns)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.duration / (self.turns * self.length) * (1 + 1e-9))

    @property
    def servo(self) -> dict[str, object]:
        """Table ``servo`` of the session settings."""
        return {"scheduling": self.scheduling, "cpu": self.cpu}
