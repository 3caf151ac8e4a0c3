"""Settings of the table ``session``: model, rate, duration, scene, faults, and recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.settings.models import MODELS, require_known
from devices.faults import parse_fault
from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, flag, string, unrestricted

LONGEST = 1e7
"""Maximum planned duration of a run [s]."""

_FAULTS_ALLOWED = "a list of texts NAME@SECONDS, such as ['nan@2']"


@documented
@dataclass(frozen=True)
class SessionSettings:
    """Settings of the table ``session``: model, rate, duration, scene, faults, and recording."""

    model: str = string(
        "", allowed=", ".join(MODELS), doc="friction element; the one that suits the device if not given"
    )
    rate: float = bounded(1000.0, minimum=10.0, maximum=10000.0, unit="Hz", doc="servo rate")
    duration: float | None = unrestricted(
        None, "a time greater than 0 s", doc="length of the run; until it is stopped if not given"
    )
    seed: int = bounded(1, minimum=0, maximum=2**62, unit="", doc="seed of everything random in a virtual device")
    record: str = string(
        "recordings", allowed="a folder", doc="where the recordings are made, each in a folder of its own"
    )
    clock: str = choice(
        "wall", ("wall", "off"), doc="off: as fast as the machine can, on a virtual device, with the same result"
    )
    picture: bool = flag(True, doc="whether the recording gets a picture, which takes a second")
    measured: str = string(
        "",
        allowed="a file",
        doc="file of haptics calibrate device: advice goes by it, couplings beyond its boundary are refused",
    )
    scene: str = string(
        "",
        allowed="a scene file, or the name of a scene that is shipped",
        doc="what the law's numbers are from place to place (docs/how_to/scenes.md); `scene` alone is short for it",
    )
    faults: tuple[str, ...] = unrestricted(
        (), _FAULTS_ALLOWED, doc="faults on demand (docs/faults.md): the device turns bad"
    )

    def __post_init__(self) -> None:
        check(self, "session")
        require_known("model", self.model, MODELS)
        duration = self.duration
        if duration is not None and not (isinstance(duration, int | float) and 0.0 < duration < LONGEST):
            raise ConfigurationError(
                f"session.duration = {duration!r}: must be a time greater than 0 s and less than {LONGEST:g} s "
                f"({LONGEST / 86400:.0f} days). Leave it out for a run that lasts until it is stopped."
            )
        if not self.record:
            raise ConfigurationError(f"session.record = {self.record!r}: must be a folder.")
        object.__setattr__(self, "faults", _checked_faults(self.faults))


def _checked_faults(texts: Any) -> tuple[str, ...]:
    """Return the fault specifications as a tuple after validation."""
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ConfigurationError(f"session.faults = {texts!r}: must be {_FAULTS_ALLOWED}.")
    for text in texts:
        parse_fault(text)
    return tuple(texts)
