"""Table ``friction`` of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from calibration.motions.excitation import Excitation
from haptics.errors import ConfigurationError
from haptics.settings import build, check, documented, flag


@documented
@dataclass(frozen=True)
class FrictionSettings:
    """Table ``friction``: measurement of the device's friction in every session."""

    measure_each_session: bool = flag(
        False, doc="measure it before the first block, with nobody's hand on the handle, and compensate what was found"
    )
    excitation: Any = field(
        default_factory=dict,
        metadata={
            "words": "a table as of haptics calibrate friction: slowest, fastest, speeds, rounds, strokes ...",
            "doc": "how the device is moved for it",
        },
    )

    def __post_init__(self) -> None:
        check(self, "friction")
        if not isinstance(self.excitation, dict):
            raise ConfigurationError(f"friction.excitation = {self.excitation!r}: must be a table.")
        _ = self.motions

    @property
    def motions(self) -> Excitation:
        """Motions of the measurement."""
        return build(Excitation, self.excitation, "friction.excitation")
